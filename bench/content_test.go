package bench

import (
	"bytes"
	"compress/flate"
	"errors"
	"testing"
)

func frameOf(t testing.TB, size int64, number int, format Format) []byte {
	t.Helper()
	l, err := newLayout(format, size, number)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	fillFrame(data, l, newStamp(3, number, size))
	return data
}

func TestVerify(t *testing.T) {
	for _, size := range []int64{MinFrameSize, 65, 100, 4096, 100_003} {
		if err := Verify(frameOf(t, size, 7, FormatRaw), 7); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	for _, format := range []Format{FormatRaw, FormatDPX, FormatEXR} {
		good := frameOf(t, 20_003, 7, format)
		if err := Verify(good, 7); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if err := Verify(good, 8); !errors.Is(err, ErrStamp) {
			t.Errorf("another frame: %v, want ErrStamp", err)
		}
		if err := Verify(good[:20_000], 7); !errors.Is(err, ErrStamp) {
			t.Errorf("truncated: %v, want ErrStamp", err)
		}
		for _, at := range []int{2500, 10_000, 19_999, 20_002} {
			bad := bytes.Clone(good)
			bad[at] ^= 1
			if err := Verify(bad, 7); !errors.Is(err, ErrContents) {
				t.Errorf("%s, byte %d changed: %v, want ErrContents", format, at, err)
			}
		}
		mixed := append(bytes.Clone(good[:8192]), frameOf(t, 20_003, 8, format)[8192:]...)
		if err := Verify(mixed, 7); !errors.Is(err, ErrContents) {
			t.Errorf("two frames mixed: %v, want ErrContents", err)
		}
	}
	for _, foreign := range [][]byte{nil, {1}, make([]byte, 5000), []byte("SDPX"), append([]byte("SDPX"), make([]byte, 5000)...),
		[]byte(exrMagic), append([]byte(exrMagic), make([]byte, 5000)...)} {
		if err := Verify(foreign, 1); !errors.Is(err, ErrNoStamp) {
			t.Errorf("a foreign file of %d bytes: %v, want ErrNoStamp", len(foreign), err)
		}
	}
}

// No byte of a frame can change unnoticed, in header, stamp, gaps or content.
func TestVerifySeesEveryByte(t *testing.T) {
	for _, format := range []Format{FormatRaw, FormatDPX, FormatEXR} {
		for _, size := range []int64{2600, 3001, 4095} {
			data := frameOf(t, size, 12, format)
			for i := range data {
				data[i] ^= 0x10
				if Verify(data, 12) == nil {
					t.Errorf("%s of %d bytes: byte %d changed unnoticed", format, size, i)
				}
				data[i] ^= 0x10
			}
		}
	}
}

func FuzzVerify(f *testing.F) {
	for _, format := range []Format{FormatRaw, FormatDPX, FormatEXR} {
		f.Add(frameOf(f, 3001, 12, format), 12)
	}
	f.Fuzz(func(t *testing.T, data []byte, number int) {
		if Verify(data, number) != nil {
			return
		}
		again := make([]byte, len(data))
		l, err := newLayout(formatOfData(data), int64(len(data)), number)
		s, ok := unmarshalStamp(data[l.stamp:])
		if err != nil || !ok {
			t.Fatalf("a frame without layout or stamp is right: %v", err)
		}
		fillFrame(again, l, s)
		if !bytes.Equal(again, data) {
			t.Error("two frames are right with one stamp")
		}
	})
}

func TestContentIsUniqueAndIncompressible(t *testing.T) {
	blocks := map[string]bool{}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for number := range 8 {
		data := frameOf(t, 64<<10, number, FormatRaw)
		for at := 0; at < len(data); at += 512 {
			block := string(data[at : at+512])
			if blocks[block] {
				t.Fatalf("frame %d repeats the block at %d", number, at)
			}
			blocks[block] = true
		}
		total += len(data)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() < total {
		t.Errorf("%d bytes compress to %d", total, packed.Len())
	}
}

func TestVerifyAndFillCostLittleMemory(t *testing.T) {
	data := frameOf(t, 1<<20, 1, FormatRaw)
	if allocations := testing.AllocsPerRun(10, func() {
		if err := Verify(data, 1); err != nil {
			t.Fatal(err)
		}
	}); allocations > 0 {
		t.Errorf("Verify allocates %v times", allocations)
	}
}

func BenchmarkVerify(b *testing.B) {
	data := frameOf(b, 12_812_288, 1, FormatDPX)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := Verify(data, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFillFrame(b *testing.B) {
	data := make([]byte, 12_812_288)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		fillFrame(data, layout{}, newStamp(1, 1, int64(len(data))))
	}
}
