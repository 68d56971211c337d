package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program is the built command, named as mount(8) looks for it.
var program string

// memoryDir lies on tmpfs: what a model of a server exports.
var memoryDir string

func TestMain(m *testing.M) {
	if role := os.Getenv(clientEnv); role != "" {
		os.Exit(runClient(role, os.Args[1:]))
	}
	if reason := unableToMount(); reason != "" {
		fmt.Println("tests of mounts are skipped:", reason)
		os.Exit(0)
	}
	status, err := runAll(m)
	if err != nil {
		fmt.Println(err)
		status = 1
	}
	os.Exit(status)
}

func unableToMount() string {
	if os.Geteuid() != 0 {
		return "they need root"
	}
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return err.Error()
	}
	device.Close()
	return ""
}

// runAll builds the program, runs the tests and makes sure that they left no
// mount behind.
func runAll(m *testing.M) (status int, err error) {
	base, err := os.MkdirTemp("", "reelahead-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(base)
	if memoryDir, err = os.MkdirTemp("/dev/shm", "reelahead-test-"); err != nil {
		memoryDir = base
	} else {
		defer os.RemoveAll(memoryDir)
	}
	// Other users come here too.
	for _, dir := range []string{base, memoryDir} {
		if err := os.Chmod(dir, 0o755); err != nil {
			return 0, err
		}
	}
	// t.TempDir makes its directories there.
	os.Setenv("TMPDIR", base)
	program = filepath.Join(base, "reelahead")
	build := []string{"build", "-o", program}
	if raceDetector {
		build = append(build, "-race")
	}
	if out, err := exec.Command("go", append(build, "reelahead/cmd/reelahead")...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	status = m.Run()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return status, err
	}
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, base) || strings.Contains(line, memoryDir) {
			err = fmt.Errorf("a mount was left behind: %s", line)
		}
	}
	return status, err
}
