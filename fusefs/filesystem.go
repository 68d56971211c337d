package fusefs

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"reelahead/cache"
	"reelahead/prefetch"
)

// frameLease is what an open holds of a frame; nil: it is served by the source.
type frameLease = *prefetch.Lease

// fileSystem answers the kernel's requests. What it does not implement (ioctl,
// locks, statx) it leaves to the embedded default, which makes the kernel fall
// back to its own.
type fileSystem struct {
	fuse.RawFileSystem

	options     Options
	engine      *prefetch.Engine
	source      *prefetch.Source
	server      *fuse.Server
	passthrough bool
	log         zerolog.Logger
	readers     readerTable
	opens       openCounters
	record      *record // nil: opens are not written down
	started     time.Time
	turns       chan struct{} // one for each call that requests may have under way on the source
	aborted     chan struct{} // closed when nobody waits for replies any more
	abort       sync.Once

	walks walks
	space atomic.Pointer[space]

	mu         sync.Mutex
	root       *node
	nodes      map[uint64]*node
	current    map[inodeKey]*node
	names      map[nameKey]*node
	lastID     uint64
	handles    map[uint64]any // *handle, *directoryHandle, *controlHandle or *hintsHandle
	lastHandle uint64

	writersMu sync.Mutex // a leaf: also taken by the engine while it holds its lock
	writers   map[inodeKey]int
}

type openCounters struct {
	all, ready, inflight, cold atomic.Int64
	expected                   atomic.Int64
	bytesRead                  atomic.Int64
	daemonReads                atomic.Int64
}

var _ fuse.RawFileSystem = (*fileSystem)(nil)

func newFileSystem(options Options, engine *prefetch.Engine, source *prefetch.Source) *fileSystem {
	fs := &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		options:       options,
		engine:        engine,
		source:        source,
		log:           options.Engine.Log,
		readers:       newReaderTable(),
		started:       time.Now(),
		turns:         newTurns(),
		aborted:       make(chan struct{}),
		nodes:         make(map[uint64]*node),
		current:       make(map[inodeKey]*node),
		names:         make(map[nameKey]*node),
		lastID:        firstID,
		handles:       make(map[uint64]any),
		walks:         walks{of: make(map[string]*walk)},
		writers:       make(map[inodeKey]int),
	}
	fs.root = &node{id: rootID, handles: make(map[*handle]struct{})}
	fs.nodes[rootID] = fs.root
	engine.Writing = fs.writing
	return fs
}

// String names the filesystem in go-fuse's messages.
func (fs *fileSystem) String() string { return "reelahead" }

// Init is called once the kernel has answered; it finds out whether the kernel
// lets this process name backing files.
func (fs *fileSystem) Init(server *fuse.Server) {
	fs.server = server
	fs.passthrough = fs.options.Passthrough && fs.probePassthrough()
}

// probePassthrough registers a memory file and takes it back.
func (fs *fileSystem) probePassthrough() bool {
	if fs.server.KernelSettings().Flags64()&fuse.CAP_PASSTHROUGH == 0 {
		return false
	}
	fd, err := unix.MemfdCreate("reelahead-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	id, errno := fs.server.RegisterBackingFd(&fuse.BackingMap{Fd: int32(fd)})
	if errno != 0 {
		return false
	}
	fs.server.UnregisterBackingFd(id)
	return true
}

// writing tells whether a file is open for writing through the mount.
func (fs *fileSystem) writing(dev, ino uint64) bool {
	fs.writersMu.Lock()
	defer fs.writersMu.Unlock()
	return fs.writers[inodeKey{dev, ino}] > 0
}

func (fs *fileSystem) countWriter(key inodeKey, change int) {
	fs.writersMu.Lock()
	defer fs.writersMu.Unlock()
	fs.writers[key] += change
	if fs.writers[key] == 0 {
		delete(fs.writers, key)
	}
}

func (fs *fileSystem) addHandle(h any) uint64 {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.addHandleLocked(h)
}

func (fs *fileSystem) addHandleLocked(h any) uint64 {
	fs.lastHandle++
	fs.handles[fs.lastHandle] = h
	return fs.lastHandle
}

func (fs *fileSystem) handleOf(id uint64) any {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.handles[id]
}

func (fs *fileSystem) takeHandle(id uint64) any {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	h := fs.handles[id]
	delete(fs.handles, id)
	return h
}

// status turns an error of the source into the kernel's number.
func status(err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return fuse.Status(errno)
	}
	return fuse.EIO
}

func fillAttr(out *fuse.Attr, a cache.Attr) {
	out.Ino = a.Ino
	out.Size = uint64(a.Size)
	out.Blocks = uint64(a.Blocks)
	out.Atime, out.Atimensec = uint64(a.Atime.Sec), a.Atime.Nsec
	out.Mtime, out.Mtimensec = uint64(a.Mtime.Sec), a.Mtime.Nsec
	out.Ctime, out.Ctimensec = uint64(a.Ctime.Sec), a.Ctime.Nsec
	out.Mode = a.Mode
	out.Nlink = a.Nlink
	out.Uid, out.Gid = a.UID, a.GID
	// The kernel's encoding of a device number in 32 bits (new_encode_dev).
	major, minor := unix.Major(a.Rdev), unix.Minor(a.Rdev)
	out.Rdev = minor&0xff | major<<8 | (minor&^0xff)<<12
	out.Blksize = a.Blksize
}
