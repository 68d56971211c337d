package cache

import (
	"fmt"
	"slices"
	"testing"
)

// newStore makes a store whose limit is the given number of frames of one page,
// a multiple of 8. The ledger must be at 0 after Close and when the arena is
// closed too.
func newStore(t *testing.T, frames int64, behindPercent int) (*Store, *Arena) {
	t.Helper()
	arena, ledger := newArena(t, frames*page)
	store, err := NewStore(ledger, arena, behindPercent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store, arena
}

// pin puts a ready frame of one page into the window, held by the store alone.
func pin(t *testing.T, s *Store, path string) *Frame {
	t.Helper()
	frame := readyFrame(t, s.arena, path, page)
	s.Pin(frame)
	frame.Release()
	return frame
}

// keep puts a frame under ristretto's policy, unread.
func keep(t *testing.T, s *Store, path string) *Frame {
	t.Helper()
	frame := pin(t, s, path)
	s.Unpin(frame)
	return frame
}

// readOnce has a frame read and leave the window.
func readOnce(t *testing.T, s *Store, path string) *Frame {
	t.Helper()
	frame := pin(t, s, path)
	frame.MarkOpened()
	s.Unpin(frame)
	return frame
}

func has(s *Store, path string) bool {
	frame := s.Lookup(path)
	if frame == nil {
		return false
	}
	frame.Release()
	return true
}

func present(s *Store, paths ...string) (found []string) {
	for _, path := range paths {
		if has(s, path) {
			found = append(found, path)
		}
	}
	return found
}

func TestWindowIsNeverEvicted(t *testing.T) {
	store, _ := newStore(t, 64, 25)
	for i := range 16 {
		pin(t, store, fmt.Sprintf("window%d", i))
	}
	for i := range 300 {
		path := fmt.Sprintf("read%d", i)
		store.Reclaim(page)
		if i%2 == 0 {
			readOnce(t, store, path)
		} else {
			keep(t, store, path)
		}
		for range 5 { // what is used often has the policy's favour
			has(store, path)
		}
	}
	store.kept.Wait()
	if store.Reclaim(64 * page) {
		t.Error("all of the memory was reclaimed, the window's too")
	}
	for i := range 16 {
		if path := fmt.Sprintf("window%d", i); !has(store, path) {
			t.Errorf("%s was evicted from the window", path)
		}
	}
	if used, _ := store.ledger.Used(); used-store.arena.FreeBytes() != 16*page {
		t.Errorf("%d pages in use after reclaiming all, want the window's 16", (used-store.arena.FreeBytes())/page)
	}
}

func TestUnpin(t *testing.T) {
	cases := []struct {
		name          string
		ready, opened bool
		stays         bool
		place         place
	}{
		{"read", true, true, true, inRecent},
		{"unread", true, false, true, inKept},
		{"incomplete", false, false, false, 0},
		{"incomplete and open", false, true, false, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store, arena := newStore(t, 16, 50)
			frame := newFrame(t, arena, "f", page)
			if c.ready {
				frame.Release()
				frame = readyFrame(t, arena, "f", page)
			}
			if c.opened {
				frame.MarkOpened()
			}
			store.Pin(frame)
			store.Unpin(frame)
			store.Unpin(frame)
			if has(store, "f") != c.stays {
				t.Errorf("stays: %v, want %v", !c.stays, c.stays)
			}
			if c.stays && store.entries["f"].place != c.place {
				t.Errorf("place %d, want %d", store.entries["f"].place, c.place)
			}
			frame.Release()
			if inUse := page - arena.FreeBytes(); (inUse > 0) != c.stays {
				t.Errorf("%d bytes in use", inUse)
			}
		})
	}
}

func TestUnpinOfAFrameThatWasReplaced(t *testing.T) {
	store, _ := newStore(t, 16, 50)
	old := readyFrame(t, store.arena, "f", page)
	store.Pin(old)
	pin(t, store, "f")
	store.Unpin(old)
	store.Drop(old)
	old.Release()
	if e := store.entries["f"]; e == nil || e.place != inWindow {
		t.Error("the new frame left the window with the old one")
	}
}

func TestRecentListHoldsTheLastFramesRead(t *testing.T) {
	store, _ := newStore(t, 80, 50) // an eighth is recent: 10 frames
	for i := range 12 {
		readOnce(t, store, fmt.Sprintf("f%02d", i))
	}
	for i := range 12 {
		want := inRecent
		if i < 2 {
			want = inKept
		}
		if e := store.entries[fmt.Sprintf("f%02d", i)]; e == nil || e.place != want {
			t.Errorf("frame %d: %+v, want place %d", i, e, want)
		}
	}
	if store.recentBytes != 10*page {
		t.Errorf("%d pages counted as recent, want 10", store.recentBytes/page)
	}
	store.Drop(store.entries["f05"].frame)
	pin(t, store, "f06") // replaces it
	if store.recentBytes != 8*page || len(store.recent) != 8 {
		t.Errorf("%d pages, %d entries recent after a drop and a pin, want 8", store.recentBytes/page, len(store.recent))
	}
}

func TestRecentListHoldsOneFrameHoweverLarge(t *testing.T) {
	store, _ := newStore(t, 80, 50)
	large := readyFrame(t, store.arena, "large", 40*page)
	large.MarkOpened()
	store.Pin(large)
	store.Unpin(large)
	large.Release()
	if e := store.entries["large"]; e == nil || e.place != inRecent {
		t.Error("a frame just read is not on the recent list")
	}
}

func TestPinOfAKeptFrame(t *testing.T) {
	for _, read := range []bool{false, true} {
		store, _ := newStore(t, 16, 50)
		make := keep
		if read {
			make = readOnce
		}
		frame := make(t, store, "f")
		store.kept.Wait()
		if got := store.Lookup("f"); got != frame {
			t.Fatal("not kept")
		}
		store.Pin(frame)
		store.Pin(frame)
		frame.Release()
		store.kept.Wait()
		if e := store.entries["f"]; e == nil || e.place != inWindow {
			t.Error("not in the window")
		}
		if store.Reclaim(16*page) || !has(store, "f") {
			t.Error("reclaimed from the window")
		}
		if unread := store.FetchedUnread(); unread != 0 {
			t.Errorf("%d bytes count as fetched and not read; the frame is still here", unread)
		}
		store.Drop(frame)
		if store.arena.FreeBytes() != page {
			t.Error("its memory did not come free")
		}
	}
}

func TestPinReplacesAnotherFrameOfThePath(t *testing.T) {
	for _, from := range []string{"window", "recent", "kept"} {
		store, _ := newStore(t, 16, 50)
		put := map[string]func(*testing.T, *Store, string) *Frame{"window": pin, "recent": readOnce, "kept": keep}[from]
		old := put(t, store, "f")
		fresh := pin(t, store, "f")
		if got := store.Lookup("f"); got != fresh || fresh == old {
			t.Errorf("%s: the old frame is found", from)
		} else {
			got.Release()
		}
		if store.arena.FreeBytes() != page {
			t.Errorf("%s: the old frame's memory did not come free", from)
		}
		wantUnread := page
		if from == "recent" {
			wantUnread = 0
		}
		if unread := store.FetchedUnread(); unread != wantUnread {
			t.Errorf("%s: %d bytes fetched and not read, want %d", from, unread, wantUnread)
		}
	}
}

func TestDrop(t *testing.T) {
	puts := map[string]func(*testing.T, *Store, string) *Frame{"window": pin, "recent": readOnce, "kept": keep}
	for from, put := range puts {
		store, _ := newStore(t, 16, 50)
		frame := put(t, store, "f")
		held := store.Lookup("f")
		store.Drop(frame)
		store.Drop(frame)
		if has(store, "f") {
			t.Errorf("%s: found after Drop", from)
		}
		if data, err := held.Read(0, page, nil); err != nil || int64(len(data)) != page {
			t.Errorf("%s: a reader lost its frame: %d bytes, %v", from, len(data), err)
		}
		if store.arena.FreeBytes() != 0 {
			t.Errorf("%s: memory came free under a reader", from)
		}
		held.Release()
		if store.arena.FreeBytes() != page {
			t.Errorf("%s: memory did not come free", from)
		}
	}
}

func TestDropTree(t *testing.T) {
	all := []string{"a", "a/f1", "a/b/f2", "ab/f3", "a.f4", "c"}
	cases := []struct {
		tree string
		left []string
	}{
		{"a", []string{"ab/f3", "a.f4", "c"}},
		{"a/b", []string{"a", "a/f1", "ab/f3", "a.f4", "c"}},
		{"a/f1", []string{"a", "a/b/f2", "ab/f3", "a.f4", "c"}},
		{"none", all},
		{"", nil},
	}
	puts := []func(*testing.T, *Store, string) *Frame{pin, readOnce, keep}
	for _, c := range cases {
		store, _ := newStore(t, 16, 50)
		for i, path := range all {
			puts[i%len(puts)](t, store, path)
		}
		dropped := store.DropTree(c.tree)
		if got := present(store, all...); !slices.Equal(got, c.left) {
			t.Errorf("tree %q leaves %q, want %q", c.tree, got, c.left)
		}
		if len(dropped) != len(all)-len(c.left) {
			t.Errorf("tree %q returns %d frames, want %d", c.tree, len(dropped), len(all)-len(c.left))
		}
		for _, frame := range dropped {
			if _, err := frame.Read(0, page, nil); err != nil {
				t.Errorf("tree %q: a returned frame is not usable: %v", c.tree, err)
			}
			frame.Release()
		}
	}
}

func TestDropInode(t *testing.T) {
	store, arena := newStore(t, 16, 50)
	put := func(path string, dev, ino uint64) {
		frame, err := NewFrame(arena, path, Attr{Size: page, Dev: dev, Ino: ino})
		if err != nil {
			t.Fatal(err)
		}
		store.Pin(frame)
		frame.Release()
	}
	put("name", 1, 7)
	put("other/name", 1, 7)
	put("other/device", 2, 7)
	put("other/inode", 1, 8)
	dropped := store.DropInode(1, 7)
	if got, want := present(store, "name", "other/name", "other/device", "other/inode"), []string{"other/device", "other/inode"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	if len(dropped) != 2 {
		t.Errorf("%d frames returned, want 2", len(dropped))
	}
	for _, frame := range dropped {
		frame.Release()
	}
}

func TestCloseLeavesFramesThatReadersHold(t *testing.T) {
	store, arena := newStore(t, 16, 50)
	pin(t, store, "held")
	keep(t, store, "kept")
	held := store.Lookup("held")
	store.Close()
	if used, _ := store.ledger.Used(); used-arena.FreeBytes() != page {
		t.Errorf("%d pages in use after Close, want the one that is held", (used-arena.FreeBytes())/page)
	}
	if data, err := held.Read(0, page, nil); err != nil || data[0] != 'a' {
		t.Errorf("a held frame after Close: %v", err)
	}
	held.Release()
}
