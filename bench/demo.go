package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	s, err := NewStage(config.Executable, config.Dir, int64(config.Streams)*int64(frames)*config.Profile.Size, config.CacheSize+spareMemory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Strike()) }()
	defer progress.Close()

	making := progress.begin("make frames", config.Streams*frames)
	err = s.MakeStreams(ctx, config.Streams, frames, config.Profile.Size, func() { making.add(false) })
	making.end()
	if err != nil {
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
			{Label: "raw", Paths: s.Streams(s.NAS(), config.Streams), Cold: s.coldRaw(config)},
			{Label: "reelahead", Paths: s.Streams(s.Ahead(), config.Streams), Cold: s.coldAhead(config)},
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

func (s *Stage) coldRaw(config DemoConfig) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		if err := s.Clear(); err != nil {
			return nil, err
		}
		_, err := s.StartModel(ctx, config.NAS)
		return nil, err
	}
}

func (s *Stage) coldAhead(config DemoConfig) func(context.Context) ([]string, error) {
	raw := s.coldRaw(config)
	return func(ctx context.Context) ([]string, error) {
		if _, err := raw(ctx); err != nil {
			return nil, err
		}
		_, err := s.StartMount(ctx, s.NAS(), "--cache-size", strconv.FormatInt(config.CacheSize, 10))
		return nil, err
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
