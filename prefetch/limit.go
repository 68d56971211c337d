package prefetch

import (
	"math/bits"
	"time"
)

const (
	// initialInflight is low: on a source that one processor or one disk feeds,
	// more reads at once only make every frame late together, and a source that
	// can do more shows it within a second.
	initialInflight = 12
	minInflight     = 4
	maxInflight     = 128
	// limitPeriod is how long a limit is tried before its throughput is judged.
	limitPeriod = 250 * time.Millisecond
	// limitRest is how many periods pass after a try that failed, and twice as many
	// after each further one, up to mostRest: a try costs throughput, and a limit that
	// neither more nor fewer reads improved is right for a while.
	limitRest = 6
	mostRest  = 48
	// quickPeriod is how long at least a limit holds while the source is not busy:
	// while reads take no longer than they do when there are few.
	quickPeriod = 60 * time.Millisecond
	// notBusy is how many times longer than at best reads may take for that, and
	// fastShare the part of them that must not take longer: where requests queue at
	// the source all wait, where only this machine's processors are busy some do.
	notBusy   = 1.3
	fastShare = 1.0 / 3
)

// limiter decides how many reads are on the source at once. With a fixed limit
// it only holds it. Else it raises the limit while reads queue that take no longer
// than they do at best; and beyond that it looks for the smallest limit with the
// highest throughput, by trying: it raises the limit for as long as that raises
// throughput, and lowers it for as long as that costs none.
type limiter struct {
	limit int
	fixed bool

	since      time.Time // when the period began
	bytes      int64     // read in it
	throughput float64   // bytes a second with the limit before the try
	try        try
	before     int // the limit before the try
	rest       int // periods to wait before the next try
	next       try // which way the next one goes
	failed     int // tries in a row that brought nothing

	best  [sizeClasses]float64 // seconds that reads of a size take at best
	reads int                  // of this period
	fast  int                  // of them not longer than that by much
}

// sizeClasses are the sizes of reads that are compared with each other: up to
// 64 KiB, and each doubling of it.
const sizeClasses = 6

func sizeClass(bytes int) int { return min(bits.Len(uint(bytes-1)>>16), sizeClasses-1) }

type try int8

const (
	tryNothing try = 0
	tryMore    try = 1
	tryLess    try = -1
)

func newLimiter(fixed int) limiter {
	if fixed > 0 {
		return limiter{limit: fixed, fixed: true}
	}
	return limiter{limit: initialInflight, next: tryMore}
}

// observe counts bytes that one read has taken so long for. At the end of a period
// it judges the limit; queued tells that reads waited for it.
func (l *limiter) observe(bytes int, took time.Duration, now time.Time, queued func() bool) {
	l.bytes += int64(bytes)
	l.compare(bytes, took)
	period := now.Sub(l.since)
	if !l.fixed && period >= quickPeriod && l.reads >= l.limit && float64(l.fast) >= fastShare*float64(l.reads) && queued() {
		l.raise(now)
		return
	}
	if period < limitPeriod {
		return
	}
	l.fast, l.reads = 0, 0
	throughput := float64(l.bytes) / period.Seconds()
	idle := period > 2*limitPeriod // nothing was read for a while: it tells nothing
	l.since, l.bytes = now, 0
	if !l.fixed && !idle {
		l.judge(throughput, queued())
	}
}

// compare notes how a read's time compares with the best of its size. What is best
// is forgotten slowly: a source may become slower.
func (l *limiter) compare(bytes int, took time.Duration) {
	const forget = 1.0 / 2000
	seconds, best := took.Seconds(), &l.best[sizeClass(bytes)]
	if *best == 0 || seconds < *best {
		*best = seconds
	} else {
		*best += (seconds - *best) * forget
	}
	l.reads++
	if seconds <= notBusy**best {
		l.fast++
	}
}

// raise lets more reads onto a source that is not busy, without a trial: its
// answers take no longer than they do at best, so it is only far away.
func (l *limiter) raise(now time.Time) {
	l.limit = min(maxInflight, l.limit+max(2, l.limit/2))
	l.try, l.rest, l.next, l.failed = tryNothing, 0, tryMore, 0
	l.since, l.bytes, l.fast, l.reads = now, 0, 0, 0
}

func (l *limiter) judge(throughput float64, queued bool) {
	const noise, little = 0.05, 0.03
	switch l.try {
	case tryMore:
		// Where latency holds back, throughput grows as the limit does. A third of
		// that is asked for: a little more may come from anywhere.
		raise := float64(l.limit-l.before) / float64(l.before)
		if throughput < l.throughput*(1+max(noise, raise/3)) {
			l.giveUp(tryLess)
			return
		}
	case tryLess:
		if throughput < l.throughput*(1-little) {
			l.giveUp(tryMore)
			return
		}
		throughput = max(throughput, l.throughput*(1-little/4)) // or it would creep down
	}
	if l.try != tryNothing {
		l.failed = 0
	}
	l.throughput = throughput
	if l.try == tryNothing && l.rest > 0 {
		l.rest--
		return
	}
	if !queued {
		l.try = tryNothing
		return
	}
	l.start()
}

// giveUp goes back to the limit before the try.
func (l *limiter) giveUp(next try) {
	l.limit, l.try, l.next = l.before, tryNothing, next
	l.rest = min(mostRest, limitRest<<min(l.failed, 3))
	l.failed++
}

// start tries the next limit, in the direction that succeeded last.
func (l *limiter) start() {
	if l.try == tryNothing {
		l.try = l.next
	}
	l.before = l.limit
	if l.try == tryMore {
		l.limit = min(maxInflight, l.limit+max(2, l.limit/2))
	} else {
		l.limit = max(minInflight, l.limit-max(1, l.limit/4))
	}
	if l.limit == l.before {
		l.giveUp(-l.try)
	}
}
