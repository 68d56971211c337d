package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

// unit is what the values of a row are.
type unit string

const (
	bytesPerSecond unit = "B/s"
	seconds        unit = "s"
	frames         unit = "frames dropped"
	perByte        unit = "bytes taken a byte read"
	secondsPerGB   unit = "s of processor a GB"
	byteCount      unit = "B"
	fraction       unit = "of the source"
)

// row is one line of the result. Values are medians of the runs, except where
// a bound holds for each run: there they are the worst.
type row struct {
	Figure    int       `json:"figure"`
	What      string    `json:"what"`
	Against   string    `json:"against"` // what the reference is
	Unit      unit      `json:"unit"`
	Reference float64   `json:"reference"`
	Reelahead float64   `json:"reelahead"`
	Ratio     float64   `json:"ratio"` // reelahead / reference; 0: the reference is 0
	Target    string    `json:"target"`
	Met       *bool     `json:"met"` // nil: no target
	Note      string    `json:"note"`
	Runs      runValues `json:"runs"`
}

// runValues are the values of each run, in the order they were measured.
type runValues struct {
	Reference []float64 `json:"reference"`
	Reelahead []float64 `json:"reelahead"`
}

// newRow makes a row of the medians of the runs of both sides.
func newRow(what, against string, unit unit, reference, reelahead []float64) row {
	r := row{
		What: what, Against: against, Unit: unit,
		Reference: median(reference), Reelahead: median(reelahead),
		Runs: runValues{reference, reelahead},
	}
	r.rate()
	return r
}

func (r *row) rate() {
	if r.Ratio = 0; r.Reference != 0 {
		r.Ratio = r.Reelahead / r.Reference
	}
}

// ratioAtLeast sets the target of the ratio.
func (r row) ratioAtLeast(bound float64) row {
	return r.judge(fmt.Sprintf("ratio ≥ %v", bound), r.Ratio >= bound)
}

// ratioAtMost sets the target of the ratio.
func (r row) ratioAtMost(bound float64) row {
	return r.judge(fmt.Sprintf("ratio ≤ %v", bound), r.Ratio <= bound)
}

// everyRunAtMost sets the target of reelahead's value in each run.
func (r row) everyRunAtMost(bound float64) row {
	r.Reelahead = slices.Max(r.Runs.Reelahead)
	r.rate()
	return r.judge("≤ "+r.Unit.text(bound)+" in each run", r.Reelahead <= bound)
}

// valueAtMost sets a bound for reelahead's own value.
func (r row) valueAtMost(bound float64) row {
	return r.judge(fmt.Sprintf("≤ %v", bound), r.Reelahead <= bound)
}

func (r row) judge(target string, met bool) row {
	r.Target, r.Met = target, &met
	return r
}

func (r row) noted(format string, args ...any) row {
	if r.Note != "" {
		r.Note += "; "
	}
	r.Note += fmt.Sprintf(format, args...)
	return r
}

// String is the row on one line, for progress.
func (r row) String() string {
	return strings.TrimSpace(strings.Join(r.cells(), "  "))
}

func (r row) cells() []string {
	ratio, met := "–", ""
	if r.Ratio != 0 {
		ratio = fmt.Sprintf("%.3g", r.Ratio)
	}
	switch {
	case r.Met == nil:
	case *r.Met:
		met = "met"
	default:
		met = "MISSED"
	}
	return []string{r.What, r.Unit.text(r.Reference) + " (" + r.Against + ")", r.Unit.text(r.Reelahead), ratio, r.Target, met}
}

// text spells a value.
func (u unit) text(value float64) string {
	switch u {
	case bytesPerSecond:
		return humanize.SIWithDigits(value, 2, "B/s")
	case seconds:
		return humanize.SIWithDigits(value, 2, "s")
	case byteCount:
		sign := ""
		if value < 0 {
			sign, value = "-", -value
		}
		return sign + humanize.IBytes(uint64(value))
	case frames:
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3f", value)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// result is everything that was measured, and under which conditions.
type result struct {
	Time       time.Time `json:"time"`
	Revision   string    `json:"revision"`
	Kernel     string    `json:"kernel"`
	Processors int       `json:"processors"`
	Processor  string    `json:"processor"`
	Memory     uint64    `json:"memory_bytes"`
	LoadBefore string    `json:"load_before"` // of the machine, in the last 1, 5 and 15 minutes
	Quick      bool      `json:"quick"`
	GoVersion  string    `json:"go"`
	Rows       []row     `json:"rows"`
}

func newResult(ctx context.Context, b *bencher) *result {
	r := &result{
		Time: time.Now(), Processors: runtime.NumCPU(), Quick: b.quick, GoVersion: runtime.Version(), Rows: []row{},
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		r.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		r.Memory = info.Totalram * uint64(info.Unit)
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.LoadBefore = strings.Join(strings.Fields(string(load))[:3], " ")
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				r.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	if version, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		r.Revision = strings.TrimSpace(string(version))
	}
	return r
}

// writeTable writes all rows, their notes and the conditions.
func (r *result) writeTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\nfigure\twhat\treference\treelahead\tratio\ttarget\tmet")
	for _, row := range r.Rows {
		fmt.Fprintf(out, "%d\t%s\n", row.Figure, strings.Join(row.cells(), "\t"))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if row.Note != "" {
			fmt.Fprintf(w, "%d %s: %s\n", row.Figure, row.What, row.Note)
		}
	}
	quick := ""
	if r.Quick {
		quick = ", --quick: not to be quoted"
	}
	_, err := fmt.Fprintf(w, "\n%s, revision %s, Linux %s, %d × %s, %s of memory, load before %s%s\n",
		r.Time.Format(time.DateTime), r.Revision, r.Kernel, r.Processors, r.Processor, humanize.IBytes(r.Memory), r.LoadBefore, quick)
	return err
}
