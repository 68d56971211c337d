package cache

import (
	"math/rand/v2"
	"sync"
	"testing"
)

func TestLedgerNeverExceedsItsLimit(t *testing.T) {
	const limit = 1000
	ledger := NewLedger(limit)
	var workers sync.WaitGroup
	for seed := range uint64(8) {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			var held []int64
			for range 5000 {
				if n := random.Int64N(limit / 2); ledger.TryCharge(n) {
					held = append(held, n)
				}
				if used, peak := ledger.Used(); used > limit || used < 0 || peak > limit || peak < used {
					t.Errorf("used %d, peak %d, limit %d", used, peak, limit)
				}
				if len(held) > random.IntN(4) {
					ledger.Release(held[0])
					held = held[1:]
				}
			}
			for _, n := range held {
				ledger.Release(n)
			}
		})
	}
	workers.Wait()
	if used, peak := ledger.Used(); used != 0 || peak == 0 {
		t.Errorf("at the end: used %d, want 0; peak %d, want some", used, peak)
	}
}

func TestLedgerCharges(t *testing.T) {
	cases := []struct {
		charged, more int64
		fits          bool
	}{
		{0, 100, true},
		{0, 101, false},
		{60, 40, true},
		{60, 41, false},
		{100, 0, true},
		{100, 1, false},
		{50, -1, false},
	}
	for _, c := range cases {
		ledger := NewLedger(100)
		if !ledger.TryCharge(c.charged) {
			t.Fatalf("first charge of %d refused", c.charged)
		}
		if got := ledger.TryCharge(c.more); got != c.fits {
			t.Errorf("%d after %d: %v, want %v", c.more, c.charged, got, c.fits)
		}
		want := c.charged
		if c.fits {
			want += c.more
		}
		if used, peak := ledger.Used(); used != want || peak != want {
			t.Errorf("%d after %d: used %d, peak %d, want %d", c.more, c.charged, used, peak, want)
		}
	}
}

func TestLedgerPanicsOnReleaseOfMoreThanCharged(t *testing.T) {
	for _, released := range []int64{11, -1} {
		ledger := NewLedger(100)
		ledger.TryCharge(10)
		mustPanic(t, "release", func() { ledger.Release(released) })
		if used, _ := ledger.Used(); used != 10 {
			t.Errorf("after a refused release of %d: used %d, want 10", released, used)
		}
	}
}

// mustPanic fails the test unless act panics.
func mustPanic(t *testing.T, what string, act func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	act()
}
