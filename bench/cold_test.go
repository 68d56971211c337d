package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// residentPages is how many pages of a file the kernel holds.
func residentPages(t *testing.T, path string) uint64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var stat unix.Cachestat_t
	if err := unix.Cachestat(uint(file.Fd()), &unix.CachestatRange{}, &stat, 0); err != nil {
		t.Skipf("the kernel does not say what it holds: %v", err)
	}
	return stat.Cache
}

func TestPlayCold(t *testing.T) {
	dir := makeFrames(t, 20, 100_000)
	if mount, err := mountOf(dir); err != nil || mount.FSType == "tmpfs" || mount.FSType == "overlay" {
		t.Skipf("needs a disk: %+v, %v", mount, err)
	}
	config := playConfig(dir, dir)
	out := 15
	config.Rate, config.Out = Rate{}, &out
	resident := func() (total uint64) {
		for i := range 20 {
			total += residentPages(t, filepath.Join(dir, Pattern{Prefix: "shot.", Suffix: ".tst", Width: 4}.Name(i+1)))
		}
		return total
	}
	play(t, config)
	if resident() < 15*24 {
		t.Fatalf("%d pages are held of 20 frames that were just read", resident())
	}
	config.Cold = true
	var left uint64
	config.OnStart = func(func() []ClientState) { left = resident() }
	report := play(t, config)
	// The frames behind the out point are not touched.
	if left > 5*25 || !report.Cold || len(report.StaysWarm) > 0 {
		t.Errorf("%d pages were held at the start of a cold run, which stays warm by %q", left, report.StaysWarm)
	}
}

func TestPlayColdSaysWhatStays(t *testing.T) {
	dir := smallDisk(t, "1m")
	if _, err := Write(context.Background(), WriteConfig{Pattern: Pattern{Dir: dir, Prefix: "f.", Suffix: ".tst", Width: 1}, Frames: 3, Size: 1000}); err != nil {
		t.Fatal(err)
	}
	config := playConfig(dir, dir)
	config.Rate, config.Cold = Rate{}, true
	report := play(t, config)
	if !report.Cold || len(report.StaysWarm) != 1 || !strings.Contains(report.StaysWarm[0], "memory and never cold") {
		t.Errorf("stays warm: %q", report.StaysWarm)
	}
	var text strings.Builder
	if err := report.WriteSummary(&text); err != nil || !strings.Contains(text.String(), "never cold") {
		t.Errorf("%v: %s", err, text.String())
	}
}
