package prefetch

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"reelahead/cache"
)

// scan opens files one after the other and looks at their heads, as a player
// does that wants to know what is in a folder.
func (r *rig) scan(reader Reader, names ...string) {
	r.t.Helper()
	for _, name := range names {
		lease, _ := r.Open(reader, name, 0, nil)
		if lease == nil {
			continue
		}
		want, err := os.ReadFile(r.path(name))
		if err != nil {
			r.t.Fatal(err)
		}
		// A failure sends the application to the source.
		if piece, err := lease.Read(0, 4*kib, nil); err == nil {
			if !bytes.Equal(bytes.Join(piece.Slices(), nil), want[:4*kib]) {
				r.t.Errorf("the head of %s: wrong bytes", name)
			}
			piece.Release()
		}
		r.Close(lease)
	}
}

func TestScanFetchesHeadsOnly(t *testing.T) {
	const size = 9*mib + 5
	// Slow enough for no frame to be whole before it is opened.
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 256 * mib, Ahead: 2, BehindPercent: 50, MaxBandwidth: 200e6})
	names := r.frames("f%04d.dpx", 1, 40, size)
	r.scan(1, names[:30]...)
	r.quiet()
	counters := r.Counters()
	// The first, the two ahead of it, and those that its reader had to be seen to
	// leave; then heads.
	if most := int64(6*size + 30*headSize); counters.BytesFetched > most {
		t.Errorf("fetched %d bytes for 30 heads, want at most %d", counters.BytesFetched, most)
	}
	lease, _ := r.Open(1, names[30], 0, nil)
	if lease == nil {
		t.Fatal("the next head was not there")
	}
	if !lease.Frame.Partial() {
		t.Error("more than the head was fetched")
	}
	if _, err := lease.Read(headSize-1, 2, nil); !errors.Is(err, cache.ErrBeyond) {
		t.Errorf("a read beyond the head: %v", err)
	}
	r.Close(lease)

	// The reader that plays after all gets whole frames again.
	r.play(1, names[31:35]...)
	r.quiet()
	if from := r.open(1, names[35]); from != fromCache {
		t.Errorf("a frame of a reader that has begun to play came from %s", from)
	}
	// So does another one, of what the first wants the heads of only.
	r.scan(2, names[14:20]...)
	r.quiet()
	r.play(3, names[19:22]...)
	r.quiet()
	if from := r.open(3, names[22]); from != fromCache {
		t.Errorf("a frame of a player beside a scan came from %s", from)
	}
}

func TestHeadIsWhatTheSourceHas(t *testing.T) {
	r := newRig(t, Config{Validity: 0, CacheSize: 256 * mib, Ahead: 2, BehindPercent: 50, MaxBandwidth: 50e6})
	names := r.frames("f%04d.dpx", 1, 12, 2*mib)
	r.scan(1, names[:6]...)
	r.write(names[6], content(names[6], 1, 2*mib))
	r.rest()
	r.scan(1, names[6]) // compares with what is there now
}
