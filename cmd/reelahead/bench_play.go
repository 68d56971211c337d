package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"reelahead/bench"
)

// exitInterrupted is what a shell shows for a program that SIGINT has ended.
const exitInterrupted = 128 + int(syscall.SIGINT)

func newBenchPlayCommand() *cobra.Command {
	var flags playFlags
	var frametest frametestFlags
	var jsonPath, csvPath, csvFormat string
	cmd := &cobra.Command{
		Use:   "play PATH…",
		Short: "Play frames against the clock and count what was dropped",
		Long: `Play sequences of frames against an absolute clock, as a player shows them, and
count the frames that were not there when they were due.

PATH is a directory that holds one sequence or a pattern (shot.%04d.exr or
shot.####.exr). Client i of --clients plays path i modulo the number of paths;
without --clients there is one for each path.

After a pre-buffer the clock starts, and frame k is due k/fps later, whatever
happened before. A client reads ahead by at most --queue frames. A frame is on
time if it was wholly read when due. Else it is dropped: late, if it was being
read when due, or skipped. A frame is skipped when it is due sooner than the
median time of the last frames: the client goes on with the first frame due at
least that median and one frame interval from now. With --on-miss wait the clock
stops for a late frame in place of skipping. A frame that is missing, of another
size than the others or that can't be read is failed, and named.

A file is opened, fstat'ed and read with one read(2), or with one for each
--block; --reader has other ways. With --cold the kernel drops its pages of the
frames first, and what that does not reach is named.

The options of frametest work: -r [SIZE], -n, -t, -f, -q, -b, -z, -v, -m and -x.
With -r and without -f frames are read as fast as they come. A bare number after
-r or -z is in KiB. docs/bench.md has the table.

Exit status: 0 all frames on time; 1 frames dropped; 2 frames failed; 64 the
command line is wrong; 69 nothing could be played; 130 interrupted.`,
		Example: `  reelahead bench play /mnt/nas/shot --fps 24000/1001 --prebuffer 5 --queue 8
  reelahead bench play /mnt/nas/a /mnt/nas/b --clients 8 --loop 3 --json run.json --csv frames.csv
  reelahead bench play /mnt/nas/* --fps 30 --frames 1000 --aligned --cold
  reelahead bench play /mnt/nas/shot --unpaced --direct
  reelahead bench play -r -n 1000 -t 4 -f 24 /mnt/nas/shot`,
		Args: atLeastOneArg("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = frametest.readArgs(cmd, args, &flags)
			if err := frametest.apply(cmd, &flags.frame); err != nil {
				return err
			}
			config, err := flags.config(cmd, args)
			if err != nil {
				return err
			}
			if jsonPath == "-" && csvPath == "-" {
				return usageError("--json and --csv can't both go to stdout")
			}
			writeCSV, ok := csvFormats[csvFormat]
			if !ok {
				return usageError("--csv-format %q: want frames, frametest or frametest-times", csvFormat)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			// After the first signal a second one ends a reader that hangs.
			go func() { <-ctx.Done(); stop() }()
			report, err := bench.Play(ctx, config)
			if err != nil {
				return &exitError{exitUnavailable, fmt.Errorf("play: %w", err)}
			}
			if jsonPath != "-" && csvPath != "-" {
				if err := report.WriteSummary(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			err = errors.Join(
				writeOutput(cmd, jsonPath, func(w io.Writer) error { return writeJSON(w, report) }),
				writeOutput(cmd, csvPath, func(w io.Writer) error { return writeCSV(report, w) }))
			switch {
			case err != nil:
				return &exitError{exitUnavailable, err}
			case report.Interrupted:
				return &exitError{status: exitInterrupted}
			case report.Status() != bench.StatusSmooth:
				return &exitError{status: report.Status()}
			}
			return nil
		},
	}
	flags.register(cmd)
	frametest.registerRead(cmd)
	cmd.Flags().BoolVar(&flags.play.Cold, "cold", false, "drop what caches hold of the frames before, as far as that is possible")
	cmd.Flags().StringVar(&jsonPath, "json", "", "write the report as JSON to FILE, - for stdout")
	cmd.Flags().StringVarP(&csvPath, "csv", "x", "", "write one row for each frame to FILE, - for stdout")
	cmd.Flags().StringVar(&csvFormat, "csv-format", "frames", "`columns` of the CSV: frames, frametest (as tframetest --csv) or frametest-times (and its --times --frametimes)")
	return cmd
}

// csvFormats are the tables that --csv-format names.
var csvFormats = map[string]func(*bench.Report, io.Writer) error{
	"frames": (*bench.Report).WriteCSV,
	"frametest": func(r *bench.Report, w io.Writer) error {
		return r.WriteFrametestCSV(w, bench.FrametestCSV{})
	},
	"frametest-times": func(r *bench.Report, w io.Writer) error {
		return r.WriteFrametestCSV(w, bench.FrametestCSV{Times: true, Frametimes: true})
	},
}

// exitUnavailable is EX_UNAVAILABLE of sysexits(3): nothing could be measured.
// It is told from the statuses of a report.
const exitUnavailable = 69

func writeJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// writeOutput writes to the file at path: nowhere if that is empty, to stdout
// if it is "-".
func writeOutput(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	switch path {
	case "":
		return nil
	case "-":
		return write(cmd.OutOrStdout())
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// atLeastOneArg is cobra.MinimumNArgs(1) with the name of what is missing.
func atLeastOneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return usageError("%s takes at least one %s (see %q)", cmd.CommandPath(), name, cmd.CommandPath()+" --help")
	}
}
