package slownas

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes goroutines at given times from one timerfd. The timers of the Go
// runtime are rounded to the millisecond of epoll_wait, which is a tenth of a
// usual round trip and more than the whole of a short one.
type alarm struct {
	epoch time.Time
	timer *os.File
	fd    int

	mu sync.Mutex
	// waiting is guarded by mu; the timer is set for its earliest entry.
	waiting wakeHeap
}

type wake struct {
	at   time.Duration
	ring chan struct{} // closed at that time
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a timer: %w", err)
	}
	a := &alarm{epoch: time.Now(), timer: os.NewFile(uintptr(fd), "timerfd"), fd: fd}
	go a.run()
	return a, nil
}

// now is the time since the alarm was made.
func (a *alarm) now() time.Duration { return time.Since(a.epoch) }

// after returns a channel that is closed at the given time.
func (a *alarm) after(at time.Duration) <-chan struct{} {
	ring := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	heap.Push(&a.waiting, wake{at, ring})
	if a.waiting[0].ring == ring {
		a.set()
	}
	return ring
}

// set arms the timer for the earliest entry. The caller holds a.mu.
func (a *alarm) set() {
	// A zero value would disarm the timer.
	delay := max(a.waiting[0].at-a.now(), time.Nanosecond)
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(delay))}
	if err := unix.TimerfdSettime(a.fd, 0, &spec, nil); err != nil {
		panic(fmt.Sprintf("slownas: set the timer to %v: %v", delay, err))
	}
}

func (a *alarm) run() {
	var expirations [8]byte
	for {
		if _, err := a.timer.Read(expirations[:]); err != nil {
			return
		}
		if binary.NativeEndian.Uint64(expirations[:]) > 0 {
			a.ring()
		}
	}
}

func (a *alarm) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for len(a.waiting) > 0 && a.waiting[0].at <= now {
		close(heap.Pop(&a.waiting).(wake).ring)
	}
	if len(a.waiting) > 0 {
		a.set()
	}
}

// close ends the alarm. Channels that it has handed out are not closed.
func (a *alarm) close() { a.timer.Close() }

// wakeHeap implements heap.Interface.
type wakeHeap []wake

func (h wakeHeap) Len() int           { return len(h) }
func (h wakeHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h wakeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *wakeHeap) Push(w any)        { *h = append(*h, w.(wake)) }
func (h *wakeHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = wake{}
	*h = (*h)[:last]
	return w
}
