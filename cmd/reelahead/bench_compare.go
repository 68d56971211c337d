package main

import (
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"reelahead/bench"
)

func newBenchCompareCommand() *cobra.Command {
	var flags playFlags
	var jsonPath string
	config := bench.CompareConfig{}
	cmd := &cobra.Command{
		Use:   "compare LABEL=PATH LABEL=PATH…",
		Short: "Play the same frames from several mounts, side by side",
		Long: `Play the same frames from several mounts, one after the other and each with cold
caches, and print one table with the ratio of each to the first. Each PATH is
what "bench play" takes; a label that is given twice has two paths.

Before each run the kernel drops its pages of the files. What that does not
reach is named below the table: a server's cache, files on tmpfs, and what a
reelahead mount itself holds. Every second round goes backwards.

With --warm each side is read through once before the first run instead, and what
is compared is how fast frames come from memory.

Exit status: 0 played, whatever was dropped; 2 frames failed; 64 the command
line is wrong; 69 a side could not be played; 130 interrupted.`,
		Example: `  reelahead bench compare raw=/mnt/nas/shot ahead=/mnt/reel/shot --fps 24 --repeat 3
  reelahead bench compare tmpfs=/dev/shm/shot ahead=/mnt/reel/shot --unpaced --warm --repeat 5`,
		Args: atLeastOneArg("LABEL=PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if config.Sides, err = parseSides(args); err != nil {
				return err
			}
			if config.Play, err = flags.config(cmd, config.Sides[0].Paths); err != nil {
				return err
			}
			if err := config.Validate(); err != nil {
				return usageError("%w", err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			go func() { <-ctx.Done(); stop() }()
			config.OnRun = func(side bench.Side, round int) {
				fmt.Fprintf(cmd.ErrOrStderr(), "run %d of %d: %s\n", round+1, config.Repeat, side.Label)
			}
			result, err := bench.Compare(ctx, config)
			switch {
			case ctx.Err() != nil:
				return &exitError{exitInterrupted, fmt.Errorf("compare: %w", err)}
			case err != nil:
				return &exitError{exitUnavailable, fmt.Errorf("compare: %w", err)}
			}
			return reportComparison(cmd, result, jsonPath)
		},
	}
	flags.register(cmd)
	cmd.Flags().IntVar(&config.Repeat, "repeat", 1, "runs of each side")
	cmd.Flags().BoolVar(&config.Warm, "warm", false, "read each side once before the first run and drop nothing")
	cmd.Flags().StringVar(&jsonPath, "json", "", "write the comparison as JSON to FILE, - for stdout")
	return cmd
}

// reportComparison prints the table, writes the JSON and returns the exit
// status.
func reportComparison(cmd *cobra.Command, result *bench.Comparison, jsonPath string) error {
	if jsonPath != "-" {
		if err := result.WriteTable(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	if err := writeOutput(cmd, jsonPath, func(w io.Writer) error { return writeJSON(w, result) }); err != nil {
		return &exitError{exitUnavailable, err}
	}
	for _, side := range result.Sides {
		if side.Total.FramesFailed > 0 {
			return &exitError{status: bench.StatusFailed}
		}
	}
	return nil
}

func parseSides(args []string) ([]bench.Side, error) {
	var sides []bench.Side
	at := map[string]int{}
	for _, arg := range args {
		label, path, found := strings.Cut(arg, "=")
		if !found || label == "" || path == "" {
			return nil, usageError("%q is not LABEL=PATH, as in raw=/mnt/nas/shot", arg)
		}
		i, known := at[label]
		if !known {
			i = len(sides)
			at[label] = i
			sides = append(sides, bench.Side{Label: label})
		}
		sides[i].Paths = append(sides[i].Paths, path)
	}
	return sides, nil
}
