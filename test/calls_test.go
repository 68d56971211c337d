package test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// calls are what an application may wait in for the source: prepare is done
// while it answers still, and stalled is the server's operation that does not end
// (the lookups before it would be where a call waits else).
var calls = []struct {
	name    string
	stalled string
	prepare func(dir string) (fd int, err error)
	call    func(dir string, fd int) error
}{
	{"lookup", "any", nil, func(dir string, _ int) error { return unix.Access(dir+"/nothing", unix.F_OK) }},
	{"stat", "any", nil, func(dir string, _ int) error { return unix.Stat(dir+"/stat", &unix.Stat_t{}) }},
	{"fstat", "any", opened("stat", unix.O_RDONLY), func(_ string, fd int) error { return unix.Fstat(fd, &unix.Stat_t{}) }},
	{"open", "open", nil, func(dir string, _ int) error { _, err := unix.Open(dir+"/open", unix.O_RDONLY, 0); return err }},
	{"open for writing", "open", nil, func(dir string, _ int) error { _, err := unix.Open(dir+"/write", unix.O_RDWR, 0); return err }},
	{"read", "any", opened("read", unix.O_RDONLY), func(_ string, fd int) error { _, err := unix.Read(fd, make([]byte, 100)); return err }},
	{"write", "write", opened("write", unix.O_WRONLY), func(_ string, fd int) error { _, err := unix.Write(fd, []byte("other")); return err }},
	{"fsync", "fsync", opened("write", unix.O_WRONLY), func(_ string, fd int) error { return unix.Fsync(fd) }},
	{"fallocate", "fallocate", opened("write", unix.O_WRONLY), func(_ string, fd int) error { return unix.Fallocate(fd, 0, 0, 1000) }},
	{"create", "create", nil, func(dir string, _ int) error {
		_, err := unix.Open(dir+"/create", unix.O_CREAT|unix.O_WRONLY, 0o600)
		return err
	}},
	{"tmpfile", "create", nil, func(dir string, _ int) error {
		_, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY, 0o600)
		return err
	}},
	{"mkdir", "mkdir", nil, func(dir string, _ int) error { return unix.Mkdir(dir+"/mkdir", 0o755) }},
	{"mknod", "mknod", nil, func(dir string, _ int) error { return unix.Mknod(dir+"/mknod", unix.S_IFIFO|0o600, 0) }},
	{"symlink", "symlink", nil, func(dir string, _ int) error { return unix.Symlink("target", dir+"/symlink") }},
	{"link", "link", nil, func(dir string, _ int) error { return unix.Link(dir+"/link", dir+"/linked") }},
	{"rename", "rename", nil, func(dir string, _ int) error { return unix.Rename(dir+"/rename", dir+"/renamed") }},
	{"unlink", "unlink", nil, func(dir string, _ int) error { return unix.Unlink(dir + "/unlink") }},
	{"chmod", "setattr", nil, func(dir string, _ int) error { return unix.Chmod(dir+"/chmod", 0o600) }},
	{"truncate", "setattr", nil, func(dir string, _ int) error { return unix.Truncate(dir+"/truncate", 3) }},
	{"readlink", "readlink", nil, func(dir string, _ int) error {
		_, err := unix.Readlink(dir+"/readlink", make([]byte, 100))
		return err
	}},
	{"getxattr", "getxattr", nil, func(dir string, _ int) error {
		_, err := unix.Getxattr(dir+"/readxattr", "user.x", make([]byte, 100))
		return err
	}},
	{"list", "any", opened("list", unix.O_RDONLY|unix.O_DIRECTORY), func(_ string, fd int) error {
		_, err := unix.Getdents(fd, make([]byte, 4096))
		return err
	}},
	{"opendir", "opendir", nil, func(dir string, _ int) error {
		_, err := unix.Open(dir+"/list", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		return err
	}},
	{"statfs", "statfs", nil, func(dir string, _ int) error { return unix.Statfs(dir, &unix.Statfs_t{}) }},
}

func opened(name string, flags int) func(dir string) (int, error) {
	return func(dir string) (int, error) { return unix.Open(filepath.Join(dir, name), flags, 0) }
}

// callOnce makes one of the calls, once it is told to.
func callOnce(name, dir string) error {
	for _, c := range calls {
		if c.name != name {
			continue
		}
		fd := -1
		if c.prepare != nil {
			var err error
			if fd, err = c.prepare(dir); err != nil {
				return fmt.Errorf("prepare %s: %w", name, err)
			}
		}
		fmt.Println("prepared")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return err
		}
		return c.call(dir, fd)
	}
	return fmt.Errorf("no call %q", name)
}

// crowd has many threads ask for files that nobody knows, and never ends.
func crowd(dir, threads string) error {
	n, err := strconv.Atoi(threads)
	if err != nil {
		return err
	}
	for i := range n {
		go func() { _ = unix.Access(fmt.Sprintf("%s/nothing%d", dir, i), unix.F_OK) }()
	}
	fmt.Println("all ask")
	time.Sleep(time.Hour)
	return nil
}
