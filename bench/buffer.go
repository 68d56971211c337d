package bench

import (
	"cmp"
	"slices"
	"time"
)

// Level is the number of frames that were read and not yet shown, from a time
// since the start of the run on.
type Level struct {
	At     time.Duration
	Frames int
}

// BufferLevels follows the buffer of a client through its rows: a frame that is
// on time enters when it has been read and leaves when it is due. Times rise
// strictly. It is empty for an unpaced run, which buffers nothing.
func BufferLevels(rows []Row) []Level {
	var changes []Level
	for _, row := range rows {
		if row.Result == OutcomeOnTime && row.Due > 0 {
			changes = append(changes, Level{row.Done, 1}, Level{max(row.Due, row.Done), -1})
		}
	}
	slices.SortFunc(changes, func(a, b Level) int { return cmp.Compare(a.At, b.At) })
	var levels []Level
	frames := 0
	for _, change := range changes {
		frames += change.Frames
		if last := len(levels) - 1; last >= 0 && levels[last].At == change.At {
			levels[last].Frames = frames
			continue
		}
		levels = append(levels, Level{change.At, frames})
	}
	return levels
}

// BufferReport is the buffer of a client over time: the least number of frames
// in it in each interval, from the start of its clock on.
type BufferReport struct {
	StartMS    float64 `json:"start_ms"`
	IntervalMS float64 `json:"interval_ms"`
	Frames     []int   `json:"frames"`
}

// maxBufferIntervals bounds the buffer in a report: as many as a page shows.
const maxBufferIntervals = 500

// newBufferReport thins the levels out to intervals of whole frames.
func newBufferReport(rows []Row, rate Rate) BufferReport {
	report := BufferReport{Frames: []int{}}
	levels := BufferLevels(rows)
	if len(levels) == 0 {
		return report
	}
	first, last := never, time.Duration(0)
	for _, row := range rows {
		if row.Due > 0 {
			first, last = min(first, row.Due), max(last, row.Due)
		}
	}
	interval := max(rate.Time(1), (last-first)/maxBufferIntervals)
	report.StartMS, report.IntervalMS = milliseconds(first), milliseconds(interval)
	next, frames := 0, 0
	for at := first; at < last; at += interval {
		for next < len(levels) && levels[next].At <= at {
			frames = levels[next].Frames
			next++
		}
		least := frames
		for next < len(levels) && levels[next].At < at+interval {
			frames = levels[next].Frames
			least = min(least, frames)
			next++
		}
		report.Frames = append(report.Frames, least)
	}
	return report
}
