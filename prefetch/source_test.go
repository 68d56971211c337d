package prefetch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newSource(t *testing.T, validity time.Duration) (s *Source, dir string) {
	t.Helper()
	dir = t.TempDir()
	before := openDescriptors(t)
	s, err := OpenSource(dir, validity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close(time.Second)
		if after := openDescriptors(t); after > before {
			t.Errorf("%d descriptors left open", after-before)
		}
	})
	return s, dir
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func put(t *testing.T, dir, name, data string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

// get opens a frame and reads it whole.
func get(s *Source, name string) (string, error) {
	fd, err := s.OpenFrame(name)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	data := make([]byte, 4096)
	n, err := unix.Pread(fd, data, 0)
	return string(data[:max(n, 0)]), err
}

func TestSourceFailsWithThePath(t *testing.T) {
	for _, path := range []string{"/nonexistent/shots", "/proc/self/status"} {
		s, err := OpenSource(path, time.Hour)
		if err == nil {
			s.Close(time.Second)
			t.Fatalf("%s opened", path)
		}
		if !strings.Contains(err.Error(), path) {
			t.Errorf("%q does not say which path", err)
		}
	}
}

func TestSourceReachesWhatAnotherMountCovers(t *testing.T) {
	s, dir := newSource(t, time.Hour)
	put(t, dir, "d/f", "content")
	if err := os.Rename(dir, dir+".moved"); err != nil { // the path is gone, the directory is not
		t.Fatal(err)
	}
	if got, err := get(s, "d/f"); err != nil || got != "content" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestStat(t *testing.T) {
	s, dir := newSource(t, time.Hour)
	put(t, dir, "d/f", "content")
	if err := os.Symlink("f", filepath.Join(dir, "d/link")); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		mode uint32
		size int64
		err  error
	}{
		{"d/f", unix.S_IFREG, 7, nil},
		{"d", unix.S_IFDIR, -1, nil},
		{"", unix.S_IFDIR, -1, nil},
		{"d/link", unix.S_IFLNK, 1, nil},
		{"d/none", 0, 0, unix.ENOENT},
		{"none/f", 0, 0, unix.ENOENT},
		{"d/f/under", 0, 0, unix.ENOTDIR},
		{"d/link/under", 0, 0, unix.ENOTDIR},
	}
	for _, c := range cases {
		asked := time.Now()
		attr, err := s.Stat(c.name)
		if !errors.Is(err, c.err) {
			t.Errorf("%q: %v, want %v", c.name, err, c.err)
			continue
		}
		if attr.Mode&unix.S_IFMT != c.mode || c.size >= 0 && attr.Size != c.size {
			t.Errorf("%q: mode %o, %d bytes; want %o, %d", c.name, attr.Mode, attr.Size, c.mode, c.size)
		}
		if err == nil && attr.Known.Before(asked) {
			t.Errorf("%q: known since before it was asked", c.name)
		}
	}
}

func TestSymbolicLinksAreNotFollowed(t *testing.T) {
	s, dir := newSource(t, time.Hour)
	outside := t.TempDir()
	put(t, outside, "f", "outside")
	put(t, dir, "d/f", "inside")
	for name, target := range map[string]string{"link": "d/f", "directory": "d", "out": outside, "d/up": "../d/f"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]error{
		"link":        unix.ELOOP,
		"d/up":        unix.ELOOP,
		"directory/f": unix.ENOTDIR,
		"out/f":       unix.ENOTDIR,
	} {
		if got, err := get(s, name); !errors.Is(err, want) {
			t.Errorf("%s: %q, %v; want %v", name, got, err, want)
		}
	}
	if _, err := s.readNames("directory"); err == nil {
		t.Error("a directory was listed through a symbolic link")
	}
}

func TestNamesAreBytes(t *testing.T) {
	s, dir := newSource(t, time.Hour)
	names := []string{" ", "new\nline", "\xff\xfe", "ünï", "-rf", "%04d", "back\\slash", "...", strings.Repeat("x", 255)}
	for _, name := range names {
		put(t, dir, name+"/"+name, name)
		if got, err := get(s, name+"/"+name); err != nil || got != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
		if got, err := s.readNames(name); err != nil || !slices.Equal(got, []string{name}) {
			t.Errorf("%q lists as %q, %v", name, got, err)
		}
	}
}

func TestDirectoryDescriptorsAreBounded(t *testing.T) {
	s, dir := newSource(t, time.Hour)
	const directories = 2 * maxOpenDirectories
	for i := range directories {
		put(t, dir, fmt.Sprintf("d%d/f", i), fmt.Sprint(i))
	}
	before := openDescriptors(t)
	for round := range 2 {
		for i := range directories {
			if got, err := get(s, fmt.Sprintf("d%d/f", i)); err != nil || got != fmt.Sprint(i) {
				t.Fatalf("round %d, d%d: %q, %v", round, i, got, err)
			}
		}
	}
	if opened := openDescriptors(t) - before; opened > maxOpenDirectories {
		t.Errorf("%d descriptors held, want at most %d", opened, maxOpenDirectories)
	}
}

func TestDirectoryInUseOutlivesItsPlaceInTheTable(t *testing.T) {
	s, dir := newSource(t, time.Hour)
	put(t, dir, "d/f", "content")
	held, err := s.Directory("d")
	if err != nil {
		t.Fatal(err)
	}
	s.ForgetDirectories("")
	if _, err := statx(held.Fd(), "f", 0); err != nil {
		t.Errorf("a directory that is in use was closed: %v", err)
	}
	held.Close()
	if _, err := get(s, "d/f"); err != nil {
		t.Error(err)
	}
}

func TestRenamedDirectoryIsNoticed(t *testing.T) {
	replace := func(t *testing.T, dir string) {
		for _, step := range [][2]string{{"d", "old"}, {"new", "d"}} {
			if err := os.Rename(filepath.Join(dir, step[0]), filepath.Join(dir, step[1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := []struct {
		name     string
		validity time.Duration
		notice   func(s *Source)
		want     string
	}{
		{"within the validity", time.Hour, func(*Source) {}, "old"},
		{"when told so", time.Hour, func(s *Source) { s.ForgetDirectories("d") }, "new"},
		{"when told of one above", time.Hour, func(s *Source) { s.ForgetDirectories("") }, "new"},
		{"not when told of another", time.Hour, func(s *Source) { s.ForgetDirectories("d/e/f") }, "old"},
		{"after the validity", 50 * time.Millisecond, func(*Source) { time.Sleep(60 * time.Millisecond) }, "new"},
		{"without validity", 0, func(*Source) {}, "new"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, dir := newSource(t, c.validity)
			put(t, dir, "d/e/f", "old")
			put(t, dir, "new/e/f", "new")
			if got, err := get(s, "d/e/f"); err != nil || got != "old" {
				t.Fatalf("%q, %v", got, err)
			}
			replace(t, dir)
			c.notice(s)
			if got, err := get(s, "d/e/f"); err != nil || got != c.want {
				t.Errorf("%q, %v; want the %s one", got, err, c.want)
			}
		})
	}
}

func TestPathsLongerThanTheKernelTakes(t *testing.T) {
	s, dir := newSource(t, time.Hour)
	const depth = 40
	level := strings.Repeat("l", 200) // 8,000 bytes in all; a path may have 4,095
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := unix.Mkdirat(fd, level, 0o777); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, level, unix.O_PATH|unix.O_DIRECTORY, 0)
		unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	unix.Close(fd)
	deep := strings.Repeat(level+"/", depth) + "f0001.exr"
	file, err := s.Open(deep, unix.O_WRONLY|unix.O_CREAT, 0o666)
	if err != nil {
		t.Fatalf("create a file %d bytes deep: %v", len(deep), err)
	}
	if _, err := unix.Write(file, []byte("deep")); err != nil {
		t.Fatal(err)
	}
	unix.Close(file)
	if got, err := get(s, deep); err != nil || got != "deep" {
		t.Errorf("%q, %v", got, err)
	}
	if attr, err := s.Stat(deep); err != nil || attr.Size != 4 {
		t.Errorf("%d bytes, %v", attr.Size, err)
	}
	if names, err := s.readNames(parentOf(deep)); err != nil || !slices.Equal(names, []string{"f0001.exr"}) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestReadNames(t *testing.T) {
	s, dir := newSource(t, time.Hour)
	var want []string
	for i := range 5000 { // more than one call returns
		name := fmt.Sprintf("a rather long name to fill the buffer %06d.exr", i)
		want = append(want, name)
		put(t, dir, "d/"+name, "")
	}
	got, err := s.readNames("d")
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d names, %v; want %d", len(got), err, len(want))
	}
	if got, err := s.readNames(""); err != nil || !slices.Equal(got, []string{"d"}) {
		t.Errorf("the root has %q, %v", got, err)
	}
	if _, err := s.readNames("none"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v, want ENOENT", err)
	}
}

func TestFifoHoldsNobodyUp(t *testing.T) {
	s, dir := newSource(t, time.Hour)
	if err := unix.Mkfifo(filepath.Join(dir, "f0001.exr"), 0o666); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		fd, err := s.OpenFrame("f0001.exr")
		if err == nil {
			unix.Close(fd)
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the open waits for a writer")
	}
}

func TestSourceUnderConcurrentUse(t *testing.T) {
	s, dir := newSource(t, time.Millisecond)
	for i := range 8 {
		put(t, dir, fmt.Sprintf("a/b%d/f", i), fmt.Sprint(i))
	}
	var users sync.WaitGroup
	for user := range 4 {
		users.Go(func() {
			for i := range 400 {
				want := fmt.Sprint((user + i) % 8)
				if got, err := get(s, "a/b"+want+"/f"); err != nil || got != want {
					t.Errorf("%q, %v; want %s", got, err, want)
				}
				if i%16 == 0 {
					s.ForgetDirectories("a/b" + want)
				}
			}
		})
	}
	users.Wait()
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		name, tree string
		want       bool
	}{
		{"a", "", true}, {"", "", true}, {"a", "a", true}, {"a/b", "a", true},
		{"ab", "a", false}, {"a.b", "a", false}, {"a", "a/b", false}, {"b/a", "a", false},
	} {
		if got := within(c.name, c.tree); got != c.want {
			t.Errorf("within(%q, %q) = %v", c.name, c.tree, got)
		}
	}
}
