package prefetch

import (
	"testing"
	"time"
)

// TestPressureGivesMemoryBack fills the cache, lets memory be short, and plays on:
// what was read goes, what is ahead stays, no byte is wrong, and the bound comes
// back.
func TestPressureGivesMemoryBack(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 128 * mib, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 120, mib)
	for _, name := range names[:90] {
		r.open(1, name)
	}
	r.quiet()
	before, _ := r.ledger.Used()
	for range 3 {
		r.yieldMemory()
	}
	after, _ := r.ledger.Used()
	if limit := r.ledger.Limit(); limit != leastCache || after > limit {
		t.Errorf("%d MiB in use of %d after a shortage, %d before", after/mib, limit/mib, before/mib)
	}
	if from := r.open(1, names[90]); from != fromCache {
		t.Errorf("the next frame came from %s: memory was taken from what lies ahead", from)
	}
	for _, name := range names[91:] {
		r.open(1, name)
		if used, _ := r.ledger.Used(); used > leastCache {
			t.Fatalf("%d MiB in use while memory is short", used/mib)
		}
	}
	for range 8 {
		r.regainMemory()
	}
	if limit := r.ledger.Limit(); limit != 128*mib {
		t.Errorf("a limit of %d MiB long after the shortage", limit/mib)
	}
}

func TestPressureIsWatched(t *testing.T) {
	file, err := openPressure()
	if err != nil {
		t.Skipf("this kernel tells no memory pressure: %v", err)
	}
	file.Close()
}
