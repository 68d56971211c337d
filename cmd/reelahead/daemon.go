package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// readyVariable tells the background process that its standard output is the
// pipe on which the foreground waits for readyMessage.
const (
	readyVariable = "REELAHEAD_READY_PIPE"
	readyMessage  = "ready\n"
)

// daemonize starts this very command again in a session of its own and returns
// when it says that the mount answers, or with what it said instead.
func daemonize() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	defer read.Close()
	errors, errorsWrite, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	defer errors.Close()
	child := exec.Command(self, childArguments(os.Args)...)
	child.Env = append(os.Environ(), readyVariable+"=1")
	child.Stdout, child.Stderr = write, errorsWrite
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	write.Close()
	errorsWrite.Close()
	said, _ := io.ReadAll(read)
	if bytes.Equal(said, []byte(readyMessage)) {
		return child.Process.Release()
	}
	reason, _ := io.ReadAll(errors)
	status := exitFailure
	if err := child.Wait(); err != nil {
		if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() > 0 {
			status = exit.ExitCode()
		}
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(reason)), "reelahead: ")
	if text == "" {
		return errNotReady
	}
	return &exitError{status: status, err: fmt.Errorf("%s", text)}
}

// childArguments are those of this process, as its command line was understood.
func childArguments(args []string) []string {
	if helper := asMountHelper(args, isCommandName); helper != nil {
		return helper
	}
	return args[1:]
}

// reportReady tells a waiting foreground process that the mount answers and
// lets go of its terminal.
func reportReady() {
	if os.Getenv(readyVariable) == "" {
		return
	}
	_, _ = os.Stdout.WriteString(readyMessage)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	for _, stream := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		_ = syscall.Dup3(int(null.Fd()), int(stream.Fd()), 0)
	}
	null.Close()
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }
