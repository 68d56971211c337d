package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Deadlines of the processes that a demonstration starts.
const (
	mountDeadline = 20 * time.Second
	stopDeadline  = 10 * time.Second
	mountPoll     = 10 * time.Millisecond
)

// server is a process that serves a mount in the foreground. It is not safe for
// concurrent use.
type server struct {
	name       string
	mountPoint string
	command    *exec.Cmd
	output     *bytes.Buffer // read only after exited
	exited     chan struct{}
}

// startServer starts a command and returns when it has mounted mountPoint. When
// it returns an error, neither the process nor a mount is left.
func startServer(ctx context.Context, name, mountPoint string, command ...string) (*server, error) {
	s := &server{
		name: name, mountPoint: mountPoint,
		command: exec.Command(command[0], command[1:]...),
		output:  &bytes.Buffer{}, exited: make(chan struct{}),
	}
	s.command.Stdout, s.command.Stderr = s.output, s.output
	// In a group of its own, so that ^C on the terminal does not unmount what is
	// still being read. Should this process be killed, the server must not stay.
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = s.command.Wait()
		close(s.exited)
	}()
	if err := s.awaitMount(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) awaitMount(ctx context.Context) error {
	deadline := time.After(mountDeadline)
	for {
		mounted, err := isMounted(s.mountPoint)
		if mounted || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.exited:
			return fmt.Errorf("%s ended (%v) before it had mounted: %s", s.name, s.command.ProcessState, s.said())
		case <-deadline:
			return fmt.Errorf("%s has not mounted %s within %v", s.name, s.mountPoint, mountDeadline)
		case <-time.After(mountPoll):
		}
	}
}

// stop asks the server to unmount and end, and makes it when it doesn't within
// stopDeadline.
func (s *server) stop() error {
	var err error
	_ = s.command.Process.Signal(os.Interrupt)
	select {
	case <-s.exited:
	case <-time.After(stopDeadline):
		_ = s.command.Process.Kill()
		<-s.exited
		err = fmt.Errorf("%s did not end within %v and was killed: %s", s.name, stopDeadline, s.said())
	}
	if mounted, _ := isMounted(s.mountPoint); mounted {
		if unmountErr := unix.Unmount(s.mountPoint, unix.MNT_DETACH); unmountErr != nil {
			return errors.Join(err, fmt.Errorf("%s left a mount on %s: %w", s.name, s.mountPoint, unmountErr))
		}
		err = errors.Join(err, fmt.Errorf("%s left a mount on %s, which has been detached: %s", s.name, s.mountPoint, s.said()))
	}
	return err
}

// said returns what the server printed. It must have exited.
func (s *server) said() string {
	<-s.exited
	return strings.TrimSpace(s.output.String())
}

func isMounted(path string) (bool, error) {
	// The path is compared with the kernel's spelling, without touching the
	// mount: its server may hang.
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(path))
	if err != nil {
		return false, fmt.Errorf("read the mount table: %w", err)
	}
	return len(mounts) > 0, nil
}

// stage is the directory in which a demonstration takes place: frames, the mount
// points and the servers on them.
type stage struct {
	dir        string
	executable string
	servers    []*server // in the order they were started
}

// Directories of a stage.
func (s *stage) frames() string { return filepath.Join(s.dir, "frames") }
func (s *stage) nas() string    { return filepath.Join(s.dir, "nas") }
func (s *stage) ahead() string  { return filepath.Join(s.dir, "ahead") }

// newStage makes a stage with room for the given number of bytes of frames: in
// parent, or where that is empty in memory, if that leaves enough for everything
// else, or else in the directory for temporary files.
func newStage(executable, parent string, bytes, otherMemory int64) (*stage, error) {
	switch {
	case parent != "":
	case hasSpace("/dev/shm", bytes) && availableMemory() > bytes+otherMemory:
		parent = "/dev/shm"
	default:
		parent = os.TempDir()
	}
	if _, err := os.Stat(parent); err != nil {
		return nil, err
	}
	if !hasSpace(parent, bytes) {
		return nil, fmt.Errorf("%s of frames don't fit into %s: use fewer streams, fewer seconds or a smaller profile", decimal(bytes), parent)
	}
	dir, err := os.MkdirTemp(parent, "reelahead-demo-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, executable: executable}
	// The mount table shows absolute paths without symbolic links.
	if s.dir, err = filepath.Abs(dir); err == nil {
		s.dir, err = filepath.EvalSymlinks(s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for _, sub := range []string{s.frames(), s.nas(), s.ahead()} {
		if err := os.Mkdir(sub, 0o755); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return s, nil
}

func (s *stage) start(ctx context.Context, name, mountPoint string, args ...string) error {
	started, err := startServer(ctx, name, mountPoint, append([]string{s.executable}, args...)...)
	if err == nil {
		s.servers = append(s.servers, started)
	}
	return err
}

// clear stops the servers, the last one first.
func (s *stage) clear() error {
	var errs []error
	for len(s.servers) > 0 {
		last := len(s.servers) - 1
		errs = append(errs, s.servers[last].stop())
		s.servers = s.servers[:last]
	}
	return errors.Join(errs...)
}

// strike clears the stage and removes it. While something is mounted in it
// nothing is removed: that would go through to what is mounted.
func (s *stage) strike() error {
	if err := s.clear(); err != nil {
		for _, dir := range []string{s.ahead(), s.nas()} {
			if mounted, mountErr := isMounted(dir); mounted || mountErr != nil {
				return errors.Join(err, fmt.Errorf("%s stays, since something is mounted in it", s.dir))
			}
		}
		return errors.Join(err, os.RemoveAll(s.dir))
	}
	return os.RemoveAll(s.dir)
}

// hasSpace says whether a directory's filesystem has room for bytes and a tenth
// more.
func hasSpace(dir string, bytes int64) bool {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return false
	}
	return int64(stat.Bavail)*stat.Bsize > bytes+bytes/10
}

// availableMemory is what the kernel could give to processes without swapping,
// in bytes; 0 if it doesn't say.
func availableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}
