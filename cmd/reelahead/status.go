package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/moby/sys/mountinfo"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"reelahead/fusefs"
)

// statusPatience is how long a mount may take to tell its status before it is
// called hanging.
const statusPatience = 5 * time.Second

func newStatusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [MOUNTPOINT]",
		Short: "Show what a mount has done and is doing",
		Long: `Show what the mount on MOUNTPOINT has done and is doing; without MOUNTPOINT, list
all mounts. With --json the counters are printed as they are, in bytes and opens.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("status takes at most one MOUNTPOINT, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listMounts(cmd.OutOrStdout(), asJSON)
			}
			content, err := readStatus(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				_, err = cmd.OutOrStdout().Write(content)
				return err
			}
			var s fusefs.Status
			if err := json.Unmarshal(content, &s); err != nil {
				return fmt.Errorf("status of %s: %w", args[0], err)
			}
			return printStatus(cmd.OutOrStdout(), s)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readStatus reads the mount's own status file. A mount that does not answer
// does not hold up the command.
func readStatus(mountpoint string) ([]byte, error) {
	type answer struct {
		content []byte
		err     error
	}
	answers := make(chan answer, 1)
	go func() {
		content, err := os.ReadFile(filepath.Join(mountpoint, fusefs.ControlDir, fusefs.StatusFile))
		answers <- answer{content, err}
	}()
	select {
	case a := <-answers:
		switch {
		case a.err == nil:
			return a.content, nil
		case errors.Is(a.err, unix.ENOTCONN):
			return nil, fmt.Errorf("%s: the process of this mount is gone: clear it with \"reelahead unmount %s\"", mountpoint, mountpoint)
		case errors.Is(a.err, os.ErrNotExist) || errors.Is(a.err, unix.ENOTDIR):
			return nil, fmt.Errorf("%s is not a reelahead mount (\"reelahead status\" lists them)", mountpoint)
		}
		return nil, fmt.Errorf("status of %s: %w", mountpoint, a.err)
	case <-time.After(statusPatience):
		return nil, fmt.Errorf("%s has not answered within %s", mountpoint, statusPatience)
	}
}

func listMounts(out io.Writer, asJSON bool) error {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter(fusefs.FilesystemType))
	if err != nil {
		return fmt.Errorf("read the mount table: %w", err)
	}
	type row struct {
		Source     string `json:"source"`
		Mountpoint string `json:"mountpoint"`
	}
	rows := make([]row, 0, len(mounts))
	for _, m := range mounts {
		rows = append(rows, row{m.Source, m.Mountpoint})
	}
	if asJSON {
		return json.NewEncoder(out).Encode(rows)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(out, "no reelahead mounts")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "SOURCE\tMOUNTPOINT")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\n", r.Source, r.Mountpoint)
	}
	return table.Flush()
}

func printStatus(out io.Writer, s fusefs.Status) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	bytes := func(n int64) string { return humanize.IBytes(uint64(n)) }
	line("source", "%s", s.Source)
	line("mountpoint", "%s", s.Mountpoint)
	how := "by the kernel (passthrough)"
	if !s.Passthrough {
		how = "by the daemon (no passthrough: it needs root and Linux 6.9)"
	}
	line("ready frames read", "%s", how)
	line("opens", "%d: %d ready, %d in flight, %d cold; %d were expected", s.Opens, s.OpensReady, s.OpensInflight, s.OpensCold, s.OpensExpected)
	line("read", "%s by applications, %s from the source", bytes(s.BytesRead), bytes(s.BytesSource))
	line("fetched", "%s, %s of it never read", bytes(s.BytesFetched), bytes(s.BytesFetchedUnread))
	line("cache", "%s of %s, at most %s", bytes(s.CacheBytes), bytes(s.CacheLimit), bytes(s.CacheBytesPeak))
	line("source", "%d reads under way of at most %d, %d errors", s.SourceReads, s.SourceReadsLimit, s.SourceErrors)
	for _, stream := range s.Streams {
		state := fmt.Sprintf("%.1f files/s", stream.Rate)
		if stream.Paused {
			state = "paused"
		}
		line("stream", "%s step %+d at %s, %s, %d of %d ahead", filepath.Join(stream.Dir, stream.Pattern), stream.Step, stream.Playhead, state, stream.Ahead, stream.Window)
	}
	return table.Flush()
}
