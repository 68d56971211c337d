package cache

import (
	"errors"
	"testing"
	"time"
)

// eventually polls until done, and fails the test if that takes too long.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestReserveFillsWithTheSizeInUse(t *testing.T) {
	arena, ledger := newArena(t, 64<<20)
	small := allocate(t, arena, 64<<10) // too small to be worth it
	large := allocate(t, arena, 2*ChunkSize)
	want := int64(64 << 20 / reserveShare)
	eventually(t, "the reserve is full", func() bool { return arena.FreeBytes() == want })
	arena.mu.Lock()
	for _, b := range arena.free {
		if b.capacity != 2*ChunkSize {
			t.Errorf("a file of %d bytes in the reserve, want %d", b.capacity, 2*ChunkSize)
		}
	}
	arena.mu.Unlock()
	if used, _ := ledger.Used(); used != want+2*ChunkSize+64<<10 {
		t.Errorf("%d bytes charged, want the reserve and what is held", used)
	}
	before := arena.buffers
	next := allocate(t, arena, 2*ChunkSize-10)
	if next.size != 2*ChunkSize-10 || int64(len(fileContent(t, next.Fd()))) > next.size {
		t.Error("a file from the reserve does not end where the frame does")
	}
	if arena.FreeBytes() > want || before == 0 {
		t.Errorf("%d bytes free, want at most %d", arena.FreeBytes(), want)
	}
	arena.Recycle(small)
	arena.Recycle(large)
	arena.Recycle(next)
}

func TestReserveNeverBreaksTheBound(t *testing.T) {
	const limit = 20 * ChunkSize
	arena, ledger := newArena(t, limit)
	var held []*Buffer
	for {
		buffer, err := arena.Allocate(ChunkSize)
		if err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			break
		}
		held = append(held, buffer)
	}
	// What the reserve was filling just then comes free, and is given out too.
	eventually(t, "all memory is in use", func() bool {
		buffer, err := arena.Allocate(ChunkSize)
		if err == nil {
			held = append(held, buffer)
		}
		return len(held) == 20
	})
	for range 50 { // each sets the reserve to work
		if buffer, err := arena.Allocate(ChunkSize); err == nil {
			held = append(held, buffer)
			t.Errorf("%d MiB given out of 20", len(held))
		}
		time.Sleep(time.Millisecond)
	}
	if used, peak := ledger.Used(); used != limit || peak != limit {
		t.Errorf("used %d, peak %d, want both %d", used, peak, limit)
	}
	for _, buffer := range held {
		arena.Recycle(buffer)
	}
}

func TestCloseEndsTheReserveInItsWork(t *testing.T) {
	for range 20 {
		arena, _ := newArena(t, 256<<20)
		buffer := allocate(t, arena, 16<<20)
		arena.Close() // waits for the reserve; newArena checks the ledger
		select {
		case <-arena.reserve.stopped:
		default:
			t.Error("the reserve still runs after Close")
		}
		arena.Recycle(buffer)
	}
}
