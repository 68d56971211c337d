package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// WriteConfig says which frames Write makes, and how.
type WriteConfig struct {
	Pattern Pattern
	Format  Format // empty: what the name says
	Start   int    // number of the first frame
	Frames  int    // how many
	Size    int64  // bytes a frame
	Seed    uint64 // of the contents: another seed makes other contents
	Order   Order  // reverse or random

	Threads int  // frames written at once; 0: one
	Rate    Rate // of a recording; zero: as fast as they can be written
	Queue   int  // of a recording: frames captured and not yet written; 0: 8

	Fsync  bool  // each frame, before it is closed
	Direct bool  // O_DIRECT
	Block  int64 // bytes a write(2); 0: the whole frame, in pieces of pieceSize
	// Resume keeps the frames that are there with the right size and stamp.
	Resume bool
	// IgnoreSpace writes even if the filesystem says that there is no room.
	IgnoreSpace bool

	// OnFrame is called after each frame, if set, concurrently.
	OnFrame func(bytes int64)
}

// Defaults of the zero values of a WriteConfig.
func (c WriteConfig) threads() int { return max(c.Threads, 1) }

const defaultQueue = 8

func (c WriteConfig) queue() int {
	if c.Queue == 0 {
		return max(defaultQueue, c.threads())
	}
	return c.Queue
}

func (c WriteConfig) format() Format {
	if c.Format == "" {
		return FormatOf(c.Pattern.Suffix)
	}
	return c.Format
}

// Validate returns an error that says what is wrong with the configuration.
func (c WriteConfig) Validate() error {
	paced := c.Rate != Rate{}
	switch {
	case c.Frames < 1:
		return fmt.Errorf("the number of frames must be at least 1, not %d", c.Frames)
	case c.Start < 0:
		return fmt.Errorf("the first frame can't be %d: numbers start at 0", c.Start)
	case c.Size < MinFrameSize:
		return fmt.Errorf("a frame needs at least %d bytes for its stamp, not %d", MinFrameSize, c.Size)
	case c.Threads < 0:
		return fmt.Errorf("the number of threads can't be negative")
	case c.Queue < 0:
		return fmt.Errorf("the queue can't be negative")
	case paced && c.threads() > c.queue():
		return fmt.Errorf("%d threads can't all write with a queue of %d frames: enlarge the queue", c.threads(), c.queue())
	case paced && c.Resume:
		return fmt.Errorf("a recording can't be resumed: what was missed is gone")
	case c.Direct && c.Size%directAlign != 0:
		return fmt.Errorf("direct writes take frames of multiples of %d bytes, not %d", directAlign, c.Size)
	case c.Block < 0:
		return fmt.Errorf("the block size can't be negative")
	case c.Direct && c.Block%directAlign != 0:
		return fmt.Errorf("direct writes take multiples of %d bytes, not blocks of %d", directAlign, c.Block)
	case c.Order.PingPong || c.Order.Step > 1 || c.Order.Loop > 1:
		return fmt.Errorf("each frame is written once: in order, in reverse or at random")
	}
	if err := c.Order.Validate(); err != nil {
		return err
	}
	_, err := newLayout(c.format(), c.Size, c.Start)
	return err
}

// Write makes frames until all are made, one can't be written or ctx ends. A
// frame that could not be written whole is removed; those before it stay. The
// report is of what was done until then, also with an error.
func Write(ctx context.Context, config WriteConfig) (report WriteReport, err error) {
	report.Drops = []WriteDrop{}
	defer func() {
		if err != nil {
			report.Interrupted, report.Error = ctx.Err() != nil, err.Error()
		}
	}()
	if err := config.Validate(); err != nil {
		return report, err
	}
	if info, err := os.Stat(config.Pattern.Dir); errors.Is(err, os.ErrNotExist) {
		return report, fmt.Errorf("%s does not exist: create it first", config.Pattern.Dir)
	} else if err != nil {
		return report, err
	} else if !info.IsDir() {
		return report, fmt.Errorf("%s is not a directory", config.Pattern.Dir)
	}
	numbers, err := config.numbers(ctx)
	if err != nil {
		return report, err
	}
	report.FramesKept = config.Frames - len(numbers)
	if !config.IgnoreSpace {
		if err := config.checkSpace(numbers); err != nil {
			return report, err
		}
	}
	if len(numbers) == 0 {
		return report, nil
	}
	writing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &writer{
		config: &config, numbers: numbers, stop: stop,
		recorder: recorder{rate: config.Rate, frames: len(numbers), queue: config.queue()},
		rows:     make([]WriteRow, 0, min(len(numbers), maxRowsAtOnce)), latency: newWriteLatencies(),
		turn: make(chan struct{}, 1), number: func(k int) int { return numbers[k] },
	}
	if err := w.run(writing); err != nil {
		return report, err
	}
	w.report(&report)
	if err := context.Cause(writing); err != nil && report.Frames+report.FramesDropped < len(numbers) {
		return report, err
	}
	return report, nil
}

// numbers are the frames to write, in order.
func (c WriteConfig) numbers(ctx context.Context) ([]int, error) {
	order := newProgram(c.Order, c.Frames)
	numbers := make([]int, c.Frames)
	for k := range numbers {
		numbers[k] = c.Start + order.at(k)
	}
	if c.Resume {
		return c.missing(ctx, numbers)
	}
	return numbers, nil
}
