package prefetch

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"reelahead/cache"
	"reelahead/naming"
)

// Listing returns what is known of a directory's names, or nil; it makes the
// Engine the predictor's Directories. Called with mu held.
func (e *Engine) Listing(directory string) *naming.Listing {
	listing, _, ok := e.listings.Get(directory)
	if !ok {
		return nil
	}
	return listing
}

// listed says when a directory was last listed, and in which state.
type listed struct {
	busy  bool
	at    time.Time
	state cache.Attr
}

// wantListingsLocked has directories listed in the background, each at most
// once in a validity time and never twice at once.
func (e *Engine) wantListingsLocked(directories []string) {
	now := time.Now()
	for _, directory := range directories {
		l := e.listed[directory]
		if l == nil {
			l = &listed{}
			e.listed[directory] = l
		}
		if l.busy || now.Sub(l.at) <= max(e.config.Validity, tick) {
			continue
		}
		l.busy = true
		e.jobs++
		go e.list(directory, l.state)
	}
}

// list reads a directory, unless it is in the state in which it was listed
// before, and lets the streams in it follow the evidence.
func (e *Engine) list(directory string, before cache.Attr) {
	began := time.Now()
	epoch := e.listings.Epoch()
	state, err := e.source.Stat(directory)
	_, _, known := e.listings.Get(directory)
	if errors.Is(err, unix.ENOENT) {
		// Known to be empty: the predictor need not ask again.
		e.listings.Put(directory, naming.NewListing(nil), int64(len(directory)), began, epoch)
		e.listings.Wait()
	}
	fresh := err == nil && !(known && state.SameContent(before))
	if fresh {
		var names []string
		if names, err = e.source.readNames(directory); err == nil {
			listing := naming.NewListing(names)
			e.listings.Put(directory, listing, listing.SizeBytes(), began, epoch)
			e.listings.Wait()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs--
	if e.jobs == 0 {
		e.idle.Broadcast()
	}
	now := time.Now()
	if l := e.listed[directory]; l != nil {
		l.busy, l.at, l.state = false, now, state
	}
	if fresh && err == nil && !e.closed {
		for id, s := range e.streams {
			if at, ok := e.predictor.Stream(id); ok && at.Dir == directory {
				e.refollowLocked(s, now)
			}
		}
	}
	e.pumpLocked()
}
