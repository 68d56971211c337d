package bench

import (
	"context"
	"fmt"
	"slices"
)

// Side is one of the things compared: the paths where it shows the same frames
// as the others.
type Side struct {
	Label string
	Paths []string
	// Cold is called before each run and makes it start cold. What stays warm
	// it returns in words. Nil: DropCaches for each path.
	Cold func(context.Context) (stays []string, err error)
}

// CompareConfig says what Compare plays.
type CompareConfig struct {
	Sides  []Side
	Play   PlayConfig // without Paths
	Repeat int        // runs of each side
	// Warm compares what is in memory: each side is read through once before the
	// first run, and nothing is dropped in between.
	Warm bool
	// OnRun is called before each run, if set.
	OnRun func(side Side, round int)
}

// Comparison is the result of Compare.
type Comparison struct {
	Repeat int          `json:"repeat"`
	Sides  []SideReport `json:"sides"`
	// StaysWarm says what could not be made cold before the runs.
	StaysWarm []string `json:"stays_warm"`
}

// SideReport is the result of one side. Total sums the frames of all runs up;
// its throughput is that of all bytes over all seconds, and its latencies are of
// all frames.
type SideReport struct {
	Label string    `json:"label"`
	Paths []string  `json:"paths"`
	Total *Report   `json:"total"`
	Runs  []*Report `json:"runs"`
}

// Validate returns an error that says what is wrong with the configuration.
func (c CompareConfig) Validate() error {
	switch {
	case len(c.Sides) < 2:
		return fmt.Errorf("a comparison needs at least two sides, as in raw=/mnt/nas/shot fast=/mnt/reel/shot")
	case c.Repeat < 1:
		return fmt.Errorf("the number of repeats must be at least 1, not %d", c.Repeat)
	}
	for _, side := range c.Sides {
		play := c.Play
		play.Paths = side.Paths
		if err := play.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Compare plays the frames of each side in turn, cold unless config says Warm,
// Repeat times. Every
// second round goes through the sides backwards, so that what the first run of a
// round leaves behind is not always to the advantage of the same side.
//
// An error means that a run could not be played; a run that was interrupted by
// ctx is left out and ctx's error returned, with the runs until then.
func Compare(ctx context.Context, config CompareConfig) (*Comparison, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	result := &Comparison{Repeat: config.Repeat, Sides: make([]SideReport, len(config.Sides)), StaysWarm: []string{}}
	turns := make([]int, len(config.Sides))
	for i, side := range config.Sides {
		turns[i] = i
		result.Sides[i] = SideReport{Label: side.Label, Paths: side.Paths, Runs: []*Report{}}
	}
	if config.Warm {
		if err := warmUp(ctx, config); err != nil {
			return nil, err
		}
	}
	for round := range config.Repeat {
		for _, i := range turns {
			report, err := result.run(ctx, config, config.Sides[i], round)
			if err != nil {
				return result, fmt.Errorf("%s: %w", config.Sides[i].Label, err)
			}
			result.Sides[i].Runs = append(result.Sides[i].Runs, report)
		}
		slices.Reverse(turns)
	}
	for i := range result.Sides {
		result.Sides[i].Total = mergeReports(result.Sides[i].Runs)
	}
	return result, nil
}

// warmUp reads the frames of each side once, as fast as they come.
func warmUp(ctx context.Context, config CompareConfig) error {
	for _, side := range config.Sides {
		play := config.Play
		play.Paths, play.Rate = side.Paths, Rate{}
		report, err := Play(ctx, play)
		if err == nil && report.Interrupted {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", side.Label, err)
		}
	}
	return nil
}

func (c *Comparison) run(ctx context.Context, config CompareConfig, side Side, round int) (*Report, error) {
	if config.OnRun != nil {
		config.OnRun(side, round)
	}
	cold := side.Cold
	switch {
	case config.Warm:
		cold = func(context.Context) (stays []string, err error) {
			return []string{"read through once before the runs, on purpose"}, nil
		}
	case cold == nil:
		cold = func(context.Context) (stays []string, err error) {
			for _, path := range side.Paths {
				warm, err := DropCaches(path)
				if err != nil {
					return stays, err
				}
				stays = append(stays, warm...)
			}
			return stays, nil
		}
	}
	stays, err := cold(ctx)
	if err != nil {
		return nil, err
	}
	for _, words := range stays {
		if words = side.Label + ": " + words; !slices.Contains(c.StaysWarm, words) {
			c.StaysWarm = append(c.StaysWarm, words)
		}
	}
	play := config.Play
	play.Paths = side.Paths
	report, err := Play(ctx, play)
	if err == nil && report.Interrupted {
		err = context.Cause(ctx)
	}
	return report, err
}

// mergeReports sums up the runs of one side; there is at least one.
func mergeReports(runs []*Report) *Report {
	total := *runs[0]
	total.PerClient, total.Drops, total.Failures, total.rows, total.latency = []ClientReport{}, []Drop{}, []Failure{}, nil, newLatencies()
	total.latency.merge(runs[0].latency)
	for _, run := range runs[1:] {
		total.FramesDue += run.FramesDue
		total.FramesOnTime += run.FramesOnTime
		total.FramesLate += run.FramesLate
		total.FramesSkipped += run.FramesSkipped
		total.FramesDropped += run.FramesDropped
		total.FramesFailed += run.FramesFailed
		total.Bytes += run.Bytes
		total.Seconds += run.Seconds
		total.Stalls += run.Stalls
		total.StallMS += run.StallMS
		total.FirstFrameMS = max(total.FirstFrameMS, run.FirstFrameMS)
		total.LongestRun = max(total.LongestRun, run.LongestRun)
		total.latency.merge(run.latency)
		total.Scheduling.merge(run.Scheduling)
	}
	total.Latency, total.Histograms = total.latency.report(), total.latency.encode()
	if total.Seconds > 0 {
		total.Throughput = float64(total.Bytes) / total.Seconds
	}
	return &total
}
