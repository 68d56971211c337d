package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"reelahead/bench"
	"reelahead/bench/slownas"
	"reelahead/fusefs"
)

// bencher is what the figures share.
type bencher struct {
	options
	self   string // this very program
	memory *memoryWatch
}

func (b *bencher) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// rounds is how often each side runs: as the command line says, else full, or
// at most two of them in a quick run.
func (b *bencher) rounds(full int) int {
	switch {
	case b.repeat > 0:
		return b.repeat
	case b.quick:
		return min(full, 2)
	}
	return full
}

// scaled is a size of a full run, and another of a quick one.
func (b *bencher) scaled(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// spareMemory is left to everything but frames and cache, in bytes.
const spareMemory = 2 << 30

// onStage makes frames in memory, or on disk if that is asked for or memory is
// short, calls use, and removes everything.
func (b *bencher) onStage(ctx context.Context, s setting, use func(*bench.Stage) error) (err error) {
	stage, err := bench.NewStage(b.program, s.parent, int64(s.streams)*int64(s.frames)*s.size, s.cache+spareMemory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Strike()) }()
	if err := stage.MakeStreams(ctx, s.streams, s.frames, s.size, func() {}); err != nil {
		return err
	}
	return use(stage)
}

// setting is a source, the frames in it, and how they are played.
type setting struct {
	name    string
	streams int
	frames  int   // of each stream
	size    int64 // of a frame in bytes
	parent  string
	nas     *slownas.Config // nil: the filesystem with the frames is the source
	cache   int64           // of reelahead, in bytes
	mount   []string        // further flags of the mount
	play    bench.PlayConfig
}

// serverOf is a model of a server as NFS clients see it: names are kept for 3 s,
// and a reader of whole frames asks for 1 MiB at a time.
func serverOf(roundTrip time.Duration, bandwidth, streamBandwidth int64) *slownas.Config {
	return &slownas.Config{
		RoundTrip: roundTrip, Bandwidth: bandwidth, StreamBandwidth: streamBandwidth,
		Slots: 64, Seed: 1, ReadAhead: 1 << 20, AttrTimeout: 3 * time.Second,
	}
}

// unlimited is a bandwidth that no processor reaches, in bytes a second.
const unlimited = 1 << 40

// live is a running source with, perhaps, reelahead over it.
type live struct {
	dir   string        // where the frames are read
	model *bench.Server // nil: none
	mount *bench.Server // nil: none
}

// start makes the source anew, so that it is cold, and mounts reelahead over it
// if ahead.
func (b *bencher) start(ctx context.Context, stage *bench.Stage, s setting, ahead bool) (l live, err error) {
	if err := stage.Clear(); err != nil {
		return l, err
	}
	l.dir = stage.Frames()
	if s.nas != nil {
		l.dir = stage.NAS()
		if l.model, err = stage.StartModel(ctx, *s.nas); err != nil {
			return l, err
		}
	} else {
		for _, dir := range stage.Streams(stage.Frames(), s.streams) {
			if _, err := bench.DropCaches(dir); err != nil {
				return l, err
			}
		}
	}
	if ahead {
		l.mount, err = b.mountOver(ctx, stage, l.dir, s)
		l.dir = stage.Ahead()
	}
	return l, err
}

func (b *bencher) mountOver(ctx context.Context, stage *bench.Stage, source string, s setting) (*bench.Server, error) {
	flags := append([]string{"--cache-size", strconv.FormatInt(s.cache, 10)}, s.mount...)
	mount, err := stage.StartMount(ctx, source, flags...)
	if err == nil {
		b.memory.follow(mount.PID(), s.cache)
	}
	return mount, err
}

// status is what the mount tells of itself.
func (l live) status() (fusefs.Status, error) {
	var status fusefs.Status
	text, err := os.ReadFile(filepath.Join(l.dir, fusefs.ControlDir, fusefs.StatusFile))
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	return status, err
}

// played is what one run of one side gave.
type played struct {
	*bench.Report
	status fusefs.Status // of reelahead; zero for the reference
	model  usage         // during the run
	daemon usage
	player usage
}

// dropped counts what a viewer would miss: frames that failed too.
func (p played) dropped() float64 { return float64(p.FramesDropped + p.FramesFailed) }

// playOnce plays the frames cold.
func (b *bencher) playOnce(ctx context.Context, stage *bench.Stage, s setting, ahead bool) (p played, err error) {
	l, err := b.start(ctx, stage, s, ahead)
	if err != nil {
		return p, err
	}
	before, err := l.usage()
	if err != nil {
		return p, err
	}
	config := s.play
	config.Paths, config.Size = stage.Streams(l.dir, s.streams), s.size
	config.Prebuffer, config.Queue = 5, 8
	stopProfile := b.startProfile(s.name, l)
	p.Report, err = bench.Play(ctx, config)
	stopProfile()
	if err == nil && p.Interrupted {
		err = context.Cause(ctx)
	}
	if err != nil {
		return p, err
	}
	after, err := l.usage()
	if err != nil {
		return p, err
	}
	p.model, p.daemon, p.player = after.model.since(before.model), after.daemon.since(before.daemon), after.player.since(before.player)
	if ahead {
		p.status, err = l.status()
	}
	return p, err
}

// playBoth plays raw and through reelahead, in turns.
func (b *bencher) playBoth(ctx context.Context, stage *bench.Stage, s setting, rounds int) (raw, ahead []played, err error) {
	sides, err := alternate(ctx, rounds,
		func(ctx context.Context) (played, error) { return b.playOnce(ctx, stage, s, false) },
		func(ctx context.Context) (played, error) { return b.playOnce(ctx, stage, s, true) })
	if err != nil {
		return nil, nil, err
	}
	return sides[0], sides[1], nil
}

// alternate runs each side once a round and returns what each gave. Every
// second round goes backwards, so that what one run leaves behind is not always
// to the advantage of the same side.
func alternate[T any](ctx context.Context, rounds int, sides ...func(context.Context) (T, error)) ([][]T, error) {
	values := make([][]T, len(sides))
	turns := make([]int, len(sides))
	for i := range turns {
		turns[i] = i
	}
	for range rounds {
		for _, i := range turns {
			value, err := sides[i](ctx)
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return nil, err
			}
			values[i] = append(values[i], value)
		}
		slices.Reverse(turns)
	}
	return values, nil
}

// each gives one number for each run.
func each[T any](runs []T, value func(T) float64) []float64 {
	values := make([]float64, len(runs))
	for i, run := range runs {
		values[i] = value(run)
	}
	return values
}

// startProfile records player, daemon and model with perf(1) while reelahead
// runs, if the command line asks for it, and returns what ends that.
func (b *bencher) startProfile(name string, l live) (stop func()) {
	if b.profile == "" || l.mount == nil {
		return func() {}
	}
	processes := fmt.Sprintf("%d,%d", os.Getpid(), l.mount.PID())
	if l.model != nil {
		processes += fmt.Sprintf(",%d", l.model.PID())
	}
	path := filepath.Join(b.profile, name+".perf")
	record := exec.Command("perf", "record", "-p", processes, "-g", "-F", "499", "-q", "-o", path)
	if err := record.Start(); err != nil {
		b.say("  no profile: %v", err)
		return func() {}
	}
	return func() {
		_ = record.Process.Signal(os.Interrupt)
		if err := record.Wait(); err != nil {
			b.say("  perf record: %v", err)
		}
	}
}
