package bench

import (
	"slices"
	"time"
)

// recorder is the clock of a recording and the account of what it loses. Frame k
// is captured at start + k/fps, whatever has been written by then, and waits in a
// queue until it has been written. A frame that is captured while the queue is
// full is dropped. It is pure: all times are passed in, as durations since the
// start of the run.
type recorder struct {
	rate   Rate // zero: no clock, each frame is there when it is asked for
	frames int
	queue  int // frames captured and not yet written, at least 1

	captured int   // frames so far, dropped ones included
	waiting  []int // captured and not taken, in order
	writing  int   // taken and not finished
	dropped  []int
}

// due is when frame k is captured, 0 without a clock.
func (r *recorder) due(k int) time.Duration {
	if r.rate == (Rate{}) {
		return 0
	}
	return r.rate.Time(k)
}

// advance takes the next frame to write. With none waiting nothing is taken, and
// notBefore, later than now, is when the next one is captured. ok is false at
// the end.
func (r *recorder) advance(now time.Duration) (k int, notBefore time.Duration, ok bool) {
	if r.rate == (Rate{}) && r.captured < r.frames {
		r.captured++
		return r.captured - 1, now, true
	}
	r.capture(now)
	switch {
	case len(r.waiting) > 0:
		k = r.waiting[0]
		r.waiting = slices.Delete(r.waiting, 0, 1)
		r.writing++
		return k, now, true
	case r.captured < r.frames:
		return 0, r.due(r.captured), true
	}
	return 0, now, false
}

// capture accounts for the frames that have been captured by now.
func (r *recorder) capture(now time.Duration) {
	for ; r.captured < r.frames && r.due(r.captured) <= now; r.captured++ {
		if len(r.waiting)+r.writing >= r.queue {
			r.dropped = append(r.dropped, r.captured)
			continue
		}
		r.waiting = append(r.waiting, r.captured)
	}
}

// finish makes room for another frame: one that advance returned has been
// written or has failed.
func (r *recorder) finish(now time.Duration) {
	if r.rate != (Rate{}) {
		r.capture(now)
		r.writing--
	}
}
