package bench

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCompareAlternatesAndSumsUp(t *testing.T) {
	a, b := makeFrames(t, 20, 100), makeFrames(t, 20, 100)
	var order, cold []string
	side := func(label, path string) Side {
		return Side{Label: label, Paths: []string{path}, Cold: func(context.Context) ([]string, error) {
			cold = append(cold, label)
			return []string{"the disk"}, nil
		}}
	}
	config := CompareConfig{
		Sides: []Side{side("a", a), side("b", b)}, Play: playConfig(), Repeat: 3,
		OnRun: func(side Side, _ int) { order = append(order, side.Label) },
	}
	result, err := Compare(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "b", "b", "a", "a", "b"}
	if !slices.Equal(order, want) || !slices.Equal(cold, want) {
		t.Errorf("runs %v, made cold %v; want %v", order, cold, want)
	}
	for _, side := range result.Sides {
		if len(side.Runs) != 3 || side.Total.FramesDue != 60 {
			t.Errorf("%s: %d runs, %d frames", side.Label, len(side.Runs), side.Total.FramesDue)
		}
		var bytes int64
		for _, run := range side.Runs {
			bytes += run.Bytes
		}
		if side.Total.Bytes != bytes || side.Total.Latency.Frame.Max == 0 {
			t.Errorf("%s: the total has %d bytes of %d, frame max %v", side.Label, side.Total.Bytes, bytes, side.Total.Latency.Frame.Max)
		}
	}
	var table strings.Builder
	if err := result.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"frames due", "on time", "dropped", "frame time p99", "throughput", "ratio", "a: the disk"} {
		if !strings.Contains(table.String(), text) {
			t.Errorf("the table lacks %q:\n%s", text, table.String())
		}
	}
}

func TestCompareErrors(t *testing.T) {
	dir := makeFrames(t, 3, 100)
	good := Side{Label: "good", Paths: []string{dir}}
	for name, sides := range map[string][]Side{
		"one side":     {good},
		"missing path": {good, {Label: "b", Paths: []string{filepath.Join(dir, "missing")}}},
		"no path":      {good, {Label: "b"}},
	} {
		if _, err := Compare(context.Background(), CompareConfig{Sides: sides, Play: playConfig(), Repeat: 1}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Compare(ctx, CompareConfig{Sides: []Side{good, good}, Play: playConfig(), Repeat: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v, want context.Canceled", err)
	}
}

func TestDropCachesSaysWhatStays(t *testing.T) {
	if _, err := DropCaches(makeFrames(t, 3, 10_000)); err != nil {
		t.Error(err)
	}
	if _, err := DropCaches(t.TempDir()); !errors.Is(err, ErrNoFrames) {
		t.Errorf("an empty directory: %v, want ErrNoFrames", err)
	}
}
