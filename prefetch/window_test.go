package prefetch

import (
	"testing"
	"time"
)

// TestWindowFollowsWhatWasRead reads the first files of a folder as fast as it
// can: how many are fetched ahead is bounded by how many were read in order.
func TestWindowFollowsWhatWasRead(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 120, 4*kib)
	r.play(1, names[:1]...)
	for i, name := range names[1:40] {
		r.becomesReady(name)
		r.open(1, name)
		if read := i + 2; read%5 == 0 {
			r.quiet()
			ahead := len(r.readyNames(names[read:]))
			if most := credit + 2*(read-1); ahead > most || ahead < minAhead {
				t.Errorf("%d files ahead of %d that were read, want %d to %d", ahead, read, minAhead, most)
			}
		}
	}
}

// TestShrinkingWindowCancelsNothingUnderWay slows a reader down while a frame far
// ahead is being fetched.
func TestShrinkingWindowCancelsNothingUnderWay(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 60, 4*kib)
	far := names[18]
	gate := r.hold(far)
	r.play(1, names[:10]...)
	<-gate.arrived
	r.mu.Lock()
	for _, s := range r.streams {
		s.interval, s.grown = 1000, 0
	}
	r.mu.Unlock()
	r.open(1, names[10])
	r.mu.Lock()
	for _, s := range r.streams {
		if s.ahead > minAhead {
			t.Errorf("a window of %d frames for a reader that takes minutes a frame", s.ahead)
		}
	}
	if f := r.fetches[far]; f == nil || len(f.wants) == 0 {
		t.Error("what was under way is given up, although it is expected")
	}
	r.mu.Unlock()
	close(gate.release)
	r.becomesReady(far)
}

// TestExpectedOpens checks which opens count as predicted.
func TestExpectedOpens(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, BehindPercent: 50})
	names := r.frames("a/f%04d.exr", 1, 20, 4*kib)
	other := r.frames("b/f%04d.exr", 1, 20, 4*kib)
	r.write("a/f0005.exr", nil) // never fetched: it is empty
	for _, step := range []struct {
		reader   Reader
		name     string
		expected bool
	}{
		{1, names[0], false},
		{1, names[0], false}, // again: no more than the first time
		{1, names[1], true},
		{1, names[1], true},
		{1, names[2], true},
		{1, names[3], true},
		{1, names[4], true}, // predicted, although there was nothing to fetch
		{1, other[9], false},
		{2, other[15], false},
		{1, names[5], true},
		{2, names[6], true}, // for the other reader, and as good for this one
	} {
		r.quiet()
		lease, expected := r.Open(step.reader, step.name, 0, nil)
		if lease != nil {
			r.Close(lease)
		}
		if expected != step.expected {
			t.Errorf("reader %d opens %s: expected %v, want %v", step.reader, step.name, expected, step.expected)
		}
	}
}

// TestLoopLargerThanTheMemoryKeepsAPart plays a loop of which half fits: some of it
// must still be there a turn later.
func TestLoopLargerThanTheMemoryKeepsAPart(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 24 * mib, BehindPercent: 50, Ahead: 4})
	names := r.frames("f%04d.exr", 1, 40, mib)
	turn := func() int64 {
		before := r.Counters().BytesSource
		for _, name := range names {
			r.open(1, name)
		}
		return r.Counters().BytesSource - before
	}
	for range 3 {
		turn()
	}
	if read := turn(); read > 34*mib {
		t.Errorf("%d MiB of a loop of 40 read again, though 12 may be kept", read/mib)
	}
}
