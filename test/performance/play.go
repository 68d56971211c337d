package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"reelahead/bench"
)

// size2K is a frame of the profile 2k, in bytes.
const size2K = 12_812_288

// Bandwidths of the source of figures 4 and 5, in bytes a second.
const (
	sourceBandwidth = 400_000_000
	streamBandwidth = 60_000_000
)

// streamAtTen is one reader that takes all it gets.
func streamAtTen(ctx context.Context, b *bencher) ([]row, error) {
	all, warm, err := b.unpaced(ctx, "4", 10*time.Millisecond)
	if err != nil {
		return nil, err
	}
	rows := []row{all.ratioAtLeast(0.95), warm.ratioAtLeast(0.95)}
	for _, large := range []largeFiles{
		{"3 shards of 1 GB in records of 115 kB", 3, 1_000_000_000, 115_000},
		{"a file of 4 GB in pieces of 1 MiB", 1, 4_000_000_000, 1 << 20},
	} {
		r, err := b.large(ctx, large)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", large.what, err)
		}
		rows = append(rows, r.ratioAtLeast(0.95))
	}
	return rows, nil
}

// largeFiles are files of which no two fit into the window: tar shards, an hour of
// video.
type largeFiles struct {
	what  string
	count int
	size  int64 // of each in bytes
	block int64 // bytes a read(2)
}

func (b *bencher) large(ctx context.Context, large largeFiles) (r row, err error) {
	s := setting{
		name: "4-large", streams: 1, frames: large.count, size: large.size, cache: 2 << 30,
		nas:  serverOf(10*time.Millisecond, sourceBandwidth, streamBandwidth),
		play: bench.PlayConfig{Block: large.block},
	}
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		var rates []float64
		for range b.rounds(3) {
			p, err := b.playOnce(ctx, stage, s, true)
			if err != nil {
				return err
			}
			rates = append(rates, throughput(p))
		}
		r = newRow(large.what, "the source's limit", bytesPerSecond, []float64{sourceBandwidth}, rates)
		return nil
	})
	return r, err
}

// streamCurve is the same at other round trips, which should not matter.
func streamCurve(ctx context.Context, b *bencher) (rows []row, err error) {
	var rates []float64
	for _, roundTrip := range []int{1, 5, 10, 20, 50} {
		all, warm, err := b.unpaced(ctx, fmt.Sprintf("5-%dms", roundTrip), time.Duration(roundTrip)*time.Millisecond)
		rows = append(rows, all, warm)
		if err != nil {
			return rows, err
		}
		rates = append(rates, all.Reelahead)
	}
	flat := newRow("slowest / fastest round trip, all frames", "fastest", bytesPerSecond, []float64{slices.Max(rates)}, []float64{slices.Min(rates)})
	return append(rows, flat.ratioAtLeast(0.95)), nil
}

// unpaced plays one stream of 2K without a clock and compares with what the
// source can give: all frames, and without the first, which nobody can know.
func (b *bencher) unpaced(ctx context.Context, name string, roundTrip time.Duration) (all, warm row, err error) {
	s := setting{
		name: name, streams: 1, frames: b.scaled(240, 96), size: size2K, cache: 2 << 30,
		nas: serverOf(roundTrip, sourceBandwidth, streamBandwidth),
	}
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		short := s
		short.play.Frames = 12 // it is slow, and no frame differs from the others
		sides, err := alternate(ctx, b.rounds(3),
			func(ctx context.Context) (played, error) { return b.playOnce(ctx, stage, short, false) },
			func(ctx context.Context) (played, error) { return b.playOnce(ctx, stage, s, true) })
		if err != nil {
			return err
		}
		raw, ahead := sides[0], sides[1]
		source := []float64{sourceBandwidth}
		what := fmt.Sprintf("%v, all %d frames", roundTrip, s.frames)
		all = newRow(what, "the source's limit", bytesPerSecond, source, each(ahead, throughput)).
			noted("raw %s, of at most %s a stream; first frame %s", bytesPerSecond.text(median(each(raw, throughput))),
				bytesPerSecond.text(streamBandwidth), seconds.text(median(each(ahead, firstFrame))))
		warm = newRow(fmt.Sprintf("%v, after the first", roundTrip), "the source's limit", bytesPerSecond, source,
			each(ahead, func(p played) float64 { return float64(p.Bytes-s.size) / (p.Seconds - firstFrame(p)) }))
		return nil
	})
	return all, warm, err
}

func throughput(p played) float64 { return p.Throughput }
func firstFrame(p played) float64 { return p.FirstFrameMS / 1000 }

// manyClients is a render farm or a wall of review stations: many small frames,
// all opens costing round trips.
func manyClients(ctx context.Context, b *bencher) (rows []row, err error) {
	s := setting{
		name: "6", streams: 30, frames: b.scaled(1000, 200), size: 256 << 10, cache: 2 << 30,
		nas:  serverOf(15*time.Millisecond, 1_200_000_000, 300_000_000),
		play: bench.PlayConfig{Rate: bench.Rate{Num: 30, Den: 1}},
	}
	// As "bench slownas --rtt 15ms" is without further flags: every name is asked
	// for each time, and 128 KiB are read at once.
	s.nas.AttrTimeout, s.nas.ReadAhead = 0, 128<<10
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		raw, ahead, err := b.playBoth(ctx, stage, s, b.rounds(3))
		if err != nil {
			return err
		}
		due := float64(s.streams * s.frames)
		share := median(each(raw, played.dropped)) / due
		rows = []row{
			droppedRow(fmt.Sprintf("reelahead, of %.0f", due), raw, ahead),
			newRow("raw, share dropped", "all frames", fraction, []float64{1}, []float64{share}).judge("> 0.5", share > 0.5),
		}
		return nil
	})
	return rows, err
}

// heavyClients asks for more than one processor can copy twice. The source is
// once the model, whose own work is part of the load, and once the tmpfs.
func heavyClients(ctx context.Context, b *bencher) (rows []row, err error) {
	s := setting{
		name: "7-model", streams: 4, frames: b.scaled(144, 72), size: size2K, cache: 2 << 30,
		nas:  serverOf(10*time.Millisecond, unlimited, unlimited),
		play: bench.PlayConfig{Rate: bench.Rate{Num: 24, Den: 1}},
	}
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		for _, what := range []string{"from a model without a limit", "from tmpfs"} {
			raw, ahead, err := b.playBoth(ctx, stage, s, b.rounds(3))
			if err != nil {
				return err
			}
			rows = append(rows, droppedRow(fmt.Sprintf("%s, of %d", what, s.streams*s.frames), raw, ahead))
			s.name, s.nas = "7-tmpfs", nil
		}
		return nil
	})
	return rows, err
}

// droppedRow compares dropped frames and says what the run took.
func droppedRow(what string, raw, ahead []played) row {
	last := ahead[len(ahead)-1]
	return newRow(what, "raw", frames, each(raw, played.dropped), each(ahead, played.dropped)).everyRunAtMost(0).
		noted("each run %v, raw %v; of the last run: frame p99 %.1f ms, %.1f GB in %.1f s, processors: model %v, daemon %v, player %v",
			each(ahead, played.dropped), each(raw, played.dropped), last.Latency.Frame.P99,
			float64(last.Bytes)/1e9, last.Seconds, last.model, last.daemon, last.player)
}
