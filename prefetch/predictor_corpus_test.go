package prefetch

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"reelahead/naming"
)

// tree is a directory tree of known names, every listing complete.
type tree map[string]*naming.Listing

func (t tree) Listing(dir string) *naming.Listing { return t[dir] }

// newTree builds a tree from file paths. Its directories give their names in the
// order in which they come first.
func newTree(files ...string) tree {
	names, seen := make(map[string][]string), make(map[string]bool)
	for _, file := range files {
		for at := file; at != "" && !seen[at]; {
			seen[at] = true
			p := splitPlace(at)
			names[p.dir] = append(names[p.dir], p.name)
			at = p.dir
		}
	}
	t := make(tree)
	for dir, list := range names {
		t[dir] = naming.NewListing(list)
	}
	return t
}

// row is one line of testdata/corpus.tsv.
type row struct {
	line               int
	family, rule, note string
	files              []string
	opens              []event // history, then the current one
	hints              []string
	expected           []string
}

type event struct {
	reader Reader
	file   string
}

func (r row) name() string  { return fmt.Sprintf("%d-%s", r.line, r.family) }
func (r row) certain() bool { return !strings.Contains(r.note, "?") }

func readCorpus(t testing.TB, name string) []row {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	var rows []row
	for line := 1; scanner.Scan(); line++ {
		if line > 1 {
			rows = append(rows, parseRow(line, scanner.Text()))
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func parseRow(line int, text string) row {
	fields := strings.Split(text, "\t")
	for len(fields) < 8 {
		fields = append(fields, "")
	}
	r := row{line: line, family: fields[0], note: fields[4], rule: fields[6]}
	unescape := func(name string) string { return strings.ReplaceAll(name, "%20", " ") }
	current, into := "", ""
	for _, token := range strings.Fields(fields[2]) {
		token = unescape(token)
		if dir, ok := strings.CutPrefix(token, "DIR:"); ok {
			current, into = dir, dir
		} else if dir, ok := strings.CutPrefix(token, "NEXTDIR:"); ok {
			into = dir
		} else {
			r.files = append(r.files, path.Join(into, token))
		}
	}
	resolve := func(name string) string { return path.Join(current, unescape(name)) }
	for _, token := range strings.Fields(fields[7]) {
		if hint, ok := strings.CutPrefix(token, "H:"); ok {
			r.hints = append(r.hints, resolve(hint))
			continue
		}
		e := event{0, resolve(token)}
		if strings.HasPrefix(token, "R") && len(token) > 3 && token[2] == ':' {
			e = event{Reader(token[1] - '0'), resolve(token[3:])}
		}
		r.opens = append(r.opens, e)
	}
	reader := Reader(0)
	if strings.Contains(fields[4], "R1 forward") {
		reader = 1
	}
	r.opens = append(r.opens, event{reader, resolve(fields[1])})
	if fields[3] != "NONE" {
		for _, token := range strings.Fields(fields[3]) {
			r.expected = append(r.expected, resolve(token))
		}
	}
	return r
}

// play runs the row and returns what the current reader is expected to open.
func (r row) play() []string {
	dirs := newTree(r.files...)
	p := NewPredictor()
	if len(r.hints) > 0 {
		p.Hint(0, 1, r.hints)
	}
	const n = 3
	var next []string
	for _, e := range r.opens {
		next = p.ReaderNext(e.reader, p.Open(e.reader, e.file, dirs, n), dirs, n)
	}
	return next
}

// otherChoices are the uncertain rows on which this predictor chose otherwise
// than the row; docs/naming.md says why. No certain row may be among them.
var otherChoices = map[string]string{
	"12-mixed-padding-one-seq": "pic3 is not padded like pic02: another sequence",
	"87-canon-xf":              "the next clip follows the last part of this one",
	"118-sentinel2-bands":      "8A is no decimal number and nothing proves hexadecimal",
	"133-dash":                 "an init segment's number is followed like any other",
	"144-dataloader-block":     "blocks are followed after they were seen twice",
	"158-coco-sparse":          "a listing with gaps is a sequence, also a sparse one",
	"167-lsm-sst":              "a listing with gaps is a sequence, also a sparse one",
}

// TestCorpus plays every row with its history. Certain rows must be right in
// all names; uncertain ones either so or a documented choice, and never both.
func TestCorpus(t *testing.T) {
	certain, uncertain := 0, 0
	for _, r := range readCorpus(t, "testdata/corpus.tsv") {
		next := r.play()
		ok := slices.Equal(next, r.expected)
		_, chosen := otherChoices[r.name()]
		switch {
		case r.certain():
			certain++
			if !ok {
				t.Errorf("%s: got %q, want %q (%s)", r.name(), next, r.expected, r.note)
			}
		case ok && chosen:
			t.Errorf("%s is right now: remove it from otherChoices", r.name())
		case !ok && !chosen:
			t.Errorf("%s: got %q, want %q (%s), and otherChoices does not say why", r.name(), next, r.expected, r.note)
		case ok:
			uncertain++
		}
	}
	t.Logf("%d certain rows right, %d uncertain ones as the row suggests, %d otherwise", certain, uncertain, len(otherChoices))
}

// TestVariations plays further names and orders of the corpus's families, made
// up here: other words, paddings, steps, gaps and histories.
func TestVariations(t *testing.T) {
	rows := readCorpus(t, "testdata/variations.tsv")
	for _, r := range rows {
		if next := r.play(); !slices.Equal(next, r.expected) {
			t.Errorf("%s: after %q got %q, want %q (%s)", r.name(), r.opens[len(r.opens)-1].file, next, r.expected, r.note)
		}
	}
	t.Logf("%d rows", len(rows))
}

// TestWrongGuesses repeats what users of other tools reported, one case for
// each line of testdata/wrong_guesses.tsv that is about which file comes next.
func TestWrongGuesses(t *testing.T) {
	cases := []struct {
		report string
		files  []string
		opens  []string
		want   []string
	}{
		{"fileseq 20: a version, not a sequence", []string{"file_v2.exr", "file_v3.exr"}, []string{"file_v2.exr"}, nil},
		{"fileseq 53: text after the number", frames("img%04d_suffix.jpg", 1, 4, 1), []string{"img0001_suffix.jpg"}, frames("img%04d_suffix.jpg", 2, 4, 1)},
		{"fileseq 110: counter after the last underscore", frames("A001C009_220324BV_%06d.tga", 924360, 924363, 1), []string{"A001C009_220324BV_924360.tga"}, frames("A001C009_220324BV_%06d.tga", 924361, 924363, 1)},
		{"fileseq 117: a date and time", []string{"2023-01-14_12-32-30.mov"}, []string{"2023-01-14_12-32-30.mov"}, nil},
		{"fileseq 97: two paddings", []string{"photo.004.jpg", "photo.08.jpg", "photo.009.jpg", "photo.015.jpg"}, []string{"photo.08.jpg"}, nil},
		{"fileseq 23: digit of mp4", []string{"take.mp3", "take.mp4", "take.mp5"}, []string{"take.mp4"}, nil},
		{"gofileseq 30: not a range", []string{"name_1809-00.tif"}, []string{"name_1809-00.tif"}, nil},
		{"pyseq 4: versions are not joined", []string{"010_comp_v02.0001.exr", "010_comp_v10.0001.exr", "010_comp_v10.0002.exr"}, []string{"010_comp_v02.0001.exr"}, nil},
		{"pyseq 60: 9 to 10, 99 to 100", frames("file.%d.jpg", 98, 101, 1), []string{"file.98.jpg"}, frames("file.%d.jpg", 99, 101, 1)},
		{"pyseq 79: 001, 100, 101", []string{"t.001.exr", "t.100.exr", "t.101.exr"}, []string{"t.001.exr"}, []string{"t.100.exr", "t.101.exr"}},
		{"pyseq 69: another separator is another sequence", []string{"SHOT.46998.exr", "SHOT.46999.exr", "SHOT_47000.exr", "SHOT_47001.exr"}, []string{"SHOT.46999.exr"}, nil},
		{"pyseq 99: 1001 to 1003", frames("s.%04d.exr", 1001, 1003, 1), []string{"s.1001.exr"}, frames("s.%04d.exr", 1002, 1003, 1)},
		{"clique 22: 990 to 1000", frames("s.%03d.exr", 998, 1001, 1), []string{"s.998.exr"}, frames("s.%03d.exr", 999, 1001, 1)},
		{"OpenImageIO 1894: negative to positive", []string{"s.-0002.exr", "s.-0001.exr", "s.0000.exr", "s.0001.exr"}, []string{"s.-0002.exr"}, []string{"s.-0001.exr", "s.0000.exr", "s.0001.exr"}},
		{"DJV 344: padding is kept", []string{"image_0999.exr", "image_1000.exr", "image_999.exr"}, []string{"image_0999.exr"}, []string{"image_1000.exr"}},
		{"DJV 513: number only", frames("%04d.exr", 1, 4, 1), []string{"0001.exr"}, frames("%04d.exr", 2, 4, 1)},
		{"DJV 353: scene12 is constant", frames("presentation_scene12.%04d.png", 1, 4, 1), []string{"presentation_scene12.0001.png"}, frames("presentation_scene12.%04d.png", 2, 4, 1)},
		{"tlRender 122: whole range", frames("test.%04d.png", 998, 1001, 1), []string{"test.0998.png"}, frames("test.%04d.png", 999, 1001, 1)},
		{"tlRender 115: two stills", []string{"beach.jpg", "render_final.exr"}, []string{"beach.jpg"}, nil},
		{"mrv2 273: 0990 to 1010", frames("a.%04d.exr", 998, 1001, 1), []string{"a.0998.exr"}, frames("a.%04d.exr", 999, 1001, 1)},
		{"mrv2 141: 01, 99, 100, 1000", []string{"a.01.exr", "a.99.exr", "a.100.exr", "a.1000.exr"}, []string{"a.01.exr"}, []string{"a.99.exr", "a.100.exr", "a.1000.exr"}},
		{"DrQueue 31: sign inside the width", []string{"m -002.png", "m -001.png", "m 0000.png", "m 0001.png"}, []string{"m -002.png"}, []string{"m -001.png", "m 0000.png", "m 0001.png"}},
		{"OpenPype 633: v001 excluded", []string{"shot_v001.exr", "shot_v002.exr"}, []string{"shot_v001.exr"}, nil},
		{"FFmpegify 1: same stem, other extension", append(frames("r%04d_.jpg", 1, 3, 1), "r0004_.txt"), []string{"r0001_.jpg"}, frames("r%04d_.jpg", 2, 3, 1)},
		{"OpenShot 221: title_01 alone", []string{"title_01.jpg", "title_bg.jpg", "title2_02.jpg"}, []string{"title_01.jpg"}, nil},
		{"TheAnimeScripter 376: a gap", []string{"001.png", "003.png"}, []string{"001.png"}, []string{"003.png"}},
		{"scrollcraft 260: width is a minimum", []string{"f_9999.jpg", "f_10000.jpg", "f_10001.jpg"}, []string{"f_9999.jpg"}, []string{"f_10000.jpg", "f_10001.jpg"}},
		{"scrimage 458: dump_2 before dump_10000", []string{"dump_1.png", "dump_2.png", "dump_10000.png"}, []string{"dump_1.png"}, []string{"dump_2.png", "dump_10000.png"}},
		{"VideoHelperSuite 131: 1, 2, 10", []string{"1.png", "2.png", "10.png"}, []string{"1.png"}, []string{"2.png", "10.png"}},
		{"VideoHelperSuite 131: the reader sorts strings", []string{"1.png", "2.png", "10.png", "11.png"}, []string{"1.png", "10.png"}, []string{"11.png", "2.png"}},
		{"flowframes 228: natural order", []string{"1.png", "2.png", "10.png"}, []string{"1.png", "2.png"}, []string{"10.png"}},
		{"dive 494: numbers in brackets", []string{"a (1).png", "a (2).png", "a (10).png"}, []string{"a (1).png"}, []string{"a (2).png", "a (10).png"}},
		{"pims 42: natural order", []string{"T8.tif", "T9.tif", "T10.tif"}, []string{"T8.tif"}, []string{"T9.tif", "T10.tif"}},
		{"opendcp 226: each name group by itself", []string{"a_1.tif", "a_2.tif", "b_1.tif", "b_2.tif"}, []string{"a_1.tif"}, []string{"a_2.tif"}},
		{"visclaw 37: digits in the extension", []string{"fort.q0999", "fort.q1000", "fort.t0999"}, []string{"fort.q0999"}, []string{"fort.q1000"}},
		{"Natron 403: any first frame", frames("s%d.exr", 422, 425, 1), []string{"s422.exr"}, frames("s%d.exr", 423, 425, 1)},
	}
	for _, c := range cases {
		t.Run(c.report, func(t *testing.T) {
			dirs := newTree(c.files...)
			p := NewPredictor()
			var next []string
			for _, file := range c.opens {
				next = p.Open(1, file, dirs, 3).Next
			}
			if !slices.Equal(next, c.want) {
				t.Errorf("after %q: got %q, want %q", c.opens, next, c.want)
			}
		})
	}
}
