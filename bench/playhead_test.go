package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// simulate plays with a source whose frame k takes the given time when its
// reading begins at now, and returns how each frame counted.
func simulate(t *testing.T, p *playhead, source func(k int, now time.Duration) (took time.Duration, ok bool)) []Outcome {
	t.Helper()
	outcomes := make([]Outcome, p.frames)
	var now time.Duration
	for {
		k, skipped, notBefore, ok := p.advance(now)
		for i := k - skipped; i < k; i++ {
			outcomes[i] = OutcomeSkipped
		}
		if !ok {
			break
		}
		if notBefore > now {
			now = notBefore
			continue
		}
		took, read := source(k, now)
		outcomes[k], _ = p.finish(k, now, now+took, read)
		now += took
	}
	if got := p.onTime + p.late + p.skipped + p.failed; got != p.frames {
		t.Errorf("%d frames accounted for, %d were due", got, p.frames)
	}
	if at := slices.Index(outcomes, ""); at >= 0 {
		t.Errorf("frame %d has no Outcome", at)
	}
	return outcomes
}

func constant(took time.Duration) func(int, time.Duration) (time.Duration, bool) {
	return func(int, time.Duration) (time.Duration, bool) { return took, true }
}

func TestPlayheadDropsWhatTheSourceLacks(t *testing.T) {
	rate := Rate{25, 1} // 40 ms a frame
	for _, test := range []struct {
		name     string
		took     time.Duration
		low, top int // frames on time of 1000
	}{
		{"far faster than needed", 1 * ms, 1000, 1000},
		{"as fast as needed", 40 * ms, 1000, 1000},
		{"a tenth too slow", 44 * ms, 890, 915},
		{"half the bandwidth", 80 * ms, 490, 510},
		{"a quarter of the bandwidth", 160 * ms, 240, 260},
		{"a fortieth of the bandwidth", 1600 * ms, 20, 35},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &playhead{rate: rate, frames: 1000, prebuffer: 5, queue: 8}
			simulate(t, p, constant(test.took))
			if p.onTime < test.low || p.onTime > test.top {
				t.Errorf("%d frames on time, want %d to %d", p.onTime, test.low, test.top)
			}
		})
	}
}

func TestPlayheadShowsEverySecondPairAtHalfTheBandwidth(t *testing.T) {
	p := &playhead{rate: Rate{25, 1}, frames: 200, prebuffer: 1, queue: 8}
	outcomes := simulate(t, p, constant(80*ms))
	gap := 0
	for _, o := range outcomes {
		if gap++; o == OutcomeOnTime {
			gap = 0
		}
		if gap > 3 {
			t.Fatalf("four frames in a row dropped: %v", outcomes)
		}
	}
}

// The drops of a stall at a known time are those that the rule predicts: the
// frame being read, if it was due before the end, and all that are due sooner
// than the first one that can be made after it.
func TestPlayheadStall(t *testing.T) {
	const (
		interval  = 40 * ms
		took      = 4 * ms
		stall     = 500 * ms
		stalledAt = 100
	)
	for _, queue := range []int{1, 2, 8, 12, 20} {
		p := &playhead{rate: Rate{25, 1}, frames: 250, prebuffer: queue, queue: queue}
		var stallEnd time.Duration
		outcomes := simulate(t, p, func(k int, now time.Duration) (time.Duration, bool) {
			if k == stalledAt {
				stallEnd = now + took + stall
				return took + stall, true
			}
			return took, true
		})
		want := 0
		if p.due(stalledAt) < stallEnd {
			want++
		}
		if p.due(stalledAt+1) < stallEnd+took {
			for k := stalledAt + 1; p.due(k) < stallEnd+took+interval; k++ {
				want++
			}
		}
		if got := p.late + p.skipped; got != want {
			t.Errorf("queue %d: %d dropped, want %d: %v", queue, got, want, outcomes[stalledAt-2:stalledAt+20])
		}
		if hidden := time.Duration(queue)*interval > stall+interval; hidden && want > 0 {
			t.Errorf("queue %d holds more than the stall lasts, yet frames are dropped", queue)
		}
	}
}

func TestPlayheadReadsAheadByTheQueueOnly(t *testing.T) {
	p := &playhead{rate: Rate{25, 1}, frames: 300, prebuffer: 2, queue: 4}
	simulate(t, p, func(k int, now time.Duration) (time.Duration, bool) {
		if p.started {
			unshown := 0
			for i := range k {
				if p.due(i) > now {
					unshown++
				}
			}
			if unshown >= p.queue {
				t.Errorf("frame %d is read with %d frames not yet shown", k, unshown)
			}
		}
		return ms, true
	})
}

func TestPlayheadWaits(t *testing.T) {
	p := &playhead{rate: Rate{25, 1}, frames: 100, prebuffer: 1, queue: 1, wait: true}
	simulate(t, p, constant(100*ms))
	// Each frame but the first is begun when the one before it is shown, so
	// the clock waits 60 ms for each.
	if p.skipped != 0 || p.late != 99 || p.stalled != 99*60*ms {
		t.Errorf("skipped %d, late %d, stalled %v; want 0, 99, %v", p.skipped, p.late, p.stalled, 99*60*ms)
	}
}

func TestPlayheadUnpacedHasNoClock(t *testing.T) {
	p := &playhead{frames: 100, prebuffer: 5, queue: 8}
	simulate(t, p, constant(time.Hour))
	if p.onTime != 100 || p.started {
		t.Errorf("%d of 100 on time, clock started: %v", p.onTime, p.started)
	}
}

func TestPlayheadFailures(t *testing.T) {
	for _, failing := range [][]int{{0}, {0, 1, 2, 3, 4}, {7}, {99}} {
		p := &playhead{rate: Rate{25, 1}, frames: 100, prebuffer: 5, queue: 8}
		outcomes := simulate(t, p, func(k int, _ time.Duration) (time.Duration, bool) {
			return ms, !slices.Contains(failing, k)
		})
		if p.failed != len(failing) || p.onTime != 100-len(failing) {
			t.Errorf("failing %v: %d failed, %d on time", failing, p.failed, p.onTime)
		}
		for _, k := range failing {
			if outcomes[k] != OutcomeFailed {
				t.Errorf("frame %d counts as %s", k, outcomes[k])
			}
		}
	}
}

// Whatever the source does, each frame counts once, and as what it was.
func TestPlayheadAccountsForEveryFrame(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := &playhead{
			rate: Rate{24000, 1001}, frames: 1 + random.IntN(300),
			prebuffer: 1 + random.IntN(10), queue: 1 + random.IntN(10), wait: seed%3 == 0,
		}
		type read struct{ k, ended int64 }
		var reads []read
		outcomes := simulate(t, p, func(k int, now time.Duration) (time.Duration, bool) {
			took := time.Duration(random.ExpFloat64() * float64(40*ms))
			reads = append(reads, read{int64(k), int64(now + took)})
			return took, random.IntN(20) > 0
		})
		if p.wait && p.skipped > 0 {
			t.Fatalf("seed %d: skipped with wait", seed)
		}
		for _, r := range reads {
			o := outcomes[r.k]
			if o == OutcomeSkipped {
				t.Fatalf("seed %d: frame %d was read and counts as skipped", seed, r.k)
			}
			late := time.Duration(r.ended) > p.due(int(r.k))
			if !p.wait && o != OutcomeFailed && int(r.k) >= p.prebuffer && late != (o == OutcomeLate) {
				t.Fatalf("seed %d: frame %d counts as %s", seed, r.k, o)
			}
		}
	}
}

func TestRunningMedian(t *testing.T) {
	var m runningMedian
	if m.value() != 0 {
		t.Errorf("median of nothing is %v", m.value())
	}
	for i := range 100 {
		m.add(time.Duration(i))
	}
	if m.value() != 92 { // of 85…99
		t.Errorf("median of the last 15 is %d, want 92", m.value())
	}
}
