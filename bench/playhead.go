package bench

import (
	"math"
	"slices"
	"time"
)

// playhead is the clock of a player and the account of what it shows. It says
// which frame to read next and how each counts. It is pure: all times are
// passed in, as durations since the start of the run.
//
// The clock starts when the pre-buffer is full: frame k is due at start + k/fps,
// whatever was read when. The reader works ahead of it by at most queue frames
// that are being read, or are read and not yet shown.
//
// A frame whose due time is nearer than the median of the recent frame times
// can't be made any more: the reader has fallen behind, and goes on with the
// first frame that is due a median and one frame interval from now or later. It
// gets the interval as a margin, so that a source with half the bandwidth needed
// shows every second frame, not none. The frames between are skipped.
//
// Several frames may be read at once. With wait the clock then stands at the
// first of them that is overdue, and none after it is shown.
type playhead struct {
	rate      Rate // zero: no clock, every frame is in time
	frames    int  // to play
	prebuffer int  // at least 1
	queue     int  // at least 1
	wait      bool // the clock waits for a frame that is not there: none is skipped
	hold      bool // the clock is started by begin, not by the full pre-buffer

	started bool
	start   time.Duration // when frame 0 is due; with wait, moved by each stall
	next    int           // the first frame that has been neither taken nor skipped
	reading []int         // frames taken and not finished, in order
	held    []int         // frames read and not known to be shown, in order
	recent  runningMedian

	onTime, late, skipped, failed int
	stalled                       time.Duration
}

// Outcome is how a frame counts.
type Outcome string

// A frame that is late or skipped is dropped.
const (
	OutcomeOnTime  Outcome = "on_time"
	OutcomeLate    Outcome = "late"    // it was being read when due
	OutcomeSkipped Outcome = "skipped" // its time had passed before its read could begin
	OutcomeFailed  Outcome = "failed"  // missing, short or not readable
)

// never is later than any time.
const never = time.Duration(math.MaxInt64)

// due is when frame k is shown. The clock must have started.
func (p *playhead) due(k int) time.Duration { return p.start + p.rate.Time(k) }

// begin starts the clock.
func (p *playhead) begin(at time.Duration) { p.started, p.start = true, at }

// buffered says whether the pre-buffer is full, or has failed to fill.
func (p *playhead) buffered() bool {
	prebuffer := min(p.prebuffer, p.frames)
	return p.next >= prebuffer && (len(p.reading) == 0 || p.reading[0] >= prebuffer)
}

// advance takes the next frame to read and returns it with the number of frames
// that were skipped in front of it. When the queue is full nothing is taken, and
// notBefore is the first time, later than now, at which that may change without
// a frame being finished: the caller asks again then, and when a frame has been
// finished or the clock has begun. ok is false at the end.
func (p *playhead) advance(now time.Duration) (k, skipped int, notBefore time.Duration, ok bool) {
	switch {
	case p.next >= p.frames:
		return p.next, 0, now, false
	case p.rate == Rate{}:
	case !p.started:
		if p.next >= max(p.prebuffer, p.queue) {
			return p.next, 0, never, true
		}
	default:
		clock := p.clock(now)
		p.held = slices.DeleteFunc(p.held, func(k int) bool { return p.due(k) <= clock })
		if len(p.held)+len(p.reading) >= p.queue {
			return p.next, 0, p.room(now), true
		}
		if skipped = p.missed(now); skipped > 0 {
			p.skipped += skipped
			p.next += skipped
		}
		if p.next >= p.frames {
			return p.next, skipped, now, false
		}
	}
	p.reading = append(p.reading, p.next)
	p.next++
	return p.next - 1, skipped, now, true
}

// clock is the time by which frames are shown: now, unless it waits.
func (p *playhead) clock(now time.Duration) time.Duration {
	if p.wait && len(p.reading) > 0 {
		return min(now, p.due(p.reading[0]))
	}
	return now
}

// room is when a full queue next has room by the passing of time alone.
func (p *playhead) room(now time.Duration) time.Duration {
	at := never
	if len(p.held) > 0 && p.due(p.held[0]) > now {
		at = p.due(p.held[0])
	}
	for _, k := range p.reading {
		switch due := p.due(k); {
		case due > now:
			return min(at, due)
		case p.wait:
			return never
		}
	}
	return at
}

// missed is how many frames from the next one on can't be made any more.
func (p *playhead) missed(now time.Duration) int {
	median := p.recent.value()
	if p.wait || p.due(p.next) >= now+median {
		return 0
	}
	target := p.rate.Frames(now + median + p.rate.Time(1) - p.start)
	return min(max(target, p.next), p.frames) - p.next
}

// finish counts frame k, which advance has returned. It was read from began
// until ended; read is false when it could not be read whole. stalled is by how
// much the clock has waited for it.
func (p *playhead) finish(k int, began, ended time.Duration, read bool) (result Outcome, stalled time.Duration) {
	first := p.reading[0] == k
	p.reading = slices.DeleteFunc(p.reading, func(taken int) bool { return taken == k })
	if read {
		p.recent.add(ended - began)
	}
	switch {
	case !read:
		p.failed++
		result = OutcomeFailed
	case !p.started || ended <= p.due(k) || p.wait && !first:
		p.onTime++
		result = OutcomeOnTime
		if p.rate != (Rate{}) {
			at, _ := slices.BinarySearch(p.held, k)
			p.held = slices.Insert(p.held, at, k)
		}
	default:
		p.late++
		result = OutcomeLate
		if p.wait {
			stalled = ended - p.due(k)
			p.stalled += stalled
			p.start += stalled
		}
	}
	if !p.started && !p.hold && p.rate != (Rate{}) && p.buffered() {
		p.begin(ended)
	}
	return result, stalled
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
