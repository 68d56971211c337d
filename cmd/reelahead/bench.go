package main

import "github.com/spf13/cobra"

func newBenchCommand() *cobra.Command {
	bench := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a mount delivers to a player of frames",
		Long: `Measure what a mount delivers to a player of frames, with or without reelahead.

  bench write    make frames
  bench play     play them against the clock and count what was dropped
  bench compare  play the same frames from several mounts, side by side
  bench slownas  mount a model of a network file server
  bench demo     all of it on this machine: frames, a slow server, a mount, a table`,
	}
	bench.AddCommand(newBenchWriteCommand(), newBenchPlayCommand(), newBenchCompareCommand(), newBenchSlowNASCommand(), newBenchDemoCommand())
	return bench
}
