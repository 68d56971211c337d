package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"reelahead/bench/slownas"
)

func newBenchSlowNASCommand() *cobra.Command {
	config := slownas.Config{RoundTrip: 10 * time.Millisecond, Slots: 64, Seed: 1}
	bandwidth, streamBandwidth := rateFlag(1_200_000_000), rateFlag(300_000_000)
	readAhead := sizeFlag(128 << 10)
	cmd := &cobra.Command{
		Use:   "slownas BACKING MOUNTPOINT",
		Short: "Mount a model of a network file server",
		Long: `Mount the directory BACKING on MOUNTPOINT as if it were exported by a file server
across a network. Every lookup, open, getattr, readdir, read and write costs a
round trip; a read carries at most 1 MiB; one open file reads with at most
--stream-bandwidth, all together with at most --bandwidth; at most --slots
requests are in flight and more wait. Closing a file costs nothing.

BACKING should be on tmpfs or in the page cache: its own time is added.

The kernel keeps no data between two opens of a file. With --attr-timeout 0 it
keeps no names and attributes either, so that each costs its round trip; an NFS
mount with its defaults keeps them for 3s to 60s, which --attr-timeout 3s models.

A Linux NFS mount reads ahead 128 KiB for a reader of small pieces, but asks for
1 MiB (its rsize) at a time for a reader of whole frames. A FUSE mount has one
value for both: --read-ahead 1MiB models the second. Another value than 128KiB
needs root.

The file of --faults says what goes wrong, a line each; it is looked at before
every request and best replaced by rename:

  stall any *                          no request is answered while the line is there
  EIO read shot.0101.exr after 1048576 an error in the middle of a file
  eof read shot.*.exr after 70000      files that are shorter than their sizes say
  ENOSPC write *                       a full server

Stays in the foreground until SIGINT or SIGTERM; a second one ends it even while
files are open.`,
		Example: `  reelahead bench slownas /dev/shm/frames /mnt/nas
  reelahead bench slownas /dev/shm/frames /mnt/nas --rtt 30ms --stream-bandwidth 60MB/s --stall 500ms/30s`,
		Args: namedArgs("BACKING", "MOUNTPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			config.Bandwidth, config.StreamBandwidth = int64(bandwidth), int64(streamBandwidth)
			config.ReadAhead = int64(readAhead)
			return serveSlowNAS(cmd, args[0], args[1], config)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&config.RoundTrip, "rtt", config.RoundTrip, "round trip of each request")
	flags.DurationVar(&config.Jitter, "jitter", 0, "added to each round trip, evenly between 0 and this")
	flags.Var(&bandwidth, "bandwidth", "of all streams together")
	flags.Var(&streamBandwidth, "stream-bandwidth", "of one open file")
	flags.IntVar(&config.Slots, "slots", config.Slots, "requests in flight")
	flags.Var((*stallFlag)(&config.Stall), "stall", "answer nothing for the first LENGTH of each PERIOD after the first")
	flags.Uint64Var(&config.Seed, "seed", config.Seed, "of the jitter")
	flags.Var(&readAhead, "read-ahead", "of the kernel for buffered readers")
	flags.BoolVar(&config.AllowOther, "allow-other", false, "let other users in; run by root, each is served as that user")
	flags.BoolVar(&config.RootSquash, "root-squash", false, "root is nobody, as on most exports")
	flags.StringVar(&config.Faults, "faults", "", "file of faults, a line each: WHAT OPERATION NAME [after BYTES]")
	flags.BoolVar(&config.KeepCache, "keep-cache", false, "keep a file's pages from one open to the next, as a server that reads its own disks")
	flags.DurationVar(&config.AttrTimeout, "attr-timeout", 0, "how long names and attributes are answered without a request")
	return cmd
}

func serveSlowNAS(cmd *cobra.Command, backing, mountPoint string, config slownas.Config) error {
	// Caught before the mount exists, so that no signal leaves one behind.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	if err := config.Validate(); err != nil {
		return usageError("slownas: %w", err)
	}
	mount, err := slownas.New(backing, mountPoint, config)
	if err != nil {
		return fmt.Errorf("slownas: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "slownas: mounted %s on %s\n", backing, mountPoint)

	unmounted := make(chan struct{})
	go func() {
		mount.Wait()
		close(unmounted)
	}()
	select {
	case <-unmounted:
		return nil
	case <-signals:
	}
	err = mount.Unmount()
	if err == nil {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "slownas: %v; close what uses %s, or stop again to abort\n", err, mountPoint)
	select {
	case <-unmounted:
		return nil
	case <-signals:
	}
	if err := mount.Abort(); err != nil {
		return fmt.Errorf("slownas: %w", err)
	}
	return nil
}

// stallFlag reads "500ms/30s".
type stallFlag slownas.Stall

func (s *stallFlag) Set(text string) error {
	length, period, found := strings.Cut(text, "/")
	if !found {
		return fmt.Errorf("stall %q is not understood: use for example 500ms/30s", text)
	}
	var err error
	if s.Length, err = time.ParseDuration(length); err != nil {
		return fmt.Errorf("stall %q: %w", text, err)
	}
	if s.Period, err = time.ParseDuration(period); err != nil {
		return fmt.Errorf("stall %q: %w", text, err)
	}
	return nil
}

func (s *stallFlag) String() string {
	if s.Length == 0 {
		return ""
	}
	return fmt.Sprintf("%v/%v", s.Length, s.Period)
}

func (s *stallFlag) Type() string { return "LENGTH/PERIOD" }

// namedArgs is cobra.ExactArgs with an error that names what is missing.
func namedArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == len(names):
			return nil
		case len(names) == 0:
			return usageError("%s takes no arguments, got %q (see %q)", cmd.CommandPath(), args, cmd.CommandPath()+" --help")
		}
		return usageError("%s takes %s (see %q)", cmd.CommandPath(), strings.Join(names, " and "), cmd.CommandPath()+" --help")
	}
}
