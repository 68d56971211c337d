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
	"time"

	"golang.org/x/sys/unix"
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
		"too small an EXR":  func(c *WriteConfig) { c.Pattern.Suffix = ".exr" },
		"a loop":            func(c *WriteConfig) { c.Order.Loop = 2 },
		"random in reverse": func(c *WriteConfig) { c.Order = Order{Random: true, Reverse: true} },
		"too many threads":  func(c *WriteConfig) { c.Rate, c.Queue, c.Threads = Rate{24, 1}, 2, 3 },
		"resumed recording": func(c *WriteConfig) { c.Rate, c.Resume = Rate{24, 1}, true },
		"negative block":    func(c *WriteConfig) { c.Block = -1 },
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

func TestWriteInterruptedBeforeItBegins(t *testing.T) {
	for _, resume := range []bool{false, true} {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		config := WriteConfig{Pattern: Pattern{Dir: t.TempDir(), Prefix: "f", Width: 1}, Frames: 5, Size: 100, Resume: resume}
		report, err := Write(ctx, config)
		if !errors.Is(err, context.Canceled) || !report.Interrupted || report.Frames != 0 || report.Error == "" {
			t.Errorf("resume %v: %+v, %v", resume, report, err)
		}
		if entries, _ := os.ReadDir(config.Pattern.Dir); len(entries) > 0 {
			t.Errorf("resume %v: left %v", resume, entries)
		}
	}
}

// Every profile, and sizes that are none, make pictures that other programs
// decode without a complaint.
func TestPicturesDecode(t *testing.T) {
	sizes := []int64{100_003, 3_000_000}
	for _, profile := range Profiles {
		sizes = append(sizes, profile.Size)
	}
	decoders := map[string]func(path string) []string{
		"ffmpeg":   func(path string) []string { return []string{"-v", "warning", "-i", path, "-f", "null", "-"} },
		"oiiotool": func(path string) []string { return []string{path, "--cut", "64x64", "-o", path + ".tif"} },
	}
	for name, args := range decoders {
		for _, format := range []Format{FormatDPX, FormatEXR} {
			t.Run(name+" "+string(format), func(t *testing.T) {
				decoder, err := exec.LookPath(name)
				if err != nil {
					t.Skipf("needs %s", name)
				}
				for _, size := range sizes {
					pattern := Pattern{Dir: t.TempDir(), Prefix: "s.", Suffix: "." + string(format), Width: 4}
					if _, err := Write(context.Background(), WriteConfig{Pattern: pattern, Frames: 1, Size: size}); err != nil {
						t.Fatal(err)
					}
					if info, err := os.Stat(pattern.Path(0)); err != nil || info.Size() != size {
						t.Errorf("a file of %v bytes, %v; want %d", info, err, size)
					}
					output, err := exec.Command(decoder, args(pattern.Path(0))...).CombinedOutput()
					if err != nil || len(output) > 0 {
						t.Errorf("%d bytes: %v: %s", size, err, output)
					}
				}
			})
		}
	}
}

func TestWriteFormats(t *testing.T) {
	for _, test := range []struct {
		suffix string
		format Format
		want   Format
	}{
		{".dpx", "", FormatDPX}, {".DPX", "", FormatDPX}, {".exr", "", FormatEXR}, {".tst", "", FormatRaw},
		{".tif", "", FormatRaw}, {"", "", FormatRaw}, {".tst", FormatEXR, FormatEXR}, {".exr", FormatRaw, FormatRaw},
	} {
		config := WriteConfig{Pattern: Pattern{Dir: t.TempDir(), Prefix: "f.", Suffix: test.suffix, Width: 1}, Format: test.format, Frames: 1, Size: 30_000}
		report, err := Write(context.Background(), config)
		if err != nil || report.Format != test.want {
			t.Fatalf("%q, %q: %v, %v", test.suffix, test.format, report.Format, err)
		}
		data, err := os.ReadFile(config.Pattern.Path(0))
		if err != nil || formatOfData(data) != test.want {
			t.Errorf("%q, %q: a file of format %q, %v", test.suffix, test.format, formatOfData(data), err)
		}
		if err := Verify(data, 0); err != nil {
			t.Errorf("%q, %q: %v", test.suffix, test.format, err)
		}
		if mode, want := fileMode(t, config.Pattern.Path(0)), os.FileMode(0o644); mode&0o600 != 0o600 {
			t.Errorf("the file has mode %v, want as %v", mode, want)
		}
	}
}

func fileMode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestWriteWays(t *testing.T) {
	for name, change := range map[string]func(*WriteConfig){
		"threads":         func(c *WriteConfig) { c.Threads = 4 },
		"reverse":         func(c *WriteConfig) { c.Order.Reverse = true },
		"random":          func(c *WriteConfig) { c.Order.Random = true },
		"blocks":          func(c *WriteConfig) { c.Block = 1000 },
		"fsync":           func(c *WriteConfig) { c.Fsync = true },
		"recorded":        func(c *WriteConfig) { c.Rate, c.Queue = Rate{500, 1}, 40 },
		"recorded by two": func(c *WriteConfig) { c.Rate, c.Queue, c.Threads = Rate{500, 1}, 40, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			config := WriteConfig{Pattern: Pattern{Dir: t.TempDir(), Prefix: "f.", Suffix: ".exr", Width: 4}, Start: 10, Frames: 40, Size: 70_000, Seed: 5}
			change(&config)
			report, err := Write(context.Background(), config)
			if err != nil || report.Frames != 40 || report.Bytes != 40*70_000 || report.FramesDropped != 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			if report.Fsync != (report.Latency.Fsync.Max > 0.001) {
				t.Errorf("fsync %v took up to %v ms", report.Fsync, report.Latency.Fsync.Max)
			}
			config2 := playConfig(config.Pattern.Dir)
			config2.Rate = Rate{}
			if played := play(t, config2); played.FramesOnTime != 40 {
				t.Errorf("%d of 40 frames are right: %v", played.FramesOnTime, played.Failures)
			}
			for k, row := range report.rows {
				switch {
				case row.K != k || row.Due > row.Began || row.Done < row.Began:
					t.Errorf("row %d: %+v", k, row)
				case config.Order.Reverse && row.Number != 49-k, config.Order == Order{} && row.Number != 10+k:
					t.Errorf("frame %d is written at place %d", row.Number, k)
				}
			}
		})
	}
}

func TestWriteDirect(t *testing.T) {
	// O_DIRECT is refused by some filesystems.
	dir := t.TempDir()
	fd, err := openRetry(filepath.Join(dir, "probe"), unix.O_WRONLY|unix.O_CREAT|unix.O_DIRECT)
	if err != nil {
		t.Skipf("no O_DIRECT in %s: %v", dir, err)
	}
	_ = unix.Close(fd)
	config := WriteConfig{Pattern: Pattern{Dir: dir, Prefix: "f.", Suffix: ".dpx", Width: 1}, Frames: 3, Size: 1_449_984, Direct: true}
	if report, err := Write(context.Background(), config); err != nil || report.Frames != 3 {
		t.Fatalf("%+v, %v", report, err)
	}
	reading := playConfig(filepath.Join(dir, "f.%d.dpx"))
	reading.Rate, reading.Direct = Rate{}, true
	if report := play(t, reading); report.FramesOnTime != 3 {
		t.Errorf("%d of 3 frames are right: %v", report.FramesOnTime, report.Failures)
	}
	config.Size++
	if _, err := Write(context.Background(), config); err == nil || !strings.Contains(err.Error(), "4096") {
		t.Errorf("an odd size: %v", err)
	}
}

func TestWriteResumes(t *testing.T) {
	for _, format := range []Format{FormatRaw, FormatDPX, FormatEXR} {
		t.Run(string(format), func(t *testing.T) {
			config := WriteConfig{Pattern: Pattern{Dir: t.TempDir(), Prefix: "f.", Width: 1}, Format: format, Start: 1, Frames: 12, Size: 50_001, Seed: 1}
			if _, err := Write(context.Background(), config); err != nil {
				t.Fatal(err)
			}
			kept := fileTime(t, config.Pattern.Path(2))
			for number, damage := range map[int]func(string) error{
				3: os.Remove,
				4: func(path string) error { return os.Truncate(path, 50_000) },
				5: func(path string) error { return os.Truncate(path, 50_002) },
				6: func(path string) error { return copyFile(config.Pattern.Path(1), path) },
				7: func(path string) error { return overwrite(path, 50_001-7) },
				8: func(path string) error { return errors.Join(os.Truncate(path, 40_000), os.Truncate(path, 50_001)) },
			} {
				if err := damage(config.Pattern.Path(number)); err != nil {
					t.Fatal(err)
				}
			}
			config.Resume, config.Seed = true, 2
			report, err := Write(context.Background(), config)
			if err != nil || report.Frames != 6 || report.FramesKept != 6 {
				t.Errorf("%d written, %d kept, %v; want 6 and 6", report.Frames, report.FramesKept, err)
			}
			if !fileTime(t, config.Pattern.Path(2)).Equal(kept) {
				t.Error("a good frame was written again")
			}
			reading := playConfig(config.Pattern.String())
			reading.Rate = Rate{}
			if report := play(t, reading); report.FramesOnTime != 12 {
				t.Errorf("%d of 12 frames are right: %v", report.FramesOnTime, report.Failures)
			}
			if report, err := Write(context.Background(), config); err != nil || report.Frames != 0 || report.FramesKept != 12 {
				t.Errorf("nothing to do: %+v, %v", report, err)
			}
		})
	}
}

func fileTime(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// smallDisk mounts a tmpfs of the given size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("needs to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestWriteChecksTheSpaceBefore(t *testing.T) {
	dir := smallDisk(t, "1m")
	config := WriteConfig{Pattern: Pattern{Dir: dir, Prefix: "f.", Width: 1}, Frames: 20, Size: 100_000, Seed: 1}
	report, err := Write(context.Background(), config)
	if !errors.Is(err, ErrNoSpace) || report.Frames != 0 || !strings.Contains(err.Error(), dir) {
		t.Errorf("%+v, %v; want ErrNoSpace", report, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("%d frames were written", len(entries))
	}
	config.Frames = 9
	for range 2 { // what is overwritten makes room
		if report, err := Write(context.Background(), config); err != nil || report.Frames != 9 {
			t.Errorf("%+v, %v", report, err)
		}
	}
	config.Frames, config.Resume = 10, true
	if report, err := Write(context.Background(), config); err != nil || report.Frames != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestWriteToAFullDisk(t *testing.T) {
	for _, threads := range []int{1, 3} {
		dir := smallDisk(t, "1m")
		config := WriteConfig{Pattern: Pattern{Dir: dir, Prefix: "f.", Width: 1}, Frames: 20, Size: 100_000, Seed: 1, Threads: threads, IgnoreSpace: true}
		report, err := Write(context.Background(), config)
		if !errors.Is(err, unix.ENOSPC) || report.FramesFailed < 1 || report.FramesFailed > threads || report.Frames < 10-threads || report.Frames > 10 || report.Error == "" {
			t.Errorf("%d threads: %+v, %v; want 10 frames and ENOSPC", threads, report, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != report.Frames {
			t.Errorf("%d threads: %d files of %d frames, %v", threads, len(entries), report.Frames, err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Size() != 100_000 {
				t.Errorf("%d threads: %s is no whole frame: %v", threads, entry.Name(), err)
			}
		}
	}
}

func TestWriteWithoutPermission(t *testing.T) {
	dir := t.TempDir()
	config := WriteConfig{Pattern: Pattern{Dir: dir, Prefix: "f.", Width: 1}, Frames: 3, Size: 100}
	if err := os.Mkdir(config.Pattern.Path(1), 0o755); err != nil { // refused to root, too
		t.Fatal(err)
	}
	report, err := Write(context.Background(), config)
	if !errors.Is(err, unix.EISDIR) || !strings.Contains(err.Error(), config.Pattern.Path(1)) || report.Frames != 1 || report.FramesFailed != 1 {
		t.Errorf("%+v, %v; want one frame and EISDIR", report, err)
	}
}
