package prefetch

import "time"

const (
	initialInflight = 32
	minInflight     = 8
	maxInflight     = 128
)

// limiter decides how many reads are on the source at once. With a fixed limit
// it only holds it. Else it climbs: while reads queue, it raises the limit as
// long as that raises throughput, and takes the step back when it did not.
type limiter struct {
	limit int
	fixed bool

	since      time.Time
	bytes      int64
	busy       time.Duration // summed latency, to weigh against throughput
	reads      int
	throughput float64 // bytes a second in the last period that counted
	raised     bool    // the last period ran with a raised limit
	rest       int     // periods to wait before the next try
}

func newLimiter(fixed int) limiter {
	if fixed > 0 {
		return limiter{limit: fixed, fixed: true}
	}
	return limiter{limit: initialInflight}
}

func (l *limiter) observe(bytes int, took time.Duration) {
	l.bytes += int64(bytes)
	l.busy += took
	l.reads++
}

// adapt closes a period. saturated tells that reads queue for the limit.
func (l *limiter) adapt(now time.Time, saturated bool) {
	period := now.Sub(l.since).Seconds()
	throughput := float64(l.bytes) / max(period, 1e-3)
	first := l.since.IsZero()
	l.since, l.bytes, l.busy, l.reads = now, 0, 0, 0
	if l.fixed || first {
		return
	}
	const gain = 1.05 // less than this is noise
	if l.raised {
		l.raised = false
		if throughput < l.throughput*gain {
			l.limit = max(minInflight, l.limit*4/5)
			l.rest = 8
			return
		}
	}
	l.throughput = throughput
	if l.rest > 0 {
		l.rest--
		return
	}
	if saturated && l.limit < maxInflight {
		l.limit = min(maxInflight, l.limit*5/4)
		l.raised = true
	}
}
