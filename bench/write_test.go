package bench

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteErrors(t *testing.T) {
	dir := t.TempDir()
	good := WriteConfig{Pattern: Pattern{Dir: dir, Prefix: "f", Width: 1}, Frames: 1, Size: 100}
	for name, change := range map[string]func(*WriteConfig){
		"no frames":         func(c *WriteConfig) { c.Frames = 0 },
		"negative start":    func(c *WriteConfig) { c.Start = -1 },
		"too small":         func(c *WriteConfig) { c.Size = MinFrameSize - 1 },
		"too small a DPX":   func(c *WriteConfig) { c.Pattern.Suffix = ".dpx" },
		"missing directory": func(c *WriteConfig) { c.Pattern.Dir = filepath.Join(dir, "missing") },
	} {
		config := good
		change(&config)
		if report, err := Write(context.Background(), config); err == nil {
			t.Errorf("%s: wrote %+v", name, report)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("errors left %v", entries)
	}
}

func TestWriteRemovesAFrameThatDidNotFit(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(dir, "f3")); err != nil {
		t.Fatal(err)
	}
	config := WriteConfig{Pattern: Pattern{Dir: dir, Prefix: "f", Width: 1}, Start: 1, Frames: 5, Size: 100}
	report, err := Write(context.Background(), config)
	if err == nil || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "frame 3 of 5") || report.Frames != 2 {
		t.Errorf("wrote %+v, %v; want 2 frames and no space for frame 3", report, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "f3")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the frame that did not fit is still there: %v", err)
	}
}

func TestWriteInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	config := WriteConfig{Pattern: Pattern{Dir: t.TempDir(), Prefix: "f", Width: 1}, Frames: 5, Size: 100, OnFrame: func(int64) { cancel() }}
	if report, err := Write(ctx, config); !errors.Is(err, context.Canceled) || report.Frames != 1 {
		t.Errorf("%+v, %v; want one frame and context.Canceled", report, err)
	}
}

// Every profile, and sizes that are none, make pictures that another program
// decodes without a complaint.
func TestDPXDecodes(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("needs ffmpeg")
	}
	sizes := []int64{100_000, 3_000_000}
	for _, profile := range Profiles {
		sizes = append(sizes, profile.Size)
	}
	for _, size := range sizes {
		dir := t.TempDir()
		pattern := Pattern{Dir: dir, Prefix: "s.", Suffix: ".dpx", Width: 4}
		if _, err := Write(context.Background(), WriteConfig{Pattern: pattern, Frames: 1, Size: size}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(pattern.Path(0)); err != nil || info.Size() != size {
			t.Errorf("a file of %v bytes, %v; want %d", info, err, size)
		}
		output, err := exec.Command(ffmpeg, "-v", "warning", "-i", pattern.Path(0), "-f", "null", "-").CombinedOutput()
		if err != nil || len(output) > 0 {
			t.Errorf("%d bytes: %v: %s", size, err, output)
		}
	}
}
