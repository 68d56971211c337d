package fusefs

import (
	"encoding/json"
	"os"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The control directory lies at the mount's root and is not listed there, so
// that a copy or a search of the tree never meets it.
const (
	// ControlDir is its name.
	ControlDir = ".reelahead"
	// StatusFile is the file in it that holds the status as JSON.
	StatusFile = "status.json"
)

const (
	controlDirID = iota + rootID + 1
	statusID
	hintsID
	controlEnd
)

func isControl(id uint64) bool { return id >= controlDirID && id < controlEnd }

// controlHandle is an open control file: its content at the moment of the open.
type controlHandle struct{ content []byte }

func lookupControl(parent uint64, name string, out *fuse.EntryOut) (fuse.Status, bool) {
	switch {
	case parent == rootID && name == ControlDir:
		out.NodeId = controlDirID
	case parent == controlDirID && name == StatusFile:
		out.NodeId = statusID
	case parent == controlDirID && name == HintsFile:
		out.NodeId = hintsID
	case parent == controlDirID:
		return fuse.ENOENT, true
	default:
		return fuse.OK, false
	}
	out.Generation = 1
	fillControlAttr(out.NodeId, &out.Attr)
	return fuse.OK, true
}

func (fs *fileSystem) controlAttr(id uint64, out *fuse.AttrOut) (fuse.Status, bool) {
	if !isControl(id) {
		return fuse.OK, false
	}
	fillControlAttr(id, &out.Attr)
	return fuse.OK, true
}

func fillControlAttr(id uint64, attr *fuse.Attr) {
	*attr = fuse.Attr{Ino: id, Nlink: 1, Mode: syscall.S_IFREG | 0o400}
	switch id {
	case controlDirID:
		attr.Mode = syscall.S_IFDIR | 0o500
	case hintsID:
		attr.Mode = syscall.S_IFREG | 0o200
	}
	attr.Uid, attr.Gid = uint32(os.Geteuid()), uint32(os.Getegid())
}

// openControl opens a control file. Its size is not told, so it is read past
// the page cache.
func (fs *fileSystem) openControl(input *fuse.OpenIn, out *fuse.OpenOut) (fuse.Status, bool) {
	if !isControl(input.NodeId) {
		return fuse.OK, false
	}
	if input.NodeId == hintsID {
		return fs.openHints(input, out), true
	}
	if input.Flags&unix.O_ACCMODE != unix.O_RDONLY {
		return fuse.EACCES, true
	}
	content, err := json.MarshalIndent(fs.status(), "", "  ")
	if err != nil {
		return fuse.EIO, true
	}
	out.Fh = fs.addHandle(&controlHandle{content: append(content, '\n')})
	out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH
	return fuse.OK, true
}

func (h *controlHandle) read(offset int64, length int) (fuse.ReadResult, fuse.Status) {
	start := min(offset, int64(len(h.content)))
	end := min(start+int64(length), int64(len(h.content)))
	return fuse.ReadResultData(h.content[start:end]), fuse.OK
}

func readControlDir(offset uint64, out *fuse.DirEntryList) fuse.Status {
	if offset == 0 {
		out.AddDirEntry(fuse.DirEntry{Name: StatusFile, Ino: statusID, Mode: syscall.S_IFREG, Off: 1})
	}
	return fuse.OK
}
