package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long anything that must happen may take on a busy machine.
// Nothing is measured by it.
const patience = 60 * time.Second

// eventually waits until condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("not so within %s: %s", patience, what)
}

// server is a process that serves a mount until the test ends.
type server struct {
	t     *testing.T
	path  string // mountpoint
	cmd   *exec.Cmd
	log   syncBuffer
	ended chan struct{} // closed when the process is gone
}

// syncBuffer collects what a process says while others read it.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startServer runs the program until it says ready.
func startServer(t *testing.T, path, ready string, args ...string) *server {
	t.Helper()
	s := &server{t: t, path: path, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(s.clear)
	eventually(t, "mounted: reelahead "+strings.Join(args, " "), func() bool {
		select {
		case <-s.ended:
			t.Fatalf("reelahead %s ended: %s", strings.Join(args, " "), &s.log)
		default:
		}
		return strings.Contains(s.log.String(), ready)
	})
	return s
}

// clear ends the process and its mount by all means, and fails the test if the
// race detector found something in it.
func (s *server) clear() {
	if !s.hasEnded() {
		s.signal(syscall.SIGINT)
		if !s.endsWithin(10 * time.Second) {
			s.signal(syscall.SIGINT)
		}
		if !s.endsWithin(10 * time.Second) {
			s.t.Errorf("the server of %s had to be killed\n%s", s.path, &s.log)
			s.signal(syscall.SIGKILL)
			<-s.ended
		}
	}
	for isMounted(s.path) {
		if err := unix.Unmount(s.path, unix.MNT_DETACH); err != nil {
			s.t.Errorf("unmount %s: %v", s.path, err)
			break
		}
	}
	if log := s.log.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") || strings.Contains(log, "fatal error:") {
		s.t.Errorf("the server of %s says:\n%s", s.path, log)
	}
}

func (s *server) signal(signal syscall.Signal) { _ = s.cmd.Process.Signal(signal) }

func (s *server) hasEnded() bool { return s.endsWithin(0) }

func (s *server) endsWithin(limit time.Duration) bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// exit waits for the end of the process and returns its exit status.
func (s *server) exit() int {
	s.t.Helper()
	if !s.endsWithin(patience) {
		s.t.Fatalf("the server of %s goes on", s.path)
	}
	return s.cmd.ProcessState.ExitCode()
}

// isMounted looks at the mount table, which asks no server.
func isMounted(path string) bool {
	table, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && strings.Contains(string(table), " "+path+" ")
}

// mount is a mounted view of a directory.
type mount struct {
	*server
	source string
}

// mountOver mounts a view of source on a new directory.
func mountOver(t *testing.T, source string, flags ...string) *mount {
	t.Helper()
	return mountAt(t, source, t.TempDir(), flags...)
}

func mountAt(t *testing.T, source, path string, flags ...string) *mount {
	t.Helper()
	args := append([]string{"mount", source, path, "--log-format", "json"}, flags...)
	return &mount{startServer(t, path, `"message":"mounted"`, args...), source}
}

// unmount ends the mount as a user does and checks that all is given back.
func (m *mount) unmount() {
	m.t.Helper()
	m.signal(syscall.SIGINT)
	if status := m.exit(); status != 0 {
		m.t.Errorf("exit status %d after SIGINT, want 0", status)
	}
	if isMounted(m.path) {
		m.t.Errorf("%s is still mounted", m.path)
	}
	if log := m.log.String(); strings.Contains(log, "not everything could be given back") {
		m.t.Errorf("something was left at the end:\n%s", log)
	}
}

// slowNAS mounts a model of a file server that exports backing.
func slowNAS(t *testing.T, backing string, flags ...string) (path string, s *server) {
	t.Helper()
	path = t.TempDir()
	s = startServer(t, path, "slownas: mounted", append([]string{"bench", "slownas", backing, path}, flags...)...)
	return path, s
}

// memory returns a new directory on tmpfs.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(memoryDir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// counters are what status --json must have.
type counters struct {
	Source             string `json:"source"`
	Mountpoint         string `json:"mountpoint"`
	Passthrough        bool   `json:"passthrough"`
	PID                int    `json:"pid"`
	Opens              int64  `json:"opens"`
	OpensReady         int64  `json:"opens_ready"`
	OpensInflight      int64  `json:"opens_inflight"`
	OpensCold          int64  `json:"opens_cold"`
	OpensExpected      int64  `json:"opens_expected"`
	BytesRead          int64  `json:"bytes_read"`
	BytesFetched       int64  `json:"bytes_fetched"`
	BytesSource        int64  `json:"bytes_source"`
	BytesFetchedUnread int64  `json:"bytes_fetched_unread"`
	CacheBytes         int64  `json:"cache_bytes"`
	CacheBytesPeak     int64  `json:"cache_bytes_peak"`
	CacheLimit         int64  `json:"cache_limit"`
	SourceErrors       int64  `json:"source_errors"`
	SourceReads        int    `json:"source_reads"`
	DaemonReads        int64  `json:"daemon_reads"`
	Streams            []struct {
		Dir      string  `json:"dir"`
		Pattern  string  `json:"pattern"`
		Step     int     `json:"step"`
		Playhead string  `json:"playhead"`
		Rate     float64 `json:"rate"`
		Ahead    int     `json:"ahead"`
		Window   int     `json:"window"`
	} `json:"streams"`
}

// status reads the file that "reelahead status" reads.
func (m *mount) status() counters {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.path, ".reelahead", "status.json"))
	if err != nil {
		m.t.Fatal(err)
	}
	var c counters
	if err := json.Unmarshal(text, &c); err != nil {
		m.t.Fatalf("status: %v\n%s", err, text)
	}
	return c
}

// ahead returns how many frames are ready ahead of the playhead in a directory.
func (c counters) ahead(dir string) int {
	for _, s := range c.Streams {
		if s.Dir == dir {
			return s.Ahead
		}
	}
	return 0
}

// settle waits until frames are ready ahead of the reader in dir and nothing is
// being fetched any more.
func (m *mount) settle(dir string) {
	m.t.Helper()
	quiet, fetched := 0, int64(-1)
	eventually(m.t, "frames are ready ahead in "+dir, func() bool {
		c := m.status()
		if c.SourceReads > 0 || c.ahead(dir) == 0 || c.BytesFetched != fetched {
			quiet, fetched = 0, c.BytesFetched
			return false
		}
		quiet++
		return quiet == 3
	})
}

// run executes the program and returns its exit status and all that it said.
func run(t *testing.T, args ...string) (status int, said string) {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		status = exit.ExitCode()
	}
	return status, string(out)
}
