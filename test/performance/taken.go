package main

import (
	"context"
	"time"

	"reelahead/bench"
)

// bytesTaken counts what the source had to give for what was read. The model
// counts, not reelahead: its answers are what it writes.
func bytesTaken(ctx context.Context, b *bencher) (rows []row, err error) {
	s := setting{
		streams: 1, frames: b.scaled(480, 240), size: 8_359_936, cache: 1 << 30,
		nas: serverOf(10*time.Millisecond, 1_200_000_000, 300_000_000),
	}
	film := bench.Rate{Num: 24, Den: 1}
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		for _, order := range []struct {
			name, what string
			play       bench.PlayConfig
			target     float64
		}{
			{"11-play", "playback", bench.PlayConfig{Rate: film}, 1.01},
			{"11-seek", "playback with a seek every 2 s", bench.PlayConfig{Rate: film, Order: bench.Order{Random: true, Seed: 1, Run: 48}}, 1.25},
			{"11-random", "random", bench.PlayConfig{Frames: b.scaled(240, 120), Order: bench.Order{Random: true, Seed: 1}}, 1.02},
		} {
			s.name, s.play = order.name, order.play
			raw, ahead, err := b.playBoth(ctx, stage, s, b.rounds(2))
			if err != nil {
				return err
			}
			taken := func(p played) float64 { return float64(p.model.written) / float64(p.Bytes) }
			status := ahead[len(ahead)-1].status
			rows = append(rows, newRow(order.what, "raw", perByte, each(raw, taken), each(ahead, taken)).
				valueAtMost(order.target).
				noted("of the last run: fetched %.3f and read from the source %.3f of the bytes read, fetched and not read %.3f; %d opens ready, %d in flight, %d cold; dropped %.0f, raw %.0f",
					float64(status.BytesFetched)/float64(ahead[len(ahead)-1].Bytes), float64(status.BytesSource)/float64(ahead[len(ahead)-1].Bytes),
					float64(status.BytesFetchedUnread)/float64(ahead[len(ahead)-1].Bytes), status.OpensReady, status.OpensInflight, status.OpensCold,
					ahead[len(ahead)-1].dropped(), raw[len(raw)-1].dropped()))
		}
		return nil
	})
	return rows, err
}
