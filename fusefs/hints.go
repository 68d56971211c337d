package fusefs

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/prefetch"
)

// HintsFile is the file in the control directory that takes lists of the files
// that will be opened, in order: a path a line, absolute under the mountpoint or
// relative to it. Each open of it is one list of the process that opens.
//
// A line that is no such path is left out. The text is taken all the same, since
// a program that is refused in the middle would stop there; the close that
// follows fails with EINVAL, and the log says which line it was. Only a list that
// can take nothing more refuses the write itself: ENOSPC when as much is
// announced as may be, ESTALE when the same process has begun another list.
const HintsFile = "hints"

// maxHintLine is the longest line in bytes: the longest path the kernel takes,
// and a mountpoint before it.
const maxHintLine = 2 * unix.PathMax

// Reasons for which a line of a list is refused.
var (
	errHintOutside = errors.New("not a path below the mountpoint")
	errHintTooLong = errors.New("longer than a path can be")
	errHintNUL     = errors.New("a NUL byte in a path")
	errHintRoot    = errors.New("the mount itself, not a file in it")
	errHintControl = errors.New("a control file")
)

// HintPath turns a line of a list into a path relative to the root of the mount
// on mountpoint. It goes by the text alone: no file is looked at, symbolic links
// are not followed, and ".." never leads out.
func HintPath(mountpoint, line string) (string, error) {
	if strings.IndexByte(line, 0) >= 0 {
		return "", errHintNUL
	}
	file := path.Clean(line)
	if path.IsAbs(file) {
		below, ok := strings.CutPrefix(file, strings.TrimSuffix(mountpoint, "/")+"/")
		switch {
		case file == mountpoint:
			return "", errHintRoot
		case !ok:
			return "", errHintOutside
		}
		file = below
	}
	if !filepath.IsLocal(file) {
		return "", errHintOutside
	}
	if file == "." {
		return "", errHintRoot
	}
	first, _, _ := strings.Cut(file, "/")
	if first == ControlDir {
		return "", errHintControl
	}
	if len(file) >= unix.PathMax {
		return "", errHintTooLong
	}
	for name := range strings.SplitSeq(file, "/") {
		if len(name) > unix.NAME_MAX {
			return "", errHintTooLong
		}
	}
	return file, nil
}

// hintLines takes a list apart as it is written, in whatever pieces.
type hintLines struct {
	mountpoint string
	line       int    // number of the line that is being read, from 0
	rest       []byte // its beginning; never longer than maxHintLine
	overlong   bool   // it was refused, and goes on
	refused    int    // lines
	firstLine  int    // the first of them, from 1
	why        error
}

// take returns the paths of the lines that text ends, in order.
func (l *hintLines) take(text []byte) []string {
	paths := make([]string, 0, bytes.Count(text, []byte{'\n'}))
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			l.keep(text)
			break
		}
		l.keep(text[:end])
		paths = l.endLine(paths)
		text = text[end+1:]
	}
	return paths
}

// keep adds to the line that is being read.
func (l *hintLines) keep(piece []byte) {
	if l.overlong || len(l.rest)+len(piece) > maxHintLine {
		l.rest, l.overlong = l.rest[:0], true
		return
	}
	l.rest = append(l.rest, piece...)
}

// endLine ends the line that was being read and adds its path.
func (l *hintLines) endLine(paths []string) []string {
	l.line++
	switch {
	case l.overlong:
		l.refuse(errHintTooLong)
	case len(l.rest) > 0:
		file, err := HintPath(l.mountpoint, string(l.rest))
		if err != nil {
			l.refuse(err)
			break
		}
		paths = append(paths, file)
	}
	l.rest, l.overlong = l.rest[:0], false
	return paths
}

func (l *hintLines) refuse(err error) {
	if l.refused == 0 {
		l.firstLine, l.why = l.line, err
	}
	l.refused++
}

// last ends a line that has no newline.
func (l *hintLines) last() []string {
	if len(l.rest) == 0 && !l.overlong {
		return nil
	}
	return l.endLine(nil)
}

// check tells what is wrong with the list as it is, nil if nothing is. The line
// that is being read counts as if it ended here.
func (l *hintLines) check() error {
	so := *l
	so.last()
	if so.refused == 0 {
		return nil
	}
	return fmt.Errorf("%d lines of an announced list left out, the first of them line %d: %w", so.refused, so.firstLine, so.why)
}

// hintsHandle is an open descriptor of the hints file: one reader's list.
type hintsHandle struct {
	reader prefetch.Reader
	list   uint64

	mu    sync.Mutex
	lines hintLines
}

func (fs *fileSystem) openHints(input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if input.Flags&unix.O_ACCMODE != unix.O_WRONLY {
		return fuse.EACCES
	}
	h := &hintsHandle{reader: fs.readers.reader(input.Pid), lines: hintLines{mountpoint: fs.options.Mountpoint}}
	fs.mu.Lock()
	out.Fh = fs.addHandleLocked(h)
	h.list = out.Fh // a later open has a higher number
	fs.mu.Unlock()
	out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_STREAM
	return fuse.OK
}

// write takes a piece of the list, wherever in a line it begins and ends.
func (fs *fileSystem) writeHints(h *hintsHandle, text []byte) (uint32, fuse.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := fs.announce(h, h.lines.take(text)); err != nil {
		return 0, hintStatus(err)
	}
	return uint32(len(text)), fuse.OK
}

func (fs *fileSystem) announce(h *hintsHandle, paths []string) error {
	err := fs.engine.Hint(h.reader, h.list, paths)
	if err == nil {
		fs.record.announced(h.reader, paths)
	}
	return err
}

// flushHints answers a close of a descriptor. It may be one of several: a
// process that forks while it writes a list closes its copies in the middle of a
// line.
func (fs *fileSystem) flushHints(h *hintsHandle) fuse.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lines.check() != nil {
		return fuse.EINVAL
	}
	return fuse.OK
}

// releaseHints ends a list: what was written last counts without its newline.
func (fs *fileSystem) releaseHints(h *hintsHandle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := fs.announce(h, h.lines.last())
	if err := errors.Join(h.lines.check(), err); err != nil {
		fs.log.Warn().Uint64("process", uint64(h.reader)).Msg(err.Error())
	}
}

func hintStatus(err error) fuse.Status {
	switch {
	case errors.Is(err, prefetch.ErrHintsFull):
		return fuse.Status(unix.ENOSPC)
	case errors.Is(err, prefetch.ErrHintReplaced):
		return fuse.Status(unix.ESTALE)
	}
	return status(err)
}

// setControlAttr lets the hints file be truncated, as every open with O_TRUNC
// does first: it is always empty.
func (fs *fileSystem) setControlAttr(input *fuse.SetAttrIn, out *fuse.AttrOut) (fuse.Status, bool) {
	if !isControl(input.NodeId) {
		return fuse.OK, false
	}
	const truncation = fuse.FATTR_SIZE | fuse.FATTR_FH | fuse.FATTR_LOCKOWNER |
		fuse.FATTR_MTIME | fuse.FATTR_MTIME_NOW | fuse.FATTR_CTIME
	if input.NodeId != hintsID || input.Valid&^uint32(truncation) != 0 {
		return fuse.EPERM, true
	}
	return fs.controlAttr(input.NodeId, out)
}
