package prefetch

import (
	"testing"
	"time"
)

// modelled runs a limiter against a source whose throughput, in MiB/s, depends
// on how many reads are on it.
type modelled struct {
	limiter
	now    time.Time
	source func(reads int) float64
	queued bool
	took   time.Duration // each read; 0: it tells nothing
}

func newModelled(fixed int, source func(reads int) float64) *modelled {
	m := &modelled{limiter: newLimiter(fixed), now: time.Now(), source: source, queued: true}
	m.period(limitPeriod) // the first only begins the measuring
	return m
}

// period lets a time pass in which the source does what it can.
func (m *modelled) period(long time.Duration) {
	m.now = m.now.Add(long)
	bytes := m.source(m.limit) * mib * long.Seconds()
	m.observe(int(bytes), m.took, m.now, func() bool { return m.queued })
}

// rising is a source that serves each read at 10 MiB/s, up to a number of them.
func rising(upTo int) func(int) float64 {
	return func(reads int) float64 { return 10 * float64(min(reads, upTo)) }
}

// thrashing is one that gets slower with more reads than it can take.
func thrashing(upTo int) func(int) float64 {
	return func(reads int) float64 {
		return 10 * float64(min(reads, upTo)) / max(1, float64(reads)/float64(upTo))
	}
}

func TestFixedLimitStays(t *testing.T) {
	for _, fixed := range []int{1, 7, 1000} {
		m := newModelled(fixed, rising(50))
		for range 100 {
			m.period(limitPeriod)
			if m.limit != fixed {
				t.Fatalf("limit %d, fixed at %d", m.limit, fixed)
			}
		}
	}
}

func TestLimitClimbsWhileThroughputRises(t *testing.T) {
	m := newModelled(0, rising(1000))
	before := m.limit
	for range 4 {
		m.period(limitPeriod)
		if m.limit <= before {
			t.Fatalf("limit %d after %d, although each read more brought more", m.limit, before)
		}
		before = m.limit
	}
}

func TestLimitStepsBackWhereMoreBringsNothing(t *testing.T) {
	m := newModelled(0, func(int) float64 { return 100 })
	before := m.limit
	m.period(limitPeriod)
	if m.limit <= before {
		t.Fatalf("limit %d: it did not try more than %d", m.limit, before)
	}
	m.period(limitPeriod)
	if m.limit != before {
		t.Errorf("limit %d after a try that brought nothing, want %d again", m.limit, before)
	}
}

func TestLimitFindsTheSmallestThatFillsTheSource(t *testing.T) {
	sources := map[string]struct {
		source   func(int) float64
		best     float64
		atMost   float64 // reads, on average
		required float64 // of the best throughput, on average
	}{
		"one read fills it":  {rising(1), 10, 8, 0.99},
		"8 fill it":          {rising(8), 80, 14, 0.85},
		"30 fill it":         {rising(30), 300, 50, 0.85},
		"100 fill it":        {rising(100), 1000, 128, 0.85},
		"more than allowed":  {rising(1000), 1280, 128, 0.85},
		"thrashes beyond 10": {thrashing(10), 100, 14, 0.8},
		"thrashes beyond 40": {thrashing(40), 400, 60, 0.8},
	}
	for name, s := range sources {
		t.Run(name, func(t *testing.T) {
			m := newModelled(0, s.source)
			var reads, throughput float64
			const settle, measured = 100, 200
			for i := range settle + measured {
				m.period(limitPeriod)
				if m.limit < minInflight || m.limit > maxInflight {
					t.Fatalf("limit %d is out of bounds", m.limit)
				}
				if i >= settle {
					reads += float64(m.limit) / measured
					throughput += s.source(m.limit) / measured
				}
			}
			if throughput < s.required*s.best {
				t.Errorf("%.0f MiB/s on average, want %.0f %% of %.0f", throughput, 100*s.required, s.best)
			}
			if reads > s.atMost {
				t.Errorf("%.1f reads at once on average, want at most %.0f", reads, s.atMost)
			}
		})
	}
}

func TestLimitFollowsASourceThatChanges(t *testing.T) {
	capacity := 60
	m := newModelled(0, func(reads int) float64 { return rising(capacity)(reads) })
	for range 100 {
		m.period(limitPeriod)
	}
	capacity = 10
	for range 200 {
		m.period(limitPeriod)
	}
	if m.limit > 30 {
		t.Errorf("limit %d long after the source fell to 10 reads", m.limit)
	}
	capacity = 60
	highest := 0
	for range 200 {
		m.period(limitPeriod)
		highest = max(highest, m.limit)
	}
	if highest < 50 {
		t.Errorf("limit %d at most, long after the source rose to 60 reads", highest)
	}
}

func TestLimitStaysWhereNothingIsToBeLearned(t *testing.T) {
	cases := map[string]func(m *modelled){
		"nothing queues": func(m *modelled) { m.queued = false; m.period(limitPeriod) },
		"idle":           func(m *modelled) { m.period(10 * limitPeriod) },
	}
	for name, pass := range cases {
		m := newModelled(0, rising(100))
		before := m.limit
		for range 50 {
			pass(m)
		}
		if m.limit != before {
			t.Errorf("%s: limit %d, from %d", name, m.limit, before)
		}
	}
}
