// Command reelahead mounts a read-ahead view over a directory of an NFS or SMB
// mount and ships the frame player that measures what it is worth.
//
// Every subcommand lives in a file of its own, named for it.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses that scripts may rely on. bench play adds its own meaning to 1
// (frames were dropped) and 2 (frames failed); see its help text.
const (
	exitFailure = 1
	exitUsage   = 64 // EX_USAGE of sysexits(3): the command line itself is wrong.
)

// exitError carries the exit status a command wants. A nil err ends the
// program silently: the command has already said what there is to say.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError marks a mistake on the command line: it ends with exitUsage.
func usageError(format string, args ...any) error {
	return &exitError{status: exitUsage, err: fmt.Errorf(format, args...)}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "reelahead",
		Short:         "Read ahead across the files of a sequence, from any NAS",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = ": did you mean " + strings.Join(near, " or ") + "?"
			}
			return usageError("unknown command %q%s (see \"reelahead --help\")", args[0], hint)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w (see %q)", err, cmd.CommandPath()+" --help")
	})
	root.AddCommand(newMountCommand(), newUnmountCommand(), newStatusCommand())
	root.AddCommand(newVersionCommand())
	root.AddCommand(newPredictCommand(), newHintCommand())
	root.AddCommand(newBenchCommand())
	return root
}

// isCommandName tells whether the first argument names a command, and is not
// the source of a mount(8) call.
func isCommandName(name string) bool {
	command, _, err := newRootCommand().Find([]string{name})
	return err == nil && command.HasParent()
}

func main() {
	root := newRootCommand()
	if arguments := asMountHelper(os.Args, isCommandName); arguments != nil {
		root.SetArgs(arguments)
	}
	err := root.Execute()
	if err == nil {
		return
	}
	status := exitFailure
	var exit *exitError
	if errors.As(err, &exit) {
		status = exit.status
	}
	if message := err.Error(); message != "" {
		fmt.Fprintln(os.Stderr, "reelahead: "+message)
	}
	os.Exit(status)
}
