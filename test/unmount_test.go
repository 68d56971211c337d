package test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// played mounts a sequence and plays some of it, so that there is something to
// give back.
func played(t *testing.T) (*mount, *sequence) {
	t.Helper()
	source := memory(t)
	m := mountOver(t, source, "--cache-size", "64MiB")
	seq := makeSequence(t, source, "show", 8, frameSize)
	seq.leadTo(m)
	return m, seq
}

func TestInterruptUnmounts(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		m, _ := played(t)
		m.signal(signal)
		if status := m.exit(); status != 0 {
			t.Errorf("%v: exit status %d, want 0", signal, status)
		}
		if isMounted(m.path) {
			t.Errorf("%v: still mounted", signal)
		}
	}
}

// TestInterruptWaitsForOpenFiles ends a mount in which a file is open: it
// leaves the tree at once and serves the file until it is closed.
func TestInterruptWaitsForOpenFiles(t *testing.T) {
	t.Parallel()
	m, seq := played(t)
	reader := openFile(t, m.at(seq.name(3)), os.O_RDONLY)
	cold := openFile(t, m.at(seq.name(7)), os.O_RDONLY)
	m.signal(syscall.SIGINT)
	eventually(t, "the mount leaves the tree", func() bool { return !isMounted(m.path) })
	sameBytes(t, readInPieces(t, reader, 64<<10), seq.frames[3], "ready frame")
	sameBytes(t, readInPieces(t, cold, 64<<10), seq.frames[7], "cold frame")
	if m.hasEnded() {
		t.Fatal("the process ended while files were open")
	}
	must(t, reader.Close())
	must(t, cold.Close())
	if status := m.exit(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
}

// TestInterruptLosesPatience never closes the file.
func TestInterruptLosesPatience(t *testing.T) {
	t.Parallel()
	m, seq := played(t)
	openFile(t, m.at(seq.name(7)), os.O_RDWR)
	m.signal(syscall.SIGINT)
	if status := m.exit(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	if isMounted(m.path) {
		t.Error("still mounted")
	}
}

func TestSecondInterruptAborts(t *testing.T) {
	t.Parallel()
	m, seq := played(t)
	openFile(t, m.at(seq.name(7)), os.O_RDWR)
	m.signal(syscall.SIGINT)
	eventually(t, "the mount leaves the tree", func() bool { return !isMounted(m.path) })
	began := time.Now()
	m.signal(syscall.SIGINT)
	m.exit()
	// A mount waits 10 s for open files.
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it ended %s after the second signal", took)
	}
}

func TestUnmountCommand(t *testing.T) {
	t.Parallel()
	m, seq := played(t)
	reader := openFile(t, m.at(seq.name(3)), os.O_RDONLY)
	status, said := run(t, "unmount", m.path)
	if status == 0 || !strings.Contains(said, m.path) || !strings.Contains(said, "--lazy") {
		t.Errorf("unmount of a busy mount: status %d, %q", status, said)
	}
	if !isMounted(m.path) {
		t.Fatal("a busy mount was unmounted")
	}
	if status, said = run(t, "unmount", "--lazy", m.path); status != 0 {
		t.Errorf("unmount --lazy: status %d, %q", status, said)
	}
	if isMounted(m.path) {
		t.Error("still mounted after unmount --lazy")
	}
	sameBytes(t, readInPieces(t, reader, 64<<10), seq.frames[3], "after unmount --lazy")
	must(t, reader.Close())
	if status := m.exit(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	if log := m.log.String(); strings.Contains(log, "not everything") {
		t.Errorf("something was left:\n%s", log)
	}
	if status, said = run(t, "unmount", m.path); status == 0 || !strings.Contains(said, m.path) {
		t.Errorf("unmount of what is not mounted: status %d, %q", status, said)
	}
}

// TestDeadMount kills the process of a mount, whose mountpoint then answers
// ENOTCONN to everything.
func TestDeadMount(t *testing.T) {
	t.Parallel()
	m, _ := played(t)
	m.signal(syscall.SIGKILL)
	m.exit()
	// The kernel may answer for the root by itself for the validity time.
	eventually(t, "the mountpoint answers ENOTCONN", func() bool {
		_, err := os.Stat(m.path)
		return errors.Is(err, unix.ENOTCONN)
	})
	remedy := "reelahead unmount " + m.path
	for _, args := range [][]string{
		{"mount", m.source, m.path},
		{"mount", m.source, m.path, "--daemon"},
		{"mount", m.path, t.TempDir()},
		{"status", m.path},
	} {
		status, said := run(t, args...)
		if status == 0 || !strings.Contains(said, remedy) {
			t.Errorf("reelahead %s: status %d, %q", strings.Join(args, " "), status, said)
		}
	}
	if status, said := run(t, "status"); status != 0 || !strings.Contains(said, m.path) {
		t.Errorf("status of all mounts: status %d, %q", status, said)
	}
	if status, said := run(t, "unmount", m.path); status != 0 {
		t.Errorf("unmount: status %d, %q", status, said)
	}
	if isMounted(m.path) {
		t.Error("still mounted")
	}
	again := mountAt(t, m.source, m.path)
	again.unmount()
}

// TestStatusCommand compares what the command prints with the file it reads.
func TestStatusCommand(t *testing.T) {
	t.Parallel()
	m, seq := played(t)
	status, said := run(t, "status", m.path, "--json")
	if status != 0 {
		t.Fatalf("status %d, %q", status, said)
	}
	var all map[string]any
	must(t, json.Unmarshal([]byte(said), &all))
	for _, name := range []string{
		"source", "mountpoint", "passthrough", "opens", "opens_ready", "opens_inflight", "opens_cold", "bytes_read",
		"bytes_fetched", "bytes_source", "bytes_fetched_unread", "cache_bytes", "cache_bytes_peak", "cache_limit", "source_errors", "streams",
	} {
		if _, ok := all[name]; !ok {
			t.Errorf("status --json has no %q", name)
		}
	}
	streams, _ := all["streams"].([]any)
	if len(streams) != 1 {
		t.Fatalf("streams: %v, want one", all["streams"])
	}
	stream, _ := streams[0].(map[string]any)
	if stream["dir"] != seq.dir || stream["pattern"] != "shot.%04d.exr" || stream["step"] != 1.0 || stream["playhead"] != frameName(2) {
		t.Errorf("stream: %v", stream)
	}
	if status, said = run(t, "status", m.path); status != 0 || !strings.Contains(said, m.source) {
		t.Errorf("status: %d, %q", status, said)
	}
	if status, said = run(t, "status", t.TempDir()); status == 0 || !strings.Contains(said, "not a reelahead mount") {
		t.Errorf("status of another directory: %d, %q", status, said)
	}
	if names, err := os.ReadDir(m.path); err != nil || len(names) != 1 {
		t.Errorf("the root lists %v, %v: the control directory must not be there", names, err)
	}
}
