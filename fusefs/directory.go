package fusefs

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// directoryHandle is an open directory: entries are passed on as the source
// gives them, with its own offsets, so that a seek works as it does there.
type directoryHandle struct {
	fd int

	mu      sync.Mutex
	pending []byte // getdents answer not passed on yet
	next    uint64 // offset of the first pending entry
	buffer  []byte
}

// OpenDir opens a directory for reading its names.
func (fs *fileSystem) OpenDir(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if input.NodeId == controlDirID {
		out.Fh = fs.addHandle(&controlHandle{})
		return fuse.OK
	}
	_, file, err := fs.pathOf(input.NodeId)
	if err != nil {
		return status(err)
	}
	fd, err := fs.source.Open(file, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return status(err)
	}
	out.Fh = fs.addHandle(&directoryHandle{fd: fd, buffer: make([]byte, 64<<10)})
	return fuse.OK
}

// ReadDir lists names.
func (fs *fileSystem) ReadDir(cancel <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	switch h := fs.handleOf(input.Fh).(type) {
	case *controlHandle:
		return readControlDir(input.Offset, out)
	case *directoryHandle:
		return status(h.read(input.Offset, out))
	}
	return fuse.Status(unix.EBADF)
}

func (h *directoryHandle) read(offset uint64, out *fuse.DirEntryList) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if offset != h.next {
		if _, err := unix.Seek(h.fd, int64(offset), unix.SEEK_SET); err != nil {
			return err
		}
		h.pending, h.next = nil, offset
	}
	for added := 0; ; {
		if len(h.pending) == 0 {
			if added > 0 {
				return nil // what there is; the kernel asks again
			}
			n, err := unix.Getdents(h.fd, h.buffer)
			if err == unix.EINTR {
				continue
			}
			if err != nil || n == 0 {
				return err
			}
			h.pending = h.buffer[:n]
		}
		var entry fuse.DirEntry
		length := entry.Parse(h.pending)
		if !out.AddDirEntry(entry) {
			return nil
		}
		added++
		h.pending, h.next = h.pending[length:], entry.Off
	}
}

// ReleaseDir closes a directory.
func (fs *fileSystem) ReleaseDir(input *fuse.ReleaseIn) {
	if h, ok := fs.takeHandle(input.Fh).(*directoryHandle); ok {
		unix.Close(h.fd)
	}
}

// FsyncDir stores a directory at the source.
func (fs *fileSystem) FsyncDir(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	if h, ok := fs.handleOf(input.Fh).(*directoryHandle); ok {
		return status(unix.Fsync(h.fd))
	}
	return fuse.OK
}
