package cache

import (
	"fmt"
	"slices"
	"testing"
)

func TestReclaimOrder(t *testing.T) {
	store, arena := newStore(t, 16, 50)
	for i := range 8 {
		pin(t, store, fmt.Sprintf("window%d", i))
	}
	for i := range 6 {
		keep(t, store, fmt.Sprintf("kept%d", i))
	}
	readOnce(t, store, "recent0") // two are an eighth of the limit
	readOnce(t, store, "recent1")
	store.kept.Wait()
	outside := []string{"kept0", "kept1", "kept2", "kept3", "kept4", "kept5", "recent0", "recent1"}
	if got := present(store, outside...); !slices.Equal(got, outside) {
		t.Fatalf("only %q were kept", got)
	}
	for i := range outside {
		if !store.Reclaim(int64(i+1) * page) {
			t.Fatalf("no room for %d pages", i+1)
		}
		if got := present(store, outside...); !slices.Equal(got, outside[i+1:]) {
			t.Errorf("for %d pages: %q left, want %q", i+1, got, outside[i+1:])
		}
	}
	if store.Reclaim(9 * page) {
		t.Error("room for a ninth page, of the window's")
	}
	for i := range 8 {
		if !has(store, fmt.Sprintf("window%d", i)) {
			t.Errorf("frame %d of the window was reclaimed", i)
		}
	}
	if arena.FreeBytes() != 8*page {
		t.Errorf("%d pages free, want 8", arena.FreeBytes()/page)
	}
}

func TestReclaimTakesNothingWhereThereIsRoom(t *testing.T) {
	store, _ := newStore(t, 16, 50)
	keep(t, store, "kept")
	if !store.Reclaim(15*page) || !has(store, "kept") {
		t.Error("reclaimed without need")
	}
}

func TestReclaimOfAFrameThatIsRead(t *testing.T) {
	store, _ := newStore(t, 16, 100)
	for i := range 8 {
		pin(t, store, fmt.Sprintf("window%d", i))
		keep(t, store, fmt.Sprintf("f%d", i))
	}
	held := store.Lookup("f0")
	if !store.Reclaim(page) {
		t.Error("no room, although seven frames are not in use")
	}
	// f0 went first, but is in use; so f1 had to go too.
	if got := present(store, "f0", "f1", "f2"); !slices.Equal(got, []string{"f2"}) {
		t.Errorf("%q left of three, want the third", got)
	}
	if store.Reclaim(8 * page) {
		t.Error("room for all, although one frame is in use")
	}
	held.Release()
	if !store.Reclaim(8 * page) {
		t.Error("no room after the last reader left")
	}
}

// Memory is handed out in whole pages, so room is counted in them.
func TestReclaimCountsWholePages(t *testing.T) {
	limit := 3*page + 100
	arena, ledger := newArena(t, limit)
	store, err := NewStore(ledger, arena, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	keep(t, store, "kept0")
	keep(t, store, "kept1")
	size := page + 50 // the last page and the rest of the limit would hold it
	if !store.Reclaim(size) {
		t.Fatal("no room, although all frames may go")
	}
	buffer, err := arena.Allocate(size)
	if err != nil {
		t.Fatalf("allocate %d bytes after room was made: %v", size, err)
	}
	arena.Recycle(buffer)
}

func TestReclaimFreesAMemoryFile(t *testing.T) {
	store, arena := newStore(t, 64, 100)
	arena.maxBuffers = 2
	keep(t, store, "kept0")
	keep(t, store, "kept1")
	if !store.Reclaim(page) {
		t.Fatal("no room, although frames may go")
	}
	pin(t, store, "next")
}

func TestFetchedUnread(t *testing.T) {
	store, arena := newStore(t, 64, 50)
	expect := func(what string, pages int64) {
		t.Helper()
		store.kept.Wait()
		if got := store.FetchedUnread(); got != pages*page {
			t.Errorf("after %s: %d bytes, want %d", what, got, pages*page)
		}
	}
	store.Drop(readOnce(t, store, "read"))
	expect("a frame that was read went", 0)
	incomplete := newFrame(t, arena, "incomplete", page)
	store.Pin(incomplete)
	store.Drop(incomplete)
	incomplete.Release()
	expect("an incomplete one went", 0)
	keep(t, store, "kept")
	expect("one is kept", 0)
	store.Drop(pin(t, store, "window"))
	expect("one went from the window", 1)
	for _, frame := range store.DropTree("kept") {
		frame.Release()
	}
	expect("one went with its tree", 2)
	keep(t, store, "reclaimed")
	store.Reclaim(64 * page)
	expect("one was reclaimed", 3)
	for i := range 40 { // 8 more than may be kept
		keep(t, store, fmt.Sprintf("evicted%d", i))
	}
	store.kept.Wait()
	gone := int64(40)
	for i := range 40 {
		if has(store, fmt.Sprintf("evicted%d", i)) {
			gone--
		}
	}
	if gone < 8 {
		t.Errorf("%d of 40 went, want at least the 8 that are too many", gone)
	}
	expect("the policy took some", 3+gone)
	store.Close()
	expect("all went", 3+40)
}

// A clip that is played in a loop, all of it in memory, must not cost more each
// time round.
func TestBookkeepingStaysBoundedInALoop(t *testing.T) {
	store, _ := newStore(t, 64, 100)
	for range 2000 {
		for i := range 4 {
			path := fmt.Sprintf("f%d", i)
			frame := store.Lookup(path)
			if frame == nil {
				frame = readyFrame(t, store.arena, path, page)
			}
			store.Pin(frame)
			store.Unpin(frame)
			frame.Release()
		}
	}
	if len(store.keptOrder) > 1000 || len(store.left) > 1000 {
		t.Errorf("for 4 frames: %d entries in order, %d that left", len(store.keptOrder), len(store.left))
	}
}

// Frames that changed at the source leave room in the policy for their
// successors, however often they had been read.
func TestDroppedFramesLeaveThePolicy(t *testing.T) {
	drops := map[string]func(*Store, *Frame){
		"Drop": (*Store).Drop,
		"DropTree": func(s *Store, f *Frame) {
			for _, dropped := range s.DropTree(f.Path) {
				dropped.Release()
			}
		},
		"Pin and Drop": func(s *Store, f *Frame) {
			held := s.Lookup(f.Path)
			s.Pin(held)
			s.Drop(held)
			held.Release()
		},
	}
	for name, drop := range drops {
		store, _ := newStore(t, 64, 50) // 31 frames may be kept
		var old []*Frame
		for i := range 24 {
			old = append(old, keep(t, store, fmt.Sprintf("f%d", i)))
		}
		for range 50 {
			for _, frame := range old {
				has(store, frame.Path)
			}
			store.kept.Wait()
		}
		for _, frame := range old {
			drop(store, frame)
		}
		var paths []string
		for i := range 24 {
			path := fmt.Sprintf("f%d", i)
			paths = append(paths, path)
			keep(t, store, path)
		}
		store.kept.Wait()
		if got := present(store, paths...); len(got) != 24 {
			t.Errorf("%s: %d of 24 new frames kept in the place of 24 dropped ones", name, len(got))
		}
	}
}
