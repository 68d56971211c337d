package bench

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/dustin/go-humanize"
)

// WriteReport is what Write did; its JSON fields are part of the interface.
// Times are in milliseconds since the run began to write.
type WriteReport struct {
	Frames        int `json:"frames"`         // written
	FramesKept    int `json:"frames_kept"`    // there already, when a run was resumed
	FramesDue     int `json:"frames_due"`     // written, dropped or failed
	FramesDropped int `json:"frames_dropped"` // lost by a recording
	FramesFailed  int `json:"frames_failed"`

	FPSTarget   float64 `json:"fps_target"` // 0 when unpaced
	FPS         string  `json:"fps"`
	Threads     int     `json:"threads"`
	Queue       int     `json:"queue"` // of a recording
	Format      Format  `json:"format"`
	Size        int64   `json:"size"` // bytes a frame
	Fsync       bool    `json:"fsync"`
	Direct      bool    `json:"direct"`
	Interrupted bool    `json:"interrupted"`
	Error       string  `json:"error"`

	Bytes      int64   `json:"bytes"`
	Seconds    float64 `json:"seconds"`
	Throughput float64 `json:"throughput_bytes_per_s"`

	Latency    WriteLatency     `json:"latency_ms"`
	Scheduling SchedulingReport `json:"scheduling"`
	Drops      []WriteDrop      `json:"drops"` // the first maxListed

	rows []WriteRow
}

// WriteLatency holds the distribution of each part of writing a frame. Frame is
// from the start of the open to the end of the close.
type WriteLatency struct {
	Open  Percentiles `json:"open"`
	Write Percentiles `json:"write"`
	Fsync Percentiles `json:"fsync"`
	Close Percentiles `json:"close"`
	Frame Percentiles `json:"frame"`
}

// WriteDrop is a frame that a recording has lost. Its number is missing from the
// sequence.
type WriteDrop struct {
	Frame int     `json:"frame"`
	Path  string  `json:"path"`
	DueMS float64 `json:"due_ms"` // when it was captured
}

type writeLatencies struct {
	open, write, fsync, close, frame *hdrhistogram.Histogram
}

func newWriteLatencies() writeLatencies {
	return writeLatencies{newHistogram(), newHistogram(), newHistogram(), newHistogram(), newHistogram()}
}

func (l writeLatencies) record(row WriteRow) {
	record(l.open, row.Open)
	record(l.write, row.Write)
	record(l.fsync, row.Fsync)
	record(l.close, row.Close)
	record(l.frame, row.Done-row.Began)
}

// report fills in what was done. The threads have ended.
func (w *writer) report(r *WriteReport) {
	for _, k := range w.recorder.dropped {
		number := w.number(k)
		w.rows = append(w.rows, WriteRow{K: k, Number: number, Path: w.config.Pattern.Path(number), Due: w.recorder.due(k), Dropped: true})
	}
	slices.SortFunc(w.rows, func(a, b WriteRow) int { return cmp.Compare(a.K, b.K) })
	r.rows = w.rows
	r.FPSTarget, r.Threads, r.Format, r.Size = w.config.Rate.Float(), w.config.threads(), w.config.format(), w.config.Size
	r.Fsync, r.Direct = w.config.Fsync, w.config.Direct
	if r.FPSTarget > 0 {
		r.FPS, r.Queue = w.config.Rate.String(), w.config.queue()
	}
	for _, row := range w.rows {
		switch {
		case row.Dropped:
			r.FramesDropped++
			if len(r.Drops) < maxListed {
				r.Drops = append(r.Drops, WriteDrop{row.Number, row.Path, milliseconds(row.Due)})
			}
		case row.Err != nil:
			r.FramesFailed++
		default:
			r.Frames++
		}
	}
	r.FramesDue = len(w.rows)
	r.Bytes, r.Seconds = w.bytes, w.finished.Seconds()
	if r.Seconds > 0 {
		r.Throughput = float64(r.Bytes) / r.Seconds
	}
	l := w.latency
	r.Latency = WriteLatency{percentiles(l.open), percentiles(l.write), percentiles(l.fsync), percentiles(l.close), percentiles(l.frame)}
	r.Scheduling = w.time.report(nil)
	for _, row := range w.rows {
		if row.Dropped && w.time.delayedIn(row.Due-w.time.frame, row.Due) {
			r.Scheduling.DropsNear++
		}
	}
}

// WriteSummary writes the report for a person.
func (r WriteReport) WriteSummary(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if r.Interrupted {
		fmt.Fprintf(out, "interrupted: this is what was written until then\n")
	}
	if r.FramesKept > 0 {
		fmt.Fprintf(out, "kept\t%d frames that were there\n", r.FramesKept)
	}
	fmt.Fprintf(out, "written\t%d frames of %s bytes (%s), %s in %.2f s, %s/s\n", r.Frames, humanize.Comma(r.Size), r.Format,
		humanize.Bytes(uint64(r.Bytes)), r.Seconds, humanize.Bytes(uint64(r.Throughput)))
	if r.FPSTarget > 0 {
		fmt.Fprintf(out, "recorded at\t%s fps, %d frames due\n", r.FPS, r.FramesDue)
		fmt.Fprintf(out, "  dropped\t%d\t%s\n", r.FramesDropped, share(r.FramesDropped, r.FramesDue))
		fmt.Fprintf(out, "own error\t%s\n", r.Scheduling.words())
	}
	if err := out.Flush(); err != nil || r.Frames == 0 {
		return err
	}
	out = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "ms\tp50\tp95\tp99\tp99.9\tmax\t\n")
	for _, line := range []struct {
		name string
		of   Percentiles
	}{{"open", r.Latency.Open}, {"write", r.Latency.Write}, {"fsync", r.Latency.Fsync}, {"close", r.Latency.Close}, {"frame", r.Latency.Frame}} {
		if line.name == "fsync" && !r.Fsync {
			continue
		}
		fmt.Fprintf(out, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", line.name, line.of.P50, line.of.P95, line.of.P99, line.of.P999, line.of.Max)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	r.Scheduling.writeDoubt(w)
	for i, drop := range r.Drops {
		if i == maxShownDrops {
			fmt.Fprintf(w, "… and %d more dropped frames\n", r.FramesDropped-i)
			break
		}
		fmt.Fprintf(w, "dropped: frame %d, captured at %.2f s\n", drop.Frame, drop.DueMS/1000)
	}
	return nil
}

// WriteCSV writes one row for each frame. Cells of what did not happen are empty.
func (r WriteReport) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{
		"k", "frame", "path", "result", "due_ms", "began_ms", "done_ms", "open_ms", "write_ms", "fsync_ms", "close_ms", "bytes", "error",
	}); err != nil {
		return err
	}
	ms := func(d time.Duration) string { return strconv.FormatFloat(milliseconds(d), 'f', 3, 64) }
	for _, row := range r.rows {
		cells := []string{strconv.Itoa(row.K), strconv.Itoa(row.Number), row.Path, "written", "", "", "", "", "", "", "", "", ""}
		if r.FPSTarget > 0 {
			cells[4] = ms(row.Due)
		}
		switch {
		case row.Dropped:
			cells[3] = "dropped"
		case row.Err != nil:
			cells[3], cells[12] = "failed", row.Err.Error()
		default:
			copy(cells[5:], []string{
				ms(row.Began), ms(row.Done), ms(row.Open), ms(row.Write), ms(row.Fsync), ms(row.Close), strconv.FormatInt(row.Bytes, 10),
			})
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Status is the exit status that stands for the report: StatusDropped if a
// recording has lost frames.
func (r WriteReport) Status() int {
	if r.FramesDropped > 0 {
		return StatusDropped
	}
	return StatusSmooth
}
