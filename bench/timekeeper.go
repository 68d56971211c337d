package bench

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// timekeeper is the clock of a run and the measure of how punctual the player
// itself is: of every wait it records how much later than asked for it ended.
// That is time lost by timers, by the scheduler and by processors that are busy,
// and nothing a storage can be blamed for. It is safe for concurrent use.
type timekeeper struct {
	began time.Time
	nap   func(time.Duration) // the last part of a wait, not interruptible
	frame time.Duration       // the interval of frames; 0: unpaced

	mu sync.Mutex
	// The fields below are guarded by mu.
	errors *hdrhistogram.Histogram // microseconds
	over   int                     // errors beyond the limit
	delays []delay                 // the first maxDelays of them
}

// delay is a wait that ended late.
type delay struct{ meant, woke time.Duration }

// maxDelays bounds the list of delays, as on a machine that is always late.
const maxDelays = 10_000

// coarse is how far from its end a wait is left to clock_nanosleep(2). Timers of
// the Go runtime come up to a millisecond late, since they end with
// epoll_wait(2).
const coarse = 2 * time.Millisecond

// schedulingShare is the part of a frame interval that the player's own error
// may take before a report says so.
const schedulingShare = 10

// newTimekeeper starts the clock of a run.
func newTimekeeper(rate Rate, nap func(time.Duration)) *timekeeper {
	t := &timekeeper{began: time.Now(), nap: nap, errors: newHistogram()}
	if rate != (Rate{}) {
		t.frame = rate.Time(1)
	}
	return t
}

// limit is the error beyond which a wait counts as a delay; 0: none does.
func (t *timekeeper) limit() time.Duration { return t.frame / schedulingShare }

// nanosleep sleeps with the precision of the kernel's timers: some 60 µs.
func nanosleep(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &left, &left) == unix.EINTR {
	}
}

// now is the time since the run began.
func (t *timekeeper) now() time.Duration { return time.Since(t.began) }

// wait returns when the time has come, an event has, or ctx ends. late is by how
// much it missed the time, if that has come.
func (t *timekeeper) wait(ctx context.Context, until time.Duration, event <-chan struct{}) (late time.Duration) {
	if left := until - t.now() - coarse; left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return 0
		case <-event:
			return 0
		case <-timer.C:
		}
	}
	if left := until - t.now(); left > 0 {
		t.nap(left)
	}
	woke := t.now()
	t.note(until, woke)
	return woke - until
}

func (t *timekeeper) note(meant, woke time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	record(t.errors, woke-meant)
	if limit := t.limit(); limit > 0 && woke-meant > limit {
		if t.over++; len(t.delays) < maxDelays {
			t.delays = append(t.delays, delay{meant, woke})
		}
	}
}

// leastTick keeps tick from being a load of its own at very high rates.
const leastTick = 4 * time.Millisecond

// tick waits for each frame interval as a display would, until ctx ends: it
// measures the player also while no client waits for anything but its source.
func (t *timekeeper) tick(ctx context.Context, rate Rate) {
	step := max(rate.Frames(leastTick), 1)
	for k := step; ctx.Err() == nil; k += step {
		if now := t.now(); rate.Time(k) <= now { // what was missed is one error, not many
			k = rate.Frames(now)
			continue
		}
		t.wait(ctx, rate.Time(k), nil)
	}
}

// SchedulingReport says how punctual the player itself was.
type SchedulingReport struct {
	Waits     int         `json:"waits"`
	Error     Percentiles `json:"error_ms"`   // by which a wait ended later than meant
	LimitMS   float64     `json:"limit_ms"`   // a tenth of a frame; 0 when unpaced
	OverLimit int         `json:"over_limit"` // waits whose error was larger
	// DropsNear counts the dropped frames that the player's own delay may have
	// caused: it was late beyond the limit while they were read or waited for.
	DropsNear int `json:"drops_near"`
	// Histogram is the whole distribution behind Error, as those of Histograms.
	Histogram string `json:"histogram"`
}

// merge adds what another run or another host has measured. A histogram that
// can't be read is left out.
func (s *SchedulingReport) merge(other SchedulingReport) {
	s.Waits += other.Waits
	s.OverLimit += other.OverLimit
	s.DropsNear += other.DropsNear
	s.LimitMS = max(s.LimitMS, other.LimitMS)
	all := newHistogram()
	for _, text := range []string{s.Histogram, other.Histogram} {
		if errors, err := hdrhistogram.Decode([]byte(text)); err == nil {
			all.Merge(errors)
		}
	}
	s.Error, s.Histogram = percentiles(all), encode(all)
}

// report counts the drops of all clients near the delays.
func (t *timekeeper) report(rows [][]Row) SchedulingReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := SchedulingReport{
		Waits: int(t.errors.TotalCount()), Error: percentiles(t.errors),
		LimitMS: milliseconds(t.limit()), OverLimit: t.over, Histogram: encode(t.errors),
	}
	for _, client := range rows {
		for _, row := range client {
			if row.dropped() && t.delayedIn(row.Began-t.frame, max(row.Done, row.Due)) {
				r.DropsNear++
			}
		}
	}
	return r
}

// delayedIn says whether a delay lies in a span of time.
func (t *timekeeper) delayedIn(from, to time.Duration) bool {
	for _, d := range t.delays {
		if d.meant <= to && d.woke >= from {
			return true
		}
	}
	return false
}
