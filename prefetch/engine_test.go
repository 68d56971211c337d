package prefetch

import (
	"sync"
	"testing"
	"time"
)

func TestOpensInOrderFindFramesReady(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, BehindPercent: 50})
	names := r.frames("shot/f%04d.exr", 1, 20, 64*kib+7)
	r.play(1, names...)
	r.quiet()
	counters := r.Counters()
	if want := int64(19 * (64*kib + 7)); counters.BytesSource != want || counters.BytesFetched != want {
		t.Errorf("read %d bytes of the source, fetched %d; want %d: all but the first, once", counters.BytesSource, counters.BytesFetched, want)
	}
	if counters.BytesFetchedUnread != 0 || counters.SourceErrors != 0 {
		t.Errorf("%d bytes fetched in vain, %d errors", counters.BytesFetchedUnread, counters.SourceErrors)
	}
	for _, name := range names[1:] { // and all over again, by another reader
		if from := r.open(2, name); from != fromCache {
			t.Errorf("%s came from %s", name, from)
		}
	}
	if again := r.Counters().BytesSource; again != counters.BytesSource {
		t.Errorf("%d more bytes read of what was in memory", again-counters.BytesSource)
	}
}

func TestOneFetchHoweverManyAsk(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 1, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 6, 3*mib+5)
	gate := r.hold(names[2])
	r.play(1, names[:2]...)
	<-gate.arrived // names[2] is being opened
	var readers sync.WaitGroup
	for reader := range 16 {
		readers.Go(func() { r.open(Reader(1+reader%4), names[2]) })
	}
	r.eventually("all wait", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.fetches[names[2]].readers == 16
	})
	close(gate.release)
	readers.Wait()
	r.quiet()
	want := int64(len(r.readyNames(names)) * (3*mib + 5))
	if got := r.Counters().BytesSource; got != want {
		t.Errorf("read %d bytes of the source for frames of %d", got, want)
	}
	if len(gate.arrived) != 0 {
		t.Error("opened more than once")
	}
}

func TestWindowIsBoundedInBytes(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 8 * mib, Ahead: 100, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 40, mib)
	var readers sync.WaitGroup
	for reader := range 3 {
		readers.Go(func() {
			for _, name := range names[reader*10:] {
				r.open(Reader(reader), name)
				if counters := r.Counters(); counters.CacheBytes > 8*mib || counters.CacheBytesPeak > 8*mib {
					t.Errorf("%d bytes, %d at the peak, in a cache of 8 MiB", counters.CacheBytes, counters.CacheBytesPeak)
				}
			}
		})
	}
	readers.Wait()
	if r.Counters().BytesFetched == 0 {
		t.Error("nothing was fetched")
	}
}

func TestWindowFillsTheCacheAndNoMore(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 16 * mib, Ahead: 100, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 40, mib)
	r.play(1, names[:3]...)
	r.quiet()
	if ahead := len(r.readyNames(names[3:])); ahead < 8 || ahead > 14 {
		t.Errorf("%d frames ahead in a cache of 16, of which two are kept for readers", ahead)
	}
	if used, _ := r.ledger.Used(); used > 16*mib {
		t.Errorf("%d bytes charged", used)
	}
}

func TestSkippedFramesAreCancelled(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 8, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 40, 64*kib)
	gate := r.hold(names[4], names[5], names[6])
	r.play(1, names[:4]...)
	for range 3 {
		<-gate.arrived
	}
	r.becomesReady(names[7:12]...)
	r.open(1, names[9]) // a player that cannot keep up
	r.mu.Lock()
	for _, name := range names[4:7] {
		if r.fetches[name] != nil {
			t.Errorf("%s is fetched still, although the reader passed it", name)
		}
	}
	r.mu.Unlock()
	before := r.Counters().BytesFetchedUnread
	close(gate.release)
	r.quiet()
	if got := r.readyNames(names[4:7]); len(got) != 0 {
		t.Errorf("%q are in the cache", got)
	}
	if after := r.Counters().BytesFetchedUnread; after != before {
		t.Errorf("%d bytes count as fetched and not read of frames that were never read", after-before)
	}
	// What was ready stays for as long as there is room, and counts when it goes.
	r.store.Reclaim(64 * mib)
	if got := r.Counters().BytesFetchedUnread; got != 2*64*kib {
		t.Errorf("%d bytes count as fetched and not read, want the two frames passed over", got)
	}
}

func TestSeekCancelsTheOldWindow(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 6, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 400, 4*kib)
	r.play(1, names[:4]...)
	r.becomesReady(names[4:9]...)
	next := 60
	r.eventually("nothing is expected any more where the reader was before it sought away", func() bool {
		r.open(1, names[next])
		next++
		time.Sleep(20 * time.Millisecond)
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, name := range names[4:9] {
			if r.fetches[name] != nil {
				return false
			}
		}
		return true
	})
}

func TestProbesHexadecimalWithoutAListing(t *testing.T) {
	cases := []struct {
		name       string
		exist      []string
		want, dont []string
	}{
		{"decimal", []string{"f_0010.dpx", "f_0011.dpx", "f_000a.dpx"}, []string{"f_0010.dpx"}, []string{"f_000a.dpx"}},
		{"hexadecimal", []string{"f_000a.dpx", "f_000b.dpx"}, []string{"f_000a.dpx", "f_000b.dpx"}, nil},
		{"one of two decimal", []string{"f_0011.dpx", "f_000a.dpx"}, []string{"f_0011.dpx"}, []string{"f_000a.dpx"}},
		{"neither", []string{"f_1000.dpx"}, nil, []string{"f_1000.dpx"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{Validity: time.Hour, BehindPercent: 50})
			r.unlisted("")
			for _, name := range append(c.exist, "f_0009.dpx") {
				r.write(name, content(name, 0, 1000))
			}
			r.rest()
			r.open(1, "f_0009.dpx")
			r.becomesReady(c.want...)
			r.quiet()
			if got := r.readyNames(c.dont); len(got) != 0 {
				t.Errorf("fetched %q", got)
			}
			if got := r.Counters().SourceErrors; got != 0 {
				t.Errorf("%d errors counted for names that do not exist", got)
			}
		})
	}
}

func TestListingOverrulesArithmetic(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 6, BehindPercent: 50})
	var names []string
	for _, i := range []int{1, 2, 3, 7, 8, 20} { // with gaps
		names = append(names, r.frames("d/f%04d.exr", i, i, 1000)...)
	}
	r.open(1, names[0])
	r.eventually("the listing is known", func() bool { return r.listingKnown("d") })
	r.becomesReady(names[1:3]...)
	r.open(1, names[1])
	r.open(1, names[2])
	r.becomesReady(names[3:]...)
	r.mu.Lock()
	clear(r.absent)
	r.mu.Unlock()
	for _, name := range names[3:] {
		if from := r.open(1, name); from != fromCache {
			t.Errorf("%s came from %s", name, from)
		}
	}
	r.quiet()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.absent) != 0 {
		t.Errorf("asked for names that the listing does not have: %v", r.absent)
	}
	for name := range r.fetches {
		t.Errorf("%s is expected after the end", name)
	}
}
