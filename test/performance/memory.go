package main

import (
	"context"
	"fmt"
	"time"

	"reelahead/bench"
)

// memoryBeyondCache drives a small cache hard, then reports the most memory that
// any daemon has used beyond its cache in this and all figures before.
func memoryBeyondCache(ctx context.Context, b *bencher) (rows []row, err error) {
	s := setting{
		name: "13", streams: 12, frames: b.scaled(240, 96), size: 1_449_984, cache: 256 << 20,
		nas: serverOf(5*time.Millisecond, unlimited, unlimited),
	}
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		for _, order := range []bench.Order{{}, {Random: true, Seed: 1}, {Random: true, Seed: 2, Run: 12}} {
			s.play.Order = order
			if _, err := b.playOnce(ctx, stage, s, true); err != nil {
				return err
			}
		}
		return nil
	})
	worst, private, samples := b.memory.peak()
	if samples == 0 {
		return nil, fmt.Errorf("no daemon has been seen: %w", err)
	}
	const bound = 64 << 20
	beyond := newRow("RSS and memory files beyond the cache's limit", "the limit", byteCount, []float64{float64(worst.limit)}, []float64{float64(worst.beyond())}).
		everyRunAtMost(bound).
		noted("%s private and %s in memory files at that moment; %d samples", byteCount.text(float64(worst.private)), byteCount.text(float64(worst.shared)), samples)
	alone := newRow("private memory alone, at most", "the limit", byteCount, []float64{float64(worst.limit)}, []float64{float64(private)})
	return []row{beyond, alone}, err
}
