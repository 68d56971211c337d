package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// makeFrames writes frames to a new directory and returns it.
func makeFrames(t *testing.T, frames int, size int64) string {
	t.Helper()
	dir := t.TempDir()
	config := WriteConfig{Pattern: Pattern{Dir: dir, Prefix: "shot.", Suffix: ".tst", Width: 4}, Start: 1, Frames: frames, Size: size, Seed: 1}
	if report, err := Write(context.Background(), config); err != nil || report.Frames != frames {
		t.Fatalf("write: %+v, %v", report, err)
	}
	return dir
}

func playConfig(paths ...string) PlayConfig {
	return PlayConfig{Paths: paths, Rate: Rate{1000, 1}, Prebuffer: 5, Queue: 8, Verify: true}
}

func play(t *testing.T, config PlayConfig) *Report {
	t.Helper()
	report, err := Play(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	if report.FramesDue != report.FramesOnTime+report.FramesDropped+report.FramesFailed || report.FramesDropped != report.FramesLate+report.FramesSkipped {
		t.Errorf("the sums don't hold: %+v", report)
	}
	return report
}

// played are the frame numbers that a client read, in order.
func played(r *Report, client int) []int {
	var numbers []int
	for _, row := range r.rows[client] {
		numbers = append(numbers, row.Frame.Number)
	}
	return numbers
}

func TestPlayReadsEveryFrame(t *testing.T) {
	dir := makeFrames(t, 30, 5000)
	for name, change := range map[string]func(*PlayConfig){
		"whole frames": func(*PlayConfig) {},
		"blocks":       func(c *PlayConfig) { c.Block = 700 },
		"unpaced":      func(c *PlayConfig) { c.Rate = Rate{} },
		"wait":         func(c *PlayConfig) { c.Wait = true },
		"by pattern":   func(c *PlayConfig) { c.Paths = []string{filepath.Join(dir, "shot.####.tst")} },
		"slow clock":   func(c *PlayConfig) { c.Rate = Rate{200, 1} },
	} {
		t.Run(name, func(t *testing.T) {
			config := playConfig(dir)
			change(&config)
			report := play(t, config)
			if report.FramesDue != 30 || report.FramesFailed != 0 {
				t.Errorf("%d due, %d failed: %v", report.FramesDue, report.FramesFailed, report.Failures)
			}
			read := report.FramesOnTime + report.FramesLate
			if report.Bytes != int64(read)*5000 || report.Throughput <= 0 {
				t.Errorf("%d bytes of %d frames", report.Bytes, read)
			}
			if config.Rate == (Rate{}) && report.Status() != StatusSmooth {
				t.Errorf("an unpaced run has status %d", report.Status())
			}
		})
	}
}

func TestPlayTakesAtLeastTheTimeOfItsFrames(t *testing.T) {
	config := playConfig(makeFrames(t, 40, 100))
	config.Rate, config.Prebuffer, config.Queue = Rate{200, 1}, 1, 2
	report := play(t, config)
	// The last frame is read at most two frames before it is due.
	if least := 37.0 / 200; report.Seconds < least {
		t.Errorf("40 frames at 200 fps were played in %v s, less than %v", report.Seconds, least)
	}
}

func TestPlayOrders(t *testing.T) {
	dir := makeFrames(t, 5, 100)
	for _, test := range []struct {
		order  Order
		frames int
		want   []int
	}{
		{Order{Reverse: true}, 0, []int{5, 4, 3, 2, 1}},
		{Order{Loop: 2}, 7, []int{1, 2, 3, 4, 5, 1, 2}},
		{Order{PingPong: true}, 0, []int{1, 2, 3, 4, 5, 4, 3, 2}},
		{Order{Step: 2}, 0, []int{1, 3, 5}},
		{Order{}, 3, []int{1, 2, 3}},
	} {
		config := playConfig(dir)
		config.Rate, config.Order, config.Frames = Rate{}, test.order, test.frames
		if got := played(play(t, config), 0); !slices.Equal(got, test.want) {
			t.Errorf("%+v: played %v, want %v", test.order, got, test.want)
		}
	}
}

func TestPlayNamesWhatFails(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(path string) error
		want   error
	}{
		"missing":        {os.Remove, fs.ErrNotExist},
		"truncated":      {func(path string) error { return os.Truncate(path, 4999) }, ErrShort},
		"longer":         {func(path string) error { return os.Truncate(path, 5001) }, ErrShort},
		"empty":          {func(path string) error { return os.Truncate(path, 0) }, ErrShort},
		"a directory":    {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }, nil},
		"another frame":  {func(path string) error { return copyFile(strings.Replace(path, "0013", "0002", 1), path) }, ErrStamp},
		"changed inside": {func(path string) error { return overwrite(path, 3000) }, ErrContents},
	} {
		t.Run(name, func(t *testing.T) {
			dir := makeFrames(t, 30, 5000)
			damaged := filepath.Join(dir, "shot.0013.tst")
			if err := test.damage(damaged); err != nil {
				t.Fatal(err)
			}
			config := playConfig(dir)
			config.Rate = Rate{} // so that no frame is skipped
			report := play(t, config)
			if report.FramesDue != 30 || report.FramesFailed != 1 || report.Status() != StatusFailed {
				t.Fatalf("due %d, failed %d, status %d", report.FramesDue, report.FramesFailed, report.Status())
			}
			failure := report.Failures[0]
			if failure.Frame != 13 || failure.Path != damaged || !strings.Contains(failure.Error, damaged) {
				t.Errorf("the failure is %+v", failure)
			}
			if err := report.rows[0][12].Err; test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("failed with %v, want %v", err, test.want)
			}
			if report.Bytes != 29*5000 {
				t.Errorf("%d bytes count as read", report.Bytes)
			}
		})
	}
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

func overwrite(path string, at int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte("changed"), at)
	return errors.Join(err, file.Close())
}

func TestPlayFilesOfDifferentSizes(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		name := filepath.Join(dir, "shot."+strconv.Itoa(i)+".exr")
		if err := os.WriteFile(name, make([]byte, 1000+i*100), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config := playConfig(dir)
	config.Rate, config.Verify = Rate{}, false
	report := play(t, config)
	if report.FramesFailed != 0 || report.Bytes != 14500 {
		t.Errorf("%d failed, %d bytes; want 0, 14500: %v", report.FramesFailed, report.Bytes, report.Failures)
	}
	config.Size = 1000
	if report := play(t, config); report.FramesFailed != 9 {
		t.Errorf("with a given size %d failed, want 9", report.FramesFailed)
	}
}

func TestPlayClients(t *testing.T) {
	a, b := makeFrames(t, 6, 100), makeFrames(t, 6, 100)
	config := playConfig(a, b)
	config.Rate, config.Clients = Rate{}, 5
	var seen atomic.Int64
	config.OnFrame = func(client int, bytes int64, dropped bool) {
		if client < 0 || client >= 5 || bytes != 100 || dropped {
			t.Errorf("frame of client %d, %d bytes, dropped %v", client, bytes, dropped)
		}
		seen.Add(1)
	}
	report := play(t, config)
	if report.Clients != 5 || len(report.PerClient) != 5 || report.FramesDue != 30 || seen.Load() != 30 {
		t.Errorf("%d clients, %d reported, %d due, %d seen", report.Clients, len(report.PerClient), report.FramesDue, seen.Load())
	}
	for i, client := range report.PerClient {
		if want := []string{a, b}[i%2]; filepath.Dir(client.Path) != want || client.FramesOnTime != 6 || client.LongestRun != 6 {
			t.Errorf("client %d: %+v, want 6 frames of %s", i, client, want)
		}
	}
}

func TestPlayInterrupted(t *testing.T) {
	config := playConfig(makeFrames(t, 100, 100))
	config.Rate, config.Queue = Rate{20, 1}, 1
	ctx, cancel := context.WithCancel(context.Background())
	var seen atomic.Int64
	config.OnFrame = func(int, int64, bool) {
		if seen.Add(1) == 7 {
			cancel()
		}
	}
	report, err := Play(ctx, config)
	if err != nil || !report.Interrupted || report.FramesDue < 7 || report.FramesDue == 100 {
		t.Errorf("%+v, %v; want a report of the frames until then", report, err)
	}
}

func TestPlayErrors(t *testing.T) {
	dir := makeFrames(t, 3, 100)
	for name, change := range map[string]func(*PlayConfig){
		"no paths":             func(c *PlayConfig) { c.Paths = nil },
		"missing directory":    func(c *PlayConfig) { c.Paths = []string{filepath.Join(dir, "missing")} },
		"no frames match":      func(c *PlayConfig) { c.Paths = []string{filepath.Join(dir, "other.%04d.exr")} },
		"too many frames":      func(c *PlayConfig) { c.Frames = 4 },
		"no pre-buffer":        func(c *PlayConfig) { c.Prebuffer = 0 },
		"no queue":             func(c *PlayConfig) { c.Queue = 0 },
		"contradicting orders": func(c *PlayConfig) { c.Order = Order{Random: true, Reverse: true} },
		"unaligned direct":     func(c *PlayConfig) { c.Direct, c.Block = true, 1000 },
	} {
		config := playConfig(dir)
		change(&config)
		if report, err := Play(context.Background(), config); err == nil {
			t.Errorf("%s: played %+v", name, report)
		}
	}
}

func TestReportFieldsAreTheContract(t *testing.T) {
	report := play(t, playConfig(makeFrames(t, 10, 100)))
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"frames_due", "frames_on_time", "frames_late", "frames_skipped", "frames_dropped", "frames_failed",
		"fps_target", "clients", "bytes", "seconds", "throughput_bytes_per_s", "first_frame_ms",
	} {
		if _, ok := fields[name].(float64); !ok {
			t.Errorf("%s is %v, want a number", name, fields[name])
		}
	}
	latency, _ := fields["latency_ms"].(map[string]any)
	for _, part := range []string{"open", "read", "close", "frame"} {
		percentiles, _ := latency[part].(map[string]any)
		for _, name := range []string{"p50", "p95", "p99", "p999", "max"} {
			if _, ok := percentiles[name].(float64); !ok {
				t.Errorf("latency_ms.%s.%s is %v, want a number", part, name, percentiles[name])
			}
		}
	}
	if clients, ok := fields["per_client"].([]any); !ok || len(clients) != 1 {
		t.Errorf("per_client is %v", fields["per_client"])
	}
}

func TestCSVHasOneRowAFrame(t *testing.T) {
	dir := makeFrames(t, 40, 100)
	if err := os.Remove(filepath.Join(dir, "shot.0020.tst")); err != nil {
		t.Fatal(err)
	}
	config := playConfig(dir, dir)
	config.Rate = Rate{10_000, 1}
	report := play(t, config)
	var text bytes.Buffer
	if err := report.WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+report.FramesDue {
		t.Fatalf("%d rows for %d frames", len(rows), report.FramesDue)
	}
	results := map[string]int{}
	for _, row := range rows[1:] {
		results[row[slices.Index(csvHeader, "result")]]++
		if row[slices.Index(csvHeader, "due_ms")] == "" {
			t.Errorf("a row of a paced run has no due time: %v", row)
		}
	}
	if results["on_time"] != report.FramesOnTime || results["skipped"] != report.FramesSkipped || results["failed"] != report.FramesFailed {
		t.Errorf("results %v, report %+v", results, report)
	}
}

func TestSummaryNamesFailures(t *testing.T) {
	dir := makeFrames(t, 30, 100)
	for _, name := range []string{"shot.0007.tst", "shot.0009.tst"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	config := playConfig(dir)
	config.Rate = Rate{}
	var text strings.Builder
	if err := play(t, config).WriteSummary(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"shot.0007.tst", "shot.0009.tst", "frames due", "failed", "p99.9"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, text.String())
		}
	}
}

func TestReaderAllocatesLittle(t *testing.T) {
	dir := makeFrames(t, 1, 100_000)
	reader := frameReader{size: 100_000}
	defer reader.release()
	frame := Frame{1, filepath.Join(dir, "shot.0001.tst")}
	if allocations := testing.AllocsPerRun(20, func() {
		row := Row{Frame: frame}
		if reader.read(&row, time.Now()); row.Err != nil || row.Bytes != 100_000 {
			t.Fatalf("%d, %v", row.Bytes, row.Err)
		}
	}); allocations > 3 {
		t.Errorf("reading a frame allocates %v times", allocations)
	}
}
