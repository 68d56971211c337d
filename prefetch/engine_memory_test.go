package prefetch

import (
	"slices"
	"testing"
	"time"
)

// hog has a reader hold frames open until the cache is full of them.
func (r *rig) hog(reader Reader, names []string) (held []*Lease) {
	r.t.Helper()
	r.open(reader, names[0])
	for _, name := range names[1:] {
		r.eventually(name+" is ready or starved", func() bool { return r.ready(name) || r.starved(name) })
		if !r.ready(name) {
			return held
		}
		lease, _ := r.Open(reader, name, 0, nil)
		if lease == nil {
			r.t.Fatalf("%s is ready and not served", name)
		}
		held = append(held, lease)
	}
	r.t.Fatal("the cache is larger than all frames")
	return nil
}

func (r *rig) starved(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.fetches[name]
	return f != nil && f.starved
}

func TestStarvedFetchesAreTriedAgainWhenRoomComes(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 4 * mib, Ahead: 1, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 12, mib)
	held := r.hog(1, names)
	if len(held) < 3 {
		t.Fatalf("%d frames held of a cache of 4", len(held))
	}
	next := names[1+len(held)]
	r.quiet()
	if r.ready(next) {
		t.Fatalf("%s is ready in a cache full of frames that are held", next)
	}
	for _, lease := range held {
		r.Close(lease)
	}
	r.becomesReady(next)
	if from := r.open(1, next); from != fromCache {
		t.Errorf("%s came from %s", next, from)
	}
}

func TestReaderIsServedByTheSourceWhenTheCacheIsHeld(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 4 * mib, Ahead: 1, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 12, mib)
	held := r.hog(1, names)
	for _, name := range names[1+len(held):] {
		if lease, _ := r.Open(1, name, 0, nil); lease != nil {
			t.Errorf("%s got memory that is not there", name)
			r.Close(lease)
		}
	}
	for _, lease := range held {
		if data, err := lease.Frame.Read(0, mib, nil); err != nil || len(data) != mib {
			t.Errorf("%s, held: %d bytes, %v", lease.Frame.Path, len(data), err)
		}
		r.Close(lease)
	}
}

func TestReadFramesGiveWayToExpectedOnes(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 8 * mib, Ahead: 3, BehindPercent: 100})
	names := r.frames("f%04d.exr", 1, 30, mib)
	r.play(1, names...)
	r.quiet()
	if got := r.readyNames(names); len(got) == 0 || len(got) > 8 {
		t.Errorf("%d frames in a cache of 8", len(got))
	}
}

func TestPausedStreamsGiveWay(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 8 * mib, Ahead: 7, BehindPercent: 50})
	paused := r.frames("paused/f%04d.exr", 1, 30, mib)
	moving := r.frames("moving/f%04d.exr", 1, 30, mib)
	r.play(1, paused[:3]...)
	r.quiet()
	if got := r.readyNames(paused[3:10]); len(got) < 5 {
		t.Fatalf("only %q of a stream's window are ready", got)
	}
	r.open(2, moving[0])
	r.open(2, moving[1])
	r.mu.Lock()
	for _, s := range r.streams {
		if at, ok := r.predictor.Stream(s.id); ok && at.Dir == "paused" {
			s.last = time.Now().Add(-restAfter - time.Second)
		}
	}
	r.mu.Unlock()
	r.becomesReady(moving[2:5]...)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range paused[3:] {
		if f := r.fetches[name]; f != nil {
			t.Errorf("%s of a paused stream is in the window, although another one starved", name)
		}
	}
}

func TestPausedStreamKeepsItsFramesWhileThereIsRoom(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 4, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 20, 64*kib)
	r.play(1, names[:3]...)
	r.becomesReady(names[3:7]...)
	r.mu.Lock()
	for _, s := range r.streams {
		s.last = time.Now().Add(-restAfter - time.Second)
	}
	r.mu.Unlock()
	r.eventually("the stream counts as paused", func() bool {
		streams := r.Streams()
		return len(streams) == 1 && streams[0].Paused
	})
	if got := r.readyNames(names[3:7]); !slices.Equal(got, names[3:7]) {
		t.Errorf("left %q, want %q", got, names[3:7])
	}
	r.mu.Lock()
	for _, s := range r.streams {
		s.last = time.Now().Add(-forgetAfter - time.Second)
	}
	r.mu.Unlock()
	r.eventually("the stream is forgotten", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.streams) == 0 && len(r.fetches) == 0
	})
}

func TestBandwidthIsBounded(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 4, MaxBandwidth: 8 * mib, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 6, 2*mib)
	began := time.Now()
	r.open(1, names[0])
	r.becomesReady(names[1:3]...)
	// The first MiB is free; a busy machine only makes it slower.
	if took := time.Since(began); took < 3*time.Second/8*9/10 {
		t.Errorf("4 MiB in %s at 8 MiB/s", took)
	}
}
