package prefetch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// rig is an engine over a directory of its own.
type rig struct {
	*Engine
	t   testing.TB
	dir string
}

func newRig(t testing.TB, config Config) *rig {
	t.Helper()
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	source, err := OpenSource(dir, config.Validity)
	if err != nil {
		t.Fatal(err)
	}
	if config.CacheSize == 0 {
		config.CacheSize = 64 * mib
	}
	engine, err := NewEngine(source, config)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Engine: engine, t: t, dir: dir}
	t.Cleanup(func() {
		if err := r.Shutdown(20 * time.Second); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		source.Close(time.Second)
		r.endsClean(before)
	})
	return r
}

// endsClean checks that an engine that was shut down left nothing behind.
func (r *rig) endsClean(goroutines int) {
	r.t.Helper()
	r.eventually("no memory is charged and no goroutine left", func() bool {
		used, _ := r.ledger.Used()
		return used == 0 && runtime.NumGoroutine() <= goroutines
	})
	if _, peak := r.ledger.Used(); peak > r.ledger.Limit() {
		r.t.Errorf("%d bytes at the peak, limit %d", peak, r.ledger.Limit())
	}
}

func (r *rig) eventually(what string, done func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// content is what a file holds: bytes that tell the name, the generation and
// where they belong.
func content(name string, generation int, size int) []byte {
	line := fmt.Sprintf("%s generation %d\n", name, generation)
	data := bytes.Repeat([]byte(line), size/len(line)+1)[:size]
	for at := 0; at+4 < size; at += 4096 {
		data[at], data[at+1], data[at+2] = byte(at>>12), byte(at>>20), byte(at>>28)
	}
	return data
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(name string, data []byte) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o777); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), data, 0o666); err != nil {
		r.t.Fatal(err)
	}
}

// frames writes numbered files of a size and lets them come to rest.
func (r *rig) frames(pattern string, first, last, size int) []string {
	r.t.Helper()
	var names []string
	for i := first; i <= last; i++ {
		name := fmt.Sprintf(pattern, i)
		r.write(name, content(name, 0, size))
		names = append(names, name)
	}
	r.rest()
	return names
}

// rest waits until files that were just written may be fetched.
func (r *rig) rest() { time.Sleep(settleTime + 20*time.Millisecond) }

// served says where an open was served from.
type served string

const (
	fromCache  served = "cache"
	fromFetch  served = "fetch under way"
	fromSource served = "source"
)

// open opens and reads a file whole, as an application behind the mount would,
// and checks that it got what the source has.
func (r *rig) open(reader Reader, name string) served {
	r.t.Helper()
	from, got := r.read(reader, name)
	want, err := os.ReadFile(r.path(name))
	if err != nil {
		r.t.Fatal(err)
	}
	if from != fromSource && !bytes.Equal(got, want) {
		r.t.Errorf("%s from %s: %d bytes that are not the source's %d", name, from, len(got), len(want))
	}
	return from
}

func (r *rig) read(reader Reader, name string) (served, []byte) {
	r.t.Helper()
	lease, _ := r.Open(reader, name, 0, nil)
	if lease == nil {
		return fromSource, nil
	}
	defer r.Close(lease)
	from := fromFetch
	if lease.Frame.Ready() {
		from = fromCache
	}
	piece, err := lease.Read(0, lease.Frame.Size(), nil)
	if err != nil {
		return fromSource, nil // the application gets it from lease.Source
	}
	defer piece.Release()
	return from, bytes.Join(piece.Slices(), nil)
}

func (r *rig) ready(name string) bool {
	frame := r.store.Lookup(name)
	if frame == nil {
		return false
	}
	defer frame.Release()
	return frame.Ready()
}

// readyNames lists the frames of names that are ready.
func (r *rig) readyNames(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !r.ready(name) })
}

func (r *rig) becomesReady(names ...string) {
	r.t.Helper()
	for _, name := range names {
		r.eventually(name+" is ready", func() bool { return r.ready(name) })
	}
}

// quiet waits until nothing is under way.
func (r *rig) quiet() {
	r.t.Helper()
	r.eventually("nothing is under way", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.jobs > 0 {
			return false
		}
		for _, f := range r.fetches {
			if f.phase != phaseReady && !f.starved {
				return false
			}
		}
		return true
	})
}

// play opens files in order, each once it is ready; the first comes from the
// source.
func (r *rig) play(reader Reader, names ...string) {
	r.t.Helper()
	for i, name := range names {
		if i > 0 {
			r.becomesReady(name)
		}
		if from := r.open(reader, name); (i == 0) != (from == fromSource) {
			r.t.Errorf("%s came from %s", name, from)
		}
	}
}

// unlisted keeps the engine from listing a directory, as one whose listing
// takes for ever.
func (r *rig) unlisted(directory string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listings.entry(directory).busy = true
}

func (r *rig) listingKnown(directory string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Listing(directory) != nil
}

// gate holds up fetches right after the source has opened the file and told its
// attributes.
type gate struct {
	release chan struct{}
	arrived chan uint64 // inodes of the files whose fetch is held up
}

// hold puts a gate before the fetches of the named files.
func (r *rig) hold(names ...string) *gate {
	r.t.Helper()
	g := &gate{release: make(chan struct{}), arrived: make(chan uint64, 100)}
	held := make(map[uint64]bool)
	for _, name := range names {
		held[r.inode(name)] = true
	}
	r.Writing = func(dev, ino uint64) bool {
		select {
		case <-g.release:
		default:
			if held[ino] {
				g.arrived <- ino
				<-g.release
			}
		}
		return false
	}
	return g
}

func (r *rig) inode(name string) uint64 {
	r.t.Helper()
	var s unix.Stat_t
	if err := unix.Lstat(r.path(name), &s); err != nil {
		r.t.Fatal(err)
	}
	return s.Ino
}
