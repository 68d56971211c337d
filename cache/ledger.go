package cache

import (
	"fmt"
	"sync"
)

// Ledger is the hard bound on frame memory, in bytes. Charging comes before
// allocating, releasing after freeing, so what is charged is never less than
// what is in use.
type Ledger struct {
	mu    sync.Mutex
	limit int64
	used  int64
	peak  int64
}

// NewLedger makes a ledger that never lets more than limit bytes be charged.
func NewLedger(limit int64) *Ledger { return &Ledger{limit: limit} }

// TryCharge takes n bytes if they fit under the limit and reports whether it
// did.
func (l *Ledger) TryCharge(n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || l.used+n > l.limit {
		return false
	}
	l.used += n
	l.peak = max(l.peak, l.used)
	return true
}

// Release gives back n bytes that were charged. Giving back more than was
// charged is a bug in the caller and panics.
func (l *Ledger) Release(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n > l.used {
		panic(fmt.Sprintf("cache: ledger releases %d of %d charged bytes", n, l.used))
	}
	l.used -= n
}

// Limit returns the bound in bytes.
func (l *Ledger) Limit() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// SetLimit sets another bound. What is charged beyond it stays charged, but
// nothing more is until enough was released.
func (l *Ledger) SetLimit(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = bytes
}

// Used returns the bytes charged now and the most that ever were.
func (l *Ledger) Used() (now, peak int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used, l.peak
}
