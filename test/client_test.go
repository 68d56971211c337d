package test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// clientEnv makes the test binary an application of the role that it names.
const clientEnv = "REELAHEAD_TEST_CLIENT"

// runClient is the whole life of such an application; 0 is success.
func runClient(role string, args []string) int {
	var err error
	switch role {
	case "play":
		err = playSums(args, os.ReadFile)
	case "compare":
		err = compareWith(args)
	case "read":
		err = readToEnd(args[0])
	case "tick":
		err = readWithTicks(args)
	case "call":
		err = callOnce(args[0], args[1])
	case "crowd":
		err = crowd(args[0], args[1])
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// readToEnd opens and reads, and asks for nothing else.
func readToEnd(path string) error {
	fmt.Println("reading")
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	for piece := make([]byte, 1<<20); ; {
		if n, err := unix.Read(fd, piece); err != nil || n == 0 {
			return err
		}
	}
}

// client prepares an application; everything it says goes to its Stdout.
func client(t *testing.T, role string, args ...string) (cmd *exec.Cmd, said *syncBuffer) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	said = &syncBuffer{}
	cmd = exec.Command(self, args...)
	cmd.Env = append(os.Environ(), clientEnv+"="+role)
	cmd.Stdout, cmd.Stderr = said, said
	return cmd, said
}

// sumsName holds the checksum and name of each frame of a directory, outside
// of the mount.
const sumsName = "sums"

// writeSums puts what a "play" client compares into a file and returns its name.
func (s *sequence) writeSums() string {
	s.t.Helper()
	var text bytes.Buffer
	for i, frame := range s.frames {
		fmt.Fprintf(&text, "%x %s\n", sha256.Sum256(frame), frameName(i))
	}
	path := filepath.Join(s.t.TempDir(), sumsName)
	writeFile(s.t, path, text.Bytes())
	return path
}

// playSums reads the frames of a directory in the order of a file of sums.
func playSums(args []string, read func(path string) ([]byte, error)) error {
	dir, sums := args[0], args[1]
	text, err := os.ReadFile(sums)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		sum, name, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		got, err := read(filepath.Join(dir, string(name)))
		if err != nil {
			return err
		}
		if hash := sha256.Sum256(got); hex.EncodeToString(hash[:]) != string(sum) {
			return fmt.Errorf("%s: wrong bytes (%d of them)", name, len(got))
		}
	}
	return nil
}

// compareWith reads the files that a list names in one directory, in its order,
// and compares them with another.
func compareWith(args []string) error {
	dir, other, list := args[0], args[1], args[2]
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	for _, name := range splitLines(text) {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		want, err := os.ReadFile(filepath.Join(other, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s: %s", name, difference(got, want))
		}
	}
	return nil
}

// readWithTicks plays in a thread that gets a signal every few milliseconds, as
// profilers and the timers of some players give.
func readWithTicks(args []string) error {
	ticks := make(chan os.Signal, 1)
	signal.Notify(ticks, syscall.SIGALRM)
	runtime.LockOSThread()
	process, thread := os.Getpid(), unix.Gettid()
	go func() {
		for range time.Tick(3 * time.Millisecond) {
			_ = unix.Tgkill(process, thread, unix.SIGALRM)
		}
	}()
	return playSums(args, readWhole)
}

// readWhole reads a file with one call that must give all of it, as some
// players do. Unlike package os it does not try again after EINTR.
func readWhole(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	whole := make([]byte, 8<<20)
	n, err := unix.Read(fd, whole)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return whole[:n], nil
}
