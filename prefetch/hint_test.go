package prefetch

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func (r *rig) announce(reader Reader, list uint64, names ...string) {
	r.t.Helper()
	r.must(r.Hint(reader, list, names))
}

// list returns the engine's only announced list.
func (r *rig) list() *stream {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.streams {
		if s.announced {
			return s
		}
	}
	r.t.Fatal("no list is announced")
	return nil
}

// TestAnnouncedFilesAreFetchedAtOnce announces more than there is memory for: as
// much as fits its share is fetched before the first open, the head first, and
// the whole list is served from memory, by whomever it is read.
func TestAnnouncedFilesAreFetchedAtOnce(t *testing.T) {
	const size = 100 * kib
	r := newRig(t, Config{CacheSize: 4 * mib, Validity: time.Hour, BehindPercent: 50})
	order := epoch(1, r.frames("f%04d.npz", 0, 99, size))
	r.announce(1, 1, order...)
	r.eventually("the head of the list is ready", func() bool { return len(r.readyNames(order)) >= 30 })
	r.quiet()
	ready := r.readyNames(order)
	if !slices.Equal(ready, order[:len(ready)]) {
		t.Errorf("ready are %q, not the first of the list", ready)
	}
	if most := 4 * mib / 8 * 7; len(ready)*size > most {
		t.Errorf("%d bytes are fetched ahead, the list's share is %d", len(ready)*size, most)
	}
	for i, name := range order {
		r.becomesReady(name)
		if from := r.open(Reader(2+i/8%2), name); from != fromCache {
			t.Errorf("open %d, %s, came from %s", i, name, from)
		}
	}
	if unread := r.Counters().BytesFetchedUnread; unread > 0 {
		t.Errorf("%d bytes were fetched in vain", unread)
	}
}

// TestWhatWasReadFromAListGoesFirst reads a few files in order of their names,
// then a list that needs all the room: the files of the list make room for each
// other, and those that it comes to again stay.
func TestWhatWasReadFromAListGoesFirst(t *testing.T) {
	const size = 128 * kib
	r := newRig(t, Config{CacheSize: 4 * mib, Validity: time.Hour, BehindPercent: 90, Ahead: 4})
	kept := r.frames("kept.%04d.exr", 1, 8, size)
	set := r.frames("set/f%04d.npz", 0, 79, size)
	r.play(1, kept...)
	for _, name := range kept[1:] {
		r.open(1, name) // read again: who scrubs comes back
	}
	order := slices.Concat(set[:30], set[:4], set[30:])
	r.announce(2, 1, order...)
	for i, name := range order {
		r.becomesReady(name)
		if from := r.open(2, name); from != fromCache {
			t.Errorf("open %d, %s, came from %s", i, name, from)
		}
	}
	r.quiet()
	if left := r.readyNames(kept[1:]); len(left) < len(kept)-1 {
		t.Errorf("%d of %d files that were read otherwise are left", len(left), len(kept)-1)
	}
	if fetched, most := r.Counters().BytesFetched, int64((len(kept)-1+len(set))*size); fetched > most {
		t.Errorf("%d bytes were fetched, want at most %d: what the list soon came to again had gone", fetched, most)
	}
}

// TestAListEnds replaces a list, then lets it be forgotten.
func TestAListEnds(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, BehindPercent: 50, Ahead: 6})
	names := r.frames("f%04d.npz", 0, 19, 64*kib)
	r.announce(1, 1, names[:10]...)
	r.becomesReady(names[:6]...)
	r.announce(1, 2, names[10:]...)
	r.becomesReady(names[10:16]...)
	s := r.list()
	r.mu.Lock()
	wanted := len(s.wants)
	if wanted != 6 || r.fetches[names[0]] != nil {
		t.Errorf("%d files are wanted; the first of the old list still: %v", wanted, r.fetches[names[0]] != nil)
	}
	r.lookOverLocked(time.Now().Add(forgetAnnouncedAfter - time.Minute))
	if !r.predictor.Knows(s.id) {
		t.Error("a list is forgotten before its time")
	}
	r.lookOverLocked(time.Now().Add(forgetAnnouncedAfter + time.Minute))
	if r.predictor.Knows(s.id) || len(r.fetches) > 0 || r.pending.len() > 0 {
		t.Errorf("a list that nobody follows is known: %v, and %d files are wanted", r.predictor.Knows(s.id), len(r.fetches))
	}
	r.mu.Unlock()
}

// TestWhatCannotBeFetchedIsAskedForOnce announces what is no file: within the
// validity time each open of another file does not ask for it again.
func TestWhatCannotBeFetchedIsAskedForOnce(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, BehindPercent: 50})
	names := r.frames("f%04d.npz", 0, 9, 64*kib)
	r.must(unix.Mkdir(r.path("dir"), 0o777))
	r.must(unix.Mkfifo(r.path("fifo"), 0o666))
	r.must(unix.Symlink("f0000.npz", r.path("link")))
	r.must(unix.Symlink("dir", r.path("linkdir")))
	bad := []string{"dir", "fifo", "link", "linkdir/f", "gone", "f0001.npz/x"}
	r.announce(1, 1, slices.Concat(names[:3], bad, names[3:])...)
	r.becomesReady(names...)
	r.quiet()
	r.mu.Lock()
	for _, name := range bad {
		if _, known := r.absent[name]; !known {
			t.Errorf("%s would be asked for at each open", name)
		}
	}
	r.mu.Unlock()
	for _, name := range names {
		if from := r.open(1, name); from != fromCache {
			t.Errorf("%s came from %s", name, from)
		}
	}
	if errors := r.Counters().SourceErrors; errors > 0 {
		t.Errorf("%d source errors", errors)
	}
}
