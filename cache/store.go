package cache

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

// Store finds frames by path and decides which stay. It holds one reference to
// every frame in it.
//
// An entry is in one of four places: the window (fetched or being fetched for
// a reader that has not come yet; only the scheduler removes it), the recent
// list (just read: a program that opens each file several times finds it
// again; oldest first out), or ristretto (read, kept while there is room).
type Store struct {
	ledger *Ledger
	arena  *Arena
	kept   *ristretto.Cache[uint64, *entry]

	fetchedUnread atomic.Int64
	keptBytes     atomic.Int64 // of frames that were read, or are not expected any more
	keepAtMost    int64

	mu          sync.Mutex
	entries     map[string]*entry
	recent      []*entry // oldest first
	recentBytes int64
	keptOrder   []*entry // oldest first; may name entries that left already
	spent       []*entry // oldest first; may name entries that left already
	nextKey     uint64

	// ristretto's callbacks may run inside a call made by this package, so they
	// only note who left; the next call that holds mu takes them off the map.
	leftMu sync.Mutex
	left   []*entry
}

type place uint8

const (
	inWindow place = iota
	inRecent
	inKept
	inSpent
)

type entry struct {
	key   uint64
	frame *Frame
	place place       // guarded by Store.mu
	gone  atomic.Bool // the store's reference has been released
	kept  atomic.Bool // counted in keptBytes
}

// recentShare is the part of the limit that just-read frames may fill before
// ristretto's policy decides about them.
const recentShare = 8

// NewStore makes a store over ledger and arena. Frames that were read stay
// while they fill at most behindPercent of the ledger's limit.
func NewStore(ledger *Ledger, arena *Arena, behindPercent int) (*Store, error) {
	maxCost := max(1, ledger.Limit()/100*int64(behindPercent))
	s := &Store{ledger: ledger, arena: arena, entries: make(map[string]*entry), keepAtMost: maxCost}
	kept, err := ristretto.NewCache(&ristretto.Config[uint64, *entry]{
		NumCounters:        min(1_000_000, max(10_000, maxCost/(1<<20)*10)),
		MaxCost:            maxCost,
		BufferItems:        64,
		IgnoreInternalCost: true,
		OnExit:             s.onExit,
	})
	if err != nil {
		return nil, fmt.Errorf("cache of read frames: %w", err)
	}
	s.kept = kept
	return s, nil
}

// Pin puts a frame into the window under its path, whether it is new or was
// kept already, and replaces another frame of that path. The store takes a
// reference of its own.
func (s *Store) Pin(f *Frame) {
	s.mu.Lock()
	old := s.entries[f.Path]
	if old != nil && old.frame == f && old.place == inWindow {
		s.mu.Unlock()
		return
	}
	f.Acquire()
	s.nextKey++
	s.entries[f.Path] = &entry{key: s.nextKey, frame: f}
	s.forgetLeftLocked()
	if old != nil && old.place == inRecent {
		s.leaveRecentLocked(old)
	}
	s.mu.Unlock()
	if old == nil {
		return
	}
	if old.frame == f {
		if old.gone.CompareAndSwap(false, true) {
			s.uncount(old)
			f.Release()
		}
	} else {
		s.release(old)
	}
	if old.place == inKept {
		s.kept.Del(old.key)
	}
}

// Lookup returns the frame stored under path with a reference for the caller,
// or nil. It may be on its way still.
func (s *Store) Lookup(path string) *Frame {
	s.mu.Lock()
	e := s.entries[path]
	if e == nil || !e.frame.tryAcquire() {
		s.mu.Unlock()
		return nil
	}
	kept := e.place == inKept
	s.mu.Unlock()
	if kept {
		s.kept.Get(e.key) // lets the policy count the use
	}
	return e.frame
}

// Unpin lets a frame out of the window: it has been read, or nobody expects to
// read it any more. A ready frame stays while there is room; any other goes.
func (s *Store) Unpin(f *Frame) {
	s.mu.Lock()
	e := s.entries[f.Path]
	if e == nil || e.frame != f || e.place != inWindow {
		s.mu.Unlock()
		return
	}
	if !f.Ready() {
		delete(s.entries, f.Path)
		s.mu.Unlock()
		s.release(e)
		return
	}
	e.kept.Store(true)
	s.keptBytes.Add(f.Cost())
	var overflow []*entry
	if f.Opened() {
		overflow = s.toRecentLocked(e)
	} else {
		overflow = append(overflow, e)
	}
	for _, e := range overflow {
		e.place = inKept
		s.keptOrder = append(s.keptOrder, e)
	}
	s.mu.Unlock()
	for _, e := range overflow {
		if !s.kept.Set(e.key, e, e.frame.Cost()) {
			s.onExit(e)
		} else if e.gone.Load() {
			s.kept.Del(e.key) // removed meanwhile
		}
	}
}

// Spend lets a frame out of the window that was read and will not be read again
// soon: it is the first to go when others need the room.
func (s *Store) Spend(f *Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[f.Path]
	if e == nil || e.frame != f || e.place != inWindow {
		return
	}
	e.place = inSpent
	s.spent = append(compact(s.spent, len(s.entries)), e)
}

// compact drops entries that left from an order list that has grown to twice
// the number of live ones.
func compact(order []*entry, live int) []*entry {
	if len(order) < 2*live+64 {
		return order
	}
	return slices.DeleteFunc(order, func(e *entry) bool { return e.gone.Load() })
}

func (s *Store) toRecentLocked(e *entry) (overflow []*entry) {
	e.place = inRecent
	s.recent = append(s.recent, e)
	s.recentBytes += e.frame.Cost()
	for len(s.recent) > 1 && s.recentBytes > s.ledger.Limit()/recentShare {
		oldest := s.recent[0]
		s.recent = s.recent[1:]
		s.recentBytes -= oldest.frame.Cost()
		overflow = append(overflow, oldest)
	}
	return overflow
}

func (s *Store) leaveRecentLocked(e *entry) {
	for i, other := range s.recent {
		if other == e {
			s.recent = append(s.recent[:i], s.recent[i+1:]...)
			s.recentBytes -= e.frame.Cost()
			return
		}
	}
}

// Drop removes a frame wherever it is: its content is no longer what the
// source has, or its fetch failed.
func (s *Store) Drop(f *Frame) {
	s.mu.Lock()
	e := s.entries[f.Path]
	if e == nil || e.frame != f {
		s.mu.Unlock()
		return
	}
	s.removeLocked(e)
	s.mu.Unlock()
	s.forget(e)
}

// removeLocked takes an entry off the map and the recent list, whose bytes are
// counted; the other lists skip entries that are gone.
func (s *Store) removeLocked(e *entry) {
	delete(s.entries, e.frame.Path)
	if e.place == inRecent {
		s.leaveRecentLocked(e)
	}
}

// DropTree removes the frame at path and all frames below it and returns them
// with a reference each.
func (s *Store) DropTree(path string) []*Frame {
	return s.dropMatching(func(f *Frame) bool {
		return path == "" || f.Path == path || strings.HasPrefix(f.Path, path+"/")
	})
}

// DropInode removes all frames of one source inode, under whatever name, and
// returns them with a reference each.
func (s *Store) DropInode(dev, ino uint64) []*Frame {
	return s.dropMatching(func(f *Frame) bool {
		attr := f.Attr()
		return attr.Dev == dev && attr.Ino == ino
	})
}

func (s *Store) dropMatching(match func(*Frame) bool) []*Frame {
	var frames []*Frame
	var dropped []*entry
	s.mu.Lock()
	for _, e := range s.entries {
		if match(e.frame) {
			s.removeLocked(e)
			dropped = append(dropped, e)
			if e.frame.tryAcquire() {
				frames = append(frames, e.frame)
			}
		}
	}
	s.mu.Unlock()
	for _, e := range dropped {
		s.forget(e)
	}
	return frames
}

// Reclaim gives up frames outside the window until at least bytes of memory are
// free in the arena or the ledger and another memory file may be made, or there
// are none left, and reports whether there is room now. Frames that readers hold open are given up too, but free
// their memory only when they are closed.
func (s *Store) Reclaim(bytes int64) bool {
	bytes = pageAlign(bytes) // as the arena allocates it
	for {
		used, _ := s.ledger.Used()
		if s.ledger.Limit()-used+s.arena.FreeBytes() >= bytes && s.arena.hasSlot() {
			return true
		}
		e := s.takeReclaimable()
		if e == nil {
			return false
		}
		s.forget(e)
	}
}

func (s *Store) takeReclaimable() *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, order := range []*[]*entry{&s.spent, &s.keptOrder} {
		for len(*order) > 0 {
			e := (*order)[0]
			*order = (*order)[1:]
			if !e.gone.Load() {
				if s.entries[e.frame.Path] == e {
					delete(s.entries, e.frame.Path)
				}
				return e
			}
		}
	}
	if len(s.recent) > 0 {
		e := s.recent[0]
		s.removeLocked(e)
		return e
	}
	return nil
}

// forget gives up an entry that was taken off the map. What ristretto went on
// counting would take the room of frames that are there.
func (s *Store) forget(e *entry) {
	s.release(e)
	if e.place == inKept {
		s.kept.Del(e.key)
	}
}

// release gives back the store's reference, once.
func (s *Store) release(e *entry) {
	if !e.gone.CompareAndSwap(false, true) {
		return
	}
	s.uncount(e)
	if e.frame.Ready() && !e.frame.Opened() {
		s.fetchedUnread.Add(e.frame.Size())
	}
	e.frame.Release()
}

func (s *Store) uncount(e *entry) {
	if e.kept.CompareAndSwap(true, false) {
		s.keptBytes.Add(-e.frame.Cost())
	}
}

// KeepsMore tells whether another frame of so many bytes may be kept once it was
// read without another going for it.
func (s *Store) KeepsMore(bytes int64) bool { return s.keptBytes.Load()+bytes <= s.keepAtMost }

// onExit is ristretto's word that it keeps an entry no longer. It comes with
// nil for keys that were deleted before.
func (s *Store) onExit(e *entry) {
	if e == nil || e.gone.Load() {
		return
	}
	s.leftMu.Lock()
	s.left = append(s.left, e)
	s.leftMu.Unlock()
	s.release(e)
}

// forgetLeftLocked takes entries that ristretto let go off the map and
// compacts the order list.
func (s *Store) forgetLeftLocked() {
	s.leftMu.Lock()
	left := s.left
	s.left = nil
	s.leftMu.Unlock()
	for _, e := range left {
		if s.entries[e.frame.Path] == e {
			delete(s.entries, e.frame.Path)
		}
	}
	s.keptOrder = compact(s.keptOrder, len(s.entries))
}

// FetchedUnread returns the bytes of frames that were dropped without ever
// having been opened.
func (s *Store) FetchedUnread() int64 { return s.fetchedUnread.Load() }

// Close drops all frames. Those that readers hold stay valid until released.
func (s *Store) Close() {
	for _, f := range s.DropTree("") {
		f.Release()
	}
	s.kept.Close()
}
