package cache

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

var page = int64(os.Getpagesize())

// eachArena runs a test over both kinds of memory file.
func eachArena(t *testing.T, limit int64, check func(t *testing.T, arena *Arena, ledger *Ledger)) {
	t.Run("tmpfs", func(t *testing.T) {
		arena, ledger := newArena(t, limit)
		if arena.tmpfs < 0 {
			t.Skip("no detached tmpfs here: it takes CAP_SYS_ADMIN and Linux 5.2")
		}
		check(t, arena, ledger)
	})
	t.Run("memfd", func(t *testing.T) {
		arena, ledger := newArena(t, limit)
		if arena.tmpfs >= 0 {
			unix.Close(arena.tmpfs)
			arena.tmpfs = -1
		}
		check(t, arena, ledger)
	})
}

func newArena(t *testing.T, limit int64) (*Arena, *Ledger) {
	t.Helper()
	ledger := NewLedger(limit)
	arena := NewArena(ledger)
	t.Cleanup(func() {
		arena.Close()
		if used, peak := ledger.Used(); used != 0 || peak > limit {
			t.Errorf("after all was given back: %d bytes charged, peak %d, limit %d", used, peak, limit)
		}
	})
	return arena, ledger
}

func allocate(t *testing.T, arena *Arena, size int64) *Buffer {
	t.Helper()
	buffer, err := arena.Allocate(size)
	if err != nil {
		t.Fatalf("allocate %d bytes: %v", size, err)
	}
	return buffer
}

func fill(b *Buffer, with byte) {
	for i := range b.Bytes() {
		b.Bytes()[i] = with
	}
}

// fileContent reads a memory file as the kernel does for an application: up to
// where it ends.
func fileContent(t *testing.T, fd int) []byte {
	t.Helper()
	content := make([]byte, 1<<20)
	n, err := unix.Pread(fd, content, 0)
	if err != nil {
		t.Fatalf("read memory file: %v", err)
	}
	return content[:n]
}

func TestFileEndsExactlyWhereTheFrameDoes(t *testing.T) {
	eachArena(t, 1<<20, func(t *testing.T, arena *Arena, ledger *Ledger) {
		fds := make(map[int]bool)
		// 9 pages each; each size follows one that was smaller or larger.
		for i, size := range []int64{8*page + 100, 8*page + 1, 9 * page, 9*page - 1, 8*page + 2000} {
			buffer := allocate(t, arena, size)
			fill(buffer, byte('a'+i))
			if got, want := fileContent(t, buffer.Fd()), bytes.Repeat([]byte{byte('a' + i)}, int(size)); !bytes.Equal(got, want) {
				t.Errorf("size %d: the file holds %d bytes, or other ones", size, len(got))
			}
			fds[buffer.Fd()] = true
			arena.Recycle(buffer)
		}
		if len(fds) != 1 {
			t.Errorf("%d memory files for frames of about one size, one after the other; want 1", len(fds))
		}
		if used, _ := ledger.Used(); used != 9*page {
			t.Errorf("%d bytes charged, want %d", used, 9*page)
		}
	})
}

func TestRecycledFileOfAnotherSizeIsNotWasted(t *testing.T) {
	arena, ledger := newArena(t, 1<<20)
	large := allocate(t, arena, 64*page)
	arena.Recycle(large)
	small := allocate(t, arena, page)
	if used, _ := ledger.Used(); used != 65*page {
		t.Errorf("%d pages charged, want 65: a small frame must not take a large file", used/page)
	}
	arena.Recycle(small)
}

func TestAllocateFailsWithErrFull(t *testing.T) {
	arena, ledger := newArena(t, 2*page)
	first, second := allocate(t, arena, 1), allocate(t, arena, page)
	if _, err := arena.Allocate(1); !errors.Is(err, ErrFull) {
		t.Errorf("third of two: %v, want ErrFull", err)
	}
	if used, _ := ledger.Used(); used != 2*page {
		t.Errorf("%d bytes charged after the refusal, want %d", used, 2*page)
	}
	arena.Recycle(first)
	third := allocate(t, arena, 1)
	arena.Recycle(third)
	arena.Recycle(second)
	if free := arena.FreeBytes(); free != 2*page {
		t.Errorf("%d bytes free, want %d", free, 2*page)
	}
}

func TestFreeFilesGiveWayToAnotherSize(t *testing.T) {
	arena, ledger := newArena(t, 4*page)
	var held []*Buffer
	for range 4 {
		held = append(held, allocate(t, arena, page))
	}
	for _, buffer := range held {
		arena.Recycle(buffer)
	}
	large := allocate(t, arena, 4*page)
	if used, _ := ledger.Used(); used != 4*page {
		t.Errorf("%d pages charged, want 4", used/page)
	}
	if arena.buffers != 1 || arena.FreeBytes() != 0 {
		t.Errorf("%d memory files, %d bytes free; want the large one alone", arena.buffers, arena.FreeBytes())
	}
	arena.Recycle(large)
}

func TestCountOfFilesIsBounded(t *testing.T) {
	arena, _ := newArena(t, 1<<20)
	arena.maxBuffers = 2
	first, second := allocate(t, arena, page), allocate(t, arena, page)
	if _, err := arena.Allocate(page); !errors.Is(err, ErrFull) {
		t.Errorf("third of two: %v, want ErrFull", err)
	}
	arena.Recycle(first)
	large := allocate(t, arena, 20*page) // takes the place of the free one
	arena.Recycle(large)
	arena.Recycle(second)
}

func TestTrimGivesFreeMemoryBack(t *testing.T) {
	arena, ledger := newArena(t, 1<<20)
	held, free := allocate(t, arena, 3*page), allocate(t, arena, 5*page)
	arena.Recycle(free)
	if freed := arena.Trim(); freed != 5*page {
		t.Errorf("trimmed %d bytes, want %d", freed, 5*page)
	}
	if used, _ := ledger.Used(); used != 3*page || arena.FreeBytes() != 0 {
		t.Errorf("%d pages charged, %d bytes free; want 3 and 0", used/page, arena.FreeBytes())
	}
	arena.Recycle(held)
}

func TestCloseLeavesFilesThatAreHeld(t *testing.T) {
	arena, ledger := newArena(t, 1<<20)
	held, free := allocate(t, arena, 2*page), allocate(t, arena, 5*page)
	fill(held, 'h')
	arena.Recycle(free)
	arena.Close()
	arena.Close()
	if used, _ := ledger.Used(); used != 2*page {
		t.Errorf("%d pages charged after Close, want the 2 that are held", used/page)
	}
	if got := fileContent(t, held.Fd()); !bytes.Equal(got, bytes.Repeat([]byte("h"), int(2*page))) {
		t.Error("a held file lost its content at Close")
	}
	if _, err := arena.Allocate(page); !errors.Is(err, ErrFull) {
		t.Errorf("allocate after Close: %v, want ErrFull", err)
	}
	arena.Recycle(held)
	if used, _ := ledger.Used(); used != 0 {
		t.Errorf("%d bytes charged after the last one came back", used)
	}
}

func TestArenaUnderConcurrentUse(t *testing.T) {
	const limit = 8 << 20
	arena, ledger := newArena(t, limit)
	var workers sync.WaitGroup
	for seed := range uint64(4) {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 2))
			var held []*Buffer
			for range 400 {
				size := 1 + random.Int64N(64<<10)
				if random.IntN(8) == 0 {
					size = ChunkSize // sets the reserve to work
				}
				buffer, err := arena.Allocate(size)
				switch {
				case err == nil:
					buffer.Bytes()[size-1] = byte(seed)
					held = append(held, buffer)
				case !errors.Is(err, ErrFull):
					t.Errorf("allocate %d bytes: %v", size, err)
				}
				if used, _ := ledger.Used(); used > limit {
					t.Errorf("%d bytes charged of %d", used, limit)
				}
				for len(held) > random.IntN(6) {
					arena.Recycle(held[0])
					held = held[1:]
				}
				if random.IntN(50) == 0 {
					arena.Trim()
				}
			}
			for _, buffer := range held {
				arena.Recycle(buffer)
			}
		})
	}
	workers.Wait()
}
