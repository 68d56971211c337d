package prefetch

import (
	"slices"
	"time"
)

const (
	// maxAheadAnnounced bounds the window of an announced list in frames. Nothing
	// is guessed there, so memory is the bound; this one is for small files, of
	// which more ahead make a source no busier and every open dearer.
	maxAheadAnnounced = 512
	// forgetAnnouncedAfter is when a list that nobody follows ends: a training
	// that has announced its epoch may take minutes to load its model.
	forgetAnnouncedAfter = 15 * time.Minute
	// leisure is how soon each next file of a list is taken to be due before its
	// readers have shown their pace: after what other readers need now.
	leisure = time.Second
	// hintBatch is how many paths are taken at once: opens don't wait longer than
	// a millisecond for a list of a million.
	hintBatch = 2048
)

// Hint takes paths of list number list of a reader, in the order in which they
// will be opened, and starts to fetch the first of them. Paths are relative to
// the source and clean. See Predictor.Hint for lists and errors.
func (e *Engine) Hint(reader Reader, list uint64, paths []string) error {
	if e.config.Disabled {
		return nil
	}
	for batch := range slices.Chunk(paths, hintBatch) {
		if err := e.hint(reader, list, batch); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) hint(reader Reader, list uint64, paths []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	id, err := e.predictor.Hint(reader, list, paths)
	if id == 0 {
		return err
	}
	now := time.Now()
	s := e.streams[id]
	if s == nil {
		s = &stream{id: id, announced: true}
		e.streams[id] = s
	}
	s.last = now
	e.refollowLocked(s, now)
	e.pumpLocked()
	return err
}
