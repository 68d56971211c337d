package cache

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// Answers remembers what the source said under a path: attributes of files,
// listings of directories. Nothing is promised: any answer may be forgotten at
// any time. Safe for concurrent use.
//
// An answer that was under way while something changed through the mount is
// not remembered, so that a change is never hidden by an older answer: take an
// Epoch before asking the source and hand it to Put.
type Answers[V any] struct {
	answers  *ristretto.Cache[string, answer[V]]
	changing sync.RWMutex // held for reading from a Put's look at the epoch to its Set
	changes  atomic.Uint64
	tree     atomic.Uint64 // renamed directories make every older answer void
}

type answer[V any] struct {
	value V
	tree  uint64
	known time.Time
}

// Epoch is the state of changes at the moment a question was put to the source.
type Epoch uint64

// NewAnswers makes a memory of at most maxBytes bytes of answers.
func NewAnswers[V any](maxBytes int64) (*Answers[V], error) {
	cache, err := ristretto.NewCache(&ristretto.Config[string, answer[V]]{
		NumCounters:        max(10_000, maxBytes/1024),
		MaxCost:            maxBytes,
		BufferItems:        64,
		IgnoreInternalCost: true,
	})
	if err != nil {
		return nil, fmt.Errorf("cache of the source's answers: %w", err)
	}
	return &Answers[V]{answers: cache}, nil
}

// Epoch is to be taken before the source is asked.
func (a *Answers[V]) Epoch() Epoch { return Epoch(a.changes.Load()) }

// Put remembers an answer of the given size in bytes, unless anything changed
// since epoch.
func (a *Answers[V]) Put(path string, value V, bytes int64, known time.Time, epoch Epoch) {
	a.changing.RLock()
	defer a.changing.RUnlock()
	if Epoch(a.changes.Load()) != epoch {
		return
	}
	a.answers.Set(path, answer[V]{value: value, tree: a.tree.Load(), known: known}, bytes)
}

// Get returns the answer for path and when it was given.
func (a *Answers[V]) Get(path string) (value V, known time.Time, ok bool) {
	found, ok := a.answers.Get(path)
	if !ok || found.tree != a.tree.Load() {
		var none V
		return none, time.Time{}, false
	}
	return found.value, found.known, true
}

// Changed forgets what is known of path: it was changed through the mount.
func (a *Answers[V]) Changed(path string) {
	a.changing.Lock()
	defer a.changing.Unlock()
	a.changes.Add(1)
	// An answer that was Put and is queued still would appear after the Del.
	a.answers.Wait()
	a.answers.Del(path)
}

// TreeChanged forgets everything: a directory was renamed through the mount.
func (a *Answers[V]) TreeChanged() {
	a.changing.Lock()
	defer a.changing.Unlock()
	a.changes.Add(1)
	a.tree.Add(1)
}

// Wait returns once answers that were Put are found by Get.
func (a *Answers[V]) Wait() {
	a.changing.RLock() // what waits while ristretto ends waits for ever
	defer a.changing.RUnlock()
	a.answers.Wait()
}

// Close ends the memory's goroutines. It may be used after, but forgets all.
func (a *Answers[V]) Close() {
	a.changing.Lock()
	defer a.changing.Unlock()
	a.answers.Close()
}
