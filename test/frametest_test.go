package test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// These tests play the same files with the player and with the tools that people
// use today, from a model of a server that carries a known number of bytes a
// second, in turns. The tools are not part of this repository: tframetest is
// found by the variable below, fio in the PATH.

// tframetestEnv is the path of a tframetest that has been built elsewhere.
const tframetestEnv = "REELAHEAD_TFRAMETEST"

const (
	rivalFrames = 96
	rivalSize   = 1 << 20
	rivalRounds = 3
	// rivalTolerance is how far apart the throughputs may lie: the tools open
	// files and wait in slightly different ways.
	rivalTolerance = 0.03
)

func tframetest(t *testing.T) func(args ...string) (status int, row map[string]float64, said string) {
	t.Helper()
	path := os.Getenv(tframetestEnv)
	if path == "" {
		t.Skipf("needs tframetest: set %s to the path of one", tframetestEnv)
	}
	return func(args ...string) (int, map[string]float64, string) {
		t.Helper()
		cmd := exec.Command(path, append([]string{"-c"}, args...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), csvRow(string(out)), string(out)
	}
}

// csvRow reads the numbers of a table of one row.
func csvRow(text string) map[string]float64 {
	row := map[string]float64{}
	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord = -1 // the row ends with a comma
	cells, err := reader.ReadAll()
	if err != nil || len(cells) < 2 {
		return row
	}
	for i, name := range cells[0] {
		if value, err := strconv.ParseFloat(cells[1][i], 64); err == nil {
			row[name] = value
		}
	}
	return row
}

// rivalReport is the part of a report that is compared here.
type rivalReport struct {
	Due        int     `json:"frames_due"`
	Dropped    int     `json:"frames_dropped"`
	Failed     int     `json:"frames_failed"`
	Throughput float64 `json:"throughput_bytes_per_s"`
	Latency    struct {
		Frame struct {
			P50 float64 `json:"p50"`
		} `json:"frame"`
	} `json:"latency_ms"`
}

func playFrames(t *testing.T, args ...string) (status int, report rivalReport) {
	t.Helper()
	status, said := run(t, append([]string{"bench", "play", "--json", "-"}, args...)...)
	if err := json.Unmarshal([]byte(said), &report); err != nil {
		t.Fatalf("bench play %v: %v: %s", args, err, said)
	}
	return status, report
}

// rivalNAS is a server with frames that tframetest knows the names of. Attributes
// are kept as an NFS client keeps them, since the player asks for the size of each
// open file and the others don't; but not until the next run, which would find
// the names looked up.
func rivalNAS(t *testing.T, flags ...string) (frames, source string) {
	t.Helper()
	frames = memory(t)
	if status, said := run(t, "bench", "write", frames, "-w", strconv.Itoa(rivalSize>>10), "-n", strconv.Itoa(rivalFrames)); status != 0 {
		t.Fatal(said)
	}
	source, _ = slowNAS(t, frames, append([]string{"--rtt", "1ms", "--attr-timeout", "200ms"}, flags...)...)
	return frames, source
}

// sameThroughput measures both in turns and compares the medians. It tries again
// when they differ: what a busy machine adds goes away, what one of them does
// differently stays.
func sameThroughput(t *testing.T, what string, ours, theirs func() float64) {
	t.Helper()
	var ratio float64
	for range 3 {
		var a, b []float64
		for range rivalRounds {
			a, b = append(a, ours()), append(b, theirs())
		}
		slices.Sort(a)
		slices.Sort(b)
		ratio = a[rivalRounds/2] / b[rivalRounds/2]
		t.Logf("%s: %.2f MB/s, theirs %.2f MB/s, ratio %.4f", what, a[rivalRounds/2]/1e6, b[rivalRounds/2]/1e6, ratio)
		if ratio >= 1-rivalTolerance && ratio <= 1+rivalTolerance {
			return
		}
	}
	t.Errorf("%s: the throughputs differ by the factor %.4f", what, ratio)
}

func TestThroughputAgainstTframetest(t *testing.T) {
	other := tframetest(t)
	_, source := rivalNAS(t, "--bandwidth", "100MB/s", "--stream-bandwidth", "60MB/s")
	count := strconv.Itoa(rivalFrames)
	for _, test := range []struct {
		name string
		args []string
	}{
		{"one thread", []string{"-t", "1"}},
		{"four threads", []string{"-t", "4"}},
		{"24 fps", []string{"-f", "24", "-t", "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"-r", "-n", count}, test.args...)
			// It waits from frame to frame: a player without a queue.
			mine := append(slices.Clone(args), "--direct", source)
			if slices.Contains(args, "-f") {
				mine = append(mine, "-b", "1", "-q", "1")
			}
			sameThroughput(t, test.name, func() float64 {
				status, report := playFrames(t, mine...)
				if status > 1 || report.Due != rivalFrames {
					t.Fatalf("status %d: %+v", status, report)
				}
				return report.Throughput
			}, func() float64 {
				status, row, said := other(append(slices.Clone(args), source)...)
				if status != 0 || row["frames"] != rivalFrames {
					t.Fatalf("tframetest: status %d: %s", status, said)
				}
				return row["bps"]
			})
		})
	}
}

// What tframetest does not see: frames that come too late, that are cut off, and
// that are not there.
func TestWhatTframetestDoesNotSee(t *testing.T) {
	other := tframetest(t)
	count := strconv.Itoa(rivalFrames)

	t.Run("a stall", func(t *testing.T) {
		const period, length = 3 * time.Second, 900 * time.Millisecond
		fresh := func() string { // since the stall comes so long after the mount
			_, source := rivalNAS(t, "--stall", fmt.Sprintf("%v/%v", length, period))
			return source
		}
		source := fresh()
		status, report := playFrames(t, "-r", "-n", count, "-f", "24", "--direct", source)
		// 900 ms are 21.6 frames at 24 a second, of which the queue of 8 hides
		// seven or eight.
		if status != 1 || report.Dropped < 12 || report.Dropped > 18 {
			t.Errorf("status %d, %d frames dropped of %d, want about 14", status, report.Dropped, report.Due)
		}
		source = fresh()
		otherStatus, row, said := other("-r", "-n", count, "-f", "24", source)
		if otherStatus != 0 || row["frames"] != rivalFrames || strings.Contains(said, "drop") {
			t.Errorf("tframetest sees it: status %d: %s", otherStatus, said)
		}
		t.Logf("dropped %d of %d; tframetest: status %d, %v frames, %.1f fps", report.Dropped, report.Due, otherStatus, row["frames"], row["fps"])
	})
	for _, test := range []struct {
		name   string
		damage func(path string) error
	}{
		{"a truncated frame", func(path string) error { return os.Truncate(path, rivalSize/2) }},
		{"a missing frame", os.Remove},
	} {
		t.Run(test.name, func(t *testing.T) {
			frames, source := rivalNAS(t)
			must(t, test.damage(filepath.Join(frames, "frame000040.tst")))
			status, report := playFrames(t, "-r", "-n", count, source)
			if status != 2 || report.Failed != 1 || report.Due != rivalFrames {
				t.Errorf("status %d: %+v; want one failure", status, report)
			}
			otherStatus, row, said := other("-r", "-n", count, source)
			if otherStatus != 0 {
				t.Errorf("tframetest sees it: status %d: %s", otherStatus, said)
			}
			t.Logf("tframetest: status %d, %v frames and %v bytes", otherStatus, row["frames"], row["bytes"])
		})
	}
}

// fio knows no frames and no drops, but a rate.
func TestPacedThroughputAgainstFio(t *testing.T) {
	fio, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("needs fio")
	}
	frames, source := rivalNAS(t, "--stream-bandwidth", "200MB/s")
	entries, err := os.ReadDir(frames)
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	sameThroughput(t, "60 fps", func() float64 {
		status, report := playFrames(t, "-r", "-f", "60", "-b", "1", "-q", "1", "--direct", source)
		if status > 1 || report.Due != rivalFrames {
			t.Fatalf("status %d: %+v", status, report)
		}
		return report.Throughput
	}, func() float64 {
		out, err := exec.Command(fio,
			"--name=frames", "--rw=read", "--bs=1M", "--rate=60M", "--direct=1", "--directory="+source, "--filename="+strings.Join(names, ":"),
			"--file_service_type=sequential", "--openfiles=1", "--output-format=json").Output()
		must(t, err)
		var result struct {
			Jobs []struct {
				Read struct {
					Bytes float64 `json:"bw_bytes"`
				} `json:"read"`
			} `json:"jobs"`
		}
		must(t, json.Unmarshal(out, &result))
		return result.Jobs[0].Read.Bytes
	})
}
