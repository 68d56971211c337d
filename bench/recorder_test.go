package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// simulateRecording records to a disk that takes the given time for a frame that
// is begun at now, with several threads.
func simulateRecording(r *recorder, threads int, took func(now time.Duration) time.Duration) (written []int) {
	ends := make([]time.Duration, threads) // 0: idle
	var now time.Duration
	for {
		for i := range ends {
			if ends[i] != 0 {
				continue
			}
			k, notBefore, ok := r.advance(now)
			if !ok || notBefore > now {
				break
			}
			written = append(written, k)
			ends[i] = now + took(now)
		}
		next := never
		for _, end := range ends {
			if end != 0 {
				next = min(next, end)
			}
		}
		if r.captured < r.frames && len(r.waiting) == 0 && slices.Contains(ends, 0) {
			next = min(next, r.due(r.captured))
		}
		if next == never {
			return written
		}
		now = next
		for i := range ends {
			if ends[i] != 0 && ends[i] <= now {
				r.finish(ends[i])
				ends[i] = 0
			}
		}
	}
}

// A stall loses the frames that are captured in it beyond what the queue holds.
func TestRecorderStall(t *testing.T) {
	for _, rate := range []Rate{{24000, 1001}, {25, 1}, {60, 1}} {
		for _, queue := range []int{1, 2, 8, 20} {
			for _, length := range []time.Duration{30 * ms, 200 * ms, 1000 * ms} {
				interval := rate.Time(1)
				took, from := interval/4, rate.Time(50)+interval/8
				r := &recorder{rate: rate, frames: 200, queue: queue}
				written := simulateRecording(r, 1, func(now time.Duration) time.Duration { return stalling(took, from, length)(now) - now })
				// The frame captured at 50/fps is being written when the disk
				// stands still; it and queue-1 others are kept.
				end := rate.Time(50) + took + length
				want := 0
				for k := 50 + queue; rate.Time(k) <= end; k++ {
					want++
				}
				if got := len(r.dropped); got != want || len(written)+got != 200 {
					t.Errorf("%s fps, queue %d, stall %v: %d lost and %d written, the model says %d lost", rate, queue, length, got, len(written), want)
				}
			}
		}
	}
}

func TestRecorderBandwidth(t *testing.T) {
	rate := Rate{30, 1}
	for _, threads := range []int{1, 4} {
		for _, share := range []float64{1.01, 0.99, 0.8, 0.4} {
			const frames = 1000
			r := &recorder{rate: rate, frames: frames, queue: 8}
			took := time.Duration(float64(rate.Time(1)) * float64(threads) / share)
			written := simulateRecording(r, threads, func(time.Duration) time.Duration { return took })
			if !slices.IsSorted(written) {
				t.Errorf("%d threads: frames are written out of order", threads)
			}
			want := 0
			if share < 1 { // what was written until the last capture, and the queue
				want = frames - int(rate.Time(frames-1)/took)*threads - 8
			}
			if got := len(r.dropped); got < want-threads || got > want+threads {
				t.Errorf("%d threads, %v of the bandwidth: %d lost, the model says %d", threads, share, got, want)
			}
		}
	}
}

func TestRecorderAccountsForEveryFrame(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		threads := 1 + random.IntN(4)
		r := &recorder{rate: Rate{24000, 1001}, frames: 1 + random.IntN(200), queue: threads + random.IntN(8)}
		if seed%5 == 0 {
			r.rate = Rate{}
		}
		written := simulateRecording(r, threads, func(time.Duration) time.Duration {
			return time.Duration(random.ExpFloat64() * float64(50*ms))
		})
		all := append(slices.Clone(written), r.dropped...)
		slices.Sort(all)
		if len(all) != r.frames || len(slices.Compact(all)) != r.frames || r.rate == (Rate{}) && len(r.dropped) > 0 {
			t.Errorf("seed %d: %d written and %d dropped of %d", seed, len(written), len(r.dropped), r.frames)
		}
	}
}
