package cache

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ErrFull means that the ledger (or the arena's count of memory files) has no
// room for a buffer now. The caller reads from the source instead, or waits.
var ErrFull = errors.New("cache: no room for another frame")

// maxArenaBuffers bounds memory files, each of which costs a descriptor and a
// mapping (vm.max_map_count is 65,530 by default).
const maxArenaBuffers = 30_000

// Arena allocates the memory files that frames live in and recycles them.
//
// With CAP_SYS_ADMIN the files lie on a private tmpfs that is mounted nowhere:
// there the kernel uses huge pages whatever
// /sys/kernel/mm/transparent_hugepage/shmem_enabled says, and reads of a
// 12.8 MB frame in 1 MiB pieces run at 1.6 times the speed of 4 KiB pages.
// Without it they are memfds.
type Arena struct {
	ledger     *Ledger
	tmpfs      int // descriptor of the detached tmpfs, or -1: memfds
	maxBuffers int
	reserve    *reserve

	mu        sync.Mutex
	buffers   int       // allocated and not destroyed
	free      []*Buffer // recycled, oldest first; still charged
	lingering []*Buffer // released, but an application still maps them; charged
	closed    bool
}

// Buffer is one memory file with its mapping. It belongs to whoever allocated
// it until Arena.Recycle. Its bytes beyond size must not be touched: they lie
// beyond the end of the file.
type Buffer struct {
	fd       int
	mapping  []byte
	size     int64
	capacity int64       // bytes charged and mapped: whole pages
	lent     atomic.Bool // the kernel has served it to applications as a backing file
}

// Fd returns the descriptor of the memory file, open for reading and writing.
func (b *Buffer) Fd() int { return b.fd }

// Bytes returns the mapped content, exactly as long as the frame.
func (b *Buffer) Bytes() []byte { return b.mapping[:b.size] }

// NewArena makes an arena that charges ledger. It never fails: without the
// privilege for a detached tmpfs it uses memfds.
func NewArena(ledger *Ledger) *Arena {
	arena := &Arena{ledger: ledger, tmpfs: -1, maxBuffers: maxArenaBuffers, reserve: newReserve()}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Cur/2 < maxArenaBuffers {
		arena.maxBuffers = int(files.Cur / 2)
	}
	if fd, err := detachedTmpfs(); err == nil {
		arena.tmpfs = fd
	}
	go arena.keepReserve()
	return arena
}

// detachedTmpfs makes a tmpfs that no path leads to. Its own size limit is
// lifted: the ledger is the bound.
func detachedTmpfs() (int, error) {
	context, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(context)
	// within_size: huge pages only where a frame fills them, so that a small
	// file does not cost 2 MiB.
	for key, value := range map[string]string{"huge": "within_size", "size": "0", "nr_inodes": "0", "mode": "0700"} {
		if err := unix.FsconfigSetString(context, key, value); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, err
	}
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
}

// Allocate returns a buffer of exactly size bytes, a recycled one if one fits.
// It fails with ErrFull when the ledger has no room, or with what the kernel
// said when it has no memory.
func (a *Arena) Allocate(size int64) (*Buffer, error) {
	capacity := pageAlign(size)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, ErrFull
	}
	a.sweepLingeringLocked()
	if size >= ChunkSize { // smaller ones are made at once
		defer a.reserve.want(capacity)
	}
	if buffer := a.takeFreeLocked(capacity); buffer != nil {
		if err := buffer.resize(size); err != nil {
			a.destroyLocked(buffer)
			return nil, err
		}
		return buffer, nil
	}
	for a.buffers >= a.maxBuffers || !a.ledger.TryCharge(capacity) {
		if len(a.free) == 0 {
			return nil, ErrFull
		}
		oldest := a.free[0]
		a.free = a.free[1:]
		a.destroyLocked(oldest)
	}
	buffer, err := a.create(size, capacity)
	if err != nil {
		a.ledger.Release(capacity)
		return nil, err
	}
	a.buffers++
	return buffer, nil
}

// takeFreeLocked finds a recycled buffer of at least capacity that wastes at
// most an eighth of itself, the most recently used (and so the warmest) first.
func (a *Arena) takeFreeLocked(capacity int64) *Buffer {
	for i := len(a.free) - 1; i >= 0; i-- {
		if b := a.free[i]; b.capacity >= capacity && b.capacity-capacity <= b.capacity/8 {
			a.free = append(a.free[:i], a.free[i+1:]...)
			return b
		}
	}
	return nil
}

func (a *Arena) create(size, capacity int64) (*Buffer, error) {
	fd, err := a.memoryFile()
	if err != nil {
		return nil, fmt.Errorf("memory file for a frame of %d bytes: %w", size, err)
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("size a memory file to %d bytes: %w", size, err)
	}
	mapping, err := unix.Mmap(fd, 0, int(capacity), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("map a memory file of %d bytes: %w", size, err)
	}
	return &Buffer{fd: fd, mapping: mapping, size: size, capacity: capacity}, nil
}

func (a *Arena) memoryFile() (int, error) {
	if a.tmpfs >= 0 {
		return unix.Openat(a.tmpfs, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	}
	return unix.MemfdCreate("reelahead-frame", unix.MFD_CLOEXEC)
}

// resize sets the exact end of a recycled file: a passthrough read stops there.
func (b *Buffer) resize(size int64) error {
	if b.size == size {
		return nil
	}
	if err := unix.Ftruncate(b.fd, size); err != nil {
		return fmt.Errorf("resize a memory file to %d bytes: %w", size, err)
	}
	b.size = size
	return nil
}

// Recycle takes a buffer back from its last user.
func (a *Arena) Recycle(b *Buffer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		a.destroyLocked(b)
	case b.lent.Load() && b.mappedElsewhere():
		a.lingering = append(a.lingering, b)
	default:
		b.lent.Store(false)
		a.free = append(a.free, b)
	}
}

// mappedElsewhere tells whether an application still maps (or holds open) the
// file. A mapping of a passthrough file pins the backing file, not the FUSE
// handle, so it outlives RELEASE: recycling the pages would change them under
// the application. The kernel grants a write lease only to the sole opener.
func (b *Buffer) mappedElsewhere() bool {
	if _, err := unix.FcntlInt(uintptr(b.fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return true
	}
	_, err := unix.FcntlInt(uintptr(b.fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err != nil
}

func (a *Arena) sweepLingeringLocked() {
	still := a.lingering[:0]
	for _, b := range a.lingering {
		if b.mappedElsewhere() {
			still = append(still, b)
			continue
		}
		b.lent.Store(false)
		a.free = append(a.free, b)
	}
	clear(a.lingering[len(still):])
	a.lingering = still
}

// Trim destroys recycled buffers, giving their memory back to the system, and
// reports how many bytes that were.
func (a *Arena) Trim() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweepLingeringLocked()
	var freed int64
	for _, b := range a.free {
		freed += b.capacity
		a.destroyLocked(b)
	}
	a.free = nil
	return freed
}

// FreeBytes returns what is charged but could be allocated again at once.
func (a *Arena) FreeBytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var bytes int64
	for _, b := range a.free {
		bytes += b.capacity
	}
	return bytes
}

// hasSlot tells whether another memory file may be made, or a recycled one makes
// room for it.
func (a *Arena) hasSlot() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.buffers < a.maxBuffers || len(a.free) > 0
}

func (a *Arena) destroyLocked(b *Buffer) {
	unix.Munmap(b.mapping)
	unix.Close(b.fd)
	b.mapping, b.fd = nil, -1
	a.buffers--
	a.ledger.Release(b.capacity)
}

// Close destroys all recycled buffers; those still in use follow when they are
// recycled. Files that an application maps stay alive in the kernel until it
// unmaps them, but are charged no longer.
func (a *Arena) Close() {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.closed = true
	a.mu.Unlock()
	close(a.reserve.stop)
	<-a.reserve.stopped
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range append(a.free, a.lingering...) {
		a.destroyLocked(b)
	}
	a.free, a.lingering = nil, nil
	if a.tmpfs >= 0 {
		unix.Close(a.tmpfs)
	}
}

func pageAlign(size int64) int64 {
	page := int64(os.Getpagesize())
	return (size + page - 1) / page * page
}
