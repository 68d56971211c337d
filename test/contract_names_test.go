package test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sameError does the same at the source and through the mount, where it must
// end the same way. Servers differ in what they can do; a mount must not.
func (s *site) sameError(t *testing.T, what string, do func(root string) error) {
	t.Helper()
	source, through := do(s.backing), do(s.path)
	var a, b syscall.Errno
	errors.As(source, &a)
	errors.As(through, &b)
	if (source == nil) != (through == nil) || a != b {
		t.Errorf("%s: %v through the mount, %v at the source", what, through, source)
	}
}

func checkDirectories(t *testing.T, s *site) {
	must(t, os.MkdirAll(s.at("dirs/a/b/c"), 0o755))
	must(t, os.Mkdir(s.at("dirs/sticky"), 0o777))
	must(t, unix.Mkdir(s.at("dirs/shared"), 0o1777))
	if info, err := os.Stat(filepath.Join(s.backing, "dirs/shared")); err != nil || info.Mode()&fs.ModeSticky == 0 {
		t.Errorf("mkdir lost the sticky bit: %v, %v", info.Mode(), err)
	}
	must(t, os.Remove(s.at("dirs/a/b/c")))
	if _, err := os.Stat(filepath.Join(s.backing, "dirs/a/b/c")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed directory is still at the source: %v", err)
	}
	s.sameError(t, "rmdir of a directory with entries", func(root string) error { return unix.Rmdir(filepath.Join(root, "dirs/a")) })
	s.sameError(t, "mkdir of what exists", func(root string) error { return unix.Mkdir(filepath.Join(root, "dirs/a"), 0o755) })
	s.sameError(t, "mkdir below nothing", func(root string) error { return unix.Mkdir(filepath.Join(root, "dirs/none/a"), 0o755) })
	s.sameError(t, "unlink of a directory", func(root string) error { return unix.Unlink(filepath.Join(root, "dirs/a")) })
	s.sameError(t, "open a directory for writing", func(root string) error {
		_, err := os.OpenFile(filepath.Join(root, "dirs/a"), os.O_WRONLY, 0)
		return err
	})
}

func checkLinks(t *testing.T, s *site) {
	must(t, os.Mkdir(s.at("links"), 0o755))
	want := content("linked", 10_000)
	writeFile(t, s.at("links/file"), want)
	must(t, os.Link(s.at("links/file"), s.at("links/hard")))
	must(t, os.Symlink("file", s.at("links/soft")))
	must(t, os.Symlink("nothing/here", s.at("links/dangling")))
	for _, name := range []string{"links/hard", "links/soft"} {
		sameBytes(t, readFile(t, s.at(name)), want, name)
	}
	for _, root := range []string{s.path, s.backing} {
		if target, err := os.Readlink(filepath.Join(root, "links/dangling")); err != nil || target != "nothing/here" {
			t.Errorf("the link in %s leads to %q, %v", root, target, err)
		}
	}
	var a, b unix.Stat_t
	must(t, unix.Stat(s.at("links/file"), &a))
	must(t, unix.Stat(s.at("links/hard"), &b))
	if a.Ino != b.Ino || a.Nlink != 2 || b.Nlink != 2 {
		t.Errorf("hard links: inodes %d and %d, %d and %d links", a.Ino, b.Ino, a.Nlink, b.Nlink)
	}
	// Written under one name, read under the other.
	writeFile(t, s.at("links/hard"), []byte("new"))
	s.everywhere(t, "links/file", []byte("new"))
	must(t, os.Remove(s.at("links/file")))
	s.everywhere(t, "links/hard", []byte("new"))
	s.sameError(t, "link over what exists", func(root string) error {
		return os.Link(filepath.Join(root, "links/hard"), filepath.Join(root, "links/soft"))
	})
	if info, err := os.Lstat(s.at("links/dangling")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("lstat of a dangling link: %v, %v", info, err)
	}
}

func checkModes(t *testing.T, s *site) {
	must(t, os.Mkdir(s.at("modes"), 0o755))
	writeFile(t, s.at("modes/file"), []byte("x"))
	for _, mode := range []uint32{0o600, 0o444, 0o4755, 0o644} {
		must(t, unix.Chmod(s.at("modes/file"), mode))
		for _, root := range []string{s.path, s.backing} {
			var stat unix.Stat_t
			must(t, unix.Stat(filepath.Join(root, "modes/file"), &stat))
			if stat.Mode&0o7777 != mode {
				t.Errorf("mode %o in %s, want %o", stat.Mode&0o7777, root, mode)
			}
		}
	}
	must(t, os.Chown(s.at("modes/file"), 1234, 5678))
	var stat unix.Stat_t
	must(t, unix.Stat(filepath.Join(s.backing, "modes/file"), &stat))
	if stat.Uid != 1234 || stat.Gid != 5678 {
		t.Errorf("owner %d:%d, want 1234:5678", stat.Uid, stat.Gid)
	}
}

func checkTimes(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "times", 4, 5000)
	seq.play(s.mount, 0, 4)
	want := time.Unix(1_234_567_890, 123_456_789)
	must(t, os.Chtimes(s.at(seq.name(3)), want, want))
	for _, path := range []string{s.at(seq.name(3)), seq.backing(3)} {
		info, err := os.Stat(path)
		must(t, err)
		if !info.ModTime().Equal(want) {
			t.Errorf("%s was changed at %v, want %v", path, info.ModTime(), want)
		}
	}
	before := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(s.at(seq.name(3)), time.Time{}, time.Now()))
	info, err := os.Stat(seq.backing(3))
	must(t, err)
	if info.ModTime().Before(before) {
		t.Errorf("touched, but changed at %v", info.ModTime())
	}
}

func checkXattrs(t *testing.T, s *site) {
	must(t, os.Mkdir(s.at("xattrs"), 0o755))
	writeFile(t, s.at("xattrs/file"), []byte("x"))
	path := s.at("xattrs/file")
	must(t, unix.Setxattr(path, "user.show", []byte("forty-two"), 0))
	value := make([]byte, 100)
	for _, root := range []string{s.path, s.backing} {
		n, err := unix.Getxattr(filepath.Join(root, "xattrs/file"), "user.show", value)
		if err != nil || string(value[:n]) != "forty-two" {
			t.Errorf("in %s: %q, %v", root, value[:max(n, 0)], err)
		}
	}
	names := make([]byte, 1000)
	n, err := unix.Listxattr(path, names)
	if err != nil || !bytes.Contains(names[:max(n, 0)], []byte("user.show\x00")) {
		t.Errorf("list: %q, %v", names[:max(n, 0)], err)
	}
	if _, err := unix.Getxattr(path, "user.show", make([]byte, 2)); !errors.Is(err, unix.ERANGE) {
		t.Errorf("get into too little room: %v", err)
	}
	must(t, unix.Removexattr(path, "user.show"))
	s.sameError(t, "get of what is gone", func(root string) error {
		_, err := unix.Getxattr(filepath.Join(root, "xattrs/file"), "user.show", value)
		return err
	})
}

func checkSpecial(t *testing.T, s *site) {
	must(t, os.Mkdir(s.at("special"), 0o755))
	must(t, unix.Mkfifo(s.at("special/shot.0003.fifo"), 0o600))
	must(t, unix.Mkfifo(s.at("special/shot.0004.fifo"), 0o600))
	// Named like frames: a fetch must not hang at one.
	for _, name := range []string{"shot.0001.fifo", "shot.0002.fifo"} {
		writeFile(t, s.at("special/"+name), []byte(name))
	}
	time.Sleep(settleTime)
	for _, name := range []string{"shot.0001.fifo", "shot.0002.fifo"} {
		sameBytes(t, readFile(t, s.at("special/"+name)), []byte(name), name)
	}
	if info, err := os.Lstat(filepath.Join(s.backing, "special/shot.0003.fifo")); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Fatalf("mkfifo made %v, %v", info, err)
	}
	go func() { _ = os.WriteFile(s.at("special/shot.0003.fifo"), []byte("through"), 0) }()
	sameBytes(t, readFile(t, s.at("special/shot.0003.fifo")), []byte("through"), "a pipe")
}

func checkNames(t *testing.T, s *site) {
	must(t, os.Mkdir(s.at("names"), 0o755))
	for _, name := range []string{
		strings.Repeat("x", 255), strings.Repeat("é", 120) + ".0001.exr", "new\nline", " ", "-rf", "a b.0001.dpx", "\xff\xfe.bin",
	} {
		writeFile(t, s.at("names/"+name), []byte(name))
		s.everywhere(t, "names/"+name, []byte(name))
	}
	s.sameError(t, "a name of 256 bytes", func(root string) error {
		return os.WriteFile(filepath.Join(root, "names", strings.Repeat("x", 256)), nil, 0o644)
	})
	deep := "names" + strings.Repeat("/"+strings.Repeat("d", 100), 20)
	must(t, os.MkdirAll(s.at(deep), 0o755))
	writeFile(t, s.at(deep+"/file"), []byte("deep"))
	s.everywhere(t, deep+"/file", []byte("deep"))
}

func checkRenameDirectory(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "moved", siteFrames, frameSize)
	next := seq.leadTo(s.mount)
	reader := openFile(t, s.at(seq.name(next)), os.O_RDONLY)
	must(t, os.Rename(s.at("moved"), s.at("moved-away")))
	if _, err := os.Stat(s.at(seq.name(next))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name is still there: %v", err)
	}
	sameBytes(t, readInPieces(t, reader, 64<<10), seq.frames[next], "through the handle from before")
	for i, want := range seq.frames {
		s.everywhere(t, "moved-away/"+frameName(i), want)
	}
	// Another directory under the old name.
	again := makeSequence(t, s.path, "moved", 4, frameSize+1)
	again.play(s.mount, 0, 4)
}

// entry is what a listing tells of a file.
type entry struct {
	Mode  uint32
	Ino   uint64
	Size  int64
	Nlink uint64
	Mtime unix.Timespec
}

func tree(t *testing.T, root string) map[string]entry {
	t.Helper()
	entries := make(map[string]entry)
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			return fmt.Errorf("lstat %s: %w", path, err)
		}
		name, _ := filepath.Rel(root, path)
		e := entry{Mode: stat.Mode, Ino: stat.Ino, Nlink: uint64(stat.Nlink), Mtime: stat.Mtim}
		if !d.IsDir() {
			e.Size = stat.Size
		}
		entries[name] = e
		return nil
	}))
	return entries
}

// checkListing compares all that the checks before have left, and the kinds
// that the names alone tell.
func checkListing(t *testing.T, s *site) {
	outlast()
	want, got := tree(t, s.source), tree(t, s.path)
	root, mounted := want["."], got["."]
	root.Ino, mounted.Ino = 0, 0 // the root of a FUSE mount is always 1
	want["."], got["."] = root, mounted
	for name, w := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		} else if !reflect.DeepEqual(g, w) {
			t.Errorf("%s: %+v, want %+v", name, g, w)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not at the source", name)
		}
	}
}

func checkStatfs(t *testing.T, s *site) {
	var source, through unix.Statfs_t
	must(t, unix.Statfs(s.source, &source))
	must(t, unix.Statfs(s.path, &through))
	if source.Blocks != through.Blocks || source.Bsize != through.Bsize || source.Namelen != through.Namelen || source.Files != through.Files {
		t.Errorf("%+v through the mount, %+v at the source", through, source)
	}
}
