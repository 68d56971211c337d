package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"reelahead/bench"
)

func newBenchWriteCommand() *cobra.Command {
	var flags writeFlags
	var frametest frametestFlags
	var jsonPath, csvPath string
	cmd := &cobra.Command{
		Use:   "write DIR|PATTERN",
		Short: "Make frames to play",
		Long: `Make frames in an existing directory, as fast as it takes them. Each has contents
of its own, which neither compression nor deduplication makes smaller, and a stamp
that "bench play --verify" checks. Names that end in .dpx and .exr, or --format,
give pictures that other programs open.

PATTERN is a directory with a file name, as in /mnt/nas/shot.%04d.dpx or
/mnt/nas/shot.####.dpx; DIR alone takes the file name from --name.

With --fps it records: frame k is captured k/fps after the start and waits until
it has been written, with at most --queue others. A frame that is captured while
the queue is full is dropped: it is counted, and its number stays missing.

The free space is checked before. A frame that can't be written whole is removed,
and the run ends; --resume keeps what is there already. What was done until then
is reported, also after ^C.

The options of frametest work: -w SIZE, -n, -t, -f, -q, -z, -v, -m and -x. With
-w numbers start at 0. A bare number after -w or -z is in KiB. docs/bench.md has
the table.

` + profileHelp() + `
Exit status: 0 all written; 1 one could not be written, or a recording has
dropped frames; 64 the command line is wrong; 130 interrupted.`,
		Example: `  reelahead bench write /mnt/nas/test --frames 240 --profile 2k --name shot.%04d.dpx
  reelahead bench write /mnt/nas/test/small.%06d.tst --frames 30000 --size 64KiB
  reelahead bench write /mnt/nas/test --frames 1440 --profile 4k --fps 24 --fsync
  reelahead bench write -w 2k -n 1000 -t 4 /mnt/nas/test`,
		Args: namedArgs("DIR or PATTERN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := frametest.apply(cmd, &flags.frame); err != nil {
				return err
			}
			if frametest.write != 0 && !cmd.Flags().Changed("start") {
				flags.write.Start = 0
			}
			config, err := flags.config(cmd, args[0])
			if err != nil {
				return err
			}
			if jsonPath == "-" && csvPath == "-" {
				return usageError("--json and --csv can't both go to stdout")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			// After the first signal a second one ends a writer that hangs.
			go func() { <-ctx.Done(); stop() }()
			report, err := bench.Write(ctx, config)
			return reportWritten(cmd, config.Pattern, report, err, jsonPath, csvPath)
		},
	}
	flags.register(cmd)
	frametest.registerWrite(cmd)
	cmd.Flags().StringVar(&jsonPath, "json", "", "write the report as JSON to FILE, - for stdout")
	cmd.Flags().StringVarP(&csvPath, "csv", "x", "", "write one row for each frame to FILE, - for stdout")
	return cmd
}

// reportWritten prints what was written and returns the exit status; failed is
// what Write has returned.
func reportWritten(cmd *cobra.Command, pattern bench.Pattern, report bench.WriteReport, failed error, jsonPath, csvPath string) error {
	if report.FramesDue+report.FramesKept > 0 && jsonPath != "-" && csvPath != "-" {
		fmt.Fprintln(cmd.OutOrStdout(), pattern)
		if err := report.WriteSummary(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	err := errors.Join(
		writeOutput(cmd, jsonPath, func(w io.Writer) error { return writeJSON(w, report) }),
		writeOutput(cmd, csvPath, report.WriteCSV))
	switch {
	case report.Interrupted:
		return errors.Join(err, &exitError{exitInterrupted, fmt.Errorf("write %s: interrupted after %d frames", pattern, report.Frames)})
	case failed != nil:
		return errors.Join(fmt.Errorf("write %s: %w", pattern, failed), err)
	case err != nil:
		return err
	case report.Status() != bench.StatusSmooth:
		return &exitError{status: report.Status()}
	}
	return nil
}

// writeFlags are the flags of bench write.
type writeFlags struct {
	name, format, fps string
	block             sizeFlag
	frame             frameSizeFlags
	write             bench.WriteConfig
}

func (f *writeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVarP(&f.write.Frames, "frames", "n", 100, "how many")
	flags.IntVar(&f.write.Start, "start", 1, "number of the first")
	flags.StringVar(&f.name, "name", "", "file names in DIR (default frame%06d and the format)")
	flags.StringVar(&f.format, "format", "", "tst, dpx or exr (default: what the name ends in, else tst)")
	flags.Uint64Var(&f.write.Seed, "seed", 0, "of the contents (default: the time, so that no two runs are alike)")
	flags.IntVarP(&f.write.Threads, "threads", "t", 1, "frames written at once")
	flags.StringVarP(&f.fps, "fps", "f", "", "record at this rate (default: as fast as they can be written)")
	flags.IntVarP(&f.write.Queue, "queue", "q", 0, "frames captured and not yet written, with --fps (default 8, or the threads)")
	flags.BoolVarP(&f.write.Order.Reverse, "reverse", "v", false, "from the last frame to the first")
	flags.BoolVarP(&f.write.Order.Random, "random", "m", false, "in random order")
	flags.BoolVar(&f.write.Fsync, "fsync", false, "fsync each frame before it is closed")
	flags.BoolVar(&f.write.Direct, "direct", false, "write with O_DIRECT")
	flags.Var(&f.block, "block", "bytes a write(2) (default: the whole frame, at most 16MiB)")
	flags.BoolVar(&f.write.Resume, "resume", false, "keep frames that are there as they should be")
	flags.BoolVar(&f.write.IgnoreSpace, "ignore-space", false, "write even if the filesystem says that there is no room")
	f.frame.register(cmd)
}

// config returns what to write, or a usage error.
func (f *writeFlags) config(cmd *cobra.Command, target string) (bench.WriteConfig, error) {
	config := f.write
	set := cmd.Flags().Changed
	var err error
	if set("format") {
		if config.Format, err = bench.ParseFormat(f.format); err != nil {
			return config, usageError("%w", err)
		}
	}
	if f.name == "" {
		f.name = "frame%06d." + string(cmp.Or(config.Format, bench.FormatRaw))
	}
	if config.Pattern, err = bench.ParsePattern(target); errors.Is(err, bench.ErrNoNumber) {
		config.Pattern, err = bench.ParsePattern(filepath.Join(target, f.name))
	} else if err == nil && set("name") {
		return config, usageError("%s has a file name already: leave --name out", target)
	}
	if err != nil {
		return config, usageError("%w", err)
	}
	if config.Size, err = f.frame.size(cmd, "2k"); err != nil {
		return config, err
	}
	if set("fps") {
		if config.Rate, err = bench.ParseRate(f.fps); err != nil {
			return config, usageError("%w", err)
		}
	}
	for name, value := range map[string]int{"threads": config.Threads, "queue": config.Queue} {
		if set(name) && value < 1 {
			return config, usageError("--%s must be at least 1, not %d", name, value)
		}
	}
	if set("queue") && !set("fps") {
		return config, usageError("--queue is that of a recording: say --fps too")
	}
	config.Block = int64(f.block)
	config.Order.Seed = config.Seed
	if !set("seed") {
		config.Seed = uint64(time.Now().UnixNano())
	}
	if err := config.Validate(); err != nil {
		return config, usageError("%w", err)
	}
	return config, nil
}

// frameSizeFlags are --profile and --size, of which a command takes one.
type frameSizeFlags struct {
	profile string
	bytes   sizeFlag
}

func (f *frameSizeFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.profile, "profile", "", "size of a frame by name")
	cmd.Flags().Var(&f.bytes, "size", "size of a frame")
}

// size returns the bytes of a frame: those asked for, else of the profile that
// is the default, else 0.
func (f *frameSizeFlags) size(cmd *cobra.Command, defaultProfile string) (int64, error) {
	if cmd.Flags().Changed("size") {
		switch {
		case f.profile != "":
			return 0, usageError("--profile and --size contradict each other: leave one out")
		case f.bytes == 0:
			return 0, usageError("--size must be more than 0")
		}
		return int64(f.bytes), nil
	}
	if f.profile == "" {
		f.profile = defaultProfile
	}
	if f.profile == "" {
		return 0, nil
	}
	profile, err := bench.ProfileByName(f.profile)
	if err != nil {
		return 0, usageError("%w", err)
	}
	return profile.Size, nil
}

func profileHelp() string {
	help := "Profiles, in bytes a frame:\n"
	for _, profile := range bench.Profiles {
		help += fmt.Sprintf("  %s %12s  (as DPX: %d×%d, %d bits)\n",
			profile.Name, humanize.Comma(profile.Size), profile.Width, profile.Height, profile.Depth)
	}
	return help
}
