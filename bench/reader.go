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

// frameReader reads frames as a player does: open, fstat, the bytes in one of
// the ways of ReadMode, close. It goes around os.File, which costs allocations
// for each file. It keeps one buffer, outside the Go heap. Not safe for
// concurrent use.
type frameReader struct {
	mode   ReadMode
	direct bool
	block  int64 // bytes a read; 0: what the mode does by itself
	verify bool
	size   int64 // bytes of every frame; 0: what fstat says

	buffer []byte
}

// read implements frameSource. The times are valid also for a frame that failed.
func (r *frameReader) read(row *Row, runBegan time.Time) {
	began := time.Now()
	flags := unix.O_RDONLY | unix.O_CLOEXEC
	if r.direct {
		flags |= unix.O_DIRECT
	}
	fd, err := openRetry(row.Frame.Path, flags)
	if err != nil {
		row.Open = time.Since(began)
		row.Done = time.Since(runBegan)
		row.Err = &os.PathError{Op: "open", Path: row.Frame.Path, Err: err}
		return
	}
	size, err := r.sizeOf(fd)
	opened := time.Now()
	row.Open = opened.Sub(began)
	if err == nil {
		err = r.reserve(size)
	}
	var first time.Time
	if err == nil {
		row.Bytes, first, err = r.readAll(fd, size)
	}
	done := time.Now()
	row.Read, row.Done = done.Sub(opened), done.Sub(runBegan)
	if !first.IsZero() {
		row.First = first.Sub(began)
	}
	if closeErr := unix.Close(fd); closeErr != nil && err == nil {
		err = fmt.Errorf("close: %w", closeErr)
	}
	row.Close = time.Since(done)
	if err == nil && r.verify {
		err = Verify(r.buffer[:row.Bytes], row.Frame.Number)
	}
	if err != nil {
		row.Err = fmt.Errorf("%s: %w", row.Frame.Path, err)
	}
}

// openRetry is open(2), repeated when the signal with which the Go runtime
// preempts threads has interrupted it.
func openRetry(path string, flags int) (fd int, err error) {
	for {
		if fd, err = unix.Open(path, flags, 0o666); err != unix.EINTR {
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

// readAll reads the file into the buffer. n is the bytes read, first when the
// first of them were there.
func (r *frameReader) readAll(fd int, size int64) (n int64, first time.Time, err error) {
	switch r.mode {
	case ReadMapped:
		return r.readMapped(fd, size)
	case ReadEXR:
		return r.readScattered(fd, size)
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
			return n, first, fmt.Errorf("read at byte %d: %w", n, err)
		case got == 0:
			return n, first, endsEarly(n, size)
		}
		if first.IsZero() {
			first = time.Now()
		}
		n += int64(got)
	}
	return n, first, nil
}

func endsEarly(at, size int64) error {
	return fmt.Errorf("%w: the file ends at byte %d of %d", ErrShort, at, size)
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
