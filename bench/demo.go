package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"reelahead/bench/slownas"
)

// DemoConfig says what Demo shows.
type DemoConfig struct {
	Executable string // reelahead itself, which serves the mounts
	Dir        string // where the frames are made; empty: in memory if they fit
	Streams    int
	Seconds    int // of playing, each run
	Profile    Profile
	Rate       Rate
	Rounds     int   // runs of each side
	CacheSize  int64 // of reelahead, in bytes
	NAS        slownas.Config
	Prebuffer  int
	Queue      int
}

// Validate returns an error that says what is wrong with the configuration.
func (c DemoConfig) Validate() error {
	switch {
	case c.Streams < 1 || c.Seconds < 1 || c.Rounds < 1:
		return fmt.Errorf("streams, seconds and rounds must be at least 1")
	case c.CacheSize < 1:
		return fmt.Errorf("the cache size must be more than 0")
	}
	return c.NAS.Validate()
}

// framesEach is how many frames a stream plays in a run.
func (c DemoConfig) framesEach() int {
	return max(c.Rate.Frames(time.Duration(c.Seconds)*time.Second), 1)
}

// spareMemory is what a demonstration leaves to everything but its frames and
// the cache, in bytes.
const spareMemory = 2 << 30

// Demo makes frames and a model of a slow server, plays the frames straight from
// it and through reelahead, and removes everything. Both sides start cold: the
// server and the mount are started anew for each run. When ctx ends it stops and
// cleans up too.
func Demo(ctx context.Context, config DemoConfig, progress *Progress) (result *Comparison, err error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	frames := config.framesEach()
	s, err := newStage(config.Executable, config.Dir, int64(config.Streams)*int64(frames)*config.Profile.Size, config.CacheSize+spareMemory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	defer progress.Close()

	if err := s.makeFrames(ctx, config, progress); err != nil {
		return nil, err
	}
	var playing *step
	endStep := func() {
		if playing != nil {
			playing.end()
		}
	}
	result, err = Compare(ctx, CompareConfig{
		Repeat: config.Rounds,
		Sides: []Side{
			{Label: "raw", Paths: s.streams(s.nas(), config.Streams), Cold: s.coldRaw(config)},
			{Label: "reelahead", Paths: s.streams(s.ahead(), config.Streams), Cold: s.coldAhead(config)},
		},
		Play: PlayConfig{
			Rate: config.Rate, Prebuffer: config.Prebuffer, Queue: config.Queue, Size: config.Profile.Size,
			OnFrame: func(_ int, _ int64, dropped bool) { playing.add(dropped) },
		},
		OnRun: func(side Side, round int) {
			endStep()
			playing = progress.begin(fmt.Sprintf("round %d, %s", round+1, side.Label), config.Streams*frames)
		},
	})
	endStep()
	return result, err
}

// makeFrames writes the frames of every stream: distinct, so that no stream is
// served with what another one read.
func (s *stage) makeFrames(ctx context.Context, config DemoConfig, progress *Progress) error {
	frames := config.framesEach()
	making := progress.begin("make frames", config.Streams*frames)
	defer making.end()
	for i, dir := range s.streams(s.frames(), config.Streams) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		_, err := Write(ctx, WriteConfig{
			Pattern: Pattern{Dir: dir, Prefix: "shot.", Suffix: ".dpx", Width: 4},
			Start:   1, Frames: frames, Size: config.Profile.Size, Seed: uint64(i),
			OnFrame: func(int64) { making.add(false) },
		})
		if err != nil {
			return fmt.Errorf("make frames: %w", err)
		}
	}
	return nil
}

// streams are the directories of the streams under a directory.
func (s *stage) streams(under string, n int) []string {
	var dirs []string
	for i := range n {
		dirs = append(dirs, filepath.Join(under, "stream"+strconv.Itoa(i+1)))
	}
	return dirs
}

func (s *stage) coldRaw(config DemoConfig) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		if err := s.clear(); err != nil {
			return nil, err
		}
		nas := config.NAS
		return nil, s.start(ctx, "slownas", s.nas(), "bench", "slownas", s.frames(), s.nas(),
			"--rtt", nas.RoundTrip.String(), "--jitter", nas.Jitter.String(),
			"--bandwidth", strconv.FormatInt(nas.Bandwidth, 10), "--stream-bandwidth", strconv.FormatInt(nas.StreamBandwidth, 10),
			"--slots", strconv.Itoa(nas.Slots), "--read-ahead", strconv.FormatInt(nas.ReadAhead, 10),
			"--attr-timeout", nas.AttrTimeout.String(), "--seed", strconv.FormatUint(nas.Seed, 10))
	}
}

func (s *stage) coldAhead(config DemoConfig) func(context.Context) ([]string, error) {
	raw := s.coldRaw(config)
	return func(ctx context.Context) ([]string, error) {
		if _, err := raw(ctx); err != nil {
			return nil, err
		}
		return nil, s.start(ctx, "reelahead mount", s.ahead(), "mount", s.nas(), s.ahead(),
			"--cache-size", strconv.FormatInt(config.CacheSize, 10))
	}
}

// WriteParameters writes what was measured under which conditions.
func (c DemoConfig) WriteParameters(w io.Writer) error {
	nas := c.NAS
	_, err := fmt.Fprintf(w, `
streams     %d, %s fps, pre-buffer %d, queue %d; whole frames, one read(2) each
frames      %d each, %s DPX %d×%d, %s bytes
slow NAS    %v round trip, %s/s a file, %s/s together, %d requests in flight of at most 1 MiB,
            read-ahead %s, attributes %v
reelahead   cache %s
machine     %d processors, shared by the model, reelahead and the player
`,
		c.Streams, c.Rate, c.Prebuffer, c.Queue,
		c.framesEach(), c.Profile.Name, c.Profile.Width, c.Profile.Height, humanize.Comma(c.Profile.Size),
		nas.RoundTrip, decimal(nas.StreamBandwidth), decimal(nas.Bandwidth), nas.Slots,
		humanize.IBytes(uint64(nas.ReadAhead)), nas.AttrTimeout,
		humanize.IBytes(uint64(c.CacheSize)), runtime.NumCPU())
	return err
}

// decimal spells a number of bytes as rates are spelt.
func decimal(bytes int64) string { return humanize.Bytes(uint64(bytes)) }
