package cache

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// lendingArena makes an arena whose files the kernel may serve: it does so only
// with the privilege that the detached tmpfs needs too, never from a memfd.
func lendingArena(t *testing.T, limit int64) (*Arena, *Ledger) {
	t.Helper()
	arena, ledger := newArena(t, limit)
	if arena.tmpfs < 0 {
		t.Skip("no detached tmpfs here: it takes CAP_SYS_ADMIN and Linux 5.2")
	}
	return arena, ledger
}

// application opens a memory file as a reader of a passthrough file has it.
func application(t *testing.T, buffer *Buffer) int {
	t.Helper()
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", buffer.Fd()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open memory file: %v", err)
	}
	return fd
}

func mapped(t *testing.T, buffer *Buffer) []byte {
	t.Helper()
	fd := application(t, buffer)
	defer unix.Close(fd)
	mapping, err := unix.Mmap(fd, 0, int(buffer.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatalf("map memory file: %v", err)
	}
	return mapping
}

func TestMappedFileIsNotRecycled(t *testing.T) {
	arena, ledger := lendingArena(t, 1<<20)
	lent := allocate(t, arena, 4*page)
	fill(lent, 'l')
	lent.lent.Store(true)
	mapping := mapped(t, lent)
	fd := lent.Fd()
	arena.Recycle(lent)

	other := allocate(t, arena, 4*page)
	if other.Fd() == fd {
		t.Fatal("a file that is still mapped was recycled")
	}
	fill(other, 'o')
	if !bytes.Equal(mapping, bytes.Repeat([]byte("l"), int(4*page))) {
		t.Error("the content changed under a mapping")
	}
	if used, _ := ledger.Used(); used != 8*page {
		t.Errorf("%d pages charged, want 8: what is mapped still counts", used/page)
	}
	if freed := arena.Trim(); freed != 0 {
		t.Errorf("trimmed %d bytes of a file that is mapped", freed)
	}

	if err := unix.Munmap(mapping); err != nil {
		t.Fatal(err)
	}
	again := allocate(t, arena, 4*page)
	if again.Fd() != fd {
		t.Error("the file was not recycled after the mapping ended")
	}
	arena.Recycle(again)
	arena.Recycle(other)
}

func TestOpenFileIsNotRecycled(t *testing.T) {
	arena, _ := lendingArena(t, 1<<20)
	lent := allocate(t, arena, page)
	lent.lent.Store(true)
	reader := application(t, lent)
	fd := lent.Fd()
	arena.Recycle(lent)
	other := allocate(t, arena, page)
	if other.Fd() == fd {
		t.Error("a file that is still open was recycled")
	}
	unix.Close(reader)
	arena.Recycle(other)
	if freed := arena.Trim(); freed != 2*page {
		t.Errorf("trimmed %d pages after the file was closed, want 2", freed/page)
	}
}

func TestMappedFileHoldsItsRoom(t *testing.T) {
	arena, _ := lendingArena(t, 4*page)
	lent := allocate(t, arena, 4*page)
	lent.lent.Store(true)
	mapping := mapped(t, lent)
	arena.Recycle(lent)
	if buffer, err := arena.Allocate(page); err == nil {
		t.Error("memory that is still mapped was given away")
		arena.Recycle(buffer)
	}
	unix.Munmap(mapping)
	arena.Recycle(allocate(t, arena, page))
}

func TestCloseLeavesMappedContent(t *testing.T) {
	arena, _ := lendingArena(t, 1<<20)
	lent := allocate(t, arena, page)
	fill(lent, 'l')
	lent.lent.Store(true)
	mapping := mapped(t, lent)
	arena.Recycle(lent)
	arena.Close()
	if !bytes.Equal(mapping, bytes.Repeat([]byte("l"), int(page))) {
		t.Error("the content changed under a mapping at Close")
	}
	unix.Munmap(mapping)
}
