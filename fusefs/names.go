package fusefs

import (
	"strconv"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/cache"
	"reelahead/prefetch"
)

// makeEntry runs a system call that makes a name in a directory, gives the
// result to the caller and answers with its attributes.
func (fs *fileSystem) makeEntry(header *fuse.InHeader, name string, out *fuse.EntryOut, make func(directory int, base string) error) fuse.Status {
	parent, file, err := fs.childPath(header.NodeId, name)
	if err != nil {
		return status(err)
	}
	directory, base, err := fs.at(file)
	if err != nil {
		return status(err)
	}
	defer directory.Close()
	if err := make(directory.Fd(), base); err != nil {
		return status(err)
	}
	if err := fs.giveTo(header, parent, func(uid, gid int) error {
		return unix.Fchownat(directory.Fd(), base, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	}); err != nil {
		return status(err)
	}
	fs.engine.Changed(file, 0, 0)
	attr, err := fs.engine.Stat(file)
	if err != nil {
		return status(err)
	}
	fs.answerEntry(parent, name, attr, out)
	return fuse.OK
}

// Mkdir makes a directory.
func (fs *fileSystem) Mkdir(cancel <-chan struct{}, input *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return fs.makeEntry(&input.InHeader, name, out, func(directory int, base string) error {
		return unix.Mkdirat(directory, base, input.Mode&0o7777)
	})
}

// Mknod makes a file, FIFO, socket or device node.
func (fs *fileSystem) Mknod(cancel <-chan struct{}, input *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return fs.makeEntry(&input.InHeader, name, out, func(directory int, base string) error {
		return unix.Mknodat(directory, base, input.Mode, int(input.Rdev))
	})
}

// Symlink makes a symbolic link.
func (fs *fileSystem) Symlink(cancel <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return fs.makeEntry(header, name, out, func(directory int, base string) error {
		return unix.Symlinkat(target, directory, base)
	})
}

// Readlink reads a symbolic link.
func (fs *fileSystem) Readlink(cancel <-chan struct{}, header *fuse.InHeader) ([]byte, fuse.Status) {
	_, file, err := fs.pathOf(header.NodeId)
	if err != nil {
		return nil, status(err)
	}
	directory, base, err := fs.at(file)
	if err != nil {
		return nil, status(err)
	}
	defer directory.Close()
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(directory.Fd(), base, target)
	if err != nil {
		return nil, status(err)
	}
	return target[:n], fuse.OK
}

// Link gives a file another name.
func (fs *fileSystem) Link(cancel <-chan struct{}, input *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	n, from, err := fs.pathOf(input.Oldnodeid)
	if err != nil {
		return status(err)
	}
	parent, to, err := fs.childPath(input.NodeId, name)
	if err != nil {
		return status(err)
	}
	err = fs.atBoth(from, to, func(fromDir int, fromBase string, toDir int, toBase string) error {
		return unix.Linkat(fromDir, fromBase, toDir, toBase, 0)
	})
	if err != nil {
		return status(err)
	}
	fs.changed(n, from) // nlink and ctime are others now
	fs.engine.Changed(to, 0, 0)
	attr, err := fs.engine.Stat(to)
	if err != nil {
		return status(err)
	}
	fs.answerEntry(parent, name, attr, out)
	return fuse.OK
}

func (fs *fileSystem) atBoth(from, to string, call func(fromDir int, fromBase string, toDir int, toBase string) error) error {
	fromDir, fromBase, err := fs.at(from)
	if err != nil {
		return err
	}
	defer fromDir.Close()
	toDir, toBase, err := fs.at(to)
	if err != nil {
		return err
	}
	defer toDir.Close()
	return call(fromDir.Fd(), fromBase, toDir.Fd(), toBase)
}

// Unlink removes a file's name.
func (fs *fileSystem) Unlink(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return fs.remove(header, name, 0)
}

// Rmdir removes an empty directory.
func (fs *fileSystem) Rmdir(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return fs.remove(header, name, unix.AT_REMOVEDIR)
}

func (fs *fileSystem) remove(header *fuse.InHeader, name string, flags int) fuse.Status {
	parent, file, err := fs.childPath(header.NodeId, name)
	if err != nil {
		return status(err)
	}
	directory, base, err := fs.at(file)
	if err != nil {
		return status(err)
	}
	defer directory.Close()
	if err := unix.Unlinkat(directory.Fd(), base, flags); err != nil {
		return status(err)
	}
	fs.mu.Lock()
	n := fs.names[nameKey{parent, name}]
	if n != nil {
		delete(fs.names, nameKey{parent, name})
		if n.told.Nlink <= 1 && fs.current[n.key] == n {
			// The inode number may be given to another file at once.
			delete(fs.current, n.key)
		}
		n.told = cache.Attr{}
	}
	fs.mu.Unlock()
	fs.forget(file, n, flags&unix.AT_REMOVEDIR != 0)
	return fuse.OK
}

// forget makes the engine forget a name that was removed or renamed.
func (fs *fileSystem) forget(file string, n *node, directory bool) {
	if directory {
		fs.engine.TreeChanged(file)
		return
	}
	var key inodeKey
	if n != nil {
		key = n.key
	}
	fs.engine.Changed(file, key.dev, key.ino)
}

// Rename moves a name, or exchanges two (RENAME_EXCHANGE).
func (fs *fileSystem) Rename(cancel <-chan struct{}, input *fuse.RenameIn, oldName, newName string) fuse.Status {
	oldParent, from, err := fs.childPath(input.NodeId, oldName)
	if err != nil {
		return status(err)
	}
	newParent, to, err := fs.childPath(input.Newdir, newName)
	if err != nil {
		return status(err)
	}
	err = fs.atBoth(from, to, func(fromDir int, fromBase string, toDir int, toBase string) error {
		return unix.Renameat2(fromDir, fromBase, toDir, toBase, uint(input.Flags))
	})
	if err != nil {
		return status(err)
	}

	fs.mu.Lock()
	moved, other := fs.names[nameKey{oldParent, oldName}], fs.names[nameKey{newParent, newName}]
	if moved != nil {
		moved.told = cache.Attr{}
		fs.placeLocked(moved, newParent, newName)
	}
	if other != nil && other != moved {
		other.told = cache.Attr{}
		if input.Flags&unix.RENAME_EXCHANGE != 0 {
			other.parent, other.name = oldParent, oldName
			fs.names[nameKey{oldParent, oldName}] = other
		} else if fs.current[other.key] == other {
			delete(fs.current, other.key)
		}
	}
	fs.mu.Unlock()
	fs.forgetMoved(to, from, moved, other)
	if input.Flags&unix.RENAME_EXCHANGE != 0 {
		fs.forgetMoved(from, to, other, moved)
	}
	return fuse.OK
}

// forgetMoved makes the engine forget what it knew under the name that a file
// now has and under the one it had. A directory takes all that is below along.
func (fs *fileSystem) forgetMoved(to, from string, moved, other *node) {
	attr, err := fs.source.Stat(to)
	directory := err != nil || attr.Mode&unix.S_IFMT == unix.S_IFDIR
	fs.forget(from, moved, directory)
	fs.forget(to, other, directory)
}

// Extended attributes go by the path that /proc gives a descriptor, since there
// are no *at calls for them before Linux 6.13.

// GetXAttr reads an extended attribute.
func (fs *fileSystem) GetXAttr(cancel <-chan struct{}, header *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	n, err := fs.withProcPath(header.NodeId, func(path string) (int, error) { return unix.Lgetxattr(path, name, dest) })
	return uint32(max(n, 0)), status(err)
}

// ListXAttr lists extended attributes.
func (fs *fileSystem) ListXAttr(cancel <-chan struct{}, header *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	n, err := fs.withProcPath(header.NodeId, func(path string) (int, error) { return unix.Llistxattr(path, dest) })
	return uint32(max(n, 0)), status(err)
}

// SetXAttr sets an extended attribute.
func (fs *fileSystem) SetXAttr(cancel <-chan struct{}, input *fuse.SetXAttrIn, name string, data []byte) fuse.Status {
	return fs.changeXAttr(input.NodeId, func(path string) error { return unix.Lsetxattr(path, name, data, int(input.Flags)) })
}

// RemoveXAttr removes an extended attribute.
func (fs *fileSystem) RemoveXAttr(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return fs.changeXAttr(header.NodeId, func(path string) error { return unix.Lremovexattr(path, name) })
}

func (fs *fileSystem) changeXAttr(id uint64, change func(path string) error) fuse.Status {
	_, err := fs.withProcPath(id, func(path string) (int, error) { return 0, change(path) })
	if err != nil {
		return status(err)
	}
	if n, file, err := fs.pathOf(id); err == nil {
		fs.changed(n, file)
	}
	return fuse.OK
}

func (fs *fileSystem) withProcPath(id uint64, call func(path string) (int, error)) (int, error) {
	if isControl(id) {
		return 0, unix.ENODATA
	}
	_, file, err := fs.pathOf(id)
	if err != nil {
		return 0, err
	}
	directory, base, err := fs.at(file)
	if err != nil {
		return 0, err
	}
	defer directory.Close()
	return call(procPath(directory, base))
}

func procPath(directory *prefetch.Directory, base string) string {
	return "/proc/self/fd/" + strconv.Itoa(directory.Fd()) + "/" + base
}
