package prefetch

import (
	"bytes"
	"runtime"
	"testing"
	"time"
)

func TestShutdownWithFetchesUnderWay(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 6, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 20, 64*kib)
	gate := r.hold(names[4], names[5])
	r.play(1, names[:3]...)
	<-gate.arrived
	<-gate.arrived
	ended := make(chan error)
	go func() { ended <- r.Shutdown(time.Minute) }()
	r.eventually("the engine is closing", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.closed
	})
	select {
	case err := <-ended:
		t.Errorf("ended with %v while the source had not answered", err)
	default:
	}
	close(gate.release)
	if err := <-ended; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if used, _ := r.ledger.Used(); used != 0 {
		t.Errorf("%d bytes charged", used)
	}
}

func TestShutdownWhileReading(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 2, MaxBandwidth: 8 * mib, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 20, 2*mib)
	r.open(1, names[0])
	r.eventually("chunks are read", func() bool { return r.Counters().BytesFetched > 0 })
	// newRig shuts down, and checks.
}

func TestShutdownDoesNotWaitForADeadSource(t *testing.T) {
	before := runtime.NumGoroutine()
	r := newRig(t, Config{Validity: time.Hour, Ahead: 6, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 20, 64*kib)
	gate := r.hold(names[4])
	r.play(1, names[:3]...)
	<-gate.arrived
	if err := r.Shutdown(50 * time.Millisecond); err == nil {
		t.Error("no error, although a read was never answered")
	}
	close(gate.release) // it answers after all
	r.endsClean(before)
}

// The end of the wait must not get lost, whenever it comes.
func TestShutdownAlwaysEnds(t *testing.T) {
	for i := range 60 {
		source, err := OpenSource(t.TempDir(), 0)
		if err != nil {
			t.Fatal(err)
		}
		engine, err := NewEngine(source, Config{CacheSize: mib})
		if err != nil {
			t.Fatal(err)
		}
		engine.mu.Lock()
		engine.jobs++ // a read that is never answered
		engine.mu.Unlock()
		ended := make(chan error)
		go func() { ended <- engine.Shutdown(time.Duration(i%6) * time.Microsecond) }()
		select {
		case err := <-ended:
			if err == nil {
				t.Error("no error, although a read was never answered")
			}
		case <-time.After(20 * time.Second):
			t.Fatal("shutdown waits for ever")
		}
		source.Close(time.Second)
	}
}

func TestShutdownLeavesFramesThatApplicationsHold(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 2, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 6, 64*kib)
	r.play(1, names[:2]...)
	r.becomesReady(names[2])
	lease, _ := r.Open(1, names[2], 0, nil)
	if err := r.Shutdown(20 * time.Second); err == nil {
		t.Error("no word of the frame that is held")
	}
	if data, err := lease.Frame.Read(0, 64*kib, nil); err != nil || !bytes.Equal(data, content(names[2], 0, 64*kib)) {
		t.Errorf("the frame that is held: %d bytes, %v", len(data), err)
	}
	r.Close(lease)
}

func TestOpenAfterShutdown(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 2, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 6, 64*kib)
	r.play(1, names[:3]...)
	r.becomesReady(names[3])
	if err := r.Shutdown(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if lease, _ := r.Open(1, name, 0, nil); lease != nil {
			t.Errorf("%s is served after the end", name)
			r.Close(lease)
		}
	}
	r.Changed(names[3], 0, 0)
	r.TreeChanged("")
	if err := r.Shutdown(0); err != nil {
		t.Errorf("a second shutdown: %v", err)
	}
}

func TestOpensWhileShuttingDown(t *testing.T) {
	r := newRig(t, Config{Validity: 0, Ahead: 4, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 20, 64*kib)
	r.play(1, names[:3]...)
	ended := make(chan bool)
	for reader := range 3 {
		go func() {
			for round := range 20 {
				for _, name := range names {
					r.read(Reader(reader), name)
					if round%5 == 4 {
						r.Changed(name, 0, 0)
					}
				}
			}
			ended <- true
		}()
	}
	err := r.Shutdown(20 * time.Second)
	for range 3 {
		<-ended
	}
	if used, _ := r.ledger.Used(); used != 0 {
		t.Errorf("%d bytes charged, shutdown said %v", used, err)
	}
}

func TestDisabledFetchesNothing(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 4, BehindPercent: 50, Disabled: true})
	names := r.frames("f%04d.exr", 1, 8, 64*kib)
	for _, name := range names {
		if from := r.open(1, name); from != fromSource {
			t.Errorf("%s came from %s", name, from)
		}
	}
	if got := (r.Counters()); got != (Counters{CacheLimit: 64 * mib, InflightLimit: got.InflightLimit}) {
		t.Errorf("%+v, want nothing done", got)
	}
}

func TestReaderThatGivesUp(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 2, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 8, 64*kib)
	gate := r.hold(names[2])
	r.play(1, names[:2]...)
	<-gate.arrived
	giveUp := make(chan struct{})
	answered := make(chan *Lease)
	go func() {
		lease, _ := r.Open(1, names[2], 0, giveUp)
		answered <- lease
	}()
	r.eventually("it waits", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.fetches[names[2]] != nil && r.fetches[names[2]].readers == 1
	})
	close(giveUp)
	if lease := <-answered; lease != nil {
		t.Error("a lease for a reader that gave up")
		r.Close(lease)
	}
	close(gate.release)
	r.becomesReady(names[3])
}

func TestDiscardedFrameIsServedToNobody(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 2, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 8, 64*kib)
	r.play(1, names[:2]...)
	r.becomesReady(names[2])
	lease, _ := r.Open(1, names[2], 0, nil)
	frame := lease.Frame.Acquire()
	r.Discard(lease)
	if again := r.store.Lookup(names[2]); again != nil {
		if again == frame {
			t.Error("the discarded frame is in the cache")
		}
		again.Release()
	}
	frame.Release()
}
