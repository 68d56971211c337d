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
	// outdated: the kernel believes attributes that are not those of what it is
	// about to read. It must ask again before an application stats the file.
	outdated bool
	out      fuse.OpenOut // the answer; the request's own may serve another one by then
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
	asker, reader := fs.asker(cancel, &input.InHeader), fs.readers.reader(input.Pid)
	fs.walks.opened(file)
	if !a.writer {
		a.recorded = fs.record.came(reader, file)
	}
	h := fs.openReady(a, reader)
	if h == nil {
		h, err = ask(asker, func(giveUp <-chan struct{}) (*handle, error) {
			switch {
			case a.writer:
				// From here on the file is not fetched, and no frame of it is kept.
				fs.countWriter(n.key, +1)
				fs.engine.Changed(file, n.key.dev, n.key.ino)
			case a.lease == nil && !fs.isUnnamed(n):
				a.lease, a.expected = fs.engine.Open(reader, file, fs.toldSize(n), giveUp)
			}
			return fs.finishOpen(a)
		}, fs.release)
	}
	if err != nil {
		if err == errUnasked && a.lease != nil { // else the call may be using it still
			fs.engine.Close(a.lease)
		}
		fs.record.answered(a.recorded, "", false)
		return status(err)
	}
	*out = a.out
	if !a.writer {
		how := fs.countOpen(h, a.expected)
		fs.record.answered(a.recorded, how, a.expected)
	}
	return fuse.OK
}

// openReady answers the open of a ready frame without waiting for anything; nil:
// there is more to ask, perhaps with a lease in hand.
func (fs *fileSystem) openReady(a *attempt, reader prefetch.Reader) *handle {
	if a.writer || fs.isUnnamed(a.node) {
		return nil
	}
	if a.lease, a.expected = fs.engine.OpenReady(reader, a.path); a.lease == nil {
		return nil
	}
	fs.mu.Lock()
	h, _, err := fs.decideLocked(a)
	fs.mu.Unlock()
	if err != nil || h == nil {
		return nil
	}
	fs.retell(a)
	return h
}

// toldSize is the size of a file, in bytes, as the kernel knows it.
func (fs *fileSystem) toldSize(n *node) int64 {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return n.told.Size
}

// finishOpen fits the open into the node's mode. Where the source's file is
// needed it is opened without the lock, and the decision made again. If it fails
// everything that the attempt holds is given back.
func (fs *fileSystem) finishOpen(a *attempt) (*handle, error) {
	h, err := fs.tryOpen(a)
	if err != nil {
		fs.abandon(a)
	}
	return h, err
}

func (fs *fileSystem) tryOpen(a *attempt) (*handle, error) {
	for {
		fs.mu.Lock()
		h, needSource, err := fs.decideLocked(a)
		fs.mu.Unlock()
		switch {
		case err == errStaleFrame:
			fs.engine.Discard(a.lease)
			a.lease = nil
			continue
		case !needSource:
			if err == nil {
				fs.retell(a)
			}
			return h, err
		}
		if err := fs.openSource(a); err != nil {
			return nil, err
		}
	}
}

// retell makes the kernel ask for attributes again if it believes others than
// those of what it is about to read. A negative offset: attributes only, which
// takes no page lock and so is safe in the middle of a request.
func (fs *fileSystem) retell(a *attempt) {
	if a.outdated {
		fs.server.InodeNotify(a.node.id, -1, 0)
	}
}

// decideLocked answers the open, or says that it needs the source's file first.
func (fs *fileSystem) decideLocked(a *attempt) (h *handle, needSource bool, err error) {
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
			n.tellLocked(attr)
			a.outdated = true
		}
	}
	switch {
	case n.mode == modeMemory:
		return fs.joinMemoryLocked(a)
	case n.mode == modeDaemon || !fs.passthrough:
		return fs.openDaemonLocked(a)
	case n.mode == modeSource || a.lease == nil:
		return fs.openSourceLocked(a)
	case a.lease.Frame.Ready():
		return fs.openMemoryLocked(a)
	default:
		return fs.openDaemonLocked(a)
	}
}

// openMemoryLocked hands a ready frame's memory to the kernel.
func (fs *fileSystem) openMemoryLocked(a *attempt) (*handle, bool, error) {
	id, errno := fs.server.RegisterBackingFd(&fuse.BackingMap{Fd: int32(a.lease.Frame.Lend())})
	if errno != 0 {
		return fs.openDaemonLocked(a)
	}
	n := a.node
	n.mode, n.backing, n.frame = modeMemory, id, a.lease.Frame.Acquire()
	return fs.answerLocked(a, fuse.FOPEN_PASSTHROUGH), false, nil
}

// joinMemoryLocked opens a node that others read from memory: from the same
// frame, or, if this open must see something else, under a new node.
func (fs *fileSystem) joinMemoryLocked(a *attempt) (*handle, bool, error) {
	n := a.node
	same := a.lease != nil && a.lease.Frame == n.frame
	if !same && (a.writer || a.lease == nil && fs.remaining(n.frame.Attr().Known) == 0 ||
		a.lease != nil && !a.lease.Frame.Attr().SameContent(n.frame.Attr())) {
		fs.replaceLocked(n)
		return nil, false, unix.ESTALE
	}
	return fs.answerLocked(a, fuse.FOPEN_PASSTHROUGH), false, nil
}

// openSourceLocked hands the source's file to the kernel.
func (fs *fileSystem) openSourceLocked(a *attempt) (*handle, bool, error) {
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
			return fs.openDaemonLocked(a)
		}
		n.mode, n.backing = modeSource, id
	}
	return fs.answerLocked(a, fuse.FOPEN_PASSTHROUGH), false, nil
}

// openDaemonLocked lets this process answer reads and writes.
func (fs *fileSystem) openDaemonLocked(a *attempt) (*handle, bool, error) {
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
	return fs.answerLocked(a, flags), false, nil
}

func (fs *fileSystem) answerLocked(a *attempt, flags uint32) *handle {
	h := &handle{users: 1, node: a.node, fd: a.fd, lease: a.lease, writer: a.writer}
	h.id = fs.addHandleLocked(h)
	a.node.handles[h] = struct{}{}
	a.out = fuse.OpenOut{Fh: h.id, OpenFlags: flags}
	if flags&fuse.FOPEN_PASSTHROUGH != 0 {
		a.out.BackingID = a.node.backing
	}
	if !a.writer {
		a.out.OpenFlags |= fuse.FOPEN_NOFLUSH
	}
	return h
}

// openSource opens the source's file as the application asked for it and makes
// sure that it is the one that the kernel means.
func (fs *fileSystem) openSource(a *attempt) error {
	fd, err := fs.openNode(a)
	if err != nil {
		if err != unix.ENOENT && err != unix.ESTALE {
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
			a.node.tellLocked(attr)
			a.outdated = true
			fs.mu.Unlock()
		}
		if err != nil {
			fs.source.Release(fd)
			return err
		}
	}
	a.fd = fd
	return nil
}

// openNode goes by the file's name, or, if it has none any more, by the handle
// through which somebody holds it (an open of /proc/PID/fd/N).
func (fs *fileSystem) openNode(a *attempt) (int, error) {
	fs.mu.Lock()
	held := -1
	if a.node.unnamed {
		held = fs.dupSourceLocked(a.node)
	}
	unnamed := a.node.unnamed
	fs.mu.Unlock()
	switch {
	case held >= 0:
		defer fs.source.Release(held)
		return unix.Open(procPath(held), a.flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	case unnamed:
		return -1, unix.ESTALE
	}
	return fs.source.Open(a.path, a.flags|unix.O_NONBLOCK, 0)
}

// abandon gives back what a failed open holds.
func (fs *fileSystem) abandon(a *attempt) {
	if a.fd >= 0 {
		fs.source.Release(a.fd)
	}
	if a.lease != nil {
		fs.engine.Close(a.lease)
	}
	if a.writer {
		fs.countWriter(a.node.key, -1)
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
	in := *input
	made, err := ask(fs.asker(cancel, &input.InHeader), func(<-chan struct{}) (created, error) {
		flags := int(in.Flags)&^(unix.O_NOCTTY|unix.O_DIRECT) | unix.O_CREAT
		fd, err := fs.source.Open(file, flags, in.Mode&0o7777)
		if err != nil {
			return created{}, err
		}
		return fs.enterCreated(&in, parent, name, fd, flags)
	}, func(made created) {
		fs.release(made.handle)
		fs.lookAgain(parent, name)
	})
	return fs.answerCreated(made, err, out)
}

// Tmpfile makes a file without a name (O_TMPFILE) and opens it for the caller.
func (fs *fileSystem) Tmpfile(cancel <-chan struct{}, input *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	parent, dir, err := fs.pathOf(input.NodeId)
	if err != nil {
		return status(err)
	}
	in := *input
	made, err := ask(fs.asker(cancel, &input.InHeader), func(<-chan struct{}) (created, error) {
		flags := int(in.Flags)&^(unix.O_NOCTTY|unix.O_DIRECT|unix.O_CREAT) | unix.O_TMPFILE
		fd, err := fs.source.Open(dir, flags, in.Mode&0o7777)
		if err != nil {
			return created{}, err
		}
		return fs.enterCreated(&in, parent, "", fd, flags)
	}, func(made created) { fs.release(made.handle) })
	return fs.answerCreated(made, err, out)
}

// created is a new file that is open.
type created struct {
	node   *node
	handle *handle
	attr   cache.Attr
	open   fuse.OpenOut
}

// enterCreated gives a new file to the caller and makes its node and handle. The
// node is counted as looked up only once the kernel is told of it.
func (fs *fileSystem) enterCreated(in *fuse.CreateIn, parent *node, name string, fd, flags int) (made created, err error) {
	err = fs.giveTo(&in.InHeader, parent, func(uid, gid int) error { return unix.Fchown(fd, uid, gid) })
	if err == nil {
		made.attr, err = prefetch.StatFd(fd)
	}
	if err != nil {
		fs.source.Release(fd)
		return made, err
	}
	file := parent.path()
	if name != "" {
		file = parent.child(name)
		fs.engine.Changed(file, 0, 0)
	}
	made.node = fs.enter(parent, name, made.attr)
	a := &attempt{node: made.node, path: file, flags: flags &^ (unix.O_CREAT | unix.O_EXCL | unix.O_TRUNC | unix.O_TMPFILE), fd: fd, writer: true}
	fs.countWriter(made.node.key, +1)
	made.handle, err = fs.finishOpen(a)
	made.open = a.out
	fs.Forget(made.node.id, 1)
	return made, err
}

func (fs *fileSystem) answerCreated(made created, err error, out *fuse.CreateOut) fuse.Status {
	if err != nil {
		return status(err)
	}
	fs.mu.Lock()
	made.node.lookups++
	fs.mu.Unlock()
	out.OpenOut = made.open
	out.NodeId, out.Generation = made.node.id, 1
	fillAttr(&out.Attr, made.attr)
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
	}
	if h, ok := open.(*handle); ok {
		fs.letGo(h)
	}
}

// hold keeps a handle open for a call on the source; nil: it is closed. Give it
// back by letGo.
func (fs *fileSystem) hold(id uint64) *handle {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	h, _ := fs.handles[id].(*handle)
	if h != nil {
		h.users++
	}
	return h
}

func (fs *fileSystem) letGo(h *handle) {
	fs.mu.Lock()
	h.users--
	last := h.users == 0
	fs.mu.Unlock()
	if last {
		fs.end(h)
	}
}

// release ends a handle that the kernel was not told of.
func (fs *fileSystem) release(h *handle) { fs.Release(nil, &fuse.ReleaseIn{Fh: h.id}) }

func (fs *fileSystem) end(h *handle) {
	fs.mu.Lock()
	n := h.node
	delete(n.handles, h)
	file := n.path()
	var frame *cache.Frame
	if len(n.handles) == 0 {
		fs.endModeLocked(n)
		frame = n.frame
		n.mode, n.frame, n.written = modeClosed, nil, false
		fs.dropLocked(n)
	}
	fd := h.fd
	fs.mu.Unlock()
	if frame != nil {
		frame.Release()
	}
	if fd >= 0 {
		fs.source.Release(fd)
	}
	if h.lease != nil {
		fs.engine.Close(h.lease)
	}
	if h.writer {
		fs.changed(n, file)
		fs.countWriter(n.key, -1)
	}
}

// endModeLocked takes the backing file of a node back from the kernel. For one
// of the source's that may be its last close, which waits for the server.
func (fs *fileSystem) endModeLocked(n *node) {
	backing := n.backing
	switch n.mode {
	case modeMemory:
		fs.server.UnregisterBackingFd(backing)
	case modeSource:
		fs.source.Later(func() { fs.server.UnregisterBackingFd(backing) })
	}
}
