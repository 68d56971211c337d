package cache

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ChunkSize is the unit in which a frame is fetched and lands, in bytes: the
// largest read that NFS and SMB servers commonly grant.
const ChunkSize = 1 << 20

// ErrBeyond is returned for bytes that a frame which holds a part of its file
// does not have.
var ErrBeyond = errors.New("cache: this part of the file is not held")

// ErrInterrupted is returned to a reader that gave up waiting for a chunk.
var ErrInterrupted = errors.New("cache: interrupted while waiting for a frame")

// Frame is the content of one file at one moment, whole or on its way. Its
// size and attributes are those the source gave when the fetch began and never
// change; a changed file is another Frame.
//
// A Frame is reference counted. It is born with one reference, its maker's.
// Whoever finds it in the Store gets one of its own. Using a Frame after its
// last Release is a bug that panics.
type Frame struct {
	Path string // relative to the source's root
	attr Attr   // guarded by mu: Known moves when the source confirms it

	size, cost int64
	base       int64 // where in the file the bytes begin that are held
	extent     int64 // how many they are: size, or less for a part
	arena      *Arena
	buffer     *Buffer
	refs       atomic.Int32
	opened     atomic.Bool // an application has opened it since it was fetched

	mu       sync.Mutex
	landed   []uint64 // a bit per chunk
	missing  int      // chunks not landed
	ready    bool     // whole, and the same at the source after the fetch as before
	failure  error    // why it will never be whole
	waiting  int      // readers in Wait
	wanted   int      // lowest chunk a reader waits for, or -1
	progress chan struct{}
}

// NewFrame allocates memory for a file as attr describes it. It fails with
// ErrFull when there is no room.
func NewFrame(arena *Arena, path string, attr Attr) (*Frame, error) {
	return NewPart(arena, path, attr, 0, attr.Size)
}

// NewPart allocates memory for at most extent bytes of a file from base on: its
// head, for a reader that looks at heads only, or a block of a file that is too
// large to be held whole. It fails with ErrFull when there is no room.
func NewPart(arena *Arena, path string, attr Attr, base, extent int64) (*Frame, error) {
	extent = min(extent, attr.Size-base)
	buffer, err := arena.Allocate(extent)
	if err != nil {
		return nil, err
	}
	chunks := int((extent + ChunkSize - 1) / ChunkSize)
	f := &Frame{
		Path:     path,
		attr:     attr,
		size:     attr.Size,
		base:     base,
		extent:   extent,
		cost:     buffer.capacity,
		arena:    arena,
		buffer:   buffer,
		landed:   make([]uint64, (chunks+63)/64),
		missing:  chunks,
		wanted:   -1,
		progress: make(chan struct{}),
	}
	f.refs.Store(1)
	return f, nil
}

// Attr returns the attributes that the content belongs to and when the source
// last confirmed them.
func (f *Frame) Attr() Attr {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attr
}

// Confirm records that the source still had this content at the given time.
func (f *Frame) Confirm(known time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known.After(f.attr.Known) {
		f.attr.Known = known
	}
}

// Size returns the file's size in bytes.
func (f *Frame) Size() int64 { return f.size }

// Partial tells whether only a part of the file is held. Such a frame is never
// published.
func (f *Frame) Partial() bool { return f.extent < f.size }

// End returns where in the file the bytes end that are held.
func (f *Frame) End() int64 { return f.base + f.extent }

// Cost returns the memory it is charged with, in bytes.
func (f *Frame) Cost() int64 { return f.cost }

// Chunks returns the number of chunks.
func (f *Frame) Chunks() int { return int((f.extent + ChunkSize - 1) / ChunkSize) }

// Chunk returns where chunk i lies in the file and the memory to read it into.
func (f *Frame) Chunk(i int) (offset int64, into []byte) {
	offset = int64(i) * ChunkSize
	return f.base + offset, f.buffer.Bytes()[offset:min(offset+ChunkSize, f.extent)]
}

// Lend returns the descriptor that the kernel may serve the frame from. The
// caller must hold its reference for as long as it does. Only a ready frame is
// lent.
func (f *Frame) Lend() int {
	if !f.Ready() {
		panic("cache: a frame that is not ready was lent: " + f.Path)
	}
	f.buffer.lent.Store(true)
	return f.buffer.fd
}

// MarkOpened records that an application opened the frame and reports whether
// it is the first to do so.
func (f *Frame) MarkOpened() bool { return f.opened.CompareAndSwap(false, true) }

// Opened tells whether an application has opened the frame.
func (f *Frame) Opened() bool { return f.opened.Load() }

// Land records that chunk i is in memory.
func (f *Frame) Land(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.landed[i/64]&(1<<(i%64)) != 0 {
		panic(fmt.Sprintf("cache: chunk %d of %s landed twice", i, f.Path))
	}
	f.landed[i/64] |= 1 << (i % 64)
	f.missing--
	f.notifyLocked()
}

// Publish declares the frame whole and confirmed.
func (f *Frame) Publish(known time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.missing != 0 || f.failure != nil || f.Partial() {
		panic("cache: an incomplete frame was published: " + f.Path)
	}
	f.ready = true
	f.attr.Known = known
	f.notifyLocked()
}

// Fail declares that the frame will never be whole. Readers that wait for it
// get err and read from the source.
func (f *Frame) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == nil && !f.ready {
		f.failure = err
		f.notifyLocked()
	}
}

// Ready tells whether the frame is whole and confirmed.
func (f *Frame) Ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}

// Failure returns why the frame failed, or nil.
func (f *Frame) Failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failure
}

func (f *Frame) notifyLocked() {
	f.wanted = -1 // those still waiting say so again
	if f.waiting > 0 {
		close(f.progress)
		f.progress = make(chan struct{})
	}
}

// Wanted returns the first chunk that a reader waits for, or -1.
func (f *Frame) Wanted() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wanted
}

// Read returns the bytes at [offset, offset+length), less where the frame
// ends, as soon as all of them have landed. It fails with the frame's failure,
// with ErrBeyond outside of the part that is held, or with ErrInterrupted when giveUp
// is closed first. The bytes may be used
// until the caller's reference is released.
func (f *Frame) Read(offset, length int64, giveUp <-chan struct{}) ([]byte, error) {
	end := min(offset+length, f.Size())
	if offset < 0 || offset >= end {
		return nil, nil
	}
	if offset < f.base || end > f.base+f.extent {
		return nil, ErrBeyond
	}
	offset, end = offset-f.base, end-f.base
	first, last := int(offset/ChunkSize), int((end-1)/ChunkSize)
	f.mu.Lock()
	for {
		if f.failure != nil {
			err := f.failure
			f.mu.Unlock()
			return nil, err
		}
		missing := f.firstMissingLocked(first, last)
		if missing < 0 {
			f.mu.Unlock()
			return f.buffer.Bytes()[offset:end], nil
		}
		if f.wanted < 0 || missing < f.wanted {
			f.wanted = missing
		}
		f.waiting++
		progress := f.progress
		f.mu.Unlock()
		interrupted := false
		select {
		case <-progress:
		case <-giveUp:
			interrupted = true
		}
		f.mu.Lock()
		f.waiting--
		if interrupted {
			f.mu.Unlock()
			return nil, ErrInterrupted
		}
	}
}

func (f *Frame) firstMissingLocked(first, last int) int {
	for i := first; i <= last; i++ {
		if f.landed[i/64]&(1<<(i%64)) == 0 {
			return i
		}
	}
	return -1
}

// Acquire takes a reference for a caller that already holds one, or knows that
// somebody does.
func (f *Frame) Acquire() *Frame {
	if f.refs.Add(1) < 2 {
		panic("cache: frame used after its last release: " + f.Path)
	}
	return f
}

// tryAcquire takes a reference unless the frame is already gone.
func (f *Frame) tryAcquire() bool {
	for {
		n := f.refs.Load()
		if n == 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a reference back; the last one recycles the memory.
func (f *Frame) Release() {
	switch n := f.refs.Add(-1); {
	case n == 0:
		f.arena.Recycle(f.buffer)
		f.buffer = nil
	case n < 0:
		panic("cache: frame released once too often: " + f.Path)
	}
}
