package prefetch

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"reelahead/cache"
)

// maxOpenDirectories bounds the descriptors that Source keeps for directories.
const maxOpenDirectories = 256

// Source reaches the directory that the mount shows. It holds a descriptor of
// it and never goes by its path, so it still reaches the source when the mount
// covers that path. All names are relative to it, slash-separated; "" is the
// source itself.
//
// Directories on the way to a file are kept open for at most the validity
// time, so that a lookup costs one round trip and not one for each level.
type Source struct {
	root     int
	validity time.Duration
	remote   bool // a network or FUSE client
	direct   bool // frames are read past the client's page cache
	closer   *closer

	mu          sync.Mutex
	directories map[string]*Directory
}

// Directory is an open directory of the source. Close it after use.
type Directory struct {
	fd     int
	opened time.Time
	source *Source
	users  int // guarded by Source.mu; the source's table counts as one
}

// OpenSource opens the directory at path. What is known of directories on the
// way to a file holds for validity.
func OpenSource(path string, validity time.Duration) (*Source, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open source directory %s: %w", path, err)
	}
	remote := isRemote(fd)
	return &Source{root: fd, validity: validity, remote: remote, direct: remote, closer: newCloser(), directories: make(map[string]*Directory)}, nil
}

// isRemote tells whether a source is a network or FUSE client. Its frames are
// better read with O_DIRECT: a read past the page cache costs half the processor
// time, keeps one copy of a frame in memory instead of two, and asks for 1 MiB
// whatever the read-ahead is. Such clients take any offset and length; a local
// disk does not.
func isRemote(fd int) bool {
	var s unix.Statfs_t
	if unix.Fstatfs(fd, &s) != nil {
		return false
	}
	switch uint32(s.Type) {
	case unix.NFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return true
	}
	return false
}

// OpenFrame opens a file to be fetched.
func (s *Source) OpenFrame(name string) (int, error) {
	// O_NONBLOCK: a FIFO that is named like a frame must not hold a worker.
	const flags = unix.O_RDONLY | unix.O_NONBLOCK
	if s.direct {
		fd, err := s.Open(name, flags|unix.O_DIRECT, 0)
		if err != unix.EINVAL {
			return fd, err
		}
		// A filesystem without direct reads.
	}
	return s.Open(name, flags, 0)
}

// Release closes a descriptor of the source's in the background: the server may
// have to be waited for.
func (s *Source) Release(fd int) { s.Later(func() { unix.Close(fd) }) }

// Later runs what may close a file of the source's in the background.
func (s *Source) Later(release func()) { s.closer.do(release) }

// Close closes all descriptors that are not in use. A server that never answers
// holds it up for at most patience; it reports whether all were closed.
func (s *Source) Close(patience time.Duration) bool {
	s.ForgetDirectories("")
	unix.Close(s.root)
	return s.closer.wait(patience)
}

// Fd returns the descriptor, for the *at system calls.
func (d *Directory) Fd() int { return d.fd }

// Close gives the directory back.
func (d *Directory) Close() {
	d.source.mu.Lock()
	defer d.source.mu.Unlock()
	d.releaseLocked()
}

func (d *Directory) releaseLocked() {
	d.users--
	if d.users == 0 {
		unix.Close(d.fd)
	}
}

// Directory opens a directory of the source, each level relative to the one
// above it, never through a symbolic link.
func (s *Source) Directory(name string) (*Directory, error) {
	if name == "" {
		// The root never changes identity: a fresh reference costs nothing.
		return &Directory{fd: s.root, source: s, users: 2}, nil
	}
	if d := s.cached(name); d != nil {
		return d, nil
	}
	parent, err := s.Directory(parentOf(name))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	fd, err := openat(parent.fd, path.Base(name), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return s.remember(name, fd), nil
}

func (s *Source) cached(name string) *Directory {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.directories[name]
	if d == nil {
		return nil
	}
	if time.Since(d.opened) > s.validity {
		s.dropLocked(name, d)
		return nil
	}
	d.users++
	return d
}

func (s *Source) remember(name string, fd int) *Directory {
	d := &Directory{fd: fd, opened: time.Now(), source: s, users: 2}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.directories[name]; old != nil {
		s.dropLocked(name, old)
	}
	if len(s.directories) >= maxOpenDirectories {
		s.dropOldestLocked()
	}
	s.directories[name] = d
	return d
}

func (s *Source) dropLocked(name string, d *Directory) {
	delete(s.directories, name)
	d.releaseLocked()
}

func (s *Source) dropOldestLocked() {
	var oldestName string
	var oldest *Directory
	for name, d := range s.directories {
		if oldest == nil || d.opened.Before(oldest.opened) {
			oldestName, oldest = name, d
		}
	}
	s.dropLocked(oldestName, oldest)
}

// ForgetDirectories closes what is held open at or below name: it was renamed
// or removed through the mount.
func (s *Source) ForgetDirectories(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for held, d := range s.directories {
		if within(held, name) {
			s.dropLocked(held, d)
		}
	}
}

// Stat asks the source for the attributes of a file, not following a symbolic
// link, past the client's own attribute cache where the filesystem allows it.
func (s *Source) Stat(name string) (cache.Attr, error) {
	return s.stat(name, unix.AT_STATX_FORCE_SYNC)
}

// Look asks as stat(2) does: the client answers as it would anybody. For a name
// that is new to the client that is one round trip where Stat takes two, since the
// lookup brings the attributes along.
func (s *Source) Look(name string) (cache.Attr, error) {
	return s.stat(name, unix.AT_STATX_SYNC_AS_STAT)
}

func (s *Source) stat(name string, sync int) (cache.Attr, error) {
	directory, err := s.Directory(parentOf(name))
	if err != nil {
		return cache.Attr{}, err
	}
	defer directory.Close()
	if name == "" {
		return statx(directory.fd, "", unix.AT_EMPTY_PATH|sync)
	}
	return statx(directory.fd, path.Base(name), unix.AT_SYMLINK_NOFOLLOW|sync)
}

// StatFd asks for the attributes of an open file, as fstat(2) does.
func StatFd(fd int) (cache.Attr, error) { return statx(fd, "", unix.AT_EMPTY_PATH) }

// StatOpened gives the attributes of a file that was opened just now. The open has
// refreshed them (close-to-open), so what the client has is good and the server is
// not asked again.
func StatOpened(fd int) (cache.Attr, error) {
	return statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC)
}

// Refresh asks the source for the attributes of an open file.
func (s *Source) Refresh(fd int) (cache.Attr, error) {
	return statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_FORCE_SYNC)
}

// Open opens a file of the source as openat(2) does, never following a
// symbolic link in the last place.
func (s *Source) Open(name string, flags int, mode uint32) (int, error) {
	directory, err := s.Directory(parentOf(name))
	if err != nil {
		return -1, err
	}
	defer directory.Close()
	base := path.Base(name)
	if name == "" {
		base = "."
	}
	return openat(directory.fd, base, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
}

func openat(directory int, base string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(directory, base, flags, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func statx(directory int, base string, flags int) (cache.Attr, error) {
	var answer unix.Statx_t
	asked := time.Now()
	for {
		err := unix.Statx(directory, base, flags, unix.STATX_BASIC_STATS, &answer)
		if err == nil {
			return cache.AttrFromStatx(&answer, asked), nil
		}
		if err != unix.EINTR {
			return cache.Attr{}, err
		}
	}
}

// readNames lists a directory of the source.
func (s *Source) readNames(name string) ([]string, error) {
	fd, err := s.Open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buffer := make([]byte, 256<<10)
	var names []string
	for {
		n, err := unix.ReadDirent(fd, buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buffer[:n], -1, names)
	}
}

func parentOf(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

// within tells whether name is tree or lies below it.
func within(name, tree string) bool {
	return tree == "" || name == tree || (len(name) > len(tree) && name[len(tree)] == '/' && name[:len(tree)] == tree)
}
