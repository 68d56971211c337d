package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// xattrOf reads user.show of a file; "": there is none.
func xattrOf(t *testing.T, path string) string {
	t.Helper()
	value := make([]byte, 1024)
	n, err := unix.Getxattr(path, "user.show", value)
	if errors.Is(err, unix.ENODATA) {
		return ""
	}
	must(t, err)
	return string(value[:n])
}

// TestXAttrsRemembered changes an extended attribute through the mount and at
// the source, after the mount has been asked for it, and has it believed in between.
func TestXAttrsRemembered(t *testing.T) {
	t.Parallel()
	source := memory(t)
	m := mountOver(t, source, "--validity", "700ms")
	path, backing := m.at("file"), filepath.Join(source, "file")
	writeFile(t, backing, []byte("x"))
	is := func(when, want string) {
		t.Helper()
		if got := xattrOf(t, path); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	is("before there is one", "")
	must(t, unix.Setxattr(path, "user.show", []byte("one"), 0))
	is("set through the mount", "one")
	must(t, unix.Setxattr(path, "user.show", []byte("two"), 0))
	is("set again through the mount", "two")
	must(t, unix.Setxattr(backing, "user.show", []byte("three"), 0))
	is("within the validity", "two")
	if n, err := unix.Getxattr(path, "user.show", nil); n != 3 || err != nil {
		t.Errorf("length: %d, %v", n, err)
	}
	if _, err := unix.Getxattr(path, "user.show", make([]byte, 2)); !errors.Is(err, unix.ERANGE) {
		t.Errorf("into too small a buffer: %v", err)
	}
	time.Sleep(701 * time.Millisecond)
	is("changed at the source", "three")
	must(t, unix.Removexattr(path, "user.show"))
	is("removed through the mount", "")
	for i := range 20 { // more than are remembered, and one that is too large
		must(t, unix.Setxattr(backing, fmt.Sprint("user.n", i), content("value", 20+i*60), 0))
	}
	for range 2 {
		for i := range 20 {
			value := make([]byte, 2048)
			n, err := unix.Getxattr(path, fmt.Sprint("user.n", i), value)
			must(t, err)
			sameBytes(t, value[:n], content("value", 20+i*60), fmt.Sprint("user.n", i))
		}
	}
	m.unmount()
}

// TestXAttrsPerUser: what one user was told is not answered to another.
func TestXAttrsPerUser(t *testing.T) {
	t.Parallel()
	source := memory(t)
	shared(t, source)
	path := filepath.Join(source, "show", "file")
	writeFile(t, path, []byte("x"))
	must(t, unix.Setxattr(path, "user.show", []byte("secret"), 0))
	must(t, os.Chmod(path, 0o600))
	m := mountAt(t, source, memory(t), "--allow-other", "--validity", "1m")
	if got := xattrOf(t, m.at("show/file")); got != "secret" {
		t.Errorf("its owner is told %q", got)
	}
	said, err := asNobody(`python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "user.show"))' "$1"`, m.at("show/file"))
	if err == nil {
		t.Errorf("another user is told %q", said)
	}
	m.unmount()
}

// TestWalk goes through a directory of a slow server as ls -l does, which
// takes less than half of what it takes there; then changes files in every
// way, through the mount in the middle of a walk and at the source between two.
func TestWalk(t *testing.T) {
	t.Parallel()
	const files = 200
	backing := memory(t)
	source, _ := slowNAS(t, backing, "--rtt", "5ms")
	m := mountOver(t, source, "--validity", validity.String())
	must(t, os.Mkdir(filepath.Join(backing, "show"), 0o755))
	name := func(i int) string { return fmt.Sprintf("show/f.%04d", i) }
	sizes := make([]int64, files) // -1: deleted
	for i := range files {
		sizes[i] = int64(i % 7)
		writeFile(t, filepath.Join(backing, name(i)), content("f", i%7))
	}
	check := func(i int) {
		t.Helper()
		switch info, err := os.Lstat(m.at(name(i))); {
		case sizes[i] < 0:
			if !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v, want that it does not exist", name(i), err)
			}
		case err != nil || info.Size() != sizes[i]:
			t.Fatalf("%s: %v, %v, want %d bytes", name(i), info, err, sizes[i])
		}
	}
	began := time.Now()
	for i := range files {
		_, err := os.Lstat(filepath.Join(source, name(i)))
		must(t, err)
	}
	direct := time.Since(began)
	began = time.Now()
	_, err := os.ReadDir(m.at("show"))
	must(t, err)
	for i := range files {
		check(i)
	}
	if took := time.Since(began); took > direct/2 {
		t.Errorf("%s for %d files, and the source itself took %s", took, files, direct)
	}
	for i := range files {
		switch i % 5 {
		case 0:
			sizes[i] = 100 + int64(i)
			must(t, os.Truncate(filepath.Join(backing, name(i)), sizes[i]))
		case 1:
			sizes[i] = 50
			replaceFile(t, filepath.Join(backing, name(i)), content("new", 50))
		case 2:
			sizes[i] = -1
			must(t, os.Remove(filepath.Join(backing, name(i))))
		}
	}
	outlast()
	for i := range files {
		if next := i + 5; i%20 == 3 && next < files && sizes[next] >= 0 {
			sizes[next] = 300 + int64(next)
			must(t, os.Truncate(m.at(name(next)), sizes[next])) // it was looked up ahead
		}
		check(i)
	}
	m.unmount()
}

// namesIn lists a directory, opened anew.
func namesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	names := ""
	for _, entry := range entries {
		names += entry.Name() + " "
	}
	return names
}

// TestListingsRemembered changes a directory's names through the mount and at the
// source, after they have been listed.
func TestListingsRemembered(t *testing.T) {
	t.Parallel()
	source := memory(t)
	dir := shared(t, source)
	m := mountAt(t, source, memory(t), "--allow-other", "--validity", "700ms")
	is := func(when, want string) {
		t.Helper()
		if got := namesIn(t, m.at("show")); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	writeFile(t, filepath.Join(dir, "a"), nil)
	is("at first", "a ")
	writeFile(t, filepath.Join(dir, "b"), nil)
	is("within the validity", "a ")
	writeFile(t, m.at("show/c"), nil)
	is("made through the mount", "a b c ")
	must(t, os.Rename(m.at("show/c"), m.at("show/d")))
	is("renamed through the mount", "a b d ")
	must(t, os.Remove(m.at("show/a")))
	is("removed through the mount", "b d ")
	time.Sleep(701 * time.Millisecond)
	is("listed again", "b d ")
	must(t, os.Remove(filepath.Join(dir, "b")))
	time.Sleep(701 * time.Millisecond)
	is("removed at the source", "d ")

	// What one user has listed is not another's, who may be refused by the source.
	writeFile(t, filepath.Join(dir, "e"), nil)
	if said, err := asNobody(`ls "$1"`, m.at("show")); err != nil || said != "d\ne\n" {
		t.Errorf("another user lists %q, %v", said, err)
	}
	// A directory that is synced although nobody has opened it at the source.
	is("within the validity", "d e ")
	is("again", "d e ")
	opened, err := os.Open(m.at("show"))
	must(t, err)
	must(t, opened.Sync())
	must(t, opened.Close())

	for i := range 5000 { // more than one answer of the source's and of the mount's
		writeFile(t, filepath.Join(dir, fmt.Sprintf("many.%04d", i)), nil)
	}
	time.Sleep(701 * time.Millisecond)
	for range 3 {
		if got := len(namesIn(t, m.at("show"))); got != 2*2+5000*10 {
			t.Errorf("the names have %d bytes", got)
		}
	}
	m.unmount()
}

// TestSpace: free space is remembered for a second at most, and not beyond the validity.
func TestSpace(t *testing.T) {
	t.Parallel()
	source := memory(t)
	m := mountOver(t, source, "--validity", "10m")
	free := func(path string) (s unix.Statfs_t) {
		t.Helper()
		must(t, unix.Statfs(path, &s))
		return s
	}
	first := free(m.at(""))
	if first.Blocks == 0 || first.Blocks != free(source).Blocks || free(m.at("")) != first {
		t.Errorf("%d blocks, the source has %d", first.Blocks, free(source).Blocks)
	}
	writeFile(t, filepath.Join(source, "f"), make([]byte, 64<<20))
	time.Sleep(1001 * time.Millisecond)
	if free(m.at("")).Bfree == first.Bfree {
		t.Error("a file of 64 MiB has taken no space")
	}
	m.unmount()
}
