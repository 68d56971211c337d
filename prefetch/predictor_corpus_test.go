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

// newTree builds a tree from file paths.
func newTree(files ...string) tree {
	names := make(map[string]map[string]bool)
	for _, file := range files {
		for at := file; at != ""; {
			p := splitPlace(at)
			if names[p.dir] == nil {
				names[p.dir] = make(map[string]bool)
			}
			names[p.dir][p.name] = true
			at = p.dir
		}
	}
	t := make(tree)
	for dir, set := range names {
		var list []string
		for name := range set {
			list = append(list, name)
		}
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

func readCorpus(t testing.TB) []row {
	t.Helper()
	file, err := os.Open("testdata/corpus.tsv")
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

func (r row) passes(next []string) bool {
	return slices.Equal(next, r.expected)
}

func TestCorpus(t *testing.T) {
	certain, right := 0, 0
	for _, r := range readCorpus(t) {
		next := r.play()
		ok := r.passes(next)
		if r.certain() {
			certain++
			if ok {
				right++
			}
		}
		if !ok {
			t.Logf("%s certain=%v: got %q want %q (%s)", r.name(), r.certain(), next, r.expected, r.note)
		}
	}
	t.Logf("%d of %d", right, certain)
}
