package prefetch

import (
	"slices"
	"strings"
	"testing"

	"reelahead/naming"
)

// simple is a predictor of few lines, as they are found in other programs: it
// sees the name, and whether a name exists, and says which file comes next, or
// "".
type simple struct {
	name string
	next func(name string, l *naming.Listing) string
}

func existing(l *naming.Listing, names []string) string {
	for _, name := range names {
		if l.Contains(name) {
			return name
		}
	}
	return ""
}

// digitRuns returns the runs of decimal digits of a name, whatever they are.
func digitRuns(name string) []naming.Counter {
	var runs []naming.Counter
	for i := 0; i < len(name); i++ {
		start := i
		for i < len(name) && name[i] >= '0' && name[i] <= '9' {
			i++
		}
		if i > start {
			runs = append(runs, naming.Counter{Run: naming.Run{Start: start, End: i}, Base: 10})
		}
	}
	return runs
}

var simplePredictors = []simple{
	{"numeric suffix, decimal then hexadecimal (ONTAP)", func(name string, l *naming.Listing) string {
		stem := len(name)
		if dot := strings.LastIndexByte(name, '.'); dot > 0 {
			stem = dot
		}
		for _, base := range []struct {
			digits string
			of     int
		}{{"0123456789", 10}, {"0123456789abcdef", 16}, {"0123456789ABCDEF", 16}} {
			start := len(strings.TrimRight(name[:stem], base.digits))
			if start == stem {
				continue
			}
			counter := naming.Counter{Run: naming.Run{Start: start, End: stem}, Base: base.of}
			if next := existing(l, naming.Advance(name, counter, 1)); next != "" {
				return next
			}
		}
		return ""
	}},
	{"first run of three or more digits (Samba vfs_preopen)", func(name string, l *naming.Listing) string {
		for _, run := range digitRuns(name) {
			if run.End-run.Start >= 3 {
				return existing(l, naming.Advance(name, run, 1))
			}
		}
		return ""
	}},
	{"last run of digits", func(name string, l *naming.Listing) string {
		if runs := digitRuns(name); len(runs) > 0 {
			return existing(l, naming.Advance(name, runs[len(runs)-1], 1))
		}
		return ""
	}},
	{"any run from the right whose +1 exists", func(name string, l *naming.Listing) string {
		for _, run := range slices.Backward(digitRuns(name)) {
			if next := existing(l, naming.Advance(name, run, 1)); next != "" {
				return next
			}
		}
		return ""
	}},
	{"next of the same extension in natural order", func(name string, l *naming.Listing) string {
		next := ""
		for i := range l.Len() {
			other := l.At(i)
			if naming.Extension(other) == naming.Extension(name) && naturalLess(name, other) && (next == "" || naturalLess(other, next)) {
				next = other
			}
		}
		return next
	}},
}

// naturalLess compares names with runs of digits as numbers.
func naturalLess(a, b string) bool {
	for a != "" && b != "" {
		x, y := len(a)-len(strings.TrimLeft(a, "0123456789")), len(b)-len(strings.TrimLeft(b, "0123456789"))
		if x > 0 && y > 0 {
			m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if len(m) != len(n) || m != n {
				return len(m) < len(n) || len(m) == len(n) && m < n
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}

// TestSimplePredictors scores the simple predictors and this one alike: on the
// certain rows without history, by the first successor in the same directory. A
// row for which nothing should be fetched is right if nothing is. Each must be
// worse.
func TestSimplePredictors(t *testing.T) {
	for _, corpus := range []string{"corpus", "variations"} {
		var rows []row
		for _, r := range readCorpus(t, "testdata/"+corpus+".tsv") {
			if r.certain() && len(r.opens) == 1 && len(r.hints) == 0 {
				rows = append(rows, r)
			}
		}
		ours := simple{name: "reelahead"}
		right, wrong := grade(rows, func(r row) string {
			if next := r.play(); len(next) > 0 {
				return next[0]
			}
			return ""
		})
		t.Logf("%s, %d rows: right, wrong prefetches", corpus, len(rows))
		t.Logf("%-55s %3.0f %% %3d", ours.name, 100*float64(right)/float64(len(rows)), wrong)
		for _, s := range simplePredictors {
			r, w := grade(rows, func(r row) string {
				at := splitPlace(r.opens[0].file)
				next := s.next(at.name, newTree(r.files...)[at.dir])
				if next == "" {
					return ""
				}
				return place{at.dir, next}.path()
			})
			t.Logf("%-55s %3.0f %% %3d", s.name, 100*float64(r)/float64(len(rows)), w)
			if r >= right || w <= wrong {
				t.Errorf("%s is no worse: %d right, %d wrong; ours %d, %d", s.name, r, w, right, wrong)
			}
		}
	}
}

// grade counts the rows of which predict tells the first successor, and those
// of which it tells another file.
func grade(rows []row, predict func(row) string) (right, wrong int) {
	for _, r := range rows {
		want := ""
		if len(r.expected) > 0 {
			want = r.expected[0]
		}
		switch got := predict(r); got {
		case want:
			right++
		case "":
		default:
			wrong++
		}
	}
	return right, wrong
}
