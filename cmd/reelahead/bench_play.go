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
	var jsonPath, csvPath string
	cmd := &cobra.Command{
		Use:   "play PATH…",
		Short: "Play frames against the clock and count what was dropped",
		Long: `Play sequences of frames against an absolute clock, as a player shows them, and
count the frames that were not there when they were due.

PATH is a directory that holds one sequence or a pattern (shot.%04d.exr or
shot.####.exr). Client i of --clients plays path i modulo the number of paths;
without --clients there is one for each path.

After a pre-buffer the clock starts, and frame k is due k/fps later, whatever
happened before. A client reads ahead by at most --queue frames that are read
and not yet shown. A frame is on time if it was wholly read when due. Else it is
dropped: late, if it was being read when due, or skipped. A frame is skipped
when it is due sooner than the median time of the last frames: the client goes
on with the first frame due at least that median and one frame interval from
now. With --on-miss wait the clock stops for a late frame in place of skipping.
A frame that is missing, of another size than the others or that can't be read
is failed, and named.

A file is opened, fstat'ed and read with one read(2), or with one for each
--block. The page cache is not dropped: see "bench compare" for cold runs.

Exit status: 0 all frames on time; 1 frames dropped; 2 frames failed; 64 the
command line is wrong; 69 nothing could be played; 130 interrupted.`,
		Example: `  reelahead bench play /mnt/nas/shot --fps 24000/1001 --prebuffer 5 --queue 8
  reelahead bench play /mnt/nas/a /mnt/nas/b --clients 8 --loop 3 --json run.json --csv frames.csv
  reelahead bench play /mnt/nas/shot --unpaced --direct`,
		Args: atLeastOneArg("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := flags.config(cmd, args)
			if err != nil {
				return err
			}
			if jsonPath == "-" && csvPath == "-" {
				return usageError("--json and --csv can't both go to stdout")
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
				writeOutput(cmd, csvPath, report.WriteCSV))
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
	cmd.Flags().StringVar(&jsonPath, "json", "", "write the report as JSON to FILE, - for stdout")
	cmd.Flags().StringVar(&csvPath, "csv", "", "write one row for each frame to FILE, - for stdout")
	return cmd
}

// exitUnavailable is EX_UNAVAILABLE of sysexits(3): nothing could be measured.
// It is told from the statuses of a report.
const exitUnavailable = 69

// playFlags are the flags that play and compare share.
type playFlags struct {
	fps, onMiss string
	unpaced     bool
	block       sizeFlag
	frame       frameSizeFlags
	play        bench.PlayConfig
}

func (f *playFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.fps, "fps", "24", "frames a second: 24, 23.976, 24000/1001")
	flags.BoolVar(&f.unpaced, "unpaced", false, "no clock: read as fast as the frames come")
	flags.IntVar(&f.play.Clients, "clients", 0, "streams at once (default: one for each path)")
	flags.IntVar(&f.play.Frames, "frames", 0, "frames each client plays (default: all, --loop times)")
	flags.IntVar(&f.play.Prebuffer, "prebuffer", 5, "frames read before the clock starts")
	flags.IntVar(&f.play.Queue, "queue", 8, "frames read and not yet shown")
	flags.StringVar(&f.onMiss, "on-miss", "skip", "what the clock does for a late frame: skip or wait")
	flags.BoolVar(&f.play.Order.Reverse, "reverse", false, "from the last frame to the first")
	flags.BoolVar(&f.play.Order.Random, "random", false, "in random order, another in each pass")
	flags.Uint64Var(&f.play.Order.Seed, "seed", 1, "of --random")
	flags.IntVar(&f.play.Order.Run, "seek-every", 0, "with --random: frames in a row between two seeks (default 1)")
	flags.IntVar(&f.play.Order.Loop, "loop", 1, "passes")
	flags.BoolVar(&f.play.Order.PingPong, "ping-pong", false, "there and back")
	flags.IntVar(&f.play.Order.Step, "step", 1, "every STEPth frame")
	flags.BoolVar(&f.play.Direct, "direct", false, "read with O_DIRECT")
	flags.Var(&f.block, "block", "bytes a read(2) (default: the whole frame)")
	flags.BoolVar(&f.play.Verify, "verify", false, `check the contents that "bench write" made`)
	f.frame.register(cmd)
}

// config returns what to play, or a usage error.
func (f *playFlags) config(cmd *cobra.Command, paths []string) (bench.PlayConfig, error) {
	config := f.play
	config.Paths, config.Block = paths, int64(f.block)
	var err error
	if config.Size, err = f.frame.size(cmd, ""); err != nil {
		return config, err
	}
	switch f.onMiss {
	case "skip":
	case "wait":
		config.Wait = true
	default:
		return config, usageError("--on-miss takes skip or wait, not %q", f.onMiss)
	}
	set := cmd.Flags().Changed
	for name, value := range map[string]int{"clients": config.Clients, "frames": config.Frames, "loop": config.Order.Loop, "seek-every": config.Order.Run, "step": config.Order.Step} {
		if set(name) && value < 1 {
			return config, usageError("--%s must be at least 1, not %d", name, value)
		}
	}
	switch {
	case f.unpaced && (set("fps") || set("on-miss") || set("prebuffer") || set("queue")):
		return config, usageError("--unpaced has no clock: leave --fps, --on-miss, --prebuffer and --queue out")
	case !f.unpaced:
		if config.Rate, err = bench.ParseRate(f.fps); err != nil {
			return config, usageError("%w", err)
		}
	}
	if err := config.Validate(); err != nil {
		return config, usageError("%w", err)
	}
	return config, nil
}

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
