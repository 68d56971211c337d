package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"reelahead/bench"
)

// processorTime compares the processor time of cat(1) over the source with that
// of cat and the daemon, for each byte delivered. The model's own time is left out
// on both sides: it stands for another machine. Each is measured on the first
// frames after the mount, for which memory must be made, and on others after those,
// when the cache is full and its memory used again.
func processorTime(ctx context.Context, b *bencher) (rows []row, err error) {
	s := setting{streams: 2, frames: b.scaled(160, 60), size: size2K, cache: 1 << 30}
	for _, source := range []struct {
		name, what string
		parent     string
		model      bool
		target     float64
	}{
		{"12-model", "over the model", "", true, 1.5},
		{"12-disk", "over a local disk", os.TempDir(), false, 1.5},
		{"12-tmpfs", "over tmpfs", "", false, 0},
	} {
		s.name, s.parent, s.nas = source.name, source.parent, nil
		if source.model {
			s.nas = serverOf(5*time.Millisecond, 1_200_000_000, 300_000_000)
		}
		err := b.onStage(ctx, s, func(stage *bench.Stage) error {
			cat := func(ahead bool) func(context.Context) ([2]catUsage, error) {
				return func(ctx context.Context) ([2]catUsage, error) { return b.cats(ctx, stage, s, ahead) }
			}
			sides, err := alternate(ctx, b.rounds(5), cat(false), cat(true))
			if err != nil {
				return err
			}
			gigabytes := float64(s.frames) * float64(s.size) / 1e9
			for nth, when := range []string{"first frames", "further frames"} {
				perGB := func(u [2]catUsage) float64 { return (u[nth].cat + u[nth].daemon.total()).Seconds() / gigabytes }
				last, raw := sides[1][len(sides[1])-1][nth], sides[0][len(sides[0])-1][nth]
				r := newRow(source.what+", "+when, "cat of the source", secondsPerGB, each(sides[0], perGB), each(sides[1], perGB)).
					noted("of the last run: cat %.2f s (raw %.2f s), daemon %v, model %v (raw %v), for %.1f GB",
						last.cat.Seconds(), raw.cat.Seconds(), last.daemon, last.model, raw.model, gigabytes)
				if source.target > 0 {
					r = r.ratioAtMost(source.target)
				}
				rows = append(rows, r)
			}
			return nil
		})
		if err != nil {
			return rows, fmt.Errorf("%s: %w", source.what, err)
		}
	}
	return rows, nil
}

// catUsage is the processor time of one cat and of those who served it.
type catUsage struct {
	cat           time.Duration
	daemon, model usage
}

// cats reads one stream after the other with cat(1), cold.
func (b *bencher) cats(ctx context.Context, stage *bench.Stage, s setting, ahead bool) (u [2]catUsage, err error) {
	l, err := b.start(ctx, stage, s, ahead)
	if err != nil {
		return u, err
	}
	for i, stream := range stage.Streams(l.dir, len(u)) {
		if u[i], err = b.cat(ctx, l, s, stream); err != nil {
			return u, err
		}
	}
	return u, nil
}

func (b *bencher) cat(ctx context.Context, l live, s setting, stream string) (u catUsage, err error) {
	paths, err := filepath.Glob(filepath.Join(stream, "*"))
	if err != nil {
		return u, err
	}
	before, err := l.usage()
	if err != nil {
		return u, err
	}
	command := exec.CommandContext(ctx, "cat", paths...) // its output goes to /dev/null
	stopProfile := b.startProfile(s.name, l)
	err = command.Run()
	stopProfile()
	if err != nil {
		return u, fmt.Errorf("cat: %w", err)
	}
	after, err := l.usage()
	return catUsage{
		cat:    command.ProcessState.UserTime() + command.ProcessState.SystemTime(),
		daemon: after.daemon.since(before.daemon), model: after.model.since(before.model),
	}, err
}
