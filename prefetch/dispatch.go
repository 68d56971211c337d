package prefetch

import "time"

const (
	// prefetchChunks is how many chunks of one frame are read at once while no
	// reader waits for it: more frames side by side make better use of a source
	// that limits each stream than more chunks of one.
	prefetchChunks = 4
	// demandChunks is the same for a frame that a reader waits for.
	demandChunks = 8
	// demandReserve is how many reads may go beyond the limit for readers that
	// wait, so that a full pipe of guesses never holds one up.
	demandReserve = 16
)

// pumpLocked starts as many jobs as the limit allows: those that a reader waits
// for first, then by deadline.
func (e *Engine) pumpLocked() {
	for !e.closed {
		f := e.mostUrgentLocked()
		if f == nil {
			return
		}
		e.startLocked(f)
	}
}

// mostUrgentLocked returns the fetch to work on next, nil if there is none or
// all reads that may be on the source are.
func (e *Engine) mostUrgentLocked() *fetch {
	full := e.jobs >= e.limiter.limit
	if e.jobs >= e.limiter.limit+demandReserve {
		return nil
	}
	feasible := time.Now().Add(time.Duration(e.timing.fetchSeconds * float64(time.Second)))
	return e.pending.mostUrgent(feasible, full)
}

// startable tells whether a fetch under way has a job that could start now.
func (f *fetch) startable() bool {
	switch f.phase {
	case phaseReading:
		atOnce := prefetchChunks
		if f.readers > 0 {
			atOnce = demandChunks
		}
		return f.outstanding < atOnce && f.next < f.frame.Chunks()
	case phaseConfirming:
		return f.outstanding == 0
	}
	return false
}

func (e *Engine) startLocked(f *fetch) {
	switch f.phase {
	case phaseQueued:
		f.phase = phaseOpening
		e.pending.file(f)
		e.goLocked(f, func() { e.open(f) })
	case phaseReading:
		if f.readers > 0 && e.source.remote && f.block == nil && f.more == nil {
			f.more = new(descriptors)
		}
		more := f.more
		if chunk := f.nextChunkLocked(); chunk >= 0 {
			e.goLocked(f, func() { e.readChunk(f, chunk, more) })
		}
	case phaseConfirming:
		e.goLocked(f, func() { e.confirmWhole(f) })
	}
}

// goLocked runs a job on the source for f in a goroutine of its own, counted
// until it ends.
func (e *Engine) goLocked(f *fetch, job func()) {
	e.jobs++
	f.outstanding++
	go func() {
		job()
		e.mu.Lock()
		e.jobs--
		if e.jobs == 0 {
			e.idle.Broadcast()
		}
		e.pumpLocked()
		e.mu.Unlock()
	}()
}

// queuedLocked tells whether fetches wait for a free read.
func (e *Engine) queuedLocked() bool {
	if e.jobs < e.limiter.limit {
		return false
	}
	return e.pending.startable()
}

// timing knows how long a frame takes from its open to its last byte.
type timing struct {
	fetchSeconds float64 // smoothed
}

func (t *timing) observe(took time.Duration) {
	if t.fetchSeconds == 0 {
		t.fetchSeconds = took.Seconds()
	} else {
		t.fetchSeconds += (took.Seconds() - t.fetchSeconds) / 8
	}
}
