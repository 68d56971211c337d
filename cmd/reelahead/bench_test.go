package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runAsCommand makes the test binary the command itself, so that tests see its
// exit statuses and the processes that it starts from itself run it too.
const runAsCommand = "REELAHEAD_TEST_COMMAND"

func init() {
	if os.Getenv(runAsCommand) != "" {
		main()
		os.Exit(0)
	}
}

type ran struct {
	status         int
	stdout, stderr string
}

func benchCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, append([]string{"bench"}, args...)...)
	command.Env = append(os.Environ(), runAsCommand+"=1")
	return command
}

func runBench(t *testing.T, args ...string) ran {
	t.Helper()
	command := benchCommand(t, args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func writtenFrames(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	if got := runBench(t, append([]string{"write", dir}, args...)...); got.status != 0 {
		t.Fatalf("write: %+v", got)
	}
	return dir
}

func TestBenchPlayExitStatuses(t *testing.T) {
	small := writtenFrames(t, "--frames", "20", "--size", "10KiB")
	large := writtenFrames(t, "--frames", "40", "--profile", "sd", "--name", "shot.####.dpx")
	holed := writtenFrames(t, "--frames", "20", "--size", "10KiB")
	if err := os.Remove(filepath.Join(holed, "frame000007.tst")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		args   []string
		status int
		says   string // on stdout or stderr
	}{
		{"all on time", []string{small, "--unpaced", "--verify"}, 0, "100.0 %"},
		{"paced", []string{small, "--fps", "2", "--frames", "2", "--prebuffer", "2"}, 0, "2 fps"},
		{"too fast a clock", []string{large, "--fps", "10000", "--prebuffer", "1"}, 1, "skipped"},
		{"a hole", []string{holed, "--unpaced"}, 2, "frame000007.tst"},
		{"no frames", []string{t.TempDir()}, 69, "no frames match"},
		{"no directory", []string{"/nonexistent"}, 69, "no such file"},
		{"too many frames", []string{small, "--frames", "21"}, 69, "loop"},
		{"no path", nil, 64, "PATH"},
		{"fps 0", []string{small, "--fps", "0"}, 64, "more than 0"},
		{"fps in words", []string{small, "--fps", "fast"}, 64, "24000/1001"},
		{"unpaced with fps", []string{small, "--unpaced", "--fps", "24"}, 64, "--unpaced"},
		{"unknown flag", []string{small, "--fast"}, 64, "--fast"},
		{"on-miss", []string{small, "--on-miss", "panic"}, 64, "skip or wait"},
		{"size", []string{small, "--size", "big"}, 64, "not understood"},
		{"profile and size", []string{small, "--size", "1M", "--profile", "sd"}, 64, "profile"},
		{"unknown profile", []string{small, "--profile", "16k"}, 64, "4k"},
		{"no clients", []string{small, "--clients", "0"}, 64, "--clients"},
		{"random in reverse", []string{small, "--random", "--reverse"}, 64, "random"},
		{"two outputs on stdout", []string{small, "--json", "-", "--csv", "-"}, 64, "stdout"},
		{"unknown columns", []string{small, "--csv", "-", "--csv-format", "excel"}, 64, "frametest-times"},
		{"csv nowhere", []string{small, "--unpaced", "--csv", "/nonexistent/f.csv"}, 69, "no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := runBench(t, append([]string{"play"}, test.args...)...)
			if got.status != test.status || !strings.Contains(got.stdout+got.stderr, test.says) {
				t.Errorf("status %d, want %d and %q:\n%s%s", got.status, test.status, test.says, got.stdout, got.stderr)
			}
		})
	}
}

func TestBenchPlayOutputs(t *testing.T) {
	dir := writtenFrames(t, "--frames", "20", "--size", "10KiB")
	csvPath := filepath.Join(t.TempDir(), "frames.csv")
	got := runBench(t, "play", dir, "--clients", "3", "--unpaced", "--json", "-", "--csv", csvPath)
	var report struct {
		FramesDue int `json:"frames_due"`
		Clients   int `json:"clients"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || report.FramesDue != 60 || report.Clients != 3 {
		t.Errorf("%+v, %v from %s", report, err, got.stdout)
	}
	text, err := os.ReadFile(csvPath)
	if rows := strings.Count(string(text), "\n"); err != nil || rows != 61 {
		t.Errorf("%d rows, %v; want 61", rows, err)
	}
}

// TestBenchPlayWritesTheTablesOfFrametest checks the columns that tframetest's
// "--csv --times --frametimes" has, and that the sums are those of the frames.
func TestBenchPlayWritesTheTablesOfFrametest(t *testing.T) {
	dir := writtenFrames(t, "--frames", "12", "--size", "1MiB")
	got := runBench(t, "play", dir, "--unpaced", "--csv", "-", "--csv-format", "frametest-times")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if got.status != 0 || len(lines) != 3+12 {
		t.Fatalf("status %d, %d lines:\n%s%s", got.status, len(lines), got.stdout, got.stderr)
	}
	if want := "case,profile,threads,frames,bytes,time,fps,bps,mibps,fmin,favg,fmax,omin,oavg,omax,iomin,ioavg,iomax,cmin,cavg,cmax"; lines[0] != want {
		t.Errorf("columns %q", lines[0])
	}
	cells := strings.Split(lines[1], ",")
	if len(cells) != 22 || cells[0] != `"read"` || cells[1] != `"custom"` || cells[2] != "1" || cells[3] != "12" || cells[4] != "12582912" {
		t.Errorf("row %q", cells)
	}
	if lines[2] != "frame,start,open,io,close,frame" {
		t.Errorf("columns of frames %q", lines[2])
	}
	for _, line := range lines[3:] {
		var frame, start, open, read, closed, end int64
		if n, err := fmt.Sscanf(line, "%d,%d,%d,%d,%d,%d", &frame, &start, &open, &read, &closed, &end); n != 6 ||
			start > open || open > read || read > closed || closed != end {
			t.Errorf("frame %q: %v", line, err)
		}
	}
	got = runBench(t, "play", dir, "--unpaced", "--csv", "-", "--csv-format", "frametest")
	if lines := strings.Split(strings.TrimSpace(got.stdout), "\n"); len(lines) != 2 || strings.Count(lines[1], ",") != 12 {
		t.Errorf("without times:\n%s", got.stdout)
	}
}

func TestBenchPlayInterruptedReportsWhatWasPlayed(t *testing.T) {
	dir := writtenFrames(t, "--frames", "200", "--size", "10KiB")
	command := benchCommand(t, "play", dir, "--fps", "10", "--json", "-")
	var stdout bytes.Buffer
	command.Stdout = &stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	var report struct {
		FramesDue   int  `json:"frames_due"`
		Interrupted bool `json:"interrupted"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || !report.Interrupted || report.FramesDue == 0 || report.FramesDue == 200 {
		t.Errorf("%+v, %v from %s", report, err, stdout.String())
	}
	if status := command.ProcessState.ExitCode(); status != exitInterrupted {
		t.Errorf("status %d, want %d", status, exitInterrupted)
	}
}

func TestBenchCompare(t *testing.T) {
	a, b := writtenFrames(t, "--frames", "20", "--size", "10KiB"), writtenFrames(t, "--frames", "20", "--size", "10KiB")
	got := runBench(t, "compare", "a="+a, "b="+b, "--unpaced", "--repeat", "2")
	if got.status != 0 || !strings.Contains(got.stdout, "ratio") || !strings.Contains(got.stdout, "throughput") {
		t.Errorf("%+v", got)
	}
	got = runBench(t, "compare", "a="+a, "b="+b, "--unpaced", "--json", "-")
	var comparison struct {
		Sides []struct{ Label string } `json:"sides"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &comparison); err != nil || len(comparison.Sides) != 2 || comparison.Sides[1].Label != "b" {
		t.Errorf("%+v, %v from %+v", comparison, err, got)
	}
	for _, test := range []struct {
		args   []string
		status int
	}{
		{nil, 64}, {[]string{"a=" + a}, 64}, {[]string{a, b}, 64}, {[]string{"a=" + a, "b=/nonexistent"}, 69}, {[]string{"a=" + a, "b=" + b, "--repeat", "0"}, 64},
	} {
		if got := runBench(t, append([]string{"compare"}, test.args...)...); got.status != test.status || got.stderr == "" {
			t.Errorf("%v: %+v, want status %d", test.args, got, test.status)
		}
	}
}

func TestBenchWriteErrors(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{nil, 64, "DIR"},
		{[]string{dir, "--size", "3"}, 64, "at least"},
		{[]string{dir, "--size", "three"}, 64, "not understood"},
		{[]string{dir, "--frames", "0"}, 64, "at least 1"},
		{[]string{dir, "--name", "frame.dpx"}, 64, "frame number"},
		{[]string{filepath.Join(dir, "a.%04d.tst"), "--name", "b.%04d.tst"}, 64, "--name"},
		{[]string{filepath.Join(dir, "missing")}, 1, "create it first"},
	} {
		if got := runBench(t, append([]string{"write"}, test.args...)...); got.status != test.status || !strings.Contains(got.stderr, test.says) {
			t.Errorf("%v: %+v, want status %d and %q", test.args, got, test.status, test.says)
		}
	}
}

func TestBenchSlowNASErrors(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{nil, 64, "MOUNTPOINT"},
		{[]string{dir}, 64, "MOUNTPOINT"},
		{[]string{dir, "/nonexistent"}, 1, "/nonexistent"},
		{[]string{"/nonexistent", dir}, 1, "/nonexistent"},
		{[]string{dir, dir}, 1, "within each other"},
		{[]string{dir, dir, "--rtt", "10"}, 64, "--rtt"},
		{[]string{dir, dir, "--bandwidth", "fast"}, 64, "not understood"},
		{[]string{dir, dir, "--slots", "0"}, 64, "slots"},
		{[]string{dir, dir, "--stall", "500ms"}, 64, "500ms/30s"},
		{[]string{dir, dir, "--stall", "30s/500ms"}, 64, "shorter"},
	} {
		if got := runBench(t, append([]string{"slownas"}, test.args...)...); got.status != test.status || !strings.Contains(got.stderr, test.says) {
			t.Errorf("%v: %+v, want status %d and %q", test.args, got, test.status, test.says)
		}
	}
}

func TestBenchSlowNASUnmountsOnSignals(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs /dev/fuse")
	}
	backing := writtenFrames(t, "--frames", "3", "--size", "10KiB")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		mountPoint := t.TempDir()
		command := benchCommand(t, "slownas", backing, mountPoint, "--rtt", "1ms")
		stdout, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		if !strings.HasPrefix(line, "slownas: mounted ") {
			_ = command.Wait()
			t.Skipf("can't mount here: %q", line)
		}
		if got := runBench(t, "play", mountPoint, "--unpaced", "--verify"); got.status != 0 {
			t.Errorf("play through the model: %+v", got)
		}
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("%v: the model ended with %v", signal, err)
		}
		if table, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(table), mountPoint) {
			t.Errorf("%v: %s is still mounted", signal, mountPoint)
		}
	}
}

func TestBenchSlowNASInUse(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs /dev/fuse")
	}
	backing, mountPoint := writtenFrames(t, "--frames", "1", "--size", "10KiB"), t.TempDir()
	command := benchCommand(t, "slownas", backing, mountPoint, "--rtt", "1ms")
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); !strings.HasPrefix(line, "slownas: mounted ") {
		_ = command.Wait()
		t.Skipf("can't mount here: %q", line)
	}
	file, err := os.Open(filepath.Join(mountPoint, "frame000001.tst"))
	if err != nil {
		t.Error(err)
	}
	defer file.Close()
	_ = command.Process.Signal(os.Interrupt)
	if line, _ := bufio.NewReader(stderr).ReadString('\n'); !strings.Contains(line, "stop again") {
		t.Errorf("the first signal says %q", line)
	}
	_ = command.Process.Signal(os.Interrupt)
	if err := command.Wait(); err != nil {
		t.Errorf("the second signal ends it with %v", err)
	}
	if table, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(table), mountPoint) {
		t.Errorf("%s is still mounted", mountPoint)
	}
}

func TestBenchDemoErrors(t *testing.T) {
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"now"}, "no arguments"},
		{[]string{"--fps", "0"}, "more than 0"},
		{[]string{"--profile", "16k"}, "4k"},
		{[]string{"--streams", "0"}, "at least 1"},
		{[]string{"--rtt", "-1ms"}, "negative"},
	} {
		if got := runBench(t, append([]string{"demo"}, test.args...)...); got.status != 64 || !strings.Contains(got.stderr, test.says) {
			t.Errorf("%v: %+v, want status 64 and %q", test.args, got, test.says)
		}
	}
	if got := runBench(t, "demo", "--dir", "/nonexistent"); got.status != 69 || !strings.Contains(got.stderr, "/nonexistent") {
		t.Errorf("a missing directory: %+v, want status 69", got)
	}
}

func TestBenchDemo(t *testing.T) {
	if command, _, err := newRootCommand().Find([]string{"mount"}); err != nil || command.Name() != "mount" {
		t.Skip("needs the mount command")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs /dev/fuse and root")
	}
	demo := func(dir string, args ...string) *exec.Cmd {
		return benchCommand(t, append([]string{"demo", "--dir", dir, "--profile", "sd", "--streams", "1", "--rounds", "1"}, args...)...)
	}
	left := func(t *testing.T, dir string) {
		t.Helper()
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
		if table, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(table), dir) {
			t.Errorf("still mounted below %s", dir)
		}
	}
	t.Run("whole", func(t *testing.T) {
		dir := t.TempDir()
		output, err := demo(dir, "--seconds", "2").CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, output)
		}
		for _, want := range []string{"frames due", "dropped", "frame time p99", "throughput", "ratio", "round trip", "raw", "reelahead"} {
			if !strings.Contains(string(output), want) {
				t.Errorf("the output lacks %q:\n%s", want, output)
			}
		}
		left(t, dir)
	})
	t.Run("interrupted", func(t *testing.T) {
		dir := t.TempDir()
		command := demo(dir, "--seconds", "10")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if table, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(table), dir) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		if status := command.ProcessState.ExitCode(); status != exitInterrupted {
			t.Errorf("status %d, want %d", status, exitInterrupted)
		}
		left(t, dir)
	})
}

func TestBenchPlayTakesTheOptionsOfFrametest(t *testing.T) {
	dir := writtenFrames(t, "-w", "10", "-n", "20")
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"-r", "-n", "10", "-t", "4", dir}, 0, "unpaced"},
		{[]string{"-r", "10", "-n20", dir}, 0, "unpaced"},
		{[]string{"-r", "11", dir}, 2, "wrong size"},
		{[]string{"-r", "2k", dir}, 2, "wrong size"},
		{[]string{"-r", "2k", "-z", "10", dir}, 0, "unpaced"},
		{[]string{"-r", "-f", "4", "-n", "6", "-q", "4", "-b", "2", "-v", dir}, 0, "4 fps"},
		{[]string{"-r", "-m", dir}, 0, "unpaced"},
		{[]string{"-r", "-x", filepath.Join(t.TempDir(), "f.csv"), dir}, 0, "unpaced"},
		{[]string{"-r", "-z", "12812288", dir}, 64, "--size 12812288"},
		{[]string{"-r", "-z", "0", dir}, 64, "none"},
		{[]string{"-r", "-z", "10", "--size", "10KiB", dir}, 64, "leave one out"},
	} {
		if got := runBench(t, append([]string{"play"}, test.args...)...); got.status != test.status || !strings.Contains(got.stdout+got.stderr, test.says) {
			t.Errorf("%v: status %d, want %d and %q:\n%s%s", test.args, got.status, test.status, test.says, got.stdout, got.stderr)
		}
	}
}
