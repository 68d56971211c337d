package slownas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The server runs in another process: a process that serves a mount must not
// touch it. The test binary serves when serveEnv holds a serveRequest, and reads
// with timer signals coming in when tickEnv holds the path of a file.
const (
	serveEnv = "SLOWNAS_TEST_SERVE"
	tickEnv  = "SLOWNAS_TEST_TICK"
)

type serveRequest struct {
	Backing, MountPoint string
	Config              Config
}

func TestMain(m *testing.M) {
	if text := os.Getenv(serveEnv); text != "" {
		os.Exit(serve(text))
	}
	if path := os.Getenv(tickEnv); path != "" {
		os.Exit(readWithTicks(path))
	}
	os.Exit(m.Run())
}

func serve(text string) int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	var request serveRequest
	if err := json.Unmarshal([]byte(text), &request); err != nil {
		fmt.Println(err)
		return 1
	}
	mount, err := New(request.Backing, request.MountPoint, request.Config)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("mounted")
	<-stop
	if err := mount.Unmount(); err != nil {
		fmt.Println(err)
		return 1
	}
	mount.Wait()
	return 0
}

// mountNAS mounts a model over a new backing directory until the test ends.
func mountNAS(t *testing.T, config Config) (backing, mountPoint string) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs /dev/fuse")
	}
	backing, mountPoint = t.TempDir(), t.TempDir()
	text, err := json.Marshal(serveRequest{backing, mountPoint, config})
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serveEnv+"="+string(text))
	server.Stderr = os.Stderr
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var said [512]byte
	n, _ := stdout.Read(said[:])
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		if err := server.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if table, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(table), mountPoint) {
			t.Errorf("%s is still mounted", mountPoint)
			_ = unix.Unmount(mountPoint, unix.MNT_DETACH)
		}
	})
	if got := string(said[:n]); got != "mounted\n" {
		t.Skipf("can't mount here: %s", got)
	}
	return backing, mountPoint
}

func makeFile(t *testing.T, dir, name string, size int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte(name), size/len(name)+1)[:size], 0o644); err != nil {
		t.Fatal(err)
	}
}

// within15 measures until the result is within 15 % of what was asked of the
// model, at most attempts times: others use the machine too, so that a single
// measurement can be anything above.
func within15(t *testing.T, what string, want float64, measure func() float64) {
	t.Helper()
	const attempts = 6
	var got []float64
	for range attempts {
		value := measure()
		if value > want*0.85 && value < want*1.15 {
			t.Logf("%s: %.2f, asked for %.2f", what, value, want)
			return
		}
		got = append(got, value)
	}
	t.Errorf("%s: %.2f in %d attempts, asked for %.2f", what, got, attempts, want)
}

func TestMeasuredLatency(t *testing.T) {
	config := testConfig()
	backing, mountPoint := mountNAS(t, config)
	for i := range 10 {
		makeFile(t, backing, fmt.Sprint("f", i), 10)
	}
	want := 2 * config.RoundTrip.Seconds() * 1000 // a lookup and an open
	within15(t, "open latency in ms", want, func() float64 {
		var took []time.Duration
		for i := range 10 {
			began := time.Now()
			fd, err := unix.Open(filepath.Join(mountPoint, fmt.Sprint("f", i)), unix.O_RDONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(began))
			unix.Close(fd)
		}
		slices.Sort(took)
		return took[len(took)/2].Seconds() * 1000
	})
}

// readDirect reads a whole file with one O_DIRECT read(2), which the kernel
// sends as parallel requests of 1 MiB.
func readDirect(t *testing.T, path string, size int) time.Duration {
	buffer, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer unix.Munmap(buffer)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer unix.Close(fd)
	began := time.Now()
	for read := 0; read < size; {
		n, err := unix.Read(fd, buffer[read:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			t.Errorf("read at %d: %d, %v", read, n, err)
			return 0
		}
		read += n
	}
	return time.Since(began)
}

func TestMeasuredBandwidth(t *testing.T) {
	config := testConfig()
	config.RoundTrip = 2 * ms
	config.StreamBandwidth, config.Bandwidth = 60_000_000, 120_000_000
	backing, mountPoint := mountNAS(t, config)
	const size, streams = 16 << 20, 4
	for i := range streams {
		makeFile(t, backing, fmt.Sprint("f", i), size)
	}
	within15(t, "one stream in MB/s", 60, func() float64 {
		return size / 1e6 / readDirect(t, filepath.Join(mountPoint, "f0"), size).Seconds()
	})
	within15(t, "four streams in MB/s", 120, func() float64 {
		began := time.Now()
		var readers sync.WaitGroup
		for i := range streams {
			readers.Go(func() { readDirect(t, filepath.Join(mountPoint, fmt.Sprint("f", i)), size) })
		}
		readers.Wait()
		return streams * size / 1e6 / time.Since(began).Seconds()
	})
}

func TestMeasuredSlots(t *testing.T) {
	config := testConfig()
	config.Slots, config.RoundTrip = 2, 20*ms
	backing, mountPoint := mountNAS(t, config)
	const files = 8
	for i := range files {
		makeFile(t, backing, fmt.Sprint("f", i), 10)
	}
	// A lookup and a getattr for each, two at a time.
	within15(t, "8 stats with 2 slots in ms", 8*20, func() float64 {
		began := time.Now()
		var callers sync.WaitGroup
		for i := range files {
			callers.Go(func() {
				var stat unix.Stat_t
				if err := unix.Lstat(filepath.Join(mountPoint, fmt.Sprint("f", i)), &stat); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		return time.Since(began).Seconds() * 1000
	})
}

func TestReopenedFileIsReadAgain(t *testing.T) {
	config := testConfig()
	config.RoundTrip, config.StreamBandwidth = 0, 20_000_000
	backing, mountPoint := mountNAS(t, config)
	const size = 2 << 20 // 105 ms of its stream
	makeFile(t, backing, "f", size)
	for i := range 3 {
		began := time.Now()
		got, err := os.ReadFile(filepath.Join(mountPoint, "f"))
		if err != nil || len(got) != size {
			t.Fatalf("read %d bytes, %v", len(got), err)
		}
		if took := time.Since(began); took < 100*ms {
			t.Errorf("reading %d took %v: it came from a cache", i, took)
		}
	}
}

func TestKeepCacheKeepsPagesBetweenOpens(t *testing.T) {
	for _, keep := range []bool{false, true} {
		config := testConfig()
		config.KeepCache = keep
		backing, mountPoint := mountNAS(t, config)
		makeFile(t, backing, "f", 10_000)
		read := func() []byte {
			t.Helper()
			got, err := os.ReadFile(filepath.Join(mountPoint, "f"))
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		before := read()
		changed := bytes.Repeat([]byte{'c'}, len(before))
		if err := os.WriteFile(filepath.Join(backing, "f"), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if kept := bytes.Equal(read(), before); kept != keep {
			t.Errorf("keep cache %v: pages of before the change were read: %v", keep, kept)
		}
	}
}

func TestAttrTimeoutKeepsAttributes(t *testing.T) {
	config := testConfig()
	config.RoundTrip, config.AttrTimeout = 50*ms, time.Minute
	backing, mountPoint := mountNAS(t, config)
	makeFile(t, backing, "f", 10)
	stat := func() time.Duration {
		began := time.Now()
		if _, err := os.Lstat(filepath.Join(mountPoint, "f")); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	stat()
	if took := stat(); took >= 50*ms {
		t.Errorf("a second stat took %v: it cost a round trip", took)
	}
}

func TestChangesGoToTheBackingDirectory(t *testing.T) {
	config := testConfig()
	config.RoundTrip = ms
	backing, mountPoint := mountNAS(t, config)
	at := func(name string) string { return filepath.Join(mountPoint, name) }
	contents := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // more than one request
	steps := []struct {
		name string
		do   func() error
	}{
		{"mkdir", func() error { return os.Mkdir(at("d"), 0o750) }},
		{"write", func() error { return os.WriteFile(at("d/f"), contents, 0o640) }},
		{"rename", func() error { return os.Rename(at("d/f"), at("d/g")) }},
		{"link", func() error { return os.Link(at("d/g"), at("d/h")) }},
		{"symlink", func() error { return os.Symlink("g", at("d/s")) }},
		{"chmod", func() error { return os.Chmod(at("d/g"), 0o600) }},
		{"truncate", func() error { return os.Truncate(at("d/g"), 1_000_001) }},
		{"remove", func() error { return os.Remove(at("d/h")) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
	for _, root := range []string{mountPoint, backing} {
		got, err := os.ReadFile(filepath.Join(root, "d/s"))
		if err != nil || !bytes.Equal(got, contents[:1_000_001]) {
			t.Errorf("%s: %d bytes, %v; want the first 1,000,001 written", root, len(got), err)
		}
		info, err := os.Stat(filepath.Join(root, "d/g"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want 0600", root, info.Mode(), err)
		}
		entries, err := os.ReadDir(filepath.Join(root, "d"))
		if err != nil || len(entries) != 2 {
			t.Errorf("%s: %v, %v; want g and s", root, entries, err)
		}
	}
}

func TestFileTruncatedWhileOpenReadsShort(t *testing.T) {
	config := testConfig()
	config.RoundTrip = ms
	backing, mountPoint := mountNAS(t, config)
	makeFile(t, backing, "f", 1<<20)
	fd, err := unix.Open(filepath.Join(mountPoint, "f"), unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	buffer, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(buffer)
	if n, err := unix.Pread(fd, buffer[:4096], 0); n != 4096 || err != nil {
		t.Fatalf("first read: %d, %v", n, err)
	}
	if err := os.Truncate(filepath.Join(backing, "f"), 8192); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Pread(fd, buffer, 0); n != 8192 || err != nil {
		t.Errorf("read of the truncated file: %d, %v; want 8192", n, err)
	}
}

func TestKilledReaderEndsAtOnce(t *testing.T) {
	config := testConfig()
	config.RoundTrip = 20 * time.Second
	backing, mountPoint := mountNAS(t, config)
	makeFile(t, backing, "f", 10)
	reader := exec.Command("cat", filepath.Join(mountPoint, "f"))
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * ms)
	for _, signal := range []os.Signal{syscall.SIGWINCH, syscall.SIGTERM} {
		if err := reader.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- reader.Wait() }()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("a reader that was killed waits for its answer")
		<-ended
	}
}

// readWithTicks reads directly, with a timer signal every few milliseconds and
// a handler for it, and fails at the first EINTR.
func readWithTicks(path string) int {
	ticks := make(chan os.Signal, 1)
	signal.Notify(ticks, syscall.SIGALRM)
	every := unix.Timeval{Usec: 3000}
	if _, err := unix.Setitimer(unix.ItimerReal, unix.Itimerval{Interval: every, Value: every}); err != nil {
		fmt.Println(err)
		return 1
	}
	buffer, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for range 20 {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT, 0)
		if err != nil {
			fmt.Println("open:", err)
			return 1
		}
		if n, err := unix.Read(fd, buffer); err != nil || n != len(buffer) {
			fmt.Println("read:", n, err)
			return 1
		}
		unix.Close(fd)
	}
	return 0
}

func TestTimerSignalsDoNotInterruptReaders(t *testing.T) {
	backing, mountPoint := mountNAS(t, testConfig())
	makeFile(t, backing, "f", 1<<20)
	reader := exec.Command(os.Args[0])
	reader.Env = append(os.Environ(), tickEnv+"="+filepath.Join(mountPoint, "f"))
	if output, err := reader.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

func TestMountErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	other, below := t.TempDir(), filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, paths := range [][2]string{
		{filepath.Join(dir, "missing"), other}, {dir, filepath.Join(dir, "missing")}, {file, other}, {dir, file},
		{dir, dir}, {dir, below}, {below, dir},
	} {
		if mount, err := New(paths[0], paths[1], testConfig()); err == nil {
			t.Errorf("%v is mounted", paths)
			_ = mount.Unmount()
		}
	}
}
