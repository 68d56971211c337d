package fusefs

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/cache"
)

// frameBytes is a reply straight from a frame's memory: the kernel copies it
// from there, and the frame is held until it has. Implementing Slices keeps
// go-fuse from ending the reply before that.
type frameBytes struct {
	frame *cache.Frame
	bytes [1][]byte
}

func (r *frameBytes) Slices() ([][]byte, fuse.Status)      { return r.bytes[:], fuse.OK }
func (r *frameBytes) Bytes(_ []byte) ([]byte, fuse.Status) { return r.bytes[0], fuse.OK }
func (r *frameBytes) Size() int                            { return len(r.bytes[0]) }
func (r *frameBytes) Done()                                { r.frame.Release() }

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
		bytes, err := h.lease.Read(int64(input.Offset), int64(input.Size), waiter.giveUp)
		waiter.stop()
		switch {
		case err == nil && len(bytes) == 0:
			// At the end. go-fuse never calls Done for an empty reply, so it must
			// hold nothing.
			return fuse.ReadResultData(nil), fuse.OK
		case err == nil:
			fs.opens.bytesRead.Add(int64(len(bytes)))
			if len(bytes) == 0 {
				// go-fuse does not call Done of an empty result.
				return fuse.ReadResultData(nil), fuse.OK
			}
			return &frameBytes{frame: h.lease.Frame.Acquire(), bytes: [1][]byte{bytes}}, fuse.OK
		case err == cache.ErrInterrupted:
			return nil, fuse.EINTR
		}
		// The fetch failed: that is no error of the application's. The source
		// says what there is to say.
	}
	fd, err := fs.sourceFd(h)
	if err != nil {
		return nil, status(err)
	}
	n, err := preadFull(fd, buf, int64(input.Offset))
	fs.engine.CountSourceRead(int64(n))
	if err != nil {
		fs.engine.CountSourceError()
		return nil, status(err)
	}
	fs.opens.bytesRead.Add(int64(n))
	return fuse.ReadResultData(buf[:n]), fuse.OK
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
		unix.Close(a.fd)
	} else {
		h.fd = a.fd
	}
	return h.fd, nil
}

// Write answers what the kernel does not write by itself.
func (fs *fileSystem) Write(cancel <-chan struct{}, input *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	open := fs.handleOf(input.Fh)
	if hints, ok := open.(*hintsHandle); ok {
		return fs.writeHints(hints, data)
	}
	h, _ := open.(*handle)
	fd := fs.ownFd(h)
	if fd < 0 {
		return 0, fuse.Status(unix.EBADF)
	}
	written := 0
	for written < len(data) {
		n, err := unix.Pwrite(fd, data[written:], int64(input.Offset)+int64(written))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			if written > 0 {
				break
			}
			return 0, status(err)
		}
		written += n
	}
	return uint32(written), fuse.OK
}

// Flush reports at close(2) what the source could not store: closing a
// duplicate makes an NFS client write back and say so.
func (fs *fileSystem) Flush(cancel <-chan struct{}, input *fuse.FlushIn) fuse.Status {
	open := fs.handleOf(input.Fh)
	if hints, ok := open.(*hintsHandle); ok {
		return fs.flushHints(hints)
	}
	h, _ := open.(*handle)
	fd := fs.ownFd(h)
	if fd < 0 || !h.writer {
		return fuse.OK
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return status(err)
	}
	return status(unix.Close(dup))
}

// Fsync stores a file at the source.
func (fs *fileSystem) Fsync(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	h, _ := fs.handleOf(input.Fh).(*handle)
	fd := fs.ownFd(h)
	if fd < 0 {
		return fuse.OK // read from memory: nothing to store
	}
	if input.FsyncFlags&1 != 0 { // FUSE_FSYNC_FDATASYNC
		return status(unix.Fdatasync(fd))
	}
	return status(unix.Fsync(fd))
}

// Fallocate reserves or punches space at the source.
func (fs *fileSystem) Fallocate(cancel <-chan struct{}, input *fuse.FallocateIn) fuse.Status {
	h, _ := fs.handleOf(input.Fh).(*handle)
	fd := fs.ownFd(h)
	if fd < 0 {
		return fuse.Status(unix.EBADF)
	}
	return status(unix.Fallocate(fd, input.Mode, int64(input.Offset), int64(input.Length)))
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
	fd, err := fs.sourceFd(h)
	if err != nil {
		return status(err)
	}
	offset, err := unix.Seek(fd, int64(input.Offset), int(input.Whence))
	out.Offset = uint64(offset)
	return status(err)
}

// CopyFileRange lets the source's server copy by itself where it can.
func (fs *fileSystem) CopyFileRange(cancel <-chan struct{}, input *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	from, _ := fs.handleOf(input.FhIn).(*handle)
	to, _ := fs.handleOf(input.FhOut).(*handle)
	target := fs.ownFd(to)
	if from == nil || target < 0 {
		return 0, fuse.Status(unix.EBADF)
	}
	fd, err := fs.sourceFd(from)
	if err != nil {
		return 0, status(err)
	}
	in, out := int64(input.OffIn), int64(input.OffOut)
	length := min(input.Len, 1<<30) // the reply's count has 32 bits
	n, err := unix.CopyFileRange(fd, &in, target, &out, int(length), int(input.Flags))
	return uint32(max(n, 0)), status(err)
}
