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
	rate      Rate // zero: no clock, every frame is in time
	frames    int  // to play
	prebuffer int  // at least 1
	queue     int  // at least 1
	wait      bool // the clock waits for a frame that is not there: none is skipped

	started bool
	start   time.Duration // when frame 0 is due; with wait, moved by each stall
	next    int           // the first frame that has been neither read nor skipped
	held    []int         // frames read and not known to be shown, in order
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
	if !p.started || p.next >= p.frames {
		return p.next, 0, now, p.next < p.frames
	}
	p.held = slices.DeleteFunc(p.held, func(k int) bool { return p.due(k) <= now })
	if len(p.held) >= p.queue {
		return p.next, 0, p.due(p.held[0]), true
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
	result := outcomeOnTime
	switch {
	case !read:
		p.failed++
		result = outcomeFailed
	case !p.started || ended <= p.due(k):
		p.onTime++
		if p.rate != (Rate{}) {
			p.held = append(p.held, k)
		}
	default:
		p.late++
		result = outcomeLate
		if p.wait {
			p.stalled += ended - p.due(k)
			p.start += ended - p.due(k)
		}
	}
	if !p.started && p.rate != (Rate{}) && p.next >= min(p.prebuffer, p.frames) {
		p.started, p.start = true, ended
	}
	return result
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
