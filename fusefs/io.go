package fusefs

import (
	"bytes"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/cache"
	"reelahead/prefetch"
)

// frameBytes is a reply straight from frames' memory: the kernel copies it from
// there, and the frames are held until it has. Implementing Slices keeps go-fuse
// from ending the reply before that.
type frameBytes struct{ piece prefetch.Piece }

func (r *frameBytes) Slices() ([][]byte, fuse.Status) { return r.piece.Slices(), fuse.OK }
func (r *frameBytes) Bytes(_ []byte) ([]byte, fuse.Status) {
	return bytes.Join(r.piece.Slices(), nil), fuse.OK
}
func (r *frameBytes) Size() int { return r.piece.Len() }
func (r *frameBytes) Done()     { r.piece.Release() }

// requestSize is the most that one READ or WRITE carries, in bytes (MaxWrite).
const requestSize = 1 << 20

// buffers hold what calls on the source read or write: the memory of the request
// itself serves the next one once a killed caller has given up.
var buffers = sync.Pool{New: func() any { return new([requestSize]byte) }}

// readBytes is a reply from a buffer, which is used again once the kernel has
// copied it.
type readBytes struct {
	buffer *[requestSize]byte
	bytes  [1][]byte
}

func (r *readBytes) Slices() ([][]byte, fuse.Status)      { return r.bytes[:], fuse.OK }
func (r *readBytes) Bytes(_ []byte) ([]byte, fuse.Status) { return r.bytes[0], fuse.OK }
func (r *readBytes) Size() int                            { return len(r.bytes[0]) }
func (r *readBytes) Done()                                { buffers.Put(r.buffer) }

// Read answers what the kernel does not read by itself: frames on their way,
// and everything where there is no passthrough.
func (fs *fileSystem) Read(cancel <-chan struct{}, input *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	open := fs.handleOf(input.Fh)
	if control, ok := open.(*controlHandle); ok {
		return control.read(int64(input.Offset), len(buf))
	}
	h, _ := open.(*handle)
	if h == nil {
		return nil, fuse.Status(unix.EBADF)
	}
	fs.opens.daemonReads.Add(1)
	fs.mu.Lock()
	fromFrame := h.lease != nil && !h.node.written
	fs.mu.Unlock()
	if fromFrame {
		waiter := newWaiter(cancel, input.Pid)
		piece, err := h.lease.Read(int64(input.Offset), int64(input.Size), waiter.giveUp)
		waiter.stop()
		switch {
		case err == nil && piece.Len() == 0:
			// At the end. go-fuse never calls Done for an empty reply, so it must
			// hold nothing.
			piece.Release()
			return fuse.ReadResultData(nil), fuse.OK
		case err == nil:
			fs.opens.bytesRead.Add(int64(piece.Len()))
			return &frameBytes{piece}, fuse.OK
		case err == cache.ErrInterrupted:
			return nil, fuse.EINTR
		}
		// The fetch failed: that is no error of the application's. The source
		// says what there is to say.
	}
	return fs.readSource(fs.asker(cancel, &input.InHeader), input.Fh, int64(input.Offset), len(buf))
}

// readSource reads from the source's file.
func (fs *fileSystem) readSource(a asker, id uint64, offset int64, size int) (fuse.ReadResult, fuse.Status) {
	read, err := askHandle(a, id, func(h *handle) (*readBytes, error) {
		fd, err := fs.sourceFd(h)
		if err != nil {
			return nil, err
		}
		r := &readBytes{buffer: buffers.Get().(*[requestSize]byte)}
		n, err := preadFull(fd, r.buffer[:min(size, requestSize)], offset)
		fs.engine.CountSourceRead(int64(n))
		if err != nil {
			fs.engine.CountSourceError()
			r.Done()
			return nil, err
		}
		r.bytes[0] = r.buffer[:n]
		return r, nil
	}, (*readBytes).Done)
	if err != nil {
		return nil, status(err)
	}
	n := len(read.bytes[0])
	if n == 0 {
		// go-fuse does not call Done of an empty result.
		read.Done()
		return fuse.ReadResultData(nil), fuse.OK
	}
	fs.opens.bytesRead.Add(int64(n))
	return read, fuse.OK
}

// preadFull reads until buf is full or the file ends: a short read in the
// middle of a file would corrupt a picture silently.
func preadFull(fd int, buf []byte, offset int64) (int, error) {
	total := 0
	for total < len(buf) {
		n, err := unix.Pread(fd, buf[total:], offset+int64(total))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			if total > 0 {
				return total, nil
			}
			return 0, err
		}
		if n == 0 {
			break
		}
		total += n
	}
	return total, nil
}

// ownFd returns the descriptor of the source's file that a handle has, or -1.
func (fs *fileSystem) ownFd(h *handle) int {
	if h == nil {
		return -1
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return h.fd
}

// sourceFd returns a descriptor of the source's file for a handle: its own, that
// of the fetch that serves it, or one opened now and kept.
func (fs *fileSystem) sourceFd(h *handle) (int, error) {
	fs.mu.Lock()
	fd, file := h.fd, h.node.path()
	fs.mu.Unlock()
	if fd >= 0 {
		return fd, nil
	}
	if h.lease != nil && h.lease.Source >= 0 {
		return h.lease.Source, nil
	}
	a := &attempt{node: h.node, path: file, flags: unix.O_RDONLY, fd: -1}
	if err := fs.openSource(a); err != nil {
		return -1, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if h.fd >= 0 {
		fs.source.Release(a.fd)
	} else {
		h.fd = a.fd
	}
	return h.fd, nil
}

// askHandle is ask for a call on an open file, which stays open for it.
func askHandle[T any](a asker, id uint64, call func(h *handle) (T, error), dropped func(T)) (T, error) {
	return ask(a, func(<-chan struct{}) (none T, err error) {
		h := a.fs.hold(id)
		if h == nil {
			return none, unix.EBADF
		}
		defer a.fs.letGo(h)
		return call(h)
	}, dropped)
}

// doOwn is askHandle for a call on the descriptor that the handle itself has of
// the source's file, as every writer does; without one it returns otherwise.
func (a asker) doOwn(id uint64, otherwise error, call func(fd int) error) error {
	_, err := askHandle(a, id, func(h *handle) (none struct{}, err error) {
		if fd := a.fs.ownFd(h); fd >= 0 {
			return none, call(fd)
		}
		return none, otherwise
	}, nil)
	return err
}

// Write answers what the kernel does not write by itself.
func (fs *fileSystem) Write(cancel <-chan struct{}, input *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if hints, ok := fs.handleOf(input.Fh).(*hintsHandle); ok {
		return fs.writeHints(hints, data)
	}
	buffer := buffers.Get().(*[requestSize]byte)
	bytes, offset := buffer[:copy(buffer[:], data)], int64(input.Offset)
	written, err := askHandle(fs.asker(cancel, &input.InHeader), input.Fh, func(h *handle) (int, error) {
		defer buffers.Put(buffer)
		if fd := fs.ownFd(h); fd >= 0 {
			return pwriteFull(fd, bytes, offset)
		}
		return 0, unix.EBADF
	}, nil)
	return uint32(written), status(err)
}

// pwriteFull reports an error only if nothing was written before it: the next
// write meets it again.
func pwriteFull(fd int, bytes []byte, offset int64) (written int, err error) {
	for written < len(bytes) {
		n, err := unix.Pwrite(fd, bytes[written:], offset+int64(written))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			if written > 0 {
				break
			}
			return 0, err
		}
		written += n
	}
	return written, nil
}

// Flush reports at close(2) what the source could not store: closing a
// duplicate makes an NFS client write back and say so.
func (fs *fileSystem) Flush(cancel <-chan struct{}, input *fuse.FlushIn) fuse.Status {
	open := fs.handleOf(input.Fh)
	if hints, ok := open.(*hintsHandle); ok {
		return fs.flushHints(hints)
	}
	if h, _ := open.(*handle); h == nil || !h.writer {
		return fuse.OK
	}
	return status(fs.asker(cancel, &input.InHeader).doOwn(input.Fh, nil, func(fd int) error {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(dup)
	}))
}

// Fsync stores a file at the source; one that is read from memory has nothing to
// store.
func (fs *fileSystem) Fsync(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	dataOnly := input.FsyncFlags&1 != 0 // FUSE_FSYNC_FDATASYNC
	return status(fs.asker(cancel, &input.InHeader).doOwn(input.Fh, nil, func(fd int) error {
		if dataOnly {
			return unix.Fdatasync(fd)
		}
		return unix.Fsync(fd)
	}))
}

// Fallocate reserves or punches space at the source.
func (fs *fileSystem) Fallocate(cancel <-chan struct{}, input *fuse.FallocateIn) fuse.Status {
	mode, offset, length := input.Mode, int64(input.Offset), int64(input.Length)
	return status(fs.asker(cancel, &input.InHeader).doOwn(input.Fh, unix.EBADF, func(fd int) error {
		return unix.Fallocate(fd, mode, offset, length)
	}))
}

// Lseek finds data and holes. A frame in memory has none to tell of: it is data
// up to its end.
func (fs *fileSystem) Lseek(cancel <-chan struct{}, input *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	h, _ := fs.handleOf(input.Fh).(*handle)
	if h == nil {
		return fuse.Status(unix.EBADF)
	}
	if h.lease != nil && fs.ownFd(h) < 0 {
		size := uint64(h.lease.Frame.Size())
		if input.Offset >= size {
			return fuse.Status(unix.ENXIO)
		}
		out.Offset = input.Offset
		if input.Whence == unix.SEEK_HOLE {
			out.Offset = size
		}
		return fuse.OK
	}
	from, whence := int64(input.Offset), int(input.Whence)
	offset, err := askHandle(fs.asker(cancel, &input.InHeader), input.Fh, func(h *handle) (int64, error) {
		fd, err := fs.sourceFd(h)
		if err != nil {
			return 0, err
		}
		return unix.Seek(fd, from, whence)
	}, nil)
	out.Offset = uint64(offset)
	return status(err)
}

// CopyFileRange lets the source's server copy by itself where it can.
func (fs *fileSystem) CopyFileRange(cancel <-chan struct{}, input *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	source, in := input.FhIn, int64(input.OffIn)
	out, flags := int64(input.OffOut), int(input.Flags)
	length := int(min(input.Len, 1<<30)) // the reply's count has 32 bits
	copied, err := askHandle(fs.asker(cancel, &input.InHeader), input.FhOut, func(to *handle) (int, error) {
		from := fs.hold(source)
		if from == nil {
			return 0, unix.EBADF
		}
		defer fs.letGo(from)
		fd, err := fs.sourceFd(from)
		if err != nil {
			return 0, err
		}
		return unix.CopyFileRange(fd, &in, fs.ownFd(to), &out, length, flags)
	}, nil)
	return uint32(max(copied, 0)), status(err)
}
