package fusefs

import (
	"errors"
	"path"
	"strconv"
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
	if ahead := fs.walks.lookedUp(file); len(ahead) > 0 {
		fs.engine.LookAhead(ahead)
	}
	attr, err := fs.lookupAttr(fs.asker(cancel, header), parent, name, file)
	if errors.Is(err, unix.ENOENT) {
		out.NodeId = 0
		out.SetEntryTimeout(fs.options.Engine.Validity)
		return fuse.OK
	}
	if err != nil {
		if err != unix.EINTR {
			fs.engine.CountSourceError()
		}
		return status(err)
	}
	fs.answerEntry(parent, name, attr, out)
	return fuse.OK
}

// lookupAttr asks past everything remembered while the file is being written
// through the mount: its size grows without this process seeing it.
func (fs *fileSystem) lookupAttr(a asker, parent *node, name, file string) (cache.Attr, error) {
	fs.mu.Lock()
	n := fs.names[nameKey{parent, name}]
	unsettled := n != nil && (fs.writing(n.key.dev, n.key.ino) || n.told.Known.IsZero())
	fs.mu.Unlock()
	switch {
	case unsettled:
		return fs.stat(a, file)
	case n != nil:
		return fs.attr(a, file)
	}
	if attr, ok := fs.engine.Known(file); ok {
		return attr, nil
	}
	return ask(a, func(<-chan struct{}) (cache.Attr, error) { return fs.engine.Look(file) }, nil)
}

// attr answers with attributes that the source gave at most the validity ago.
func (fs *fileSystem) attr(a asker, file string) (cache.Attr, error) {
	if attr, ok := fs.engine.Known(file); ok {
		return attr, nil
	}
	return fs.stat(a, file)
}

// stat asks the source for the attributes of a file now.
func (fs *fileSystem) stat(a asker, file string) (cache.Attr, error) {
	return ask(a, func(<-chan struct{}) (cache.Attr, error) { return fs.engine.Stat(file) }, nil)
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
	attr, err := fs.nodeAttr(fs.asker(cancel, &input.InHeader), input.NodeId)
	if err != nil {
		return status(err)
	}
	fillAttr(&out.Attr, attr)
	out.SetTimeout(fs.attrValid(attr))
	return fuse.OK
}

func (fs *fileSystem) nodeAttr(a asker, id uint64) (cache.Attr, error) {
	fs.mu.Lock()
	n := fs.nodes[id]
	if n == nil {
		fs.mu.Unlock()
		return cache.Attr{}, unix.ESTALE
	}
	file, key, unnamed := n.path(), n.key, n.unnamed
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
		attr, err = fs.statFd(a, fd)
	default:
		err = unix.ESTALE
		if !unnamed {
			attr, err = fs.attr(a, file)
		}
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
	n.tellLocked(attr)
	fs.mu.Unlock()
	return attr, nil
}

// statFd asks the source for the attributes of an open file and closes it.
func (fs *fileSystem) statFd(a asker, fd int) (cache.Attr, error) {
	return ask(a, func(<-chan struct{}) (cache.Attr, error) {
		defer fs.source.Release(fd)
		return prefetch.StatFd(fd)
	}, nil)
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

// Access answers access(2) and chdir(2) as the source does.
func (fs *fileSystem) Access(cancel <-chan struct{}, input *fuse.AccessIn) fuse.Status {
	if isControl(input.NodeId) {
		return fuse.OK // the kernel has seen to it that it is the owner, or root
	}
	n, _, err := fs.pathOf(input.NodeId)
	if err != nil {
		return status(err)
	}
	mask := input.Mask
	return status(fs.asker(cancel, &input.InHeader).do(func() error {
		fd, err := fs.reach(n)
		if err != nil {
			return err
		}
		defer fs.source.Release(fd)
		return unix.Faccessat2(fd, "", mask, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
	}))
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
	change := *input
	attr, err := ask(fs.asker(cancel, &input.InHeader), func(<-chan struct{}) (cache.Attr, error) {
		fd, err := fs.reach(n)
		if err != nil {
			return cache.Attr{}, err
		}
		defer fs.source.Release(fd)
		if err := fs.setAttr(fd, &change); err != nil {
			return cache.Attr{}, err
		}
		fs.changed(n, file)
		attr, err := prefetch.StatFd(fd)
		if err == nil {
			fs.mu.Lock()
			n.told = attr
			fs.mu.Unlock()
		}
		return attr, err
	}, nil)
	if err != nil {
		return status(err)
	}
	fillAttr(&out.Attr, attr)
	out.SetTimeout(fs.attrValid(attr))
	return fuse.OK
}

// reach returns a descriptor of a node's file, perhaps of the O_PATH kind: that
// of an open handle, since the file may have no name any more, else one opened
// by its name and made sure to be the same file. So nothing is ever done to a
// file that has taken the name since.
func (fs *fileSystem) reach(n *node) (int, error) {
	fs.mu.Lock()
	fd, file, key, unnamed := fs.dupSourceLocked(n), n.path(), n.key, n.unnamed
	fs.mu.Unlock()
	if fd >= 0 {
		return fd, nil
	}
	if unnamed {
		return -1, unix.ESTALE
	}
	fd, err := fs.source.Open(file, unix.O_PATH, 0)
	if err == unix.ENOENT {
		return -1, unix.ESTALE // the kernel looks the name up again
	}
	if err != nil || n.parent == nil {
		return fd, err
	}
	attr, err := prefetch.StatFd(fd)
	if err == nil && (inodeKey{attr.Dev, attr.Ino}) != key {
		err = unix.ESTALE
	}
	if err != nil {
		fs.source.Release(fd)
		return -1, err
	}
	return fd, nil
}

// procPath leads to the very file that a descriptor is of, for calls that take
// no descriptor or none of the O_PATH kind.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func (fs *fileSystem) setAttr(fd int, input *fuse.SetAttrIn) error {
	if mode, ok := input.GetMode(); ok {
		if err := unix.Chmod(procPath(fd), mode); err != nil {
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
		if err := unix.Fchownat(fd, "", owner, group, unix.AT_EMPTY_PATH); err != nil {
			return err
		}
	}
	if size, ok := input.GetSize(); ok {
		if err := fs.truncate(fd, input, int64(size)); err != nil {
			return err
		}
	}
	if input.Valid&(fuse.FATTR_ATIME|fuse.FATTR_MTIME) != 0 {
		times := []unix.Timespec{
			timeFor(input, fuse.FATTR_ATIME, fuse.FATTR_ATIME_NOW, input.Atime, input.Atimensec),
			timeFor(input, fuse.FATTR_MTIME, fuse.FATTR_MTIME_NOW, input.Mtime, input.Mtimensec),
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, procPath(fd), times, 0)
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

// truncate goes by the handle where there is one that writes: its file may be
// open for writing to somebody whom the name would refuse.
func (fs *fileSystem) truncate(fd int, input *fuse.SetAttrIn, size int64) error {
	if id, ok := input.GetFh(); ok {
		if h, _ := fs.handleOf(id).(*handle); h != nil && h.writer && fs.ownFd(h) >= 0 {
			return unix.Ftruncate(fs.ownFd(h), size)
		}
	}
	return unix.Truncate(procPath(fd), size)
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
	n.told, n.xattrs = cache.Attr{}, nil
	n.changes++
	switch n.mode {
	case modeMemory:
		fs.replaceLocked(n) // readers keep their snapshot, the next open sees the source
	case modeDaemon:
		n.written = true
	}
}

// spaceValidity bounds how old the source's answer on its free space may be. Every
// directory that find(1) opens is asked about, for its type.
const spaceValidity = time.Second

// space is what the source said last of its space, and to whom.
type space struct {
	user  user
	known time.Time
	s     unix.Statfs_t
}

// StatFs answers with the source's.
func (fs *fileSystem) StatFs(cancel <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	who, asked := user{header.Uid, header.Gid}, time.Now()
	if last := fs.space.Load(); last != nil && last.user == who && time.Since(last.known) < min(spaceValidity, fs.options.Engine.Validity) {
		fillStatFs(out, &last.s)
		return fuse.OK
	}
	s, err := ask(fs.asker(cancel, header), func(<-chan struct{}) (s unix.Statfs_t, err error) {
		directory, err := fs.source.Directory("")
		if err != nil {
			return s, err
		}
		defer directory.Close()
		err = unix.Fstatfs(directory.Fd(), &s)
		return s, err
	}, nil)
	if err != nil {
		return status(err)
	}
	fs.space.Store(&space{who, asked, s})
	fillStatFs(out, &s)
	return fuse.OK
}

func fillStatFs(out *fuse.StatfsOut, s *unix.Statfs_t) {
	out.Blocks, out.Bfree, out.Bavail = s.Blocks, s.Bfree, s.Bavail
	out.Files, out.Ffree = s.Files, s.Ffree
	out.Bsize, out.Frsize, out.NameLen = uint32(s.Bsize), uint32(s.Frsize), uint32(s.Namelen)
}
