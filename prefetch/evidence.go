package prefetch

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"reelahead/cache"
	"reelahead/naming"
)

const (
	// listingsBytes bounds the memory of all listings: several folders of a
	// million names.
	listingsBytes = 256 << 20
	// listingShare bounds the part of the time that is spent on listing one
	// folder again, a folder of many names that changes all the time.
	listingShare = 8
)

// listings is what is known of the names in directories, in bounded memory: the
// one not used for longest goes first. Losing one means to read a folder again,
// which may hold a million names, so none is dropped that has room. Guarded by
// Engine.mu.
type listings struct {
	of         map[string]*listed
	bytes      int64
	generation uint64 // of the tree: a listing begun in an older one is void
}

// listed is one directory: its names, nil if they are not known, and when and in
// which state it was read.
type listed struct {
	names *naming.Listing
	bytes int64
	state cache.Attr
	at    time.Time     // of the last attempt
	took  time.Duration // the last attempt
	used  time.Time
	busy  bool
}

func newListings() listings { return listings{of: make(map[string]*listed)} }

// entry returns the record of a directory, made if need be.
func (l *listings) entry(directory string) *listed {
	entry := l.of[directory]
	if entry == nil {
		entry = &listed{}
		l.of[directory] = entry
	}
	return entry
}

// keep gives a directory its names and makes room for them.
func (l *listings) keep(entry *listed, names *naming.Listing, bytes int64) {
	l.forget(entry)
	if bytes > listingsBytes {
		return
	}
	entry.names, entry.bytes = names, bytes
	l.bytes += bytes
	for l.bytes > listingsBytes {
		var oldest *listed
		for _, other := range l.of {
			if other.names != nil && other != entry && (oldest == nil || other.used.Before(oldest.used)) {
				oldest = other
			}
		}
		l.forget(oldest)
	}
}

func (l *listings) forget(entry *listed) {
	l.bytes -= entry.bytes
	entry.names, entry.bytes = nil, 0
}

// tidy drops the records of directories whose names are not known and not asked
// for any more.
func (l *listings) tidy(now time.Time) {
	for directory, entry := range l.of {
		if entry.names == nil && !entry.busy && now.Sub(entry.at) > forgetAfter {
			delete(l.of, directory)
		}
	}
}

// treeChanged forgets everything: a directory has another name now.
func (l *listings) treeChanged() {
	l.generation++
	for _, entry := range l.of {
		l.forget(entry)
		entry.at = time.Time{}
	}
}

// Listing returns what is known of a directory's names, or nil; it makes the
// Engine the predictor's Directories. Called with mu held.
func (e *Engine) Listing(directory string) *naming.Listing {
	entry := e.listings.of[directory]
	if entry == nil || entry.names == nil {
		return nil
	}
	entry.used = time.Now()
	return entry.names
}

// wantListingsLocked has directories listed in the background, each at most
// once in a validity time and never twice at once.
func (e *Engine) wantListingsLocked(directories []string) {
	now := time.Now()
	for _, directory := range directories {
		entry := e.listings.entry(directory)
		if entry.busy || now.Sub(entry.at) <= max(e.config.Validity, tick, listingShare*entry.took) {
			continue
		}
		entry.busy = true
		e.jobs++
		known, before, generation := entry.names != nil, entry.state, e.listings.generation
		go func() {
			names, state, missing := e.list(directory, known, before)
			e.takeListing(directory, names, state, missing, generation, now)
		}()
	}
}

// list reads a directory, unless its names are known and it is in the state in
// which they were read. It returns nil if there is nothing new, and whether the
// directory does not exist.
func (e *Engine) list(directory string, known bool, before cache.Attr) (names *naming.Listing, state cache.Attr, missing bool) {
	state, err := e.source.Stat(directory)
	if errors.Is(err, unix.ENOENT) {
		// Known to be empty: the predictor need not ask again.
		return naming.NewListing(nil), state, true
	}
	if err != nil || known && state.SameContent(before) {
		return nil, state, false
	}
	found, err := e.source.readNames(directory)
	if err != nil {
		return nil, state, false
	}
	return naming.NewListing(found), state, false
}

// takeListing takes up what a listing has brought and lets the streams in the
// directory follow the evidence.
func (e *Engine) takeListing(directory string, names *naming.Listing, state cache.Attr, missing bool, generation uint64, began time.Time) {
	var bytes int64
	if names != nil {
		bytes = names.SizeBytes()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs--
	if e.jobs == 0 {
		e.idle.Broadcast()
	}
	now := time.Now()
	entry := e.listings.entry(directory)
	entry.busy = false
	if generation != e.listings.generation {
		return
	}
	entry.at, entry.took, entry.state, entry.used = now, now.Sub(began), state, now
	if names != nil {
		e.listings.keep(entry, names, bytes)
	}
	if names != nil && !missing && !e.closed {
		for id, s := range e.streams {
			if at, ok := e.predictor.Stream(id); ok && at.Dir == directory {
				e.refollowLocked(s, now)
			}
		}
	}
	e.pumpLocked()
}
