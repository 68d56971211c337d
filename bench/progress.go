package bench

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// Progress shows the steps of something long: bars on a terminal, a line at the
// beginning and the end of each step elsewhere.
type Progress struct {
	out  io.Writer
	bars *mpb.Progress // nil: lines
}

// NewProgress makes a Progress that writes to out. Close it before anything
// else is written there.
func NewProgress(out io.Writer) *Progress {
	p := &Progress{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.bars = mpb.New(mpb.WithOutput(out), mpb.WithWidth(40))
	}
	return p
}

// step is one line of a Progress. add may be called concurrently.
type step struct {
	progress *Progress
	name     string
	total    int
	dropped  atomic.Int64
	began    time.Time
	bar      *mpb.Bar // nil: lines
}

// begin starts a step of total frames.
func (p *Progress) begin(name string, total int) *step {
	s := &step{progress: p, name: name, total: total, began: time.Now()}
	if p.bars == nil {
		fmt.Fprintf(p.out, "%s: %d frames…\n", name, total)
		return s
	}
	s.bar = p.bars.AddBar(int64(total),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR)),
		mpb.AppendDecorators(
			decor.CountersNoUnit("%d / %d frames", decor.WCSyncSpace),
			decor.Any(func(decor.Statistics) string { return s.droppedText() }, decor.WCSyncSpace)))
	return s
}

// add counts a frame.
func (s *step) add(dropped bool) {
	if dropped {
		s.dropped.Add(1)
	}
	if s.bar != nil {
		s.bar.Increment()
	}
}

func (s *step) droppedText() string {
	if n := s.dropped.Load(); n > 0 {
		return fmt.Sprintf("%d dropped", n)
	}
	return ""
}

// end finishes the step.
func (s *step) end() {
	if s.bar != nil {
		s.bar.SetTotal(-1, true)
		return
	}
	line := fmt.Sprintf("%s: %.1f s", s.name, time.Since(s.began).Seconds())
	if dropped := s.droppedText(); dropped != "" {
		line += ", " + dropped
	}
	fmt.Fprintln(s.progress.out, line)
}

// Close finishes what is on the terminal, bars that have not ended included.
func (p *Progress) Close() {
	if p.bars != nil {
		p.bars.Shutdown()
	}
}
