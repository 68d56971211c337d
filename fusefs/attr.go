package fusefs

import (
	"errors"
	"path"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/cache"
	"reelahead/prefetch"
)

// Lookup finds a name in a directory.
func (fs *fileSystem) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if code, ok := lookupControl(header.NodeId, name, out); ok {
		return code
	}
	parent, file, err := fs.childPath(header.NodeId, name)
	if err != nil {
		return status(err)
	}
	attr, err := fs.lookupAttr(parent, name, file)
	if errors.Is(err, unix.ENOENT) {
		out.NodeId = 0
		out.SetEntryTimeout(fs.options.Engine.Validity)
		return fuse.OK
	}
	if err != nil {
		fs.engine.CountSourceError()
		return status(err)
	}
	fs.answerEntry(parent, name, attr, out)
	return fuse.OK
}

// lookupAttr asks past everything remembered while the file is being written
// through the mount: its size grows without this process seeing it.
func (fs *fileSystem) lookupAttr(parent *node, name, file string) (cache.Attr, error) {
	fs.mu.Lock()
	n := fs.names[nameKey{parent, name}]
	unsettled := n != nil && (fs.writing(n.key.dev, n.key.ino) || n.told.Known.IsZero())
	fs.mu.Unlock()
	if unsettled {
		return fs.engine.Stat(file)
	}
	return fs.engine.Attr(file)
}

func (fs *fileSystem) answerEntry(parent *node, name string, attr cache.Attr, out *fuse.EntryOut) {
	n := fs.enter(parent, name, attr)
	out.NodeId = n.id
	out.Generation = 1
	fillAttr(&out.Attr, attr)
	valid := fs.attrValid(attr)
	out.SetEntryTimeout(valid)
	out.SetAttrTimeout(valid)
}

// attrValid is how long the kernel may believe attr without asking again.
func (fs *fileSystem) attrValid(attr cache.Attr) time.Duration {
	if fs.writing(attr.Dev, attr.Ino) {
		return 0
	}
	return fs.remaining(attr.Known)
}

// GetAttr answers with what an open handle of the inode sees, else with what
// the source has under the name.
func (fs *fileSystem) GetAttr(cancel <-chan struct{}, input *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if code, ok := fs.controlAttr(input.NodeId, out); ok {
		return code
	}
	attr, err := fs.nodeAttr(input.NodeId)
	if err != nil {
		return status(err)
	}
	fillAttr(&out.Attr, attr)
	out.SetTimeout(fs.attrValid(attr))
	return fuse.OK
}

func (fs *fileSystem) nodeAttr(id uint64) (cache.Attr, error) {
	fs.mu.Lock()
	n := fs.nodes[id]
	if n == nil {
		fs.mu.Unlock()
		return cache.Attr{}, unix.ESTALE
	}
	file, key := n.path(), n.key
	leased, isLeased := n.leasedAttrLocked()
	if n.mode == modeMemory {
		// One size for one generation of a frame: what is read is what is told.
		attr := n.frame.Attr()
		fs.mu.Unlock()
		return attr, nil
	}
	fd := fs.dupSourceLocked(n)
	fs.mu.Unlock()

	var attr cache.Attr
	var err error
	switch {
	case fd >= 0:
		defer unix.Close(fd)
		attr, err = prefetch.StatFd(fd)
	default:
		attr, err = fs.engine.Attr(file)
		if err == nil && id != rootID && (inodeKey{attr.Dev, attr.Ino}) != key {
			err = unix.ESTALE
		}
		if isLeased && (err == unix.ENOENT || err == unix.ESTALE) {
			return leased, nil // deleted or replaced while it is open
		}
	}
	if err != nil {
		return cache.Attr{}, err
	}
	fs.mu.Lock()
	n.told = attr
	fs.mu.Unlock()
	return attr, nil
}

// leasedAttrLocked returns the attributes of a frame that some handle of the
// node is served from.
func (n *node) leasedAttrLocked() (attr cache.Attr, ok bool) {
	for h := range n.handles {
		if h.lease != nil {
			return h.lease.Frame.Attr(), true
		}
	}
	return cache.Attr{}, false
}

// dupSourceLocked returns a descriptor of the source file that some handle of
// the node has open, or -1. An unlinked file has no other way to be asked
// about.
func (fs *fileSystem) dupSourceLocked(n *node) int {
	for h := range n.handles {
		fd := h.fd
		if fd < 0 && h.lease != nil {
			fd = h.lease.Source
		}
		if fd < 0 {
			continue
		}
		if dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			return dup
		}
	}
	return -1
}

// SetAttr changes mode, owner, size and times, in the order of chmod(2),
// chown(2), truncate(2), utimensat(2).
func (fs *fileSystem) SetAttr(cancel <-chan struct{}, input *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if code, ok := fs.setControlAttr(input, out); ok {
		return code
	}
	n, file, err := fs.pathOf(input.NodeId)
	if err != nil {
		return status(err)
	}
	if err := fs.setAttr(n, file, input); err != nil {
		return status(err)
	}
	fs.changed(n, file)
	attr, err := fs.nodeAttrAfterChange(input.NodeId, file)
	if err != nil {
		return status(err)
	}
	fillAttr(&out.Attr, attr)
	out.SetTimeout(fs.attrValid(attr))
	return fuse.OK
}

func (fs *fileSystem) nodeAttrAfterChange(id uint64, file string) (cache.Attr, error) {
	fs.mu.Lock()
	n := fs.nodes[id]
	fd := -1
	if n != nil {
		fd = fs.dupSourceLocked(n)
	}
	fs.mu.Unlock()
	var attr cache.Attr
	var err error
	if fd >= 0 {
		defer unix.Close(fd)
		attr, err = prefetch.StatFd(fd)
	} else {
		attr, err = fs.engine.Stat(file)
	}
	if err == nil && n != nil {
		fs.mu.Lock()
		n.told = attr
		fs.mu.Unlock()
	}
	return attr, err
}

func (fs *fileSystem) setAttr(n *node, file string, input *fuse.SetAttrIn) error {
	directory, base, err := fs.at(file)
	if err != nil {
		return err
	}
	defer directory.Close()
	if mode, ok := input.GetMode(); ok {
		if err := unix.Fchmodat(directory.Fd(), base, mode, 0); err != nil {
			return err
		}
	}
	uid, setUID := input.GetUID()
	gid, setGID := input.GetGID()
	if setUID || setGID {
		owner, group := -1, -1
		if setUID {
			owner = int(uid)
		}
		if setGID {
			group = int(gid)
		}
		if err := unix.Fchownat(directory.Fd(), base, owner, group, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	if size, ok := input.GetSize(); ok {
		if err := fs.truncate(file, input, int64(size)); err != nil {
			return err
		}
	}
	if input.Valid&(fuse.FATTR_ATIME|fuse.FATTR_MTIME) != 0 {
		times := []unix.Timespec{
			timeFor(input, fuse.FATTR_ATIME, fuse.FATTR_ATIME_NOW, input.Atime, input.Atimensec),
			timeFor(input, fuse.FATTR_MTIME, fuse.FATTR_MTIME_NOW, input.Mtime, input.Mtimensec),
		}
		return unix.UtimesNanoAt(directory.Fd(), base, times, unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}

func timeFor(input *fuse.SetAttrIn, set, now uint32, seconds uint64, nanoseconds uint32) unix.Timespec {
	switch {
	case input.Valid&set == 0:
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	case input.Valid&now != 0:
		return unix.Timespec{Nsec: unix.UTIME_NOW}
	}
	return unix.Timespec{Sec: int64(seconds), Nsec: int64(nanoseconds)}
}

func (fs *fileSystem) truncate(file string, input *fuse.SetAttrIn, size int64) error {
	if id, ok := input.GetFh(); ok {
		if h, _ := fs.handleOf(id).(*handle); h != nil && h.writer && fs.ownFd(h) >= 0 {
			return unix.Ftruncate(fs.ownFd(h), size)
		}
	}
	fd, err := fs.source.Open(file, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Ftruncate(fd, size)
}

// at opens the directory of a file, for the *at system calls.
func (fs *fileSystem) at(file string) (*prefetch.Directory, string, error) {
	if file == "" {
		directory, err := fs.source.Directory("")
		return directory, ".", err
	}
	dir := path.Dir(file)
	if dir == "." {
		dir = ""
	}
	directory, err := fs.source.Directory(dir)
	return directory, path.Base(file), err
}

// changed makes everybody forget what was known of a file that was changed
// through the mount.
func (fs *fileSystem) changed(n *node, file string) {
	fs.engine.Changed(file, n.key.dev, n.key.ino)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n.told = cache.Attr{}
	switch n.mode {
	case modeMemory:
		fs.replaceLocked(n) // readers keep their snapshot, the next open sees the source
	case modeDaemon:
		n.written = true
	}
}

// StatFs answers with the source's.
func (fs *fileSystem) StatFs(cancel <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	directory, err := fs.source.Directory("")
	if err != nil {
		return status(err)
	}
	defer directory.Close()
	var s unix.Statfs_t
	if err := unix.Fstatfs(directory.Fd(), &s); err != nil {
		return status(err)
	}
	out.Blocks, out.Bfree, out.Bavail = s.Blocks, s.Bfree, s.Bavail
	out.Files, out.Ffree = s.Files, s.Ffree
	out.Bsize, out.Frsize, out.NameLen = uint32(s.Bsize), uint32(s.Frsize), uint32(s.Namelen)
	return fuse.OK
}
