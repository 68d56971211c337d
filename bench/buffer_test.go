package bench

import (
	"slices"
	"testing"
	"time"
)

func TestBufferLevels(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * ms }
	rows := []Row{
		{K: 0, Done: at(10), Due: at(30), Result: OutcomeOnTime},
		{K: 1, Done: at(20), Due: at(40), Result: OutcomeOnTime},
		{K: 2, Done: at(60), Due: at(50), Result: OutcomeLate},
		{K: 3, Due: at(60), Result: OutcomeSkipped},
		{K: 4, Due: at(70), Result: OutcomeFailed},
		{K: 5, Done: at(40), Due: at(80), Result: OutcomeOnTime},
	}
	want := []Level{{at(10), 1}, {at(20), 2}, {at(30), 1}, {at(40), 1}, {at(80), 0}}
	if got := BufferLevels(rows); !slices.Equal(got, want) {
		t.Errorf("levels %v, want %v", got, want)
	}
	report := newBufferReport(rows, Rate{100, 1})
	if report.StartMS != 30 || report.IntervalMS != 10 || !slices.Equal(report.Frames, []int{1, 1, 1, 1, 1}) {
		t.Errorf("report %+v", report)
	}
	if levels := BufferLevels([]Row{{Done: at(3), Result: OutcomeOnTime}}); len(levels) > 0 {
		t.Errorf("an unpaced run buffers %v", levels)
	}
}
