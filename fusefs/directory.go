package fusefs

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// directoryHandle is an open directory: entries are passed on as the source
// gives them, with its own offsets, so that a seek works as it does there.
type directoryHandle struct {
	mu      sync.Mutex // held while the source is asked
	fd      int
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
	fd, err := ask(fs.asker(cancel, &input.InHeader), func(<-chan struct{}) (int, error) {
		return fs.source.Open(file, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	}, fs.source.Release)
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
		offset, room := input.Offset, int(input.Size)
		_, dir, err := fs.pathOf(input.NodeId)
		if err != nil {
			return status(err)
		}
		entries, err := ask(fs.asker(cancel, &input.InHeader), func(<-chan struct{}) ([]fuse.DirEntry, error) {
			return h.read(offset, room)
		}, nil)
		fs.walks.listed(dir, offset == 0, entries)
		for _, entry := range entries {
			if !out.AddDirEntry(entry) {
				break // asked for again, by its offset
			}
		}
		return status(err)
	}
	return fuse.Status(unix.EBADF)
}

// read returns entries from offset on, as many as fit into an answer of the
// given size, at least one unless the directory ends.
func (h *directoryHandle) read(offset uint64, room int) ([]fuse.DirEntry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if offset != h.next {
		if _, err := unix.Seek(h.fd, int64(offset), unix.SEEK_SET); err != nil {
			return nil, err
		}
		h.pending, h.next = nil, offset
	}
	for len(h.pending) == 0 {
		n, err := unix.Getdents(h.fd, h.buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return nil, err
		}
		h.pending = h.buffer[:n]
	}
	var entries []fuse.DirEntry
	for len(h.pending) > 0 {
		var entry fuse.DirEntry
		length := entry.Parse(h.pending)
		// fuse_dirent: 24 bytes and the name, in multiples of 8.
		room -= (24 + len(entry.Name) + 7) &^ 7
		if room < 0 {
			break
		}
		entries = append(entries, entry)
		h.pending, h.next = h.pending[length:], entry.Off
	}
	return entries, nil
}

// ReleaseDir closes a directory.
func (fs *fileSystem) ReleaseDir(input *fuse.ReleaseIn) {
	if h, ok := fs.takeHandle(input.Fh).(*directoryHandle); ok {
		fs.source.Later(func() {
			h.mu.Lock() // a call whose caller was killed may still use it
			defer h.mu.Unlock()
			unix.Close(h.fd)
			h.fd, h.pending, h.next = -1, nil, 0
		})
	}
}

// FsyncDir stores a directory at the source.
func (fs *fileSystem) FsyncDir(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	h, ok := fs.handleOf(input.Fh).(*directoryHandle)
	if !ok {
		return fuse.OK
	}
	return status(fs.asker(cancel, &input.InHeader).do(func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		return unix.Fsync(h.fd)
	}))
}
