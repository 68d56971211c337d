package fusefs

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// maxQuestions bounds the calls that requests have under way on the source at
// once. Each one that a dead server never answers holds a thread of this
// process, of which Go allows 10,000; requests beyond the bound wait their turn.
const maxQuestions = 512

// errUnasked says that a call was not even begun.
var errUnasked = fmt.Errorf("gave up waiting for a turn: %w", unix.EINTR)

// asker is the thread that a request is answered for.
type asker struct {
	fs     *fileSystem
	cancel <-chan struct{}
	thread uint32
}

func (fs *fileSystem) asker(cancel <-chan struct{}, header *fuse.InHeader) asker {
	return asker{fs: fs, cancel: cancel, thread: header.Pid}
}

// ask runs a call that may have to wait for the source in a goroutine of its
// own and returns what it returns, or EINTR as soon as the thread that asked is
// being killed or the mount is aborted: a dead server must not hold either. The
// call then goes on by itself until the source answers, giveUp is closed for
// those of its steps that can be left out, and what it returned without an error
// is handed to dropped (nil: nothing has to be given back).
//
// The call must not use the memory of the request, which serves the next one
// by then: its arguments are copied before.
func ask[T any](a asker, call func(giveUp <-chan struct{}) (T, error), dropped func(T)) (T, error) {
	var none T
	if !a.await(a.fs.turns) {
		return none, errUnasked
	}
	const (
		asking = iota
		answered
		abandoned
	)
	var (
		state  atomic.Int32
		result T
		err    error
	)
	done, giveUp := make(chan struct{}), make(chan struct{})
	go func() {
		result, err = call(giveUp)
		a.fs.turns <- struct{}{}
		if state.CompareAndSwap(asking, answered) {
			close(done)
		} else if err == nil && dropped != nil {
			dropped(result)
		}
	}()
	if !a.await(done) && state.CompareAndSwap(asking, abandoned) {
		close(giveUp)
		return none, unix.EINTR
	}
	<-done
	return result, err
}

// do is ask for a call that has no result.
func (a asker) do(call func() error) error {
	_, err := ask(a, func(<-chan struct{}) (struct{}, error) { return struct{}{}, call() }, nil)
	return err
}

// await returns true once something can be received, false once the thread that
// asked is being killed or the mount is aborted.
func (a asker) await(from <-chan struct{}) bool {
	select {
	case <-from:
		return true
	case <-a.fs.aborted:
		return false
	case <-a.cancel:
	}
	ticker := time.NewTicker(interruptPoll)
	defer ticker.Stop()
	for !beingKilled(a.thread) {
		select {
		case <-from:
			return true
		case <-a.fs.aborted:
			return false
		case <-ticker.C:
		}
	}
	return false
}

func newTurns() chan struct{} {
	turns := make(chan struct{}, maxQuestions)
	for range maxQuestions {
		turns <- struct{}{}
	}
	return turns
}
