package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// WriteRow is what became of one frame that was to be written. Times are since
// the start of the run.
type WriteRow struct {
	K       int // position in the order written
	Number  int
	Path    string
	Due     time.Duration // it was captured; 0: unpaced
	Began   time.Duration // its open was called
	Done    time.Duration // it was closed
	Open    time.Duration
	Write   time.Duration
	Fsync   time.Duration
	Close   time.Duration
	Own     time.Duration // how much later than it had meant to the writer began
	Bytes   int64
	Dropped bool // the queue was full when it was captured
	Err     error
}

// writer writes the frames of a run with several threads. A thread takes the
// next frame while it holds the token of turn, and keeps that while it waits for
// the frame: the others wait behind it. It is taken before mu.
type writer struct {
	config  *WriteConfig
	numbers []int
	number  func(k int) int
	mill    *mill
	time    *timekeeper
	stop    context.CancelCauseFunc
	turn    chan struct{}

	mu sync.Mutex
	// The fields below are guarded by mu.
	recorder recorder
	rows     []WriteRow
	latency  writeLatencies
	bytes    int64
	finished time.Duration
}

// run writes until the end, until a frame can't be written or until ctx ends. An
// error means that it could not begin.
func (w *writer) run(ctx context.Context) error {
	milling, stopMill := context.WithCancel(ctx)
	defer stopMill()
	mill, err := newMill(milling, w.config, len(w.numbers), w.number)
	if err != nil {
		return err
	}
	w.mill = mill
	defer letThreadsRun(w.config.threads())()
	w.time = newTimekeeper(w.config.Rate, nanosleep)
	var threads sync.WaitGroup
	for range w.config.threads() {
		threads.Go(func() { w.work(ctx) })
	}
	threads.Wait()
	stopMill()
	mill.close()
	return nil
}

// work is the life of a thread.
func (w *writer) work(ctx context.Context) {
	for {
		row, data := w.take(ctx)
		if data == nil {
			return
		}
		w.write(ctx, &row, data)
		w.mill.put(data)
		w.finish(row)
	}
}

// take returns the frame to write, when it has been captured; no data at the
// end.
func (w *writer) take(ctx context.Context) (row WriteRow, data []byte) {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	var late time.Duration
	for ctx.Err() == nil {
		w.mu.Lock()
		now := w.time.now()
		k, notBefore, ok := w.recorder.advance(now)
		w.mu.Unlock()
		switch {
		case !ok:
			return row, nil
		case notBefore > now:
			late = w.time.wait(ctx, notBefore, nil)
			continue
		}
		if data = w.mill.get(ctx, k); data == nil {
			return row, nil
		}
		row = WriteRow{K: k, Number: w.number(k), Due: w.recorder.due(k), Began: w.time.now()}
		row.Own = late + row.Began - now
		if w.config.Rate != (Rate{}) {
			w.time.note(now, row.Began) // a frame that was not made in time is the writer's own fault
		}
		row.Path = w.config.Pattern.Path(row.Number)
		return row, data
	}
	return row, nil
}

// finish accounts for a frame. The first that fails ends the run.
func (w *writer) finish(row WriteRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recorder.finish(w.time.now())
	if errors.Is(row.Err, context.Canceled) {
		return
	}
	w.rows = append(w.rows, row)
	if row.Err != nil {
		w.stop(fmt.Errorf("frame %d of %d: %w", row.K+1, len(w.numbers), row.Err))
		return
	}
	w.bytes += row.Bytes
	w.finished = max(w.finished, row.Done)
	w.latency.record(row)
	if w.config.OnFrame != nil {
		w.config.OnFrame(row.Bytes)
	}
}

// pieceSize is what a write(2) carries at most, in bytes: between two it is seen
// that the run is to end.
const pieceSize = 16 << 20

// write writes a frame, and removes what it has begun if that fails or ctx ends.
func (w *writer) write(ctx context.Context, row *WriteRow, data []byte) {
	began := time.Now()
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC | unix.O_CLOEXEC
	if w.config.Direct {
		flags |= unix.O_DIRECT
	}
	fd, err := openRetry(row.Path, flags)
	opened := time.Now()
	row.Open = opened.Sub(began)
	if err != nil {
		row.Err = &os.PathError{Op: "open", Path: row.Path, Err: err}
		return
	}
	row.Bytes, err = w.writeAll(ctx, fd, data)
	written := time.Now()
	row.Write = written.Sub(opened)
	if w.config.Fsync && err == nil {
		if err = fsyncRetry(fd); err != nil {
			err = &os.PathError{Op: "fsync", Path: row.Path, Err: err}
		}
		row.Fsync = time.Since(written)
	}
	closing := time.Now()
	if closeErr := unix.Close(fd); closeErr != nil && err == nil {
		err = &os.PathError{Op: "close", Path: row.Path, Err: closeErr}
	}
	row.Close = time.Since(closing)
	row.Done = w.time.now()
	if row.Err = err; err != nil {
		_ = os.Remove(row.Path)
	}
}

func (w *writer) writeAll(ctx context.Context, fd int, data []byte) (n int64, err error) {
	piece := w.config.Block
	if piece == 0 {
		piece = pieceSize
	}
	for n < int64(len(data)) {
		if ctx.Err() != nil {
			return n, context.Canceled
		}
		got, err := unix.Write(fd, data[n:min(n+piece, int64(len(data)))])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, fmt.Errorf("write at byte %d: %w", n, err)
		}
		n += int64(got)
	}
	return n, nil
}

func fsyncRetry(fd int) error {
	for {
		if err := unix.Fsync(fd); err != unix.EINTR {
			return err
		}
	}
}
