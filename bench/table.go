package bench

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// metric is one line of a comparison.
type metric struct {
	name  string
	text  func(*Report) string
	value func(*Report) float64 // for the ratio; nil: none
}

var metrics = []metric{
	{"frames due", func(r *Report) string { return humanize.Comma(int64(r.FramesDue)) }, nil},
	{"on time", counted(func(r *Report) int { return r.FramesOnTime }), func(r *Report) float64 { return float64(r.FramesOnTime) }},
	{"dropped", counted(func(r *Report) int { return r.FramesDropped }), func(r *Report) float64 { return float64(r.FramesDropped) }},
	{"  late", func(r *Report) string { return fmt.Sprint(r.FramesLate) }, nil},
	{"  skipped", func(r *Report) string { return fmt.Sprint(r.FramesSkipped) }, nil},
	{"failed", func(r *Report) string { return fmt.Sprint(r.FramesFailed) }, nil},
	{"frame time p50", inMilliseconds(func(r *Report) float64 { return r.Latency.Frame.P50 }), func(r *Report) float64 { return r.Latency.Frame.P50 }},
	{"frame time p99", inMilliseconds(func(r *Report) float64 { return r.Latency.Frame.P99 }), func(r *Report) float64 { return r.Latency.Frame.P99 }},
	{"open p99", inMilliseconds(func(r *Report) float64 { return r.Latency.Open.P99 }), func(r *Report) float64 { return r.Latency.Open.P99 }},
	{"first frame", inMilliseconds(func(r *Report) float64 { return r.FirstFrameMS }), func(r *Report) float64 { return r.FirstFrameMS }},
	{"throughput", func(r *Report) string { return humanize.Bytes(uint64(r.Throughput)) + "/s" }, func(r *Report) float64 { return r.Throughput }},
}

func counted(count func(*Report) int) func(*Report) string {
	return func(r *Report) string { return fmt.Sprintf("%d (%s)", count(r), share(count(r), r.FramesDue)) }
}

func inMilliseconds(value func(*Report) float64) func(*Report) string {
	return func(r *Report) string { return fmt.Sprintf("%.1f ms", value(r)) }
}

// WriteTable writes the sides next to each other, with the ratio of each to the
// first, and what was not cold.
func (c *Comparison) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	names := 0
	for _, m := range metrics {
		names = max(names, utf8.RuneCountInString(m.name))
	}
	first := c.Sides[0].Total
	fmt.Fprintf(out, "%-*s\t%s\t", names, "", c.Sides[0].Label)
	for _, side := range c.Sides[1:] {
		fmt.Fprintf(out, "%s\tratio\t", side.Label)
	}
	fmt.Fprintln(out)
	for _, m := range metrics {
		fmt.Fprintf(out, "%-*s\t%s\t", names, m.name, m.text(first))
		for _, side := range c.Sides[1:] {
			fmt.Fprintf(out, "%s\t%s\t", m.text(side.Total), m.ratio(first, side.Total))
		}
		fmt.Fprintln(out)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if c.Repeat > 1 {
		fmt.Fprintf(w, "%d runs each, in alternating order; counts are of all runs.\n", c.Repeat)
	}
	for _, words := range c.StaysWarm {
		fmt.Fprintf(w, "not cold: %s\n", words)
	}
	for _, side := range c.Sides {
		for _, run := range side.Runs {
			for _, failure := range run.Failures[:min(len(run.Failures), maxShownFailures)] {
				fmt.Fprintf(w, "failed: %s, client %d, frame %d: %s\n", side.Label, failure.Client, failure.Frame, failure.Error)
			}
		}
	}
	return nil
}

// ratio is how many times the first report's value another has.
func (m metric) ratio(first, other *Report) string {
	if m.value == nil {
		return ""
	}
	ratio := m.value(other) / m.value(first)
	switch {
	case math.IsNaN(ratio) || math.IsInf(ratio, 0):
		return "–"
	case ratio < 0.1:
		return fmt.Sprintf("%.3f", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}
