package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Every way of reading brings every byte, whatever the size.
func TestReadModes(t *testing.T) {
	for _, size := range []int64{64, 4095, 4096, 4097, 36 << 10, 500_001, 5_000_000} {
		dir := makeFrames(t, 2, size)
		for name, reader := range map[string]frameReader{
			"whole":         {},
			"blocks":        {block: 100_001},
			"mmap":          {mode: ReadMapped},
			"exr":           {mode: ReadEXR},
			"exr in blocks": {mode: ReadEXR, block: 12_345},
			"direct":        {direct: true},
			"direct blocks": {direct: true, block: 8192},
			"direct exr":    {mode: ReadEXR, direct: true},
		} {
			reader.verify = true
			row := Row{Frame: Frame{1, filepath.Join(dir, "shot.0001.tst")}}
			reader.read(&row, time.Now())
			switch {
			case reader.direct && errors.Is(row.Err, unix.EINVAL):
				t.Logf("no O_DIRECT in %s: %v", dir, row.Err)
			case row.Err != nil || row.Bytes != size:
				t.Errorf("%s, %d bytes: read %d, %v", name, size, row.Bytes, row.Err)
			case row.First < row.Open || row.First > row.Open+row.Read || row.Done <= 0 || row.Close <= 0:
				t.Errorf("%s, %d bytes: times of %+v", name, size, row)
			}
			reader.release()
		}
	}
}

func TestScatteredIsTheWholeFile(t *testing.T) {
	for _, size := range []int64{1, 4096, 4097, 40_000, 1 << 20, 12_812_288, 12_812_289} {
		for _, block := range []int64{4096, 100_000, exrBlock} {
			covered := map[int64]int64{}
			last, backwards := int64(-1), false
			for from, to := range scattered(size, block) {
				if from >= to || covered[from] != 0 {
					t.Fatalf("%d bytes in blocks of %d: a span from %d to %d", size, block, from, to)
				}
				covered[from] = to
				backwards = backwards || from < last
				last = from
			}
			at := int64(0)
			for at < size && covered[at] > at {
				at = covered[at]
			}
			if at != size {
				t.Errorf("%d bytes in blocks of %d: covered up to %d", size, block, at)
			}
			if size > 10*block && !backwards {
				t.Errorf("%d bytes in blocks of %d are not scattered", size, block)
			}
		}
	}
}

// A file that is truncated while it is mapped is an error of that frame, not the
// end of the program.
func TestMappingOfATruncatedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 100_000), 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := openRetry(path, unix.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 5000); err != nil {
		t.Fatal(err)
	}
	reader := frameReader{mode: ReadMapped}
	defer reader.release()
	if err := reader.reserve(100_000); err != nil {
		t.Fatal(err)
	}
	if _, first, err := reader.readAll(fd, 100_000); !errors.Is(err, ErrShort) || first.IsZero() {
		t.Errorf("%v, first byte at %v; want ErrShort after the first bytes", err, first)
	}
}

func TestReadModeErrors(t *testing.T) {
	for _, test := range []struct {
		mode   ReadMode
		direct bool
		block  int64
		says   string
	}{
		{ReadMapped, true, 0, "exclude"}, {ReadMapped, false, 4096, "block"}, {ReadEXR, true, 1000, "4096"}, {ReadWhole, false, -1, "negative"},
	} {
		if err := test.mode.validate(test.direct, test.block); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	for _, mode := range []ReadMode{ReadWhole, ReadMapped, ReadEXR} {
		if parsed, err := ParseReadMode(mode.String()); err != nil || parsed != mode {
			t.Errorf("%v is parsed as %v, %v", mode, parsed, err)
		}
	}
	if _, err := ParseReadMode("tape"); err == nil {
		t.Error("an unknown mode is accepted")
	}
}
