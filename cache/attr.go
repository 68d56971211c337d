package cache

import (
	"time"

	"golang.org/x/sys/unix"
)

// Attr is what the source said of a file, and when.
type Attr struct {
	Dev, Ino uint64
	Mode     uint32
	Nlink    uint32
	UID, GID uint32
	Rdev     uint64
	Size     int64
	Blocks   int64
	Blksize  uint32
	Atime    unix.StatxTimestamp
	Mtime    unix.StatxTimestamp
	Ctime    unix.StatxTimestamp
	Known    time.Time // when the source was asked; monotonic
}

// AttrFromStatx converts what statx(2) filled in at the given time.
func AttrFromStatx(s *unix.Statx_t, known time.Time) Attr {
	return Attr{
		Dev:     unix.Mkdev(s.Dev_major, s.Dev_minor),
		Ino:     s.Ino,
		Mode:    uint32(s.Mode),
		Nlink:   s.Nlink,
		UID:     s.Uid,
		GID:     s.Gid,
		Rdev:    unix.Mkdev(s.Rdev_major, s.Rdev_minor),
		Size:    int64(s.Size),
		Blocks:  int64(s.Blocks),
		Blksize: s.Blksize,
		Atime:   s.Atime,
		Mtime:   s.Mtime,
		Ctime:   s.Ctime,
		Known:   known,
	}
}

// IsRegular tells whether the file is a regular one, the only kind that is
// ever fetched.
func (a Attr) IsRegular() bool { return a.Mode&unix.S_IFMT == unix.S_IFREG }

// SameContent tells whether two answers speak of the same file with the same
// content: device, inode, size, mtime and ctime agree to the nanosecond.
func (a Attr) SameContent(b Attr) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size &&
		a.Mtime.Sec == b.Mtime.Sec && a.Mtime.Nsec == b.Mtime.Nsec &&
		a.Ctime.Sec == b.Ctime.Sec && a.Ctime.Nsec == b.Ctime.Nsec
}
