package main

import (
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"reelahead/bench"
)

func newBenchWriteCommand() *cobra.Command {
	config := bench.WriteConfig{}
	var name string
	var frame frameSizeFlags
	cmd := &cobra.Command{
		Use:   "write DIR|PATTERN",
		Short: "Make frames to play",
		Long: `Make frames in an existing directory. Each has contents of its own, which neither
compression nor deduplication makes smaller, and a stamp that "bench play
--verify" checks. Names that end in .dpx give pictures that other programs open.

PATTERN is a directory with a file name, as in /mnt/nas/shot.%04d.dpx or
/mnt/nas/shot.####.dpx; DIR alone takes the file name from --name.

` + profileHelp(),
		Example: `  reelahead bench write /mnt/nas/test --frames 240 --profile 2k --name shot.%04d.dpx
  reelahead bench write /mnt/nas/test/small.%06d.tst --frames 30000 --size 64KiB`,
		Args: namedArgs("DIR or PATTERN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if config.Pattern, err = bench.ParsePattern(args[0]); errors.Is(err, bench.ErrNoNumber) {
				config.Pattern, err = bench.ParsePattern(filepath.Join(args[0], name))
			} else if err == nil && cmd.Flags().Changed("name") {
				return usageError("%s has a file name already: leave --name out", args[0])
			}
			if err != nil {
				return usageError("%w", err)
			}
			if config.Size, err = frame.size(cmd, "2k"); err != nil {
				return err
			}
			if !cmd.Flags().Changed("seed") {
				config.Seed = uint64(time.Now().UnixNano())
			}
			if err := config.Validate(); err != nil {
				return usageError("%w", err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			report, err := bench.Write(ctx, config)
			if report.Frames > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d frames of %s written in %.1f s, %s/s\n", config.Pattern, report.Frames,
					humanize.Comma(config.Size), report.Seconds, humanize.Bytes(uint64(float64(report.Bytes)/max(report.Seconds, 1e-9))))
			}
			if err != nil {
				return fmt.Errorf("write %s: %w", config.Pattern, err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&config.Frames, "frames", 100, "how many")
	flags.IntVar(&config.Start, "start", 1, "number of the first")
	flags.StringVar(&name, "name", "frame%06d.tst", "file names in DIR")
	flags.Uint64Var(&config.Seed, "seed", 0, "of the contents (default: the time, so that no two runs are alike)")
	frame.register(cmd)
	return cmd
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
