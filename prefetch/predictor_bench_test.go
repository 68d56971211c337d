package prefetch

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reelahead/naming"
)

// BenchmarkOpen measures one open of a reader in a known directory, parsing,
// learning and a window of 16 names included, with 1,000 live cursors. Besides
// the time on the clock it tells that of the processor, which other programs on
// the machine do not lengthen by taking their turns.
func BenchmarkOpen(b *testing.B) {
	for _, count := range []int{100, 30_000, 1_000_000} {
		names := frames("shot_v002.%07d.exr", 1, count, 1)
		dirs := tree{"plates/shot": naming.NewListing(names)}
		paths := frames("plates/shot/shot_v002.%07d.exr", 1, count, 1)
		const readers = 50
		for _, order := range []string{"sequential", "scattered"} {
			b.Run(fmt.Sprintf("%s/%d", order, count), func(b *testing.B) {
				p := NewPredictor()
				at := make([]int, readers*20)
				places := rand.New(rand.NewPCG(1, 2)).Perm(len(at))
				for round := range 3 { // streams that have found their way
					for i := range at {
						at[i] = (places[i]*count/len(at) + round) % count
						p.Open(Reader(i%readers), paths[at[i]], dirs, 16)
					}
				}
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				times, busy := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
				i := 0
				for b.Loop() {
					k := i % len(at)
					if order == "sequential" {
						at[k] = (at[k] + 1) % count
					} else {
						at[k] = (at[k]*7919 + 4099*i) % count
					}
					i++
					start, used := time.Now(), threadTime(b)
					p.Open(Reader(k%readers), paths[at[k]], dirs, 16)
					busy = append(busy, threadTime(b)-used)
					times = append(times, time.Since(start))
				}
				slices.Sort(times)
				slices.Sort(busy)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1e3, "p50-µs")
				b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1e3, "p99-µs")
				b.ReportMetric(float64(busy[len(busy)*99/100].Nanoseconds())/1e3, "p99-cpu-µs")
			})
		}
	}
}

// threadTime is the processor time that this thread has used.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// TestCursorMemory bounds what a live cursor costs.
func TestCursorMemory(t *testing.T) {
	names := frames("f%06d.dpx", 1, 30_000, 1)
	dirs := tree{"": naming.NewListing(names)}
	before := heapBytes()
	p := NewPredictor()
	for i := range 1000 {
		p.Open(Reader(i), names[i*30], dirs, 16)
	}
	each := int64(heapBytes()-before) / 1000
	t.Logf("%d bytes a cursor", each)
	if each > 4096 {
		t.Errorf("%d bytes a cursor", each)
	}
	runtime.KeepAlive(p)
}

func heapBytes() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
