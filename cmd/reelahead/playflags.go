package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reelahead/bench"
)

// playFlags are the flags that play and compare share.
type playFlags struct {
	fps, onMiss, reader string
	unpaced             bool
	block               sizeFlag
	frame               frameSizeFlags
	in, out             frameNumberFlag
	play                bench.PlayConfig
}

func (f *playFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.fps, "fps", "f", "24", "frames a second: 24, 23.976, 24000/1001")
	flags.BoolVar(&f.unpaced, "unpaced", false, "no clock: read as fast as the frames come")
	flags.IntVar(&f.play.Clients, "clients", 0, "streams at once (default: one for each path)")
	flags.IntVarP(&f.play.Threads, "threads", "t", 1, "frames that each client reads at once")
	flags.IntVarP(&f.play.Frames, "frames", "n", 0, "frames each client plays (default: all, --loop times)")
	flags.DurationVar(&f.play.Duration, "duration", 0, "how long each client plays, in place of --frames, again from the start if need be")
	flags.Var(&f.in, "in", "number of the first frame to play")
	flags.Var(&f.out, "out", "number of the last frame to play")
	flags.IntVarP(&f.play.Prebuffer, "prebuffer", "b", 5, "frames read before the clock starts")
	flags.IntVarP(&f.play.Queue, "queue", "q", 8, "frames being read, or read and not yet shown")
	flags.StringVar(&f.onMiss, "on-miss", "skip", "what the clock does for a late frame: skip or wait")
	flags.BoolVar(&f.play.Aligned, "aligned", false, "start all clocks at once, when every pre-buffer is full")
	flags.DurationVar(&f.play.Stagger, "stagger", 0, "start each client this much later than the one before")
	flags.BoolVarP(&f.play.Order.Reverse, "reverse", "v", false, "from the last frame to the first")
	flags.BoolVarP(&f.play.Order.Random, "random", "m", false, "in random order, another in each pass")
	flags.Uint64Var(&f.play.Order.Seed, "seed", 1, "of --random")
	flags.IntVar(&f.play.Order.Run, "seek-every", 0, "with --random: frames in a row between two seeks (default 1)")
	flags.IntVar(&f.play.Order.Loop, "loop", 1, "passes")
	flags.BoolVar(&f.play.Order.PingPong, "ping-pong", false, "there and back")
	flags.IntVar(&f.play.Order.Step, "step", 1, "every STEPth frame")
	flags.StringVar(&f.reader, "reader", "whole", "how a frame is read: whole, mmap or exr (header, table, scattered blocks)")
	flags.BoolVar(&f.play.Direct, "direct", false, "read with O_DIRECT")
	flags.Var(&f.block, "block", "bytes a read (default: the whole frame; 384KiB with --reader exr)")
	flags.BoolVar(&f.play.Verify, "verify", false, `check the contents that "bench write" made`)
	f.frame.register(cmd)
}

// config returns what to play, or a usage error.
func (f *playFlags) config(cmd *cobra.Command, paths []string) (bench.PlayConfig, error) {
	config := f.play
	config.Paths, config.Block, config.In, config.Out = paths, int64(f.block), f.in.number, f.out.number
	set := cmd.Flags().Changed
	var err error
	if config.Size, err = f.frame.size(cmd, ""); err != nil {
		return config, err
	}
	if config.Reader, err = bench.ParseReadMode(f.reader); err != nil {
		return config, usageError("%w", err)
	}
	switch f.onMiss {
	case "skip":
	case "wait":
		config.Wait = true
	default:
		return config, usageError("--on-miss takes skip or wait, not %q", f.onMiss)
	}
	for name, value := range map[string]int{"clients": config.Clients, "threads": config.Threads, "frames": config.Frames, "loop": config.Order.Loop, "seek-every": config.Order.Run, "step": config.Order.Step} {
		if set(name) && value < 1 {
			return config, usageError("--%s must be at least 1, not %d", name, value)
		}
	}
	switch {
	case set("duration") && config.Duration < time.Millisecond:
		return config, usageError("--duration must be at least 1ms, not %v", config.Duration)
	case set("duration") && set("loop"):
		return config, usageError("--duration plays again as often as it takes: leave --loop out")
	case f.unpaced && (set("fps") || set("on-miss") || set("prebuffer") || set("queue")):
		return config, usageError("--unpaced has no clock: leave --fps, --on-miss, --prebuffer and --queue out")
	case !f.unpaced:
		if config.Rate, err = bench.ParseRate(f.fps); err != nil {
			return config, usageError("%w", err)
		}
	}
	// Every thread needs a place for the frame it reads and, so that it need not
	// wait until that is shown, one for the frame after it.
	if !set("queue") {
		config.Queue = max(config.Queue, 2*config.Threads)
	}
	if err := config.Validate(); err != nil {
		return config, usageError("%w", err)
	}
	return config, nil
}

// frameNumberFlag is a frame number, or none.
type frameNumberFlag struct{ number *int }

var _ pflag.Value = (*frameNumberFlag)(nil)

func (f *frameNumberFlag) Set(text string) error {
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 {
		return usageError("%q is no frame number", text)
	}
	f.number = &number
	return nil
}

func (f *frameNumberFlag) String() string {
	if f.number == nil {
		return ""
	}
	return strconv.Itoa(*f.number)
}

func (f *frameNumberFlag) Type() string { return "NUMBER" }
