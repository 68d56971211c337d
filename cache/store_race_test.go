package cache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Every frame is released exactly once, whoever drops it: a release too many
// panics, one too few leaves memory charged after Close.
func TestStoreUnderConcurrentUse(t *testing.T) {
	const limit, paths, rounds = 64, 12, 1500
	store, arena := newStore(t, limit, 20)
	var workers sync.WaitGroup
	for seed := range uint64(8) {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 4))
			for range rounds {
				path := fmt.Sprintf("d%d/f%d", random.IntN(2), random.IntN(paths))
				frame := store.Lookup(path)
				if frame == nil {
					frame = fetched(t, store, path, random.IntN(4) > 0)
				}
				if frame == nil {
					continue
				}
				if frame.Path != path {
					t.Errorf("%s found under %s", frame.Path, path)
				}
				switch random.IntN(10) {
				case 0, 1:
					store.Pin(frame)
				case 2, 3, 4, 5:
					frame.MarkOpened()
					store.Unpin(frame)
				case 6:
					store.Unpin(frame)
				case 7:
					store.Drop(frame)
				case 8:
					store.Reclaim(page * (1 + random.Int64N(limit/2)))
				case 9:
					if random.IntN(20) == 0 {
						for _, dropped := range store.DropTree("d0") {
							dropped.Release()
						}
					}
				}
				if data, err := frame.Read(0, 1, nil); frame.Ready() && (err != nil || data[0] != 'a') {
					t.Errorf("a ready frame: %q, %v", data, err)
				}
				frame.Release()
			}
		})
	}
	workers.Wait()
	store.Close()
	if used, _ := store.ledger.Used(); used != arena.FreeBytes() {
		t.Errorf("%d bytes in use after Close", used-arena.FreeBytes())
	}
}

// fetched makes a frame and puts it into the window, ready or not; nil if there
// is no room.
func fetched(t *testing.T, store *Store, path string, ready bool) *Frame {
	frame, err := NewFrame(store.arena, path, Attr{Size: page})
	if err != nil {
		if !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		store.Reclaim(page)
		return nil
	}
	store.Pin(frame)
	if ready {
		land(frame, 0)
		frame.Publish(time.Now())
	} else {
		frame.Fail(errBroken)
	}
	return frame
}
