package prefetch

import (
	"testing"
	"time"
)

// BenchmarkOpenReady measures what an open of a ready small file costs the engine:
// the store, the predictor, the window that moves on by one. The reader goes
// through 400 files again and again.
func BenchmarkOpenReady(b *testing.B) {
	r := newRig(b, Config{Validity: time.Hour, CacheSize: 512 * mib, BehindPercent: 50})
	names := r.frames("shot/f%05d.exr", 1, 400, 4*kib)
	for range 3 {
		for _, name := range names {
			r.open(1, name)
		}
	}
	r.quiet()
	i := 0
	for b.Loop() {
		name := names[i%len(names)]
		i++
		lease, _ := r.OpenReady(1, name)
		if lease == nil {
			lease, _ = r.Open(1, name, 0, nil)
		}
		if lease != nil {
			r.Close(lease)
		}
	}
}
