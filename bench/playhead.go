package bench

import (
	"slices"
	"time"
)

// playhead is the clock of a player and the account of what it shows. It says
// which frame to read next and how each counts. It is pure: all times are
// passed in, as durations since the start of the run.
//
// The clock starts when the pre-buffer is full: frame k is due at start + k/fps,
// whatever was read when. The reader works ahead of it by at most queue frames
// that are read and not yet shown.
//
// A frame whose due time is nearer than the median of the recent frame times
// can't be made any more: the reader has fallen behind, and goes on with the
// first frame that is due a median and one frame interval from now or later. It
// gets the interval as a margin, so that a source with half the bandwidth needed
// shows every second frame, not none. The frames between are skipped.
type playhead struct {
	rate      Rate
	frames    int // to play
	prebuffer int
	queue     int
	wait      bool // the clock waits for a frame that is not there: none is skipped

	started bool
	start   time.Duration   // when frame 0 is due; with wait, moved by each stall
	next    int             // the first frame that has been neither read nor skipped
	held    []time.Duration // due times of frames read and not known to be shown
	recent  runningMedian

	onTime, late, skipped, failed int
	stalled                       time.Duration
}

// outcome is how a frame counts.
type outcome string

const (
	outcomeOnTime  outcome = "on_time"
	outcomeLate    outcome = "late"
	outcomeSkipped outcome = "skipped"
	outcomeFailed  outcome = "failed"
)

// due is when frame k is shown. The clock must have started.
func (p *playhead) due(k int) time.Duration { return p.start + p.rate.Time(k) }

// advance returns the next frame to read, the number of frames that it skipped
// in front of it, and the time before which it can't be read because the queue
// is full: when that is later than now, nothing has changed and the caller asks
// again then. ok is false at the end.
func (p *playhead) advance(now time.Duration) (k, skipped int, notBefore time.Duration, ok bool) {
	if !p.started {
		return p.next, 0, now, p.next < p.frames
	}
	if p.next >= p.frames {
		return p.next, 0, now, false
	}
	for len(p.held) > 0 && p.held[0] <= now {
		p.held = p.held[1:]
	}
	if len(p.held) >= p.queue {
		return p.next, 0, p.held[0], true
	}
	if median := p.recent.value(); !p.wait && p.due(p.next) < now+median {
		target := p.rate.Frames(now + median + p.rate.Time(1) - p.start)
		target = min(max(target, p.next), p.frames)
		skipped = target - p.next
		p.skipped += skipped
		p.next = target
	}
	return p.next, skipped, now, p.next < p.frames
}

// finish counts frame k, the one that advance returned last. It was read from
// began until ended; read is false when it could not be read whole.
func (p *playhead) finish(k int, began, ended time.Duration, read bool) outcome {
	p.next = k + 1
	if read {
		p.recent.add(ended - began)
	}
	defer p.startWhenBuffered(ended)
	switch {
	case !read:
		p.failed++
		return outcomeFailed
	case !p.started:
		p.onTime++
		return outcomeOnTime
	case ended <= p.due(k):
		p.onTime++
		p.held = append(p.held, p.due(k))
		return outcomeOnTime
	}
	p.late++
	if p.wait {
		p.stalled += ended - p.due(k)
		p.start += ended - p.due(k)
	}
	return outcomeLate
}

// startWhenBuffered starts the clock once the pre-buffer holds its frames.
func (p *playhead) startWhenBuffered(now time.Duration) {
	if p.started || p.next < min(p.prebuffer, p.frames) {
		return
	}
	p.started, p.start = true, now
	for k := range p.onTime {
		p.held = append(p.held, p.due(k+p.failed))
	}
}

// runningMedian is the median of the last few frame times: of enough that one
// slow frame does not move it, of few enough that it follows a source that
// changes within a second.
type runningMedian struct {
	times [15]time.Duration
	n     int // added so far
}

func (m *runningMedian) add(t time.Duration) {
	m.times[m.n%len(m.times)] = t
	m.n++
}

// value is 0 before the first time.
func (m *runningMedian) value() time.Duration {
	n := min(m.n, len(m.times))
	if n == 0 {
		return 0
	}
	sorted := m.times
	slices.Sort(sorted[:n])
	return sorted[n/2]
}
