package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reelahead/bench"
)

func TestBenchBadInput(t *testing.T) {
	small := writtenFrames(t, "--frames", "20", "--size", "10KiB")
	mixed := writtenFrames(t, "--frames", "20", "--size", "10KiB")
	for _, name := range []string{"frame000003.tst", "frame000017.tst"} {
		if err := os.Truncate(filepath.Join(mixed, name), 20<<10); err != nil {
			t.Fatal(err)
		}
	}
	truncated := writtenFrames(t, "--frames", "20", "--size", "10KiB")
	if err := os.Truncate(filepath.Join(truncated, "frame000009.tst"), 5000); err != nil {
		t.Fatal(err)
	}
	holed := writtenFrames(t, "--frames", "20", "--size", "10KiB")
	if err := os.Remove(filepath.Join(holed, "frame000009.tst")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"play", small, "--fps", "-24"}, 64, "more than 0"},
		{[]string{"play", small, "--fps", "1/0"}, 64, "not understood"},
		{[]string{"play", small, "--fps", "0/1"}, 64, "more than 0"},
		{[]string{"play", small, "--fps", "24/1001/2"}, 64, "not understood"},
		{[]string{"play", small, "--fps", "1e9"}, 64, "not understood"},
		{[]string{"play", small, "--fps", ""}, 64, "not understood"},
		{[]string{"play", mixed, "--unpaced"}, 2, "20480 bytes in place of 10240"},
		{[]string{"play", truncated, "--unpaced"}, 2, "frame000009.tst: wrong size: 5000 bytes in place of 10240"},
		{[]string{"play", holed, "--unpaced"}, 2, "frame000009.tst: no such file"},
		{[]string{"play", filepath.Join(small, "frame000001.tst")}, 69, "name its directory"},
		{[]string{"play", filepath.Join(small, "%s.tst")}, 69, "no such file"},
		{[]string{"play", small, "--threads", "0"}, 64, "--threads"},
		{[]string{"play", small, "--threads", "9", "--queue", "4"}, 64, "enlarge the queue"},
		{[]string{"play", small, "--duration", "-1s"}, 64, "--duration"},
		{[]string{"play", small, "--duration", "0"}, 64, "--duration"},
		{[]string{"play", small, "--duration", "1s", "--frames", "3"}, 64, "not both"},
		{[]string{"play", small, "--duration", "1s", "--loop", "3"}, 64, "--loop"},
		{[]string{"play", small, "--in", "21"}, 69, "frames 1 to 20"},
		{[]string{"play", small, "--in", "9", "--out", "4"}, 64, "behind"},
		{[]string{"play", small, "--in", "-1"}, 64, "no frame number"},
		{[]string{"play", small, "--aligned", "--stagger", "1s"}, 64, "not both"},
		{[]string{"play", small, "--aligned", "--unpaced"}, 64, "no clocks"},
		{[]string{"play", small, "--stagger", "-1s"}, 64, "negative"},
		{[]string{"play", small, "--reader", "tape"}, 64, "whole, mmap or exr"},
		{[]string{"play", small, "--reader", "mmap", "--direct"}, 64, "exclude"},
		{[]string{"play", small, "--reader", "mmap", "--block", "4096"}, 64, "block"},
		{[]string{"write", small, "--fps", "0"}, 64, "more than 0"},
		{[]string{"write", small, "--fps", "1/0"}, 64, "not understood"},
		{[]string{"write", small, "--fps", "24", "--resume"}, 64, "resumed"},
		{[]string{"write", small, "--queue", "3"}, 64, "--fps"},
		{[]string{"write", small, "--threads", "-1"}, 64, "--threads"},
		{[]string{"write", small, "--format", "tiff"}, 64, "tst, dpx or exr"},
		{[]string{"write", small, "--format", "exr", "--size", "100"}, 64, "no picture"},
		{[]string{"write", small, "--direct", "--size", "100"}, 64, "4096"},
		{[]string{"write", small, "-w", "0"}, 64, "none"},
		{[]string{"write", small, "-w", "2k", "--profile", "2k"}, 64, "leave one out"},
		{[]string{"write", small, "--random", "--reverse"}, 64, "random"},
		{[]string{"write", small, "--frames", "1000000", "--profile", "8k"}, 1, "not enough space"},
		{[]string{"write", filepath.Join(small, "frame000001.tst")}, 1, "not a directory"},
	} {
		if got := runBench(t, test.args...); got.status != test.status || !strings.Contains(got.stdout+got.stderr, test.says) {
			t.Errorf("%v: status %d, want %d and %q:\n%s%s", test.args, got.status, test.status, test.says, got.stdout, got.stderr)
		}
	}
	if entries, err := os.ReadDir(small); err != nil || len(entries) != 20 {
		t.Errorf("%d files are left of 20, %v", len(entries), err)
	}
}

// asNobody runs a bench command as a user without rights.
func asNobody(t *testing.T, args ...string) ran {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := openDir(t)
	if err := os.WriteFile(filepath.Join(dir, "reelahead"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(dir, "reelahead"), append([]string{"bench"}, args...)...)
	command.Env = append(os.Environ(), runAsCommand+"=1")
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// openDir is a temporary directory that others can reach.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBenchWithoutPermission(t *testing.T) {
	dir := openDir(t)
	if got := runBench(t, "write", dir, "--frames", "3", "--size", "10KiB"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if got := asNobody(t, "play", dir, "--unpaced"); got.status != 0 {
		t.Errorf("frames that may be read: %+v", got)
	}
	if got := asNobody(t, "write", dir, "--frames", "3", "--size", "10KiB"); got.status != 1 || !strings.Contains(got.stderr, "permission denied") {
		t.Errorf("write to a folder of others: %+v", got)
	}
	if err := os.Chmod(filepath.Join(dir, "frame000002.tst"), 0); err != nil {
		t.Fatal(err)
	}
	if got := asNobody(t, "play", dir, "--unpaced"); got.status != 2 || !strings.Contains(got.stdout, "frame000002.tst: permission denied") {
		t.Errorf("a frame that may not be read: %+v", got)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if got := asNobody(t, "play", dir, "--unpaced"); got.status != 69 || !strings.Contains(got.stderr, "permission denied") {
		t.Errorf("a folder that may not be listed: %+v", got)
	}
}

func TestBenchWriteToAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("needs to mount a tmpfs: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	got := runBench(t, "write", dir, "--frames", "10", "--size", "1MiB")
	if got.status != 1 || !strings.Contains(got.stderr, "not enough space in "+dir) || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	got = runBench(t, "write", dir, "--frames", "10", "--size", "1MiB", "--ignore-space", "--json", "-")
	var report bench.WriteReport
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.status != 1 || !strings.Contains(got.stderr, "no space left on device") {
		t.Fatalf("%+v, %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 || report.Frames != 4 || report.FramesFailed != 1 || !strings.Contains(report.Error, "frame 5 of 10") {
		t.Errorf("%d files, %v: %+v", len(entries), err, report)
	}
}

// ^C while frames are written leaves whole frames and a report of them.
func TestBenchWriteInterrupted(t *testing.T) {
	for name, args := range map[string][]string{
		"unpaced":   {"--threads", "2"},
		"fsync":     {"--fsync"},
		"recording": {"--fps", "50"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			command := benchCommand(t, append([]string{"write", dir, "--size", "1MiB", "--frames", "20000", "--ignore-space", "--json", "-"}, args...)...)
			var stdout bytes.Buffer
			command.Stdout = &stdout
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			for range 500 { // until it writes
				if entries, _ := os.ReadDir(dir); len(entries) > 3 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if err := command.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = command.Wait()
			var report bench.WriteReport
			if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || !report.Interrupted || report.Frames < 1 || report.Throughput <= 0 {
				t.Errorf("%+v, %v", report, err)
			}
			if status := command.ProcessState.ExitCode(); status != exitInterrupted {
				t.Errorf("status %d, want %d", status, exitInterrupted)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != report.Frames {
				t.Errorf("%d files of %d frames, %v", len(entries), report.Frames, err)
			}
			for _, entry := range entries {
				if info, err := entry.Info(); err != nil || info.Size() != 1<<20 {
					t.Errorf("%s is no whole frame: %v", entry.Name(), err)
				}
			}
		})
	}
}
