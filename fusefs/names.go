package fusefs

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/cache"
)

// makeEntry runs a system call that makes a name in a directory, gives the
// result to the caller and answers with its attributes.
func (fs *fileSystem) makeEntry(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut, make func(directory int, base string) error) fuse.Status {
	parent, file, err := fs.childPath(header.NodeId, name)
	if err != nil {
		return status(err)
	}
	owner := *header
	attr, err := ask(fs.asker(cancel, header), func(<-chan struct{}) (attr cache.Attr, err error) {
		directory, base, err := fs.at(file)
		if err != nil {
			return attr, err
		}
		defer directory.Close()
		if err := make(directory.Fd(), base); err != nil {
			return attr, err
		}
		if err := fs.giveTo(&owner, parent, func(uid, gid int) error {
			return unix.Fchownat(directory.Fd(), base, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
		}); err != nil {
			return attr, err
		}
		fs.engine.Changed(file, 0, 0)
		return fs.engine.Stat(file)
	}, func(cache.Attr) { fs.lookAgain(parent, name) })
	if err != nil {
		return status(err)
	}
	fs.answerEntry(parent, name, attr, out)
	return fuse.OK
}

// lookAgain makes the kernel forget what it knows under a name that was changed
// by a call whose caller was killed before it could be told.
func (fs *fileSystem) lookAgain(parent *node, name string) {
	_ = fs.server.EntryNotify(parent.id, name) // ENOENT: it knew nothing
}

// Mkdir makes a directory.
func (fs *fileSystem) Mkdir(cancel <-chan struct{}, input *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	mode := input.Mode & 0o7777
	return fs.makeEntry(cancel, &input.InHeader, name, out, func(directory int, base string) error {
		return unix.Mkdirat(directory, base, mode)
	})
}

// Mknod makes a file, FIFO, socket or device node.
func (fs *fileSystem) Mknod(cancel <-chan struct{}, input *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	mode, device := input.Mode, int(input.Rdev)
	return fs.makeEntry(cancel, &input.InHeader, name, out, func(directory int, base string) error {
		return unix.Mknodat(directory, base, mode, device)
	})
}

// Symlink makes a symbolic link.
func (fs *fileSystem) Symlink(cancel <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return fs.makeEntry(cancel, header, name, out, func(directory int, base string) error {
		return unix.Symlinkat(target, directory, base)
	})
}

// Readlink reads a symbolic link.
func (fs *fileSystem) Readlink(cancel <-chan struct{}, header *fuse.InHeader) ([]byte, fuse.Status) {
	n, _, err := fs.pathOf(header.NodeId)
	if err != nil {
		return nil, status(err)
	}
	target, err := ask(fs.asker(cancel, header), func(<-chan struct{}) ([]byte, error) {
		link, err := fs.reach(n)
		if err != nil {
			return nil, err
		}
		defer fs.source.Release(link)
		target := make([]byte, unix.PathMax)
		length, err := unix.Readlinkat(link, "", target)
		return target[:max(length, 0)], err
	}, nil)
	return target, status(err)
}

// Link gives a file another name, or its first one if it was made without
// (O_TMPFILE).
func (fs *fileSystem) Link(cancel <-chan struct{}, input *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	n, from, err := fs.pathOf(input.Oldnodeid)
	if err != nil {
		return status(err)
	}
	parent, to, err := fs.childPath(input.NodeId, name)
	if err != nil {
		return status(err)
	}
	attr, err := ask(fs.asker(cancel, &input.InHeader), func(<-chan struct{}) (attr cache.Attr, err error) {
		fd, err := fs.reach(n)
		if err != nil {
			return attr, err
		}
		defer fs.source.Release(fd)
		directory, base, err := fs.at(to)
		if err != nil {
			return attr, err
		}
		defer directory.Close()
		if err := unix.Linkat(unix.AT_FDCWD, procPath(fd), directory.Fd(), base, unix.AT_SYMLINK_FOLLOW); err != nil {
			return attr, err
		}
		fs.changed(n, from) // nlink and ctime are others now
		fs.engine.Changed(to, 0, 0)
		return fs.engine.Stat(to)
	}, func(cache.Attr) { fs.lookAgain(parent, name) })
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
	return fs.remove(cancel, header, name, 0)
}

// Rmdir removes an empty directory.
func (fs *fileSystem) Rmdir(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return fs.remove(cancel, header, name, unix.AT_REMOVEDIR)
}

func (fs *fileSystem) remove(cancel <-chan struct{}, header *fuse.InHeader, name string, flags int) fuse.Status {
	parent, file, err := fs.childPath(header.NodeId, name)
	if err != nil {
		return status(err)
	}
	_, err = ask(fs.asker(cancel, header), func(<-chan struct{}) (none struct{}, err error) {
		directory, base, err := fs.at(file)
		if err != nil {
			return none, err
		}
		defer directory.Close()
		if err := unix.Unlinkat(directory.Fd(), base, flags); err != nil {
			return none, err
		}
		fs.removed(parent, name, file, flags&unix.AT_REMOVEDIR != 0)
		return none, nil
	}, func(struct{}) { fs.lookAgain(parent, name) })
	return status(err)
}

// removed forgets a name that the source has not any more.
func (fs *fileSystem) removed(parent *node, name, file string, directory bool) {
	fs.mu.Lock()
	n := fs.names[nameKey{parent, name}]
	if n != nil {
		fs.unnameLocked(n)
	}
	fs.mu.Unlock()
	fs.forget(file, n, directory)
}

// unnameLocked records that a file has lost the name under which it was last
// seen.
func (fs *fileSystem) unnameLocked(n *node) {
	fs.unplaceLocked(n)
	if n.told.Nlink <= 1 && fs.current[n.key] == n {
		// The inode number may be given to another file at once.
		delete(fs.current, n.key)
	}
	n.unnamed, n.told = true, cache.Attr{}
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
	flags := uint(input.Flags)
	_, err = ask(fs.asker(cancel, &input.InHeader), func(<-chan struct{}) (none struct{}, err error) {
		err = fs.atBoth(from, to, func(fromDir int, fromBase string, toDir int, toBase string) error {
			return unix.Renameat2(fromDir, fromBase, toDir, toBase, flags)
		})
		if err == nil {
			fs.renamed(nameKey{oldParent, oldName}, nameKey{newParent, newName}, from, to, flags&unix.RENAME_EXCHANGE != 0)
		}
		return none, err
	}, func(struct{}) {
		fs.lookAgain(oldParent, oldName)
		fs.lookAgain(newParent, newName)
	})
	return status(err)
}

// renamed moves what is known along with the names.
func (fs *fileSystem) renamed(source, target nameKey, from, to string, exchanged bool) {
	fs.mu.Lock()
	moved, other := fs.names[source], fs.names[target]
	if moved != nil {
		moved.told = cache.Attr{}
		fs.placeLocked(moved, target.parent, target.name)
	}
	if other != nil && other != moved {
		if exchanged {
			other.told = cache.Attr{}
			other.parent, other.name = source.parent, source.name
			fs.names[source] = other
		} else {
			fs.unnameLocked(other)
		}
	}
	fs.mu.Unlock()
	fs.forgetMoved(to, from, moved, other)
	if exchanged {
		fs.forgetMoved(from, to, other, moved)
	}
}

// forgetMoved makes the engine forget what it knew under the name that a file
// now has and under the one it had. A directory takes all that is below along.
func (fs *fileSystem) forgetMoved(to, from string, moved, other *node) {
	attr, err := fs.source.Stat(to)
	directory := err != nil || attr.Mode&unix.S_IFMT == unix.S_IFDIR
	fs.forget(from, moved, directory)
	fs.forget(to, other, directory)
}
