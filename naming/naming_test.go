package naming

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRuns(t *testing.T) {
	cases := map[string]string{
		"shot_v002.0101.exr":                "version 002, number 0101",
		"file.1920x1080.0001.mp4":           "resolution or rate 1920, resolution or rate 1080, number 0001, part of the format's name 4",
		"tile_0001x0002.tif":                "number 0001, number 0002",
		"train-00003-of-00016.tfrecord":     "number 00003, total 00016",
		"half-of-7.txt":                     "number 7",
		"fort.q0999":                        "number 0999",
		"movie.h264":                        "part of the format's name 264",
		"backup.7z.009":                     "number 7, number 009",
		"scene_1080p24_00001.dpx":           "resolution or rate 1080, number 24, number 00001",
		"take_03_0001.wav":                  "version 03, number 0001",
		"prev2_1.png":                       "number 2, number 1",
		"shot.-0005.exr":                    "number -0005",
		"test-0001.png":                     "number 0001",
		"d41d8cd98f00b204e9800998ecf8427e":  identifiers("41 8 98 00 204 9800998 8427"),
		"3f2504e0-4f89-11d3-9a0c-0305e82c3": "number 3, number 2504, number 0, number 4, number 89, number 11, number 3, number 9, number 0, number 0305, number 82, number 3",
		"00000000000000368769.log":          "number 00000000000000368769",
		"\xff7\x00":                         "number 7",
		"":                                  "",
	}
	for name, want := range cases {
		var got []string
		for _, run := range Runs(name) {
			sign := ""
			if run.Negative {
				sign = "-"
			}
			got = append(got, run.Kind.String()+" "+sign+name[run.Start:run.End])
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: got %q, want %q", name, strings.Join(got, ", "), want)
		}
	}
}

func identifiers(digits string) string {
	parts := strings.Fields(digits)
	for i, part := range parts {
		parts[i] = Identifier.String() + " " + part
	}
	return strings.Join(parts, ", ")
}

func TestSuffixAndAdvance(t *testing.T) {
	cases := []struct {
		name  string
		delta int64
		want  []string
	}{
		{"shot.0999.exr", 1, []string{"shot.1000.exr"}},
		{"f9.jpg", 1, []string{"f10.jpg"}},
		{"x9999", 1, []string{"x10000"}},
		{"f10.jpg", -1, []string{"f09.jpg", "f9.jpg"}},
		{"f.0000.jpg", -1, nil},
		{"s.-0005.exr", 1, []string{"s.-0004.exr"}},
		{"s.-001.png", 1, []string{"s.000.png", "s.0000.png"}},
		{"shot.0101.cam1.exr", 1, []string{"shot.0102.cam1.exr"}},
		{"123456789012345678901234567890", 1, []string{"123456789012345678901234567891"}},
		{strings.Repeat("b", 251) + ".999", 1, nil},
	}
	for _, c := range cases {
		counter, ok := Suffix(c.name)
		if !ok {
			t.Errorf("%q: no number", c.name)
			continue
		}
		if got := Advance(c.name, counter, c.delta); !slices.Equal(got, c.want) {
			t.Errorf("%q by %d: got %q, want %q", c.name, c.delta, got, c.want)
		}
	}
	if counter, ok := Suffix("Asset_v001.exr"); ok {
		t.Errorf("a version counts: %v", counter)
	}
}

func TestHexSuffix(t *testing.T) {
	cases := map[string]string{
		"frame_00ff.dpx":  "frame_0100.dpx",
		"frame_0009.dpx":  "frame_000a.dpx",
		"FRAME_00FE.DPX":  "FRAME_00FF.DPX",
		"frame0009.dpx":   "frame000a.dpx",
		"slice_00a1.jp2":  "slice_00a2.jp2",
		"00000001000000D": "00000001000000E",
	}
	for name, want := range cases {
		counter, ok := HexSuffix(name)
		if !ok {
			t.Errorf("%q: none", name)
			continue
		}
		if got := Advance(name, counter, 1); len(got) == 0 || got[0] != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"cafe.jpg", "d41d8cd98f00b204e9800998ecf8427e", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "00Ff.x"} {
		if counter, ok := HexSuffix(name); ok {
			t.Errorf("%q counts at %d to %d", name, counter.Start, counter.End)
		}
	}
}

func TestListingIsASet(t *testing.T) {
	names := []string{"b", "a.2", "a.1", "b", "", "a.1"}
	l := NewListing(names)
	if l.Len() != 4 || names[0] != "b" {
		t.Fatalf("%d names, input %q", l.Len(), names)
	}
	for _, name := range names {
		if !l.Contains(name) {
			t.Errorf("%q is missing", name)
		}
	}
	if l.Contains("a") || l.Contains("c") {
		t.Error("holds names that it was not given")
	}
	if empty := NewListing(nil); empty.Len() != 0 || empty.Contains("") {
		t.Error("the empty listing is not empty")
	}
}

func TestPositionOfMissingName(t *testing.T) {
	l := NewListing([]string{"a.0001", "a.0002", "a.0005"})
	sequence, ok := l.Sequence("a.0003")
	if !ok {
		t.Fatal("a name younger than the listing has no sequence")
	}
	if position, exact := sequence.Position("a.0003"); exact || position != 2 {
		t.Errorf("position %d, exact %v", position, exact)
	}
}

func TestAlong(t *testing.T) {
	var names []string
	for frame := 1; frame <= 3; frame++ {
		for tile := range 4 {
			if frame != 2 || tile != 1 {
				names = append(names, fmt.Sprintf("f%02d_t%d.exr", frame, tile))
			}
		}
	}
	sequence, _ := NewListing(names).Sequence("f01_t1.exr")
	for _, c := range []struct {
		number, direction int
		want              string
	}{{0, 1, "f03_t1.exr"}, {1, 1, "f01_t2.exr"}, {1, -1, "f01_t0.exr"}, {0, -1, ""}} {
		if got, _ := sequence.Along("f01_t1.exr", c.number, c.direction); got != c.want {
			t.Errorf("along %d by %d: got %q, want %q", c.number, c.direction, got, c.want)
		}
	}
}

func TestPatterns(t *testing.T) {
	cases := []struct {
		names          []string
		printf, hashes string
	}{
		{[]string{"s.0999.exr", "s.1000.exr"}, "s.%04d.exr", "s.####.exr"},
		{[]string{"f9.jpg", "f10.jpg"}, "f%d.jpg", "f#.jpg"},
		{[]string{"100%_1.tif", "100%_2.tif"}, "100%%_%d.tif", "100%_#.tif"},
		{[]string{"x_0009.dpx", "x_000a.dpx"}, "x_%04x.dpx", "x_####.dpx"},
		{[]string{"X_000B.DPX", "X_000C.DPX", "X_0009.DPX", "X_000A.DPX"}, "X_%04X.DPX", "X_####.DPX"},
		{[]string{"n.-002.tif", "n.-001.tif", "n.000.tif"}, "n.%03d.tif", "n.###.tif"},
		{[]string{"n -002.tif", "n -001.tif", "n 0000.tif"}, "n %04d.tif", "n ####.tif"},
	}
	for _, c := range cases {
		sequence, ok := NewListing(c.names).Sequence(c.names[0])
		if !ok {
			t.Errorf("%q: no sequence", c.names)
			continue
		}
		pattern := sequence.Pattern(c.names[0], len(sequence.Numbers(c.names[0]))-1)
		if pattern.Printf() != c.printf || pattern.Hashes() != c.hashes {
			t.Errorf("%q: got %s and %s, want %s and %s", c.names, pattern.Printf(), pattern.Hashes(), c.printf, c.hashes)
		}
	}
}

// TestBytesPerName bounds the memory of an index by what a name may cost.
func TestBytesPerName(t *testing.T) {
	const limit = 120
	for _, kind := range []string{"padded", "unpadded", "hex", "hashes", "pairs"} {
		l := NewListing(benchmarkNames(kind, 30_000))
		if each := l.SizeBytes() / int64(l.Len()); each > limit {
			t.Errorf("%s: %d bytes a name", kind, each)
		}
	}
}
