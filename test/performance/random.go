package main

import (
	"context"
	"sync"
	"time"

	"reelahead/bench"
)

// randomBesideStreams is a reader that nobody can predict, while 8 streams play
// from the same source: prefetching for them must not hold it up.
func randomBesideStreams(ctx context.Context, b *bencher) (rows []row, err error) {
	s := setting{
		name: "10", streams: 9, frames: b.scaled(480, 240), size: 1_449_984, cache: 2 << 30,
		nas: serverOf(10*time.Millisecond, 1_200_000_000, 300_000_000),
	}
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		with := func(prefetch string) func(context.Context) (beside, error) {
			return func(ctx context.Context) (beside, error) {
				s := s
				s.name += "-" + prefetch
				s.mount = []string{"--prefetch", prefetch}
				return b.playBeside(ctx, stage, s)
			}
		}
		sides, err := alternate(ctx, b.rounds(5), with("off"), with("on"))
		if err != nil {
			return err
		}
		off, on := sides[0], sides[1]
		p99 := func(r beside) float64 { return r.random.Latency.Frame.P99 / 1000 }
		p50 := func(r beside) float64 { return r.random.Latency.Frame.P50 / 1000 }
		dropped := func(r beside) float64 { return float64(r.streams.FramesDropped) }
		rows = []row{
			newRow("random reader, p99 of a frame", "prefetch off", seconds, each(off, p99), each(on, p99)).ratioAtMost(1.1).
				noted("the streams dropped %.0f frames without and %.0f with it, of %d", median(each(off, dropped)), median(each(on, dropped)), off[0].streams.FramesDue),
			newRow("random reader, p50 of a frame", "prefetch off", seconds, each(off, p50), each(on, p50)),
		}
		return nil
	})
	return rows, err
}

// beside are the reports of a random reader and of the streams beside it.
type beside struct{ random, streams *bench.Report }

// playBeside plays all streams of the stage but the last against the clock, and
// the last one in random order for as long as they play.
func (b *bencher) playBeside(ctx context.Context, stage *bench.Stage, s setting) (r beside, err error) {
	l, err := b.start(ctx, stage, s, true)
	if err != nil {
		return r, err
	}
	paths := stage.Streams(l.dir, s.streams)
	last := len(paths) - 1
	base := bench.PlayConfig{Size: s.size, Prebuffer: 5, Queue: 8}
	streams, random := base, base
	streams.Paths, streams.Rate = paths[:last], bench.Rate{Num: 24, Den: 1}
	random.Paths = paths[last:]
	random.Order = bench.Order{Random: true, Seed: 1, Loop: 100}

	randomCtx, streamsEnded := context.WithCancel(ctx)
	defer streamsEnded()
	defer b.startProfile(s.name, l)()
	var streamsErr error
	var playing sync.WaitGroup
	playing.Go(func() {
		defer streamsEnded()
		r.streams, streamsErr = bench.Play(ctx, streams)
	})
	r.random, err = bench.Play(randomCtx, random)
	playing.Wait()
	switch {
	case streamsErr != nil:
		return r, streamsErr
	case err != nil:
		return r, err
	}
	return r, context.Cause(ctx)
}
