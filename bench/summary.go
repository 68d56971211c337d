package bench

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
)

// maxShownFailures is how many failures a summary names.
const maxShownFailures = 10

// WriteSummary writes the report for a person.
func (r *Report) WriteSummary(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if r.Interrupted {
		fmt.Fprintf(out, "interrupted: this is what was played until then\n")
	}
	fmt.Fprintf(out, "clients\t%d, %s%s\n", r.Clients, r.rate(), r.ways())
	for _, words := range r.StaysWarm {
		fmt.Fprintf(out, "not cold\t%s\n", words)
	}
	fmt.Fprintf(out, "frames due\t%d\n", r.FramesDue)
	fmt.Fprintf(out, "  on time\t%d\t%s\n", r.FramesOnTime, share(r.FramesOnTime, r.FramesDue))
	fmt.Fprintf(out, "  dropped\t%d\t%s (%d late, %d skipped)\n", r.FramesDropped, share(r.FramesDropped, r.FramesDue), r.FramesLate, r.FramesSkipped)
	fmt.Fprintf(out, "  failed\t%d\t%s\n", r.FramesFailed, share(r.FramesFailed, r.FramesDue))
	if r.Stalls > 0 {
		fmt.Fprintf(out, "stalled\t%d times, %.0f ms\n", r.Stalls, r.StallMS)
	}
	fmt.Fprintf(out, "read\t%s in %.2f s, %s/s\n", humanize.Bytes(uint64(r.Bytes)), r.Seconds, humanize.Bytes(uint64(r.Throughput)))
	fmt.Fprintf(out, "first frame\t%.1f ms\n", r.FirstFrameMS)
	if r.FramesDropped > 0 {
		fmt.Fprintf(out, "longest run\t%d frames without a drop\n", r.LongestRun)
	}
	fmt.Fprintf(out, "player's own error\t%s\n", r.Scheduling.words())
	if err := out.Flush(); err != nil {
		return err
	}
	if err := r.writeLatency(w); err != nil {
		return err
	}
	r.Scheduling.writeDoubt(w)
	for _, hung := range r.Unfinished {
		fmt.Fprintf(w, "still being read: client %d, frame %d, since %.2f s: %s\n", hung.Client, hung.Frame, hung.BeganMS/1000, hung.Path)
	}
	r.writeDrops(w)
	for i, failure := range r.Failures {
		if i == maxShownFailures {
			fmt.Fprintf(w, "… and %d more failed frames\n", r.FramesFailed-i)
			break
		}
		fmt.Fprintf(w, "failed: client %d, frame %d: %s\n", failure.Client, failure.Frame, failure.Error)
	}
	return nil
}

// ways say how frames were read, where that is not the usual way.
func (r *Report) ways() string {
	text := ""
	if r.Threads > 1 {
		text += fmt.Sprintf(", %d threads each", r.Threads)
	}
	if r.Reader != ReadWhole.String() {
		text += ", reader " + r.Reader
	}
	if r.Block > 0 {
		text += ", blocks of " + humanize.IBytes(uint64(r.Block))
	}
	if r.Direct {
		text += ", direct"
	}
	if r.Aligned {
		text += ", aligned"
	}
	if r.StaggerMS > 0 {
		text += fmt.Sprintf(", staggered by %v ms", r.StaggerMS)
	}
	return text
}

// words say how punctual the player was.
func (s SchedulingReport) words() string {
	if s.Waits == 0 {
		return "not measured: it never had to wait"
	}
	return fmt.Sprintf("p99 %.2f ms, most %.2f ms", s.Error.P99, s.Error.Max)
}

// writeDoubt says when the player itself was not punctual enough to be believed.
func (s SchedulingReport) writeDoubt(w io.Writer) {
	if s.OverLimit > 0 {
		fmt.Fprintf(w, "note: the player itself was late by more than a tenth of a frame (%.2f ms) in %d of %d waits; %d of the dropped frames lie near one\n",
			s.LimitMS, s.OverLimit, s.Waits, s.DropsNear)
	}
}

// maxShownDrops is how many spans of dropped frames a summary names.
const maxShownDrops = 10

// writeDrops names the dropped frames, those in a row together.
func (r *Report) writeDrops(w io.Writer) {
	spans, shown := 0, 0
	for i := 0; i < len(r.Drops); spans++ {
		first, end := r.Drops[i], i+1
		for end < len(r.Drops) && r.Drops[end].Client == first.Client && r.Drops[end].K == r.Drops[end-1].K+1 {
			end++
		}
		if spans < maxShownDrops {
			fmt.Fprintf(w, "dropped: client %d, at %.2f s: frame %d", first.Client, first.DueMS/1000, first.Frame)
			if n := end - i; n > 1 {
				fmt.Fprintf(w, " and the next %d", n-1)
			}
			fmt.Fprintln(w)
			shown += end - i
		}
		i = end
	}
	if left := r.FramesDropped - shown; left > 0 {
		fmt.Fprintf(w, "… and %d more dropped frames\n", left)
	}
}

func (r *Report) writeLatency(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "ms\tp50\tp95\tp99\tp99.9\tmax\t\n")
	for _, line := range []struct {
		name string
		of   Percentiles
	}{{"open", r.Latency.Open}, {"first byte", r.Latency.First}, {"read", r.Latency.Read}, {"close", r.Latency.Close}, {"frame", r.Latency.Frame}} {
		fmt.Fprintf(out, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", line.name, line.of.P50, line.of.P95, line.of.P99, line.of.P999, line.of.Max)
	}
	return out.Flush()
}

// share is a part of a whole in per cent.
func share(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
