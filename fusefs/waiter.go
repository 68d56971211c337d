package fusefs

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"reelahead/prefetch"
)

// interruptPoll is how often a thread that was interrupted while it waits for a
// frame is looked at.
const interruptPoll = 100 * time.Millisecond

// waiter turns the kernel's interrupts of a request into a reason to give up.
// The kernel interrupts for every signal; answering EINTR to a player's timer
// would break its reads, ignoring a kill would leave it hanging. So only a
// thread that is being killed, or is gone, gives up.
type waiter struct {
	giveUp chan struct{}
	done   chan struct{}
}

func newWaiter(cancel <-chan struct{}, thread uint32) *waiter {
	w := &waiter{giveUp: make(chan struct{}), done: make(chan struct{})}
	go w.watch(cancel, thread)
	return w
}

func (w *waiter) watch(cancel <-chan struct{}, thread uint32) {
	select {
	case <-w.done:
		return
	case <-cancel:
	}
	ticker := time.NewTicker(interruptPoll)
	defer ticker.Stop()
	for !beingKilled(thread) {
		select {
		case <-w.done:
			return
		case <-ticker.C:
		}
	}
	close(w.giveUp)
}

func (w *waiter) stop() { close(w.done) }

// beingKilled tells whether SIGKILL is pending for a thread (the kernel turns
// every fatal signal into it) or the thread is gone.
func beingKilled(thread uint32) bool {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return true
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		pending, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		const sigkill = 1 << 8
		if err == nil && pending&sigkill != 0 {
			return true
		}
	}
	return false
}

// readerTable knows which process a thread belongs to: the kernel names the
// thread, and the threads of one player read one sequence together.
type readerTable struct {
	mu      *sync.Mutex
	threads map[uint32]threadOf
}

type threadOf struct {
	process prefetch.Reader
	at      time.Time
}

// threadValidity bounds how long a thread's number is taken for the same
// thread: numbers are reused.
const threadValidity = 5 * time.Second

func newReaderTable() readerTable {
	return readerTable{mu: new(sync.Mutex), threads: make(map[uint32]threadOf)}
}

func (t readerTable) reader(thread uint32) prefetch.Reader {
	now := time.Now()
	t.mu.Lock()
	known, ok := t.threads[thread]
	t.mu.Unlock()
	if ok && now.Sub(known.at) < threadValidity {
		return known.process
	}
	process := processOf(thread)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.threads) >= 4096 {
		clear(t.threads)
	}
	t.threads[thread] = threadOf{process, now}
	return process
}

func processOf(thread uint32) prefetch.Reader {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return prefetch.Reader(thread)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "Tgid:"); ok {
			if id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil {
				return prefetch.Reader(id)
			}
		}
	}
	return prefetch.Reader(thread)
}
