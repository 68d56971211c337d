package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Deadlines of the processes that serve a stage.
const (
	readyDeadline = 20 * time.Second
	stopDeadline  = 10 * time.Second
	readyPoll     = 10 * time.Millisecond
)

// Server is a process that serves something in the foreground, mostly a mount. It
// is not safe for concurrent use.
type Server struct {
	name       string
	mountPoint string // empty: none
	command    *exec.Cmd
	output     *bytes.Buffer // read only after exited
	exited     chan struct{}
}

// StartServer starts a command and returns when it has mounted mountPoint. When
// it returns an error, neither the process nor a mount is left.
func StartServer(ctx context.Context, name, mountPoint string, command ...string) (*Server, error) {
	return startServer(ctx, name, mountPoint, func() (bool, error) { return isMounted(mountPoint) }, command)
}

// startServer starts a command and returns when ready says so.
func startServer(ctx context.Context, name, mountPoint string, ready func() (bool, error), command []string) (*Server, error) {
	s := &Server{
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
	if err := s.await(ctx, ready); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) await(ctx context.Context, ready func() (bool, error)) error {
	deadline := time.After(readyDeadline)
	for {
		if is, err := ready(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.exited:
			return fmt.Errorf("%s ended (%v) before it was ready: %s", s.name, s.command.ProcessState, s.said())
		case <-deadline:
			return fmt.Errorf("%s was not ready within %v", s.name, readyDeadline)
		case <-time.After(readyPoll):
		}
	}
}

// PID is the id of the process.
func (s *Server) PID() int { return s.command.Process.Pid }

// Stop asks the server to unmount and end, and makes it when it doesn't within
// ten seconds.
func (s *Server) Stop() error {
	var err error
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(stopDeadline):
		_ = s.command.Process.Kill()
		<-s.exited
		err = fmt.Errorf("%s did not end within %v and was killed: %s", s.name, stopDeadline, s.said())
	}
	if s.mountPoint == "" {
		return err
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
func (s *Server) said() string {
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
