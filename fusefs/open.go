package fusefs

import (
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/cache"
	"reelahead/prefetch"
)

// freshEnough is how recent the kernel's knowledge of a file must be for an
// open of the source not to check it again: the lookup that belongs to the
// open is always younger.
const freshEnough = 100 * time.Millisecond

// attempt is one open on its way to an answer.
type attempt struct {
	node   *node
	path   string
	flags  int
	writer bool
	lease  frameLease // nil: the source serves
	fd     int        // of the source, -1 while it was not needed
	// Of an open for reading: whether it was predicted, and where it is recorded.
	expected bool
	recorded *recordedEvent
	// retell: the kernel believes attributes that are not those of what it is
	// about to read. It must ask again before an application stats the file.
	retell bool
}

// errStaleFrame says that the kernel knows the file better than the frame does.
var errStaleFrame = errors.New("fusefs: the frame is older than what the kernel was told")

// Open decides how a file is served; see the package documentation.
func (fs *fileSystem) Open(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if code, ok := fs.openControl(input, out); ok {
		return code
	}
	n, file, err := fs.pathOf(input.NodeId)
	if err != nil {
		return status(err)
	}
	a := &attempt{node: n, path: file, flags: int(input.Flags) &^ (unix.O_CREAT | unix.O_EXCL | unix.O_NOCTTY | unix.O_DIRECT), fd: -1}
	a.writer = input.Flags&unix.O_ACCMODE != unix.O_RDONLY || input.Flags&unix.O_TRUNC != 0
	if a.writer {
		// From here on the file is not fetched, and no frame of it is kept.
		fs.countWriter(n.key, +1)
		fs.engine.Changed(file, n.key.dev, n.key.ino)
	} else {
		reader := fs.readers.reader(input.Pid)
		a.recorded = fs.record.came(reader, file)
		waiter := newWaiter(cancel, input.Pid)
		a.lease, a.expected = fs.engine.Open(reader, file, waiter.giveUp)
		waiter.stop()
	}
	h, err := fs.finishOpen(a, out)
	if err != nil {
		fs.abandon(a)
		return status(err)
	}
	if !a.writer {
		how := fs.countOpen(h, a.expected)
		fs.record.answered(a.recorded, how, a.expected)
	}
	return fuse.OK
}

// finishOpen fits the open into the node's mode. Where the source's file is
// needed it is opened without the lock, and the decision made again.
func (fs *fileSystem) finishOpen(a *attempt, out *fuse.OpenOut) (*handle, error) {
	for {
		fs.mu.Lock()
		h, needSource, err := fs.decideLocked(a, out)
		fs.mu.Unlock()
		switch {
		case err == errStaleFrame:
			fs.engine.Discard(a.lease)
			a.lease = nil
			continue
		case !needSource:
			if err == nil && a.retell {
				// A negative offset: attributes only, which takes no page lock and so
				// is safe in the middle of a request.
				fs.server.InodeNotify(a.node.id, -1, 0)
			}
			return h, err
		}
		if err := fs.openSource(a); err != nil {
			return nil, err
		}
	}
}

// decideLocked answers the open, or says that it needs the source's file first.
func (fs *fileSystem) decideLocked(a *attempt, out *fuse.OpenOut) (h *handle, needSource bool, err error) {
	n := a.node
	if n.replaced {
		return nil, false, unix.ESTALE
	}
	if a.lease != nil {
		attr := a.lease.Frame.Attr()
		same := attr.Dev == n.key.dev && attr.Ino == n.key.ino
		switch {
		case n.told.SameContent(attr):
		case n.told.Known.After(attr.Known):
			return nil, false, errStaleFrame
		case !same:
			// Another file has the name now.
			fs.replaceLocked(n)
			return nil, false, unix.ESTALE
		default:
			n.told, a.retell = attr, true
		}
	}
	switch {
	case n.mode == modeMemory:
		return fs.joinMemoryLocked(a, out)
	case n.mode == modeDaemon || !fs.passthrough:
		return fs.openDaemonLocked(a, out)
	case n.mode == modeSource || a.lease == nil:
		return fs.openSourceLocked(a, out)
	case a.lease.Frame.Ready():
		return fs.openMemoryLocked(a, out)
	default:
		return fs.openDaemonLocked(a, out)
	}
}

// openMemoryLocked hands a ready frame's memory to the kernel.
func (fs *fileSystem) openMemoryLocked(a *attempt, out *fuse.OpenOut) (*handle, bool, error) {
	id, errno := fs.server.RegisterBackingFd(&fuse.BackingMap{Fd: int32(a.lease.Frame.Lend())})
	if errno != 0 {
		return fs.openDaemonLocked(a, out)
	}
	n := a.node
	n.mode, n.backing, n.frame = modeMemory, id, a.lease.Frame.Acquire()
	return fs.answerLocked(a, out, fuse.FOPEN_PASSTHROUGH), false, nil
}

// joinMemoryLocked opens a node that others read from memory: from the same
// frame, or, if this open must see something else, under a new node.
func (fs *fileSystem) joinMemoryLocked(a *attempt, out *fuse.OpenOut) (*handle, bool, error) {
	n := a.node
	same := a.lease != nil && a.lease.Frame == n.frame
	if !same && (a.writer || a.lease == nil && fs.remaining(n.frame.Attr().Known) == 0 ||
		a.lease != nil && !a.lease.Frame.Attr().SameContent(n.frame.Attr())) {
		fs.replaceLocked(n)
		return nil, false, unix.ESTALE
	}
	return fs.answerLocked(a, out, fuse.FOPEN_PASSTHROUGH), false, nil
}

// openSourceLocked hands the source's file to the kernel.
func (fs *fileSystem) openSourceLocked(a *attempt, out *fuse.OpenOut) (*handle, bool, error) {
	if a.fd < 0 {
		return nil, true, nil
	}
	n := a.node
	if n.mode == modeClosed {
		id, errno := fs.server.RegisterBackingFd(&fuse.BackingMap{Fd: int32(a.fd)})
		if errno != 0 {
			// A source that is stacked too deep, or not to be mapped: one file,
			// not the whole mount, goes without.
			fs.log.Debug().Str("path", a.path).Err(errno).Msg("no passthrough for this file")
			return fs.openDaemonLocked(a, out)
		}
		n.mode, n.backing = modeSource, id
	}
	return fs.answerLocked(a, out, fuse.FOPEN_PASSTHROUGH), false, nil
}

// openDaemonLocked lets this process answer reads and writes.
func (fs *fileSystem) openDaemonLocked(a *attempt, out *fuse.OpenOut) (*handle, bool, error) {
	if a.lease == nil && a.fd < 0 {
		return nil, true, nil
	}
	n := a.node
	n.mode = modeDaemon
	if a.writer {
		n.written = true
	}
	flags := uint32(0)
	if fs.passthrough {
		// The page cache would forbid passthrough for as long as it is in use.
		flags = fuse.FOPEN_DIRECT_IO
	}
	return fs.answerLocked(a, out, flags), false, nil
}

func (fs *fileSystem) answerLocked(a *attempt, out *fuse.OpenOut, flags uint32) *handle {
	h := &handle{node: a.node, fd: a.fd, lease: a.lease, writer: a.writer}
	h.id = fs.addHandleLocked(h)
	a.node.handles[h] = struct{}{}
	out.Fh = h.id
	out.OpenFlags = flags
	if flags&fuse.FOPEN_PASSTHROUGH != 0 {
		out.BackingID = a.node.backing
	}
	if !a.writer {
		out.OpenFlags |= fuse.FOPEN_NOFLUSH
	}
	return h
}

// openSource opens the source's file as the application asked for it and makes
// sure that it is the one that the kernel means.
func (fs *fileSystem) openSource(a *attempt) error {
	fd, err := fs.source.Open(a.path, a.flags|unix.O_NONBLOCK, 0)
	if err != nil {
		if err != unix.ENOENT {
			fs.engine.CountSourceError()
		}
		return err
	}
	fs.mu.Lock()
	told := a.node.told
	fs.mu.Unlock()
	if time.Since(told.Known) > freshEnough {
		attr, err := prefetch.StatFd(fd)
		if err == nil && (inodeKey{attr.Dev, attr.Ino}) != a.node.key {
			fs.mu.Lock()
			fs.replaceLocked(a.node)
			fs.mu.Unlock()
			err = unix.ESTALE
		} else if err == nil && !attr.SameContent(told) {
			fs.mu.Lock()
			a.node.told, a.retell = attr, true
			fs.mu.Unlock()
		}
		if err != nil {
			unix.Close(fd)
			return err
		}
	}
	a.fd = fd
	return nil
}

// abandon gives back what a failed open holds.
func (fs *fileSystem) abandon(a *attempt) {
	if a.fd >= 0 {
		unix.Close(a.fd)
	}
	if a.lease != nil {
		fs.engine.Close(a.lease)
	}
	if a.writer {
		fs.countWriter(a.node.key, -1)
	} else {
		fs.record.answered(a.recorded, "", false)
	}
}

// countOpen counts an open for reading and returns how it was served.
func (fs *fileSystem) countOpen(h *handle, expected bool) served {
	fs.mu.Lock()
	how := h.node.mode
	fs.mu.Unlock()
	fs.opens.all.Add(1)
	if expected {
		fs.opens.expected.Add(1)
	}
	switch {
	case h.lease == nil:
		fs.opens.cold.Add(1)
		return servedCold
	case how == modeSource:
		fs.opens.cold.Add(1)
		return servedSource
	case h.lease.Frame.Ready() && h.lease.Source < 0:
		fs.opens.ready.Add(1)
		if how == modeMemory {
			// Reads of the kernel's are not seen here: a player reads a frame whole.
			fs.opens.bytesRead.Add(h.lease.Frame.Size())
		}
		return servedReady
	}
	fs.opens.inflight.Add(1)
	return servedInflight
}

// Create makes a file and opens it for its owner, the caller.
func (fs *fileSystem) Create(cancel <-chan struct{}, input *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	parent, file, err := fs.childPath(input.NodeId, name)
	if err != nil {
		return status(err)
	}
	flags := int(input.Flags)&^(unix.O_NOCTTY|unix.O_DIRECT) | unix.O_CREAT
	fd, err := fs.source.Open(file, flags, input.Mode&0o7777)
	if err != nil {
		return status(err)
	}
	if err := fs.giveTo(&input.InHeader, parent, func(uid, gid int) error { return unix.Fchown(fd, uid, gid) }); err != nil {
		unix.Close(fd)
		return status(err)
	}
	fs.engine.Changed(file, 0, 0)
	attr, err := prefetch.StatFd(fd)
	if err != nil {
		unix.Close(fd)
		return status(err)
	}
	n := fs.enter(parent, name, attr)
	a := &attempt{node: n, path: file, flags: flags &^ (unix.O_CREAT | unix.O_EXCL | unix.O_TRUNC), fd: fd, writer: true}
	fs.countWriter(n.key, +1)
	if _, err := fs.finishOpen(a, &out.OpenOut); err != nil {
		fs.abandon(a)
		return status(err)
	}
	out.NodeId, out.Generation = n.id, 1
	fillAttr(&out.Attr, attr)
	out.SetEntryTimeout(fs.options.Engine.Validity)
	return fuse.OK
}

// giveTo makes a new file the caller's, as the source's own server would. A
// directory with the setgid bit gives its group to what is made in it.
func (fs *fileSystem) giveTo(header *fuse.InHeader, parent *node, chown func(uid, gid int) error) error {
	if syscall.Geteuid() != 0 || header.Uid == 0 && header.Gid == 0 {
		return nil
	}
	gid := int(header.Gid)
	fs.mu.Lock()
	if parent.told.Mode&unix.S_ISGID != 0 {
		gid = -1
	}
	fs.mu.Unlock()
	return chown(int(header.Uid), gid)
}

// releaseAll ends the handles whose RELEASE the kernel will not send any more: the
// connection was aborted, or the last close met the unmount.
func (fs *fileSystem) releaseAll() {
	fs.mu.Lock()
	var left []uint64
	for id := range fs.handles {
		left = append(left, id)
	}
	fs.mu.Unlock()
	for _, id := range left {
		release := &fuse.ReleaseIn{Fh: id}
		if _, ok := fs.handleOf(id).(*directoryHandle); ok {
			fs.ReleaseDir(release)
		} else {
			fs.Release(nil, release)
		}
	}
}

// Release ends a handle; the last one of a node ends its mode.
func (fs *fileSystem) Release(cancel <-chan struct{}, input *fuse.ReleaseIn) {
	open := fs.takeHandle(input.Fh)
	if hints, ok := open.(*hintsHandle); ok {
		fs.releaseHints(hints)
		return
	}
	h, _ := open.(*handle)
	if h == nil {
		return
	}
	fs.mu.Lock()
	n := h.node
	delete(n.handles, h)
	file := n.path()
	var frame *cache.Frame
	if len(n.handles) == 0 {
		if n.mode == modeMemory || n.mode == modeSource {
			fs.server.UnregisterBackingFd(n.backing)
		}
		frame = n.frame
		n.mode, n.frame, n.written = modeClosed, nil, false
		if n.lookups == 0 && n.parent != nil {
			delete(fs.nodes, n.id)
			fs.unplaceLocked(n)
			if fs.current[n.key] == n {
				delete(fs.current, n.key)
			}
		}
	}
	fd := h.fd
	fs.mu.Unlock()
	if frame != nil {
		frame.Release()
	}
	if fd >= 0 {
		unix.Close(fd)
	}
	if h.lease != nil {
		fs.engine.Close(h.lease)
	}
	if h.writer {
		fs.changed(n, file)
		fs.countWriter(n.key, -1)
	}
}
