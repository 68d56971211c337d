package prefetch

import (
	"sync"

	"golang.org/x/sys/unix"

	"reelahead/cache"
)

const (
	// maxLooks bounds the attributes that are asked for ahead at once: it leaves
	// most of the 64 slots of an NFS session to readers.
	maxLooks = 16
	// maxLooksWaiting bounds those that wait for their turn.
	maxLooksWaiting = 256
)

// looks are the questions for attributes ahead of a reader that goes through a
// directory.
type looks struct {
	mu      sync.Mutex
	of      map[string]*look
	running int
	waiting []*look
}

// look is one such question. Its answer may be used once done is closed.
type look struct {
	name  string
	epoch cache.Epoch
	attr  cache.Attr
	err   error
	done  chan struct{}
}

// Look answers with the source's attributes for a name that nobody has asked this
// mount about. If other programs have asked the client before, its answer may be
// as old as what they get; whoever opens the file sees what it has then.
func (e *Engine) Look(name string) (cache.Attr, error) {
	e.looks.mu.Lock()
	ahead := e.looks.of[name]
	e.looks.mu.Unlock()
	if ahead != nil {
		<-ahead.done
		if e.attrs.Epoch() == ahead.epoch {
			return ahead.attr, ahead.err
		}
		// Something was changed through the mount meanwhile, perhaps this.
	}
	return e.look(name)
}

func (e *Engine) look(name string) (cache.Attr, error) {
	if _, _, asked := e.attrs.Get(name); asked || e.config.Validity == 0 {
		return e.Stat(name)
	}
	return e.learn(name, e.source.Look)
}

// LookAhead asks for the attributes of files that a reader will look up soon, in
// the background.
func (e *Engine) LookAhead(names []string) {
	l := &e.looks
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if _, known := e.Known(name); known || l.of[name] != nil {
			continue
		}
		if len(l.waiting) >= maxLooksWaiting {
			return
		}
		ahead := &look{name: name, done: make(chan struct{})}
		l.of[name] = ahead
		l.waiting = append(l.waiting, ahead)
		if l.running < maxLooks {
			l.running++
			go e.lookOn()
		}
	}
}

// lookOn asks until no question waits, or the engine ends.
func (e *Engine) lookOn() {
	e.mu.Lock()
	e.lookers++
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.lookers--
		e.idle.Broadcast()
	}()
	l := &e.looks
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) > 0 {
		ahead := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.mu.Unlock()
		ahead.epoch = e.attrs.Epoch()
		if e.ended() {
			ahead.err = unix.ENOTCONN
		} else {
			ahead.attr, ahead.err = e.look(ahead.name)
		}
		close(ahead.done)
		e.attrs.Wait() // from here on it is known
		l.mu.Lock()
		delete(l.of, ahead.name)
	}
	l.running--
}

func (e *Engine) ended() bool {
	select {
	case <-e.stop:
		return true
	default:
		return false
	}
}
