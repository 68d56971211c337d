package cache

import (
	"fmt"
	"slices"
	"testing"
)

// TestSpentFramesGoFirst fills a store with frames that were read, some of them
// known not to be read again: those go before any other, oldest first, and are
// found until then.
func TestSpentFramesGoFirst(t *testing.T) {
	const size = 64 << 10
	ledger := NewLedger(16 * size)
	arena := NewArena(ledger)
	store, err := NewStore(ledger, arena, 50)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		store.Close()
		arena.Close()
		if used, _ := ledger.Used(); used != 0 {
			t.Errorf("%d bytes are charged at the end", used)
		}
	})
	name := func(i int) string { return fmt.Sprint("f", i) }
	for i := range 16 {
		f, err := NewFrame(arena, name(i), Attr{Size: size})
		if err != nil {
			t.Fatal(err)
		}
		f.Land(0)
		f.Publish(f.Attr().Known)
		f.MarkOpened()
		store.Pin(f)
		if i%2 == 1 {
			store.Spend(f)
		} else if i >= 12 {
			store.Unpin(f)
		}
		f.Release()
	}
	found := func(i int) bool {
		f := store.Lookup(name(i))
		if f != nil {
			f.Release()
		}
		return f != nil
	}
	for i := range 16 {
		if !found(i) {
			t.Fatalf("%s went while there was room", name(i))
		}
	}
	// Expected once more: it is in the window again.
	again := store.Lookup(name(3))
	store.Pin(again)
	again.Release()
	order := []int{1, 5, 7, 9, 11, 13, 15}
	for n := range order {
		if !store.Reclaim(int64(n+1) * size) {
			t.Fatalf("no room for %d frames", n+1)
		}
		for i := range 16 {
			if gone := slices.Contains(order[:n+1], i); found(i) == gone {
				t.Errorf("room was made for %d frames: %s is there: %v", n+1, name(i), !gone)
			}
		}
	}
	// What was read otherwise follows, what is in the window never does.
	if store.Reclaim(16 * size) {
		t.Error("frames that were not read yet were given up")
	}
	if found(12) || found(14) || !found(0) || !found(3) {
		t.Error("others than the frames outside of the window were given up")
	}
}
