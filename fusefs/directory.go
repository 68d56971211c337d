package fusefs

import (
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/prefetch"
)

// directoryHandle is an open directory: entries are passed on as the source
// gives them, with its own offsets, so that a seek works as it does there.
type directoryHandle struct {
	node   *node
	user   user
	cached bool // the kernel keeps what this handle reads

	mu      sync.Mutex // held while the source is asked
	fd      int        // -1: the kernel is expected to have all names
	closed  bool
	pending []byte // getdents answer not passed on yet
	next    uint64 // offset of the first pending entry
	buffer  []byte
}

// listing is what the kernel keeps of a directory's names. It takes them for the
// same for whoever opens the directory, the source may not: they belong to one
// user at a time.
type listing struct {
	user    user
	handles int       // that may read them
	asked   time.Time // before the first name was read
	all     bool      // it has them to the end
}

type user struct{ uid, gid uint32 }

// OpenDir opens a directory for reading its names.
func (fs *fileSystem) OpenDir(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if input.NodeId == controlDirID {
		out.Fh = fs.addHandle(&controlHandle{})
		return fuse.OK
	}
	n, file, err := fs.pathOf(input.NodeId)
	if err != nil {
		return status(err)
	}
	h := &directoryHandle{node: n, user: user{input.Uid, input.Gid}, fd: -1}
	if fs.openListed(h) {
		out.Fh = fs.addHandle(h)
		out.OpenFlags = fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE
		return fuse.OK
	}
	asked := time.Now()
	h.fd, err = ask(fs.asker(cancel, &input.InHeader), func(<-chan struct{}) (int, error) {
		return fs.source.Open(file, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	}, fs.source.Release)
	if err != nil {
		return status(err)
	}
	if fs.beginListing(h, asked) {
		out.OpenFlags = fuse.FOPEN_CACHE_DIR
	}
	out.Fh = fs.addHandle(h)
	return fuse.OK
}

// openListed opens a directory whose names the kernel has, if it does.
func (fs *fileSystem) openListed(h *directoryHandle) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	l := &h.node.listing
	if l.user != h.user || !l.all || fs.remaining(l.asked) == 0 {
		return false
	}
	h.cached = true
	l.handles++
	return true
}

// beginListing lets the kernel keep the names that a handle reads, unless another
// user reads those that it has.
func (fs *fileSystem) beginListing(h *directoryHandle, asked time.Time) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	l := &h.node.listing
	if l.handles > 0 && l.user != h.user {
		return false
	}
	h.cached = true
	*l = listing{user: h.user, handles: l.handles + 1, asked: asked}
	return true
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
			if err := h.open(fs.source, dir); err != nil {
				return nil, err
			}
			return h.read(offset, room)
		}, nil)
		if err == nil && len(entries) == 0 && h.cached {
			fs.mu.Lock()
			h.node.listing.all = true
			fs.mu.Unlock()
		}
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

// open opens the directory at the source, unless it is open.
func (h *directoryHandle) open(source *prefetch.Source, dir string) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return unix.EBADF
	case h.fd < 0:
		h.fd, err = source.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	}
	return err
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
	if h.buffer == nil {
		h.buffer = make([]byte, 64<<10)
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
		if h.cached {
			fs.mu.Lock()
			h.node.listing.handles--
			fs.mu.Unlock()
		}
		fs.source.Later(func() {
			h.mu.Lock() // a call whose caller was killed may still use it
			defer h.mu.Unlock()
			if h.fd >= 0 {
				unix.Close(h.fd)
			}
			h.fd, h.closed, h.pending, h.next = -1, true, nil, 0
		})
	}
}

// FsyncDir stores a directory at the source.
func (fs *fileSystem) FsyncDir(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	h, ok := fs.handleOf(input.Fh).(*directoryHandle)
	if !ok {
		return fuse.OK
	}
	_, dir, err := fs.pathOf(input.NodeId)
	if err != nil {
		return status(err)
	}
	return status(fs.asker(cancel, &input.InHeader).do(func() error {
		if err := h.open(fs.source, dir); err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		return unix.Fsync(h.fd)
	}))
}
