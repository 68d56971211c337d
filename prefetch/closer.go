package prefetch

import (
	"sync"
	"time"
)

// closersAtOnce bounds how many descriptors are being closed at once, each by a
// thread that a dead server may hold.
const closersAtOnce = 64

// closer gives descriptors of the source back in the background: on a network
// mount close(2) writes back and waits for the server, and neither a lock nor a
// request may be held for that long.
type closer struct {
	mu      sync.Mutex
	idle    sync.Cond // signalled when running reaches 0
	queue   []func()
	running int
}

func newCloser() *closer {
	c := &closer{}
	c.idle.L = &c.mu
	return c
}

// do runs release soon.
func (c *closer) do(release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, release)
	if c.running < closersAtOnce {
		c.running++
		go c.run()
	}
}

func (c *closer) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 {
		release := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		release()
		c.mu.Lock()
	}
	c.queue = nil
	c.running--
	if c.running == 0 {
		c.idle.Broadcast()
	}
}

// wait returns true once everything has been given back, false if that takes
// longer than patience.
func (c *closer) wait(patience time.Duration) bool {
	patient := true
	deadline := time.AfterFunc(patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		patient = false
		c.idle.Broadcast()
	})
	defer deadline.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running > 0 && patient {
		c.idle.Wait()
	}
	return c.running == 0
}
