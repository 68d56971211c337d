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
	fmt.Fprintf(out, "clients\t%d, %s\n", r.Clients, r.rate())
	fmt.Fprintf(out, "frames due\t%d\n", r.FramesDue)
	fmt.Fprintf(out, "  on time\t%d\t%s\n", r.FramesOnTime, share(r.FramesOnTime, r.FramesDue))
	fmt.Fprintf(out, "  dropped\t%d\t%s (%d late, %d skipped)\n", r.FramesDropped, share(r.FramesDropped, r.FramesDue), r.FramesLate, r.FramesSkipped)
	fmt.Fprintf(out, "  failed\t%d\t%s\n", r.FramesFailed, share(r.FramesFailed, r.FramesDue))
	if r.Stalls > 0 {
		fmt.Fprintf(out, "stalled\t%d times, %.0f ms\n", r.Stalls, r.StallMS)
	}
	fmt.Fprintf(out, "read\t%s in %.2f s, %s/s\n", humanize.Bytes(uint64(r.Bytes)), r.Seconds, humanize.Bytes(uint64(r.Throughput)))
	fmt.Fprintf(out, "first frame\t%.1f ms\n", r.FirstFrameMS)
	if err := out.Flush(); err != nil {
		return err
	}
	if err := r.writeLatency(w); err != nil {
		return err
	}
	for i, failure := range r.Failures {
		if i == maxShownFailures {
			fmt.Fprintf(w, "… and %d more failed frames\n", r.FramesFailed-i)
			break
		}
		fmt.Fprintf(w, "failed: client %d, frame %d: %s\n", failure.Client, failure.Frame, failure.Error)
	}
	return nil
}

func (r *Report) writeLatency(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "ms\tp50\tp95\tp99\tp99.9\tmax\t\n")
	for _, line := range []struct {
		name string
		of   Percentiles
	}{{"open", r.Latency.Open}, {"read", r.Latency.Read}, {"close", r.Latency.Close}, {"frame", r.Latency.Frame}} {
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
