package fusefs

import (
	"bytes"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/cache"
)

// ls -l asks for the access list of each file, mostly to hear that there is none.
const (
	// maxXAttrs and maxXAttrSize bound what is remembered for a file: the usual
	// access lists, labels and capabilities, but nobody's thumbnails.
	maxXAttrs    = 8
	maxXAttrSize = 256 // bytes
)

// xattrKey is a question about a file's extended attributes. The source may
// answer one user and refuse another.
type xattrKey struct {
	uid, gid uint32
	name     string // "": the list of names
}

// xattrAnswer is what the source said, also that there is none.
type xattrAnswer struct {
	value  []byte // nil if only the length was asked for
	length int    // bytes
	err    error
	known  time.Time
}

// knownXAttr returns an answer for a buffer of room bytes that the source gave at
// most the validity ago, and the state of changes that one from now on is for.
func (fs *fileSystem) knownXAttr(id uint64, key xattrKey, room int) (answer xattrAnswer, changes uint64, ok bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.nodes[id]
	if n == nil {
		return answer, 0, false
	}
	answer, ok = n.xattrs[key]
	switch {
	case !ok || fs.remaining(answer.known) == 0 || fs.writing(n.key.dev, n.key.ino):
		return answer, n.changes, false
	case answer.err != nil || room == 0:
		return answer, n.changes, true
	}
	// Only the length is known, or the buffer is too small: the source says so.
	return answer, n.changes, len(answer.value) == answer.length && answer.length <= room
}

func (fs *fileSystem) rememberXAttr(id uint64, key xattrKey, answer xattrAnswer, changes uint64) {
	switch {
	case len(answer.value) > maxXAttrSize:
		return
	case answer.err != nil && answer.err != unix.ENODATA && answer.err != unix.EOPNOTSUPP:
		return // of no use to the next who asks
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.nodes[id]
	if n == nil || n.changes != changes || fs.writing(n.key.dev, n.key.ino) {
		return
	}
	if _, known := n.xattrs[key]; !known && len(n.xattrs) >= maxXAttrs {
		n.xattrs = nil
	}
	if n.xattrs == nil {
		n.xattrs = make(map[xattrKey]xattrAnswer)
	}
	answer.value = bytes.Clone(answer.value)
	n.xattrs[key] = answer
}

// tellLocked records what the kernel is told of a file. Extended attributes
// don't change without the file's ctime.
func (n *node) tellLocked(attr cache.Attr) {
	if n.told.Ctime != attr.Ctime {
		n.xattrs = nil
	}
	n.told = attr
}

// Extended attributes go by the path that /proc gives a descriptor, since there
// are no *at calls for them before Linux 6.13.

// GetXAttr reads an extended attribute.
func (fs *fileSystem) GetXAttr(cancel <-chan struct{}, header *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	return fs.readXAttr(cancel, header, name, dest, func(path string, into []byte) (int, error) {
		return unix.Getxattr(path, name, into)
	})
}

// ListXAttr lists extended attributes.
func (fs *fileSystem) ListXAttr(cancel <-chan struct{}, header *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	return fs.readXAttr(cancel, header, "", dest, unix.Listxattr)
}

func (fs *fileSystem) readXAttr(cancel <-chan struct{}, header *fuse.InHeader, name string, dest []byte, read func(path string, into []byte) (int, error)) (uint32, fuse.Status) {
	key := xattrKey{uid: header.Uid, gid: header.Gid, name: name}
	id, room := header.NodeId, len(dest)
	answer, changes, ok := fs.knownXAttr(id, key, room)
	if !ok {
		var err error
		asked := time.Now()
		answer, err = ask(fs.asker(cancel, header), func(<-chan struct{}) (answer xattrAnswer, err error) {
			into := make([]byte, room)
			err = fs.withProcPath(id, func(path string) error {
				length, err := read(path, into)
				answer.length = max(length, 0)
				answer.value = into[:min(answer.length, room)]
				answer.err = err
				return nil
			})
			return answer, err
		}, nil)
		if err != nil {
			return 0, status(err)
		}
		answer.known = asked
		fs.rememberXAttr(id, key, answer, changes)
	}
	copy(dest, answer.value)
	return uint32(answer.length), status(answer.err)
}

// SetXAttr sets an extended attribute.
func (fs *fileSystem) SetXAttr(cancel <-chan struct{}, input *fuse.SetXAttrIn, name string, data []byte) fuse.Status {
	value, flags := bytes.Clone(data), int(input.Flags)
	return fs.changeXAttr(cancel, &input.InHeader, func(path string) error { return unix.Setxattr(path, name, value, flags) })
}

// RemoveXAttr removes an extended attribute.
func (fs *fileSystem) RemoveXAttr(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return fs.changeXAttr(cancel, header, func(path string) error { return unix.Removexattr(path, name) })
}

func (fs *fileSystem) changeXAttr(cancel <-chan struct{}, header *fuse.InHeader, change func(path string) error) fuse.Status {
	id := header.NodeId
	return status(fs.asker(cancel, header).do(func() error {
		if err := fs.withProcPath(id, change); err != nil {
			return err
		}
		if n, file, err := fs.pathOf(id); err == nil {
			fs.changed(n, file)
		}
		return nil
	}))
}

func (fs *fileSystem) withProcPath(id uint64, call func(path string) error) error {
	if isControl(id) {
		return unix.ENODATA
	}
	n, _, err := fs.pathOf(id)
	if err != nil {
		return err
	}
	fd, err := fs.reach(n)
	if err != nil {
		return err
	}
	defer fs.source.Release(fd)
	return call(procPath(fd))
}
