package bench

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrShort says that a file held fewer or more bytes than a frame has.
var ErrShort = errors.New("wrong size")

// directAlign is what O_DIRECT wants buffers, offsets and lengths to be
// multiples of, on every filesystem in use.
const directAlign = 4096

// frameReader reads frames as a player does: open, fstat, one read(2) of the
// whole frame or a read(2) for each block, close. It goes around os.File, which
// costs allocations for each file. It keeps one buffer, outside the Go heap.
// Not safe for concurrent use.
type frameReader struct {
	direct bool
	block  int64 // bytes a read(2); 0: the whole frame
	verify bool
	size   int64 // bytes of every frame; 0: what fstat says

	buffer []byte
}

// frameTimes are how long the parts of reading a frame took.
type frameTimes struct {
	open, read, close time.Duration // open includes fstat
	done              time.Time     // when the frame was wholly read
}

// read reads a frame. The times are valid also for a frame that failed; n is
// the bytes read.
func (r *frameReader) read(frame Frame) (times frameTimes, n int64, err error) {
	began := time.Now()
	flags := unix.O_RDONLY | unix.O_CLOEXEC
	if r.direct {
		flags |= unix.O_DIRECT
	}
	fd, err := openRetry(frame.Path, flags)
	if err != nil {
		times.done = time.Now()
		times.open = times.done.Sub(began)
		return times, 0, &os.PathError{Op: "open", Path: frame.Path, Err: err}
	}
	size, err := r.sizeOf(fd)
	opened := time.Now()
	times.open = opened.Sub(began)
	if err == nil {
		n, err = r.readAll(fd, size)
	}
	times.done = time.Now()
	times.read = times.done.Sub(opened)
	if closeErr := unix.Close(fd); closeErr != nil && err == nil {
		err = fmt.Errorf("close: %w", closeErr)
	}
	times.close = time.Since(times.done)
	if err == nil && r.verify {
		err = Verify(r.buffer[:n], frame.Number)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", frame.Path, err)
	}
	return times, n, err
}

// openRetry is open(2), repeated when the signal with which the Go runtime
// preempts threads has interrupted it.
func openRetry(path string, flags int) (fd int, err error) {
	for {
		if fd, err = unix.Open(path, flags, 0); err != unix.EINTR {
			return fd, err
		}
	}
}

// sizeOf returns the size of an open file and an error if that is not a
// frame's.
func (r *frameReader) sizeOf(fd int) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return 0, fmt.Errorf("fstat: %w", err)
	}
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return 0, errors.New("not a regular file")
	case stat.Size == 0:
		return 0, fmt.Errorf("%w: the file is empty", ErrShort)
	case r.size != 0 && stat.Size != r.size:
		return 0, fmt.Errorf("%w: %d bytes in place of %d", ErrShort, stat.Size, r.size)
	}
	return stat.Size, nil
}

func (r *frameReader) readAll(fd int, size int64) (n int64, err error) {
	if err := r.reserve(size); err != nil {
		return 0, err
	}
	end := size
	if r.direct {
		end = alignUp(size)
	}
	block := r.block
	if block == 0 {
		block = end
	}
	for n < size {
		got, err := unix.Read(fd, r.buffer[n:min(n+block, end)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, fmt.Errorf("read at byte %d: %w", n, err)
		case got == 0:
			return n, fmt.Errorf("%w: the file ends at byte %d of %d", ErrShort, n, size)
		}
		n += int64(got)
	}
	return n, nil
}

// reserve makes the buffer hold a frame of the given size.
func (r *frameReader) reserve(size int64) error {
	if int64(len(r.buffer)) >= size {
		return nil
	}
	r.release()
	// Mapped memory is aligned for O_DIRECT. It is populated now so that the
	// first frame doesn't pay for it.
	buffer, err := unix.Mmap(-1, 0, int(alignUp(size)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("get a buffer of %d bytes: %w", size, err)
	}
	r.buffer = buffer
	return nil
}

// release gives the buffer back.
func (r *frameReader) release() {
	if r.buffer != nil {
		_ = unix.Munmap(r.buffer)
		r.buffer = nil
	}
}

func alignUp(size int64) int64 { return (size + directAlign - 1) &^ (directAlign - 1) }
