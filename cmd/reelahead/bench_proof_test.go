package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reelahead/bench"
)

// These tests play in real time from the model of a server, mounted, with the
// program as people run it. What follows from the model to the frame is tested
// in package bench in simulated time; here the bounds leave room for what a busy
// machine adds, as far as the player itself has measured it. A run in which the
// player itself was late by more than a frame measures the machine and nothing
// else, as its report says: it is done again, a few times.

// steady plays until a run is one that can be judged.
func steady(t *testing.T, play func() bench.Report) bench.Report {
	t.Helper()
	var report bench.Report
	for range 3 {
		report = play()
		if report.Scheduling.Error.Max < 1000/report.FPSTarget {
			return report
		}
	}
	t.Skipf("this machine is too busy: the player itself was late by up to %v ms in each of three runs", report.Scheduling.Error.Max)
	return report
}

// startSlowNAS mounts the model over a directory and returns when it had begun.
func startSlowNAS(t *testing.T, backing string, args ...string) (mountPoint string, began time.Time) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs /dev/fuse")
	}
	mountPoint = t.TempDir()
	command := benchCommand(t, append([]string{"slownas", backing, mountPoint}, args...)...)
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if !strings.HasPrefix(line, "slownas: mounted ") {
		_ = command.Wait()
		t.Skipf("can't mount here: %q", line)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		if err := command.Wait(); err != nil {
			t.Errorf("the model ended with %v", err)
		}
	})
	return mountPoint, time.Now()
}

// playJSON plays and returns the report; drops and failures are no errors.
func playJSON(t *testing.T, args ...string) bench.Report {
	t.Helper()
	got := runBench(t, append([]string{"play", "--json", "-"}, args...)...)
	var report bench.Report
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatalf("play %v: %v: %+v", args, err, got)
	}
	return report
}

func TestBenchPlayStallOfTheModel(t *testing.T) {
	const (
		period = 4 * time.Second // the first stall begins so long after the mount
		length = 800 * time.Millisecond
	)
	backing := writtenFrames(t, "--frames", "420", "--size", "64KiB")
	for _, test := range []struct {
		fps              string
		prebuffer, queue int
	}{{"24000/1001", 5, 8}, {"30", 1, 2}, {"60", 12, 24}} {
		t.Run(test.fps, func(t *testing.T) {
			t.Parallel()
			rate, err := bench.ParseRate(test.fps)
			if err != nil {
				t.Fatal(err)
			}
			var mounted time.Time
			report := steady(t, func() bench.Report {
				var mountPoint string
				mountPoint, mounted = startSlowNAS(t, backing, "--rtt", "2ms", "--stall", fmt.Sprintf("%v/%v", length, period))
				return playJSON(t, mountPoint, "--fps", test.fps, "--prebuffer", fmt.Sprint(test.prebuffer), "--queue", fmt.Sprint(test.queue),
					"--duration", "6500ms")
			})
			interval := float64(rate.Time(1)) / float64(time.Millisecond)
			// What is read when the server stands still lasts for the queue; a
			// frame takes its time before and after.
			took := report.Latency.Frame.P50
			want := (milliseconds(length) + 2*took - float64(test.queue)*interval) / interval
			// One frame for where the stall lies between two frames, one for the
			// margin that the player takes, and what player and model were late.
			slack := 2 + (report.Scheduling.Error.Max+report.Latency.Frame.P95-took)/interval
			if got := float64(report.FramesDropped); math.Abs(got-want) > slack {
				t.Errorf("%v frames dropped, the model says %.1f ± %.1f: %+v", got, want, slack, report.Drops)
			}
			from := milliseconds(mounted.Add(period).Sub(report.StartedAt))
			to := from + milliseconds(length) + 2*took + (slack+1)*interval
			for _, drop := range report.Drops {
				if drop.DueMS < from-slack*interval || drop.DueMS > to {
					t.Errorf("frame %d was dropped at %v ms, the stall lasted from %v to %v", drop.Frame, drop.DueMS, from, from+milliseconds(length))
				}
			}
			t.Logf("%d dropped, the model says %.1f; own error up to %.1f ms", report.FramesDropped, want, report.Scheduling.Error.Max)
		})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func TestBenchPlayBandwidthOfTheModel(t *testing.T) {
	const (
		size      = 1 << 20
		leastTime = size / 20e6 * 1000 // milliseconds a frame
	)
	backing := writtenFrames(t, "--frames", "100", "--size", fmt.Sprint(size))
	// 20 MB/s are 52 ms a frame, next to which round trips of 1 ms and what a
	// busy machine adds are little.
	mountPoint, _ := startSlowNAS(t, backing, "--rtt", "1ms", "--stream-bandwidth", "20MB/s")
	alone := playJSON(t, mountPoint, "--unpaced", "--frames", "20")
	if alone.Latency.Frame.P50 < leastTime {
		t.Fatalf("a frame takes %v ms, less than the %v of the model", alone.Latency.Frame.P50, leastTime)
	}
	for name, share := range map[string]float64{"over": 1.3, "under": 0.8} {
		t.Run(name, func(t *testing.T) {
			fps := fmt.Sprintf("%.2f", 1000/(alone.Latency.Frame.P50*share))
			report := steady(t, func() bench.Report { return playJSON(t, mountPoint, "--fps", fps, "--queue", "8") })
			interval := 1000 / report.FPSTarget
			if share > 1 {
				if report.FramesDropped > report.Scheduling.DropsNear {
					t.Errorf("%d frames dropped at %s fps, of which %d for the player's own delays", report.FramesDropped, fps, report.Scheduling.DropsNear)
				}
				return
			}
			// Behind all the time, it reads one frame after the other: no more
			// than the model carries, and not much less than their usual time
			// allows.
			most := 5 + 99*interval/leastTime
			usual := 5 + 99*interval/report.Latency.Frame.P50
			if got := float64(report.FramesOnTime + report.FramesLate); got > most+1 || got < 0.85*usual-1 {
				t.Errorf("%v frames read at %s fps, the model says at most %.1f, usual were %.1f", got, fps, most, usual)
			}
			t.Logf("%d of %d on time at %s fps, the model says at most %.1f, usual were %.1f", report.FramesOnTime, report.FramesDue, fps, most, usual)
		})
	}
}

// A recording to a server with less bandwidth than it needs loses what the model
// says, and what it has written is right.
func TestBenchWriteRecordsToTheModel(t *testing.T) {
	backing := t.TempDir()
	mountPoint, _ := startSlowNAS(t, backing, "--rtt", "1ms", "--stream-bandwidth", "20MB/s")
	got := runBench(t, "write", mountPoint, "--size", "1MiB", "--frames", "100", "--fps", "30", "--queue", "4", "--json", "-")
	var report bench.WriteReport
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.status != bench.StatusDropped {
		t.Fatalf("%+v, %v", got, err)
	}
	const interval, leastTime = 1000.0 / 30, (1 << 20) / 20e6 * 1000
	most, usual := 4+99*interval/leastTime, 4+99*interval/report.Latency.Frame.P50
	if got := float64(report.Frames); got > most+1 || got < 0.85*usual-1 || report.Frames+report.FramesDropped != 100 {
		t.Errorf("%v frames written and %d lost of 100, the model says at most %.1f, usual were %.1f", got, report.FramesDropped, most, usual)
	}
	if report.Latency.Frame.P50 < leastTime {
		t.Errorf("a frame took %v ms, less than the model", report.Latency.Frame.P50)
	}
	entries, err := os.ReadDir(backing)
	if err != nil || len(entries) != report.Frames {
		t.Errorf("%d files of %d frames, %v", len(entries), report.Frames, err)
	}
	for _, drop := range report.Drops {
		if _, err := os.Stat(filepath.Join(backing, filepath.Base(drop.Path))); err == nil {
			t.Errorf("frame %d was dropped and is there", drop.Frame)
		}
	}
	if report := playJSON(t, backing, "--unpaced", "--verify"); report.FramesFailed != report.FramesDue-report.FramesOnTime || report.FramesOnTime != len(entries) {
		t.Errorf("%d of %d frames are right", report.FramesOnTime, len(entries))
	}
}
