package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestFiguresAreInOrderOfTheirNumbers(t *testing.T) {
	for i, f := range figures {
		if f.number != i+1 || f.measure == nil || f.name == "" {
			t.Errorf("figure at %d: number %d, name %q", i, f.number, f.name)
		}
	}
}

func TestChooseFigures(t *testing.T) {
	numbers := func(text string) []int {
		chosen, err := chooseFigures(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var numbers []int
		for _, f := range chosen {
			numbers = append(numbers, f.number)
		}
		return numbers
	}
	if got := numbers("14, 2"); !slices.Equal(got, []int{14, 2}) {
		t.Errorf("14, 2: %v", got)
	}
	if got := numbers(""); slices.Contains(got, 14) || len(got) != len(figures)-1 {
		t.Errorf("by default: %v", got)
	}
	for _, wrong := range []string{"0", "15", "x", "1,,2"} {
		if _, err := chooseFigures(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestRowIsJudgedByWhatItsTargetSays(t *testing.T) {
	r := newRow("w", "raw", frames, []float64{10, 30, 20}, []float64{5, 0, 0})
	if r.Reference != 20 || r.Reelahead != 0 || r.Ratio != 0 {
		t.Errorf("medians: %+v", r)
	}
	if worst := r.everyRunAtMost(0); *worst.Met || worst.Reelahead != 5 || worst.Ratio != 0.25 {
		t.Errorf("one run of three dropped frames: %+v", worst)
	}
	if r := newRow("w", "tmpfs", bytesPerSecond, []float64{4}, []float64{5}); !*r.ratioAtLeast(1.25).Met || *r.ratioAtLeast(1.3).Met || *r.ratioAtMost(1.2).Met {
		t.Errorf("a ratio of 1.25 is judged wrong: %+v", r)
	}
	text := r.everyRunAtMost(0).String()
	for _, part := range []string{"20 (raw)", "MISSED", "≤ 0 in each run"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
}

func TestAlternateTakesTurnsBothWays(t *testing.T) {
	var order []int
	side := func(number int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) {
			order = append(order, number)
			return number, nil
		}
	}
	values, err := alternate(t.Context(), 3, side(0), side(1), side(2))
	if err != nil || !slices.Equal(order, []int{0, 1, 2, 2, 1, 0, 0, 1, 2}) {
		t.Errorf("order %v, %v", order, err)
	}
	if len(values) != 3 || !slices.Equal(values[1], []int{1, 1, 1}) {
		t.Errorf("values %v", values)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := alternate(stopped, 1, side(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended run gives %v", err)
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	before, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for {
		now, err := usageOf(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now.since(before).total() > 0 {
			return // every turn reads two files, so it must come
		}
	}
}

func TestMemoryBeyondTheLimit(t *testing.T) {
	w := newMemoryWatch()
	w.add(memorySample{private: 10, shared: 100, limit: 100})
	w.add(memorySample{private: 30, shared: 50, limit: 100})
	if worst, private, samples := w.peak(); worst.beyond() != 10 || private != 30 || samples != 2 {
		t.Errorf("%+v, %d private, %d samples", worst, private, samples)
	}
}
