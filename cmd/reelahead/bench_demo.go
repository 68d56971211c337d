package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"reelahead/bench"
	"reelahead/bench/slownas"
)

func newBenchDemoCommand() *cobra.Command {
	config := bench.DemoConfig{
		Prebuffer: 5, Queue: 8,
		NAS: slownas.Config{RoundTrip: 10 * time.Millisecond, Slots: 64, Seed: 1, AttrTimeout: 3 * time.Second},
	}
	var fps, profile, jsonPath string
	bandwidth, streamBandwidth := rateFlag(1_200_000_000), rateFlag(300_000_000)
	cacheSize := sizeFlag(1 << 30)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what reelahead does, on this machine alone",
		Long: `Make frames, a model of a file server across a network and a reelahead mount over
it; play the frames straight from the server and through reelahead, in
alternating order and cold each time; print one table; remove everything.

The frames are in /dev/shm if there is room, else in TMPDIR. The server's kernel
side behaves as a Linux NFS mount does for a reader of whole frames: 1 MiB
requests, and attributes kept for 3s.

Exit status: 0 shown; 2 frames failed; 64 the command line is wrong; 69 it could
not run; 130 interrupted.`,
		Example: `  reelahead bench demo
  reelahead bench demo --rtt 30ms --streams 1
  reelahead bench demo --profile hd --streams 3`,
		Args: namedArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if config.Rate, err = bench.ParseRate(fps); err != nil {
				return usageError("%w", err)
			}
			if config.Profile, err = bench.ProfileByName(profile); err != nil {
				return usageError("%w", err)
			}
			config.NAS.Bandwidth, config.NAS.StreamBandwidth = int64(bandwidth), int64(streamBandwidth)
			config.CacheSize = int64(cacheSize)
			// Only root may set more than the kernel's default.
			if config.NAS.ReadAhead = 128 << 10; os.Geteuid() == 0 {
				config.NAS.ReadAhead = 1 << 20
			}
			if err := config.Validate(); err != nil {
				return usageError("%w", err)
			}
			if config.Executable, err = os.Executable(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			result, err := bench.Demo(ctx, config, bench.NewProgress(os.Stderr))
			switch {
			case ctx.Err() != nil:
				return &exitError{exitInterrupted, fmt.Errorf("demo: %w", err)}
			case err != nil:
				return &exitError{exitUnavailable, fmt.Errorf("demo: %w", err)}
			}
			status := reportComparison(cmd, result, jsonPath)
			if jsonPath == "-" {
				return status
			}
			return errors.Join(config.WriteParameters(cmd.OutOrStdout()), status)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.Dir, "dir", "", "where to make the frames (default: /dev/shm if they fit, else TMPDIR)")
	flags.IntVar(&config.Streams, "streams", demoStreams(), "sequences played at once")
	flags.IntVar(&config.Seconds, "seconds", 8, "of playing, each run")
	flags.IntVar(&config.Rounds, "rounds", 2, "runs of each side")
	flags.StringVar(&fps, "fps", "24", "frames a second")
	flags.StringVar(&profile, "profile", "2k", "frame size: sd, hd, 2k, 4k or 8k")
	flags.DurationVar(&config.NAS.RoundTrip, "rtt", config.NAS.RoundTrip, "round trip to the server")
	flags.Var(&bandwidth, "bandwidth", "of the server")
	flags.Var(&streamBandwidth, "stream-bandwidth", "of one open file")
	flags.Var(&cacheSize, "cache-size", "of reelahead")
	flags.StringVar(&jsonPath, "json", "", "write the comparison as JSON to FILE, - for stdout")
	return cmd
}

// demoStreams is how many 2K streams this machine plays while it is also the
// server and the mount: each takes somewhat less than one processor.
func demoStreams() int {
	if runtime.NumCPU() < 4 {
		return 1
	}
	return 2
}
