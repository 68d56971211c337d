package slownas

import (
	"context"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// node is a file or directory of the backing directory whose open handles are
// streams of the model.
type node struct {
	*fs.LoopbackNode
	delayer   *delayer
	keepCache bool
}

var (
	_ = (fs.NodeWrapChilder)((*node)(nil))
	_ = (fs.NodeOpener)((*node)(nil))
	_ = (fs.NodeCreater)((*node)(nil))
	_ = (fs.NodeMkdirer)((*node)(nil))
	_ = (fs.NodeMknoder)((*node)(nil))
	_ = (fs.NodeSymlinker)((*node)(nil))
)

func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: child.(*fs.LoopbackNode), delayer: n.delayer, keepCache: n.keepCache}
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	name := filepath.Base(n.at(""))
	if _, errno := n.delayer.meet(ctx.Done(), threadOf(ctx), "open", name, 0); errno != 0 {
		return nil, 0, errno
	}
	file, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	if n.keepCache {
		fuseFlags |= fuse.FOPEN_KEEP_CACHE
	}
	return n.newHandle(n.EmbeddedInode(), name, file), fuseFlags, 0
}

// at returns the path of a name in the backing directory.
func (n *node) at(name string) string {
	return filepath.Join(n.RootData.Path, n.Path(n.Root()), name)
}

// Files are made here as a file server does it: as the user who asks (see
// server.as), with the mode and the directory's group as the backing filesystem
// gives them. The methods of LoopbackNode would lose setuid, setgid and sticky bits.

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	// The kernel gives the place of each write: appending is up to it.
	fd, err := unix.Open(n.at(name), int(flags)&^unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, nil, 0, fs.ToErrno(err)
	}
	file := fs.NewLoopbackFile(fd)
	child, errno := n.Lookup(ctx, name, out)
	if errno != 0 {
		unix.Close(fd)
		return nil, nil, 0, errno
	}
	return child, n.newHandle(child, name, file), 0, 0
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if err := unix.Mkdir(n.at(name), mode); err != nil {
		return nil, fs.ToErrno(err)
	}
	return n.Lookup(ctx, name, out)
}

func (n *node) Mknod(ctx context.Context, name string, mode, device uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if err := unix.Mknod(n.at(name), mode, int(device)); err != nil {
		return nil, fs.ToErrno(err)
	}
	return n.Lookup(ctx, name, out)
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if err := unix.Symlink(target, n.at(name)); err != nil {
		return nil, fs.ToErrno(err)
	}
	return n.Lookup(ctx, name, out)
}

// handle is one open file: one stream of the model.
//
// Its reads are answered from a mapping of the backing file, which the kernel
// copies from directly. The mapping lives as long as the handle: the kernel
// releases a handle only after the last of its reads.
type handle struct {
	*fs.LoopbackFile
	inode     *fs.Inode
	name      string
	delayer   *delayer
	keepCache bool
	fd        int
	stream    link // guarded by the model's mutex

	mapOnce sync.Once
	mapping []byte
}

var (
	_ = (fs.FileReader)((*handle)(nil))
	_ = (fs.FileWriter)((*handle)(nil))
	_ = (fs.FileReleaser)((*handle)(nil))
	_ = (fs.FilePassthroughFder)((*handle)(nil))
)

func (n *node) newHandle(inode *fs.Inode, name string, file fs.FileHandle) *handle {
	loopback := file.(*fs.LoopbackFile)
	fd, _ := loopback.PassthroughFd()
	return &handle{LoopbackFile: loopback, inode: inode, name: name, delayer: n.delayer, keepCache: n.keepCache, fd: fd}
}

// PassthroughFd keeps the kernel from reading the backing file by itself, which
// would be no model of anything.
func (h *handle) PassthroughFd() (int, bool) { return -1, false }

func (h *handle) Read(ctx context.Context, dest []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	end, errno := h.delayer.meet(ctx.Done(), threadOf(ctx), "read", h.name, offset+int64(len(dest)))
	if errno != 0 {
		return nil, errno
	}
	size, errno := h.size()
	if errno != 0 {
		return nil, errno
	}
	size = min(size, end)
	n := int(max(min(int64(len(dest)), size-offset), 0))
	if status := h.wait(ctx, n); !status.Ok() {
		return nil, syscall.Errno(status)
	}
	// Asked again after the wait, since the kernel is handed the mapping and a
	// page beyond the end of the file cannot be read from it.
	if size, errno = h.size(); errno != 0 {
		return nil, errno
	}
	size = min(size, end)
	n = int(max(min(int64(n), size-offset), 0))
	if n == 0 {
		return fuse.ReadResultData(nil), 0
	}
	h.mapOnce.Do(h.mapFile)
	if end := offset + int64(n); end <= int64(len(h.mapping)) {
		return fuse.ReadResultVector([][]byte{h.mapping[offset:end]}), 0
	}
	return fuse.ReadResultFd(uintptr(h.fd), offset, n), 0
}

// mapFile maps the file; a file that can't be mapped or has grown since is read
// with pread.
func (h *handle) mapFile() {
	size, errno := h.size()
	if errno != 0 {
		return
	}
	if mapping, err := unix.Mmap(h.fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED); err == nil {
		h.mapping = mapping
	}
}

func (h *handle) size() (int64, syscall.Errno) {
	var stat unix.Stat_t
	if err := unix.Fstat(h.fd, &stat); err != nil {
		return 0, fs.ToErrno(err)
	}
	return stat.Size, 0
}

func (h *handle) Write(ctx context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	if _, errno := h.delayer.meet(ctx.Done(), threadOf(ctx), "write", h.name, offset+int64(len(data))); errno != 0 {
		return 0, errno
	}
	if status := h.wait(ctx, len(data)); !status.Ok() {
		return 0, syscall.Errno(status)
	}
	return h.LoopbackFile.Write(ctx, data, offset)
}

// Release also makes the kernel forget the pages of the file, unless they are
// kept. The next open would
// do that; until then they would take memory from what is measured, and fresh
// memory for the next file costs a virtual machine more than the rest of a read.
func (h *handle) Release(ctx context.Context) syscall.Errno {
	if h.mapping != nil {
		_ = unix.Munmap(h.mapping)
		if !h.keepCache {
			// Not from within a request: it waits for reads of the same file.
			go h.inode.NotifyContent(0, 0)
		}
	}
	return h.LoopbackFile.Release(ctx)
}

func (h *handle) wait(ctx context.Context, n int) fuse.Status {
	return h.delayer.wait(ctx.Done(), threadOf(ctx), &h.stream, n)
}

func threadOf(ctx context.Context) uint32 {
	if caller, ok := fuse.FromContext(ctx); ok {
		return caller.Pid
	}
	return 0
}
