package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"reelahead/fusefs"
)

func newHintCommand() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "hint MOUNTPOINT [LIST|-]",
		Short: "Announce the files that will be opened, in order",
		Long: `Announce to the mount on MOUNTPOINT the files that will be opened, in order: a
path a line in the file LIST, or on standard input. The first of them are fetched
at once, the others as the list is read, by whatever processes. Files that are
left out or read out of turn do no harm; a file may be named several times.

Paths are absolute, below MOUNTPOINT, or relative: to the current directory if
that is in the mount, else to MOUNTPOINT. Empty lines are skipped. If any path is
wrong nothing is announced.

A program does the same by writing to MOUNTPOINT/.reelahead/hints; a list that
it writes replaces the one that the same process wrote before.

Exit status: 0 announced, 1 the list or the mount cannot take it, 64 wrong
command line.`,
		Example: `  reelahead hint /show order.txt
  find /show/set -name '*.npz' | shuf --random-source=seed | reelahead hint /show
  cat order.txt > /show/.reelahead/hints`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usageError("hint takes MOUNTPOINT and a LIST of paths, got %d arguments (see %q)", len(args), cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			list, name := cmd.InOrStdin(), "standard input"
			if len(args) == 2 && args[1] != "-" {
				file, err := os.Open(args[1])
				if err != nil {
					return fmt.Errorf("the list: %w", err)
				}
				defer file.Close()
				list, name = file, args[1]
			}
			announced, err := hint(args[0], list, name)
			if err != nil || quiet {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), announced)
			return err
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "don't say what was announced")
	return cmd
}

// announcedList is a list as it goes to the mount.
type announcedList struct {
	mountpoint  string
	text        strings.Builder
	files       int
	first, last string
}

func (l *announcedList) String() string {
	if l.files == 1 {
		return fmt.Sprintf("announced 1 file to %s: %s", l.mountpoint, l.first)
	}
	return fmt.Sprintf("announced %s files to %s: from %s to %s", humanize.Comma(int64(l.files)), l.mountpoint, l.first, l.last)
}

// hint announces a list to a mount, all of it or, if anything is wrong, nothing.
func hint(mountpoint string, list io.Reader, name string) (*announcedList, error) {
	if _, err := readStatus(mountpoint); err != nil {
		return nil, err
	}
	base, err := newHintBase(mountpoint)
	if err != nil {
		return nil, err
	}
	announced := &announcedList{mountpoint: mountpoint}
	if err := announced.read(list, name, base); err != nil {
		return nil, err
	}
	return announced, announced.write(filepath.Join(mountpoint, fusefs.ControlDir, fusefs.HintsFile))
}

// hintBase is what paths of a list are taken to be relative to.
type hintBase struct {
	mountpoints []string // the names that the mount goes by, absolute and clean
	current     string   // the current directory relative to the mount's root
}

func newHintBase(mountpoint string) (*hintBase, error) {
	absolute, err := filepath.Abs(mountpoint)
	if err != nil {
		return nil, fmt.Errorf("where %s is: %w", mountpoint, err)
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return nil, fmt.Errorf("where %s is: %w", mountpoint, err)
	}
	base := &hintBase{mountpoints: []string{absolute, resolved}}
	if current, err := os.Getwd(); err == nil {
		for _, m := range base.mountpoints {
			if below, err := filepath.Rel(m, current); err == nil && filepath.IsLocal(below) {
				base.current = below
			}
		}
	}
	return base, nil
}

// path returns what a line of the list names, relative to the mount's root.
func (b *hintBase) path(line string) (file string, err error) {
	if !filepath.IsAbs(line) {
		return fusefs.HintPath(b.mountpoints[0], filepath.Join(b.current, line))
	}
	for _, m := range b.mountpoints {
		if file, err = fusefs.HintPath(m, line); err == nil {
			break
		}
	}
	return file, err
}

// read takes all paths of a list, or fails with the first that is wrong.
func (l *announcedList) read(list io.Reader, name string, base *hintBase) error {
	lines := bufio.NewScanner(list)
	lines.Buffer(nil, maxTraceLine)
	number := 0
	for lines.Scan() {
		number++
		line := lines.Text()
		if line == "" {
			continue
		}
		file, err := base.path(line)
		if err != nil {
			return fmt.Errorf("%s, line %d: %q: %w", name, number, line, err)
		}
		if l.files == 0 {
			l.first = file
		}
		l.files, l.last = l.files+1, file
		l.text.WriteString(file)
		l.text.WriteByte('\n')
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s, line %d: %w", name, number+1, err)
	}
	if l.files == 0 {
		return fmt.Errorf("%s names no file: nothing was announced", name)
	}
	return nil
}

func (l *announcedList) write(hints string) error {
	file, err := os.OpenFile(hints, os.O_WRONLY, 0)
	switch {
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%s: a mount with --read-only takes no lists: the kernel refuses every write to it", l.mountpoint)
	case err != nil:
		return fmt.Errorf("announce: %w", err)
	}
	_, err = io.WriteString(file, l.text.String())
	err = errors.Join(err, file.Close())
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("%s: as much is announced as can be; the first part of this list was taken", l.mountpoint)
	}
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	return nil
}
