package cache

import (
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	// reserveBuffers is how many recycled buffers of the size in use are kept
	// ready, so that a fetch does not have to wait for fresh memory: the first
	// touch of a page costs up to ten times as much as using it again.
	reserveBuffers = 8
	// reserveShare bounds the reserve to this part of the ledger's limit.
	reserveShare = 8
	// reservePiece is written at once, in bytes: a huge page. The kernel would clear
	// what a smaller write leaves of it, and copy over that again.
	reservePiece = 2 << 20
	// reserveNice lets the work be done in time that nobody else wants.
	reserveNice = 19
)

// reserve fills fresh memory in the background. It runs on a thread of its own,
// of the lowest priority, from the first allocation until the arena is closed.
type reserve struct {
	capacity chan int64 // the capacity that was allocated last; holds one
	stop     chan struct{}
	stopped  chan struct{}
}

func newReserve() *reserve {
	return &reserve{capacity: make(chan int64, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
}

// want tells the reserve which buffers are in use. It never blocks.
func (r *reserve) want(capacity int64) {
	select {
	case r.capacity <- capacity:
	default:
	}
}

func (a *Arena) keepReserve() {
	defer close(a.reserve.stopped)
	// The thread is not given back: its priority cannot be raised again.
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), reserveNice)
	zeros := make([]byte, reservePiece)
	for {
		select {
		case <-a.reserve.stop:
			return
		case capacity := <-a.reserve.capacity:
			for a.needsReserve(capacity) && a.addToReserve(capacity, zeros) {
			}
		}
	}
}

func (a *Arena) needsReserve(capacity int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	ready := int64(0)
	for _, b := range a.free {
		if b.capacity == capacity {
			ready++
		}
	}
	return !a.closed && ready < reserveBuffers && (ready+1)*capacity <= a.ledger.Limit()/reserveShare
}

// addToReserve makes one buffer, touches all its pages and puts it with the
// recycled ones. It reports false when there is no room.
func (a *Arena) addToReserve(capacity int64, zeros []byte) bool {
	a.mu.Lock()
	room := !a.closed && a.buffers < a.maxBuffers && a.ledger.TryCharge(capacity)
	if room {
		a.buffers++
	}
	a.mu.Unlock()
	if !room {
		return false
	}
	buffer, err := a.create(capacity, capacity)
	if err != nil {
		a.mu.Lock()
		a.buffers--
		a.mu.Unlock()
		a.ledger.Release(capacity)
		return false
	}
	touched := true
	for offset := int64(0); offset < capacity && touched; offset += reservePiece {
		// Written, not mapped and touched: a fault would hold the lock of the
		// address space, at the lowest priority.
		_, err := unix.Pwrite(buffer.fd, zeros[:min(reservePiece, capacity-offset)], offset)
		touched = err == nil
		select {
		case <-a.reserve.stop:
			touched = false
		default:
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !touched || a.closed {
		a.destroyLocked(buffer)
		return false
	}
	// Oldest: what is warm in the processor's caches is used first.
	a.free = append([]*Buffer{buffer}, a.free...)
	return true
}
