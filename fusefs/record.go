package fusefs

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"reelahead/prefetch"
)

// served is how an open was served, in the word that a record has for it.
type served string

const (
	servedReady    served = "ready"    // the whole file was in the cache
	servedInflight served = "inflight" // it was on its way
	servedCold     served = "cold"     // it was neither: by the source
	servedSource   served = "source"   // it was, but others had it open from the source
)

const (
	// recordInterval is how often what was recorded goes to the file.
	recordInterval = time.Second
	// recordRoom is how many lines may wait for a file that does not take them,
	// about 200 bytes each. Then lines are left out.
	recordRoom = 500_000
	// recordPatience is how long the order of a record waits for an open that the
	// source does not answer, and an unmount for a file that takes nothing.
	recordPatience = 5 * time.Second
)

// record writes a line for every open for reading, and every announced path, to
// a file: in the format of a trace (prefetch.TraceEvent), in the order in which
// they came. An open only adds to a list in memory; a goroutine of its own
// writes it, so a full or dead disk never holds up an open. A nil record does
// nothing.
type record struct {
	file    *os.File
	started time.Time
	log     zerolog.Logger
	stop    chan struct{}
	done    chan struct{} // closed when all is written

	mu     sync.Mutex
	events []*recordedEvent
	missed int // events that found no room
}

// recordedEvent is one open, or one announced path; guarded by record.mu.
type recordedEvent struct {
	hint     bool
	reader   prefetch.Reader
	path     string
	came     time.Time
	served   served // "" until it is answered, and for ever if it failed
	expected bool
	answered bool
}

// startRecord creates or empties the file at path. Times are since started.
func startRecord(path string, started time.Time, log zerolog.Logger) (*record, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("record of opens: %w", err)
	}
	r := &record{file: file, started: started, log: log, stop: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r, nil
}

// came writes down that an open has come; tell answered how it went.
func (r *record) came(reader prefetch.Reader, path string) *recordedEvent {
	if r == nil {
		return nil
	}
	o := &recordedEvent{reader: reader, path: path}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(o)
	return o
}

// announced writes down the paths that a reader announced.
func (r *record) announced(reader prefetch.Reader, paths []string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range paths {
		r.addLocked(&recordedEvent{hint: true, reader: reader, path: path, answered: true})
	}
}

func (r *record) addLocked(o *recordedEvent) {
	o.came = time.Now()
	if len(r.events) >= recordRoom {
		r.missed++
		return
	}
	r.events = append(r.events, o)
}

// answered completes an open; how is "" if it failed.
func (r *record) answered(o *recordedEvent, how served, expected bool) {
	if r == nil || o == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o.served, o.expected, o.answered = how, expected, true
}

// close writes what is left and reports what could not be written.
func (r *record) close() {
	if r == nil {
		return
	}
	close(r.stop)
	select {
	case <-r.done:
	case <-time.After(recordPatience):
		r.log.Error().Str("file", r.file.Name()).Msg("the record of opens is incomplete: its file takes nothing")
	}
}

func (r *record) run() {
	defer close(r.done)
	ticker := time.NewTicker(recordInterval)
	defer ticker.Stop()
	var lines []byte
	var failure error
	for stopping := false; !stopping; {
		select {
		case <-r.stop:
			stopping = true
		case <-ticker.C:
		}
		lines = r.take(lines[:0], stopping)
		if failure == nil && len(lines) > 0 {
			if _, failure = r.file.Write(lines); failure != nil {
				r.log.Error().Err(failure).Msg("opens are not recorded any more")
			}
		}
	}
	if err := r.file.Close(); err != nil && failure == nil {
		r.log.Error().Err(err).Msg("the record of opens may be incomplete")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missed > 0 {
		r.log.Warn().Int("lines", r.missed).Msg("the record lacks lines: its file was too slow")
	}
}

// take appends the lines of the opens that are answered, and of none that came
// after one that is still to be answered soon. all: of all that are answered.
func (r *record) take(lines []byte, all bool) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var waiting []*recordedEvent
	for i, o := range r.events {
		if !o.answered {
			if !all && time.Since(o.came) < recordPatience {
				waiting = append(waiting, r.events[i:]...)
				break
			}
			waiting = append(waiting, o)
			continue
		}
		switch {
		case o.hint:
			lines = prefetch.AppendTraceHint(lines, o.reader, o.path)
		case o.served != "":
			lines = prefetch.AppendTraceOpen(lines, o.reader, o.path, string(o.served), o.expected, o.came.Sub(r.started).Seconds())
		}
	}
	r.events = waiting
	return lines
}
