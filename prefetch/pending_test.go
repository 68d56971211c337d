package prefetch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"reelahead/cache"
)

// inPhase is a fetch in a phase whose reading has work left.
func inPhase(t *testing.T, p phase, readers int, deadline time.Time) *fetch {
	f := &fetch{phase: p, readers: readers, deadline: deadline}
	if p == phaseReading {
		arena := cache.NewArena(cache.NewLedger(64 << 20))
		t.Cleanup(arena.Close)
		frame, err := cache.NewFrame(arena, "f", cache.Attr{Size: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(frame.Release)
		f.frame = frame
	}
	return f
}

func TestMostUrgentFetch(t *testing.T) {
	now := time.Now()
	feasible := now.Add(time.Second)
	order := []struct {
		name string
		f    *fetch
	}{
		{"waited for, sooner", inPhase(t, phaseReading, 1, now.Add(time.Minute))},
		{"waited for", inPhase(t, phaseConfirming, 1, now.Add(time.Hour))},
		{"late, but under way", inPhase(t, phaseReading, 0, now)},
		{"next", &fetch{deadline: now.Add(10 * time.Second)}},
		{"to be confirmed", inPhase(t, phaseConfirming, 0, now.Add(15*time.Second))},
		{"after next", &fetch{deadline: now.Add(20 * time.Second)}},
		{"later than late", &fetch{deadline: now.Add(-time.Minute)}},
		{"late", &fetch{deadline: now.Add(-time.Second)}},
		{"just too late", &fetch{deadline: feasible}},
	}
	p := newPending()
	for _, i := range rand.Perm(len(order)) {
		p.file(order[i].f)
	}
	p.file(&fetch{starved: true, deadline: now})
	p.file(&fetch{phase: phaseReady, deadline: now})
	for i, want := range order {
		got := p.mostUrgent(feasible, false)
		if got != want.f {
			t.Fatalf("%d: %+v, want %s", i, got, want.name)
		}
		if waited := p.mostUrgent(feasible, true); want.f.readers > 0 && waited != got || want.f.readers == 0 && waited != nil {
			t.Errorf("%s: %+v is waited for", want.name, waited)
		}
		got.phase = phaseGone
		p.file(got)
	}
	if p.mostUrgent(feasible, false) != nil || p.len() != 1 {
		t.Errorf("%d are left, want the one that found no memory", p.len())
	}
	p.retry()
	if f := p.mostUrgent(feasible, false); f == nil || f.starved {
		t.Error("what found no memory is not tried again")
	}
}

// TestPendingAgainstASearch files fetches at random and compares with a look at all
// of them.
func TestPendingAgainstASearch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	now := time.Now()
	p := newPending()
	all := make([]*fetch, 60)
	for i := range all {
		all[i] = &fetch{name: fmt.Sprint(i), phase: phaseGone}
	}
	for step := range 20000 {
		f := all[r.IntN(len(all))]
		f.phase = []phase{phaseQueued, phaseQueued, phaseOpening, phaseConfirming, phaseReady, phaseGone}[r.IntN(6)]
		f.starved = f.phase == phaseQueued && r.IntN(8) == 0
		f.readers = 0
		if f.phase == phaseConfirming {
			f.readers = r.IntN(2)
		}
		f.deadline = now.Add(time.Duration(r.IntN(1000)) * time.Millisecond)
		p.file(f)
		feasible := now.Add(time.Duration(step/20) * time.Millisecond)
		var best *fetch
		rank := func(f *fetch) int {
			switch {
			case f.readers > 0:
				return 0
			case f.phase != phaseQueued || f.deadline.After(feasible):
				return 1
			}
			return 2
		}
		for _, f := range all {
			if f.phase != phaseConfirming && (f.phase != phaseQueued || f.starved) {
				continue
			}
			if best == nil || rank(f) < rank(best) || rank(f) == rank(best) && f.deadline.Before(best.deadline) {
				best = f
			}
		}
		got := p.mostUrgent(feasible, false)
		if (got == nil) != (best == nil) || got != nil && (rank(got) != rank(best) || !got.deadline.Equal(best.deadline)) {
			t.Fatalf("step %d: %+v, want %+v", step, got, best)
		}
	}
}
