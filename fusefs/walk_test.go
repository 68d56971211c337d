package fusefs

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func entries(names ...string) (list []fuse.DirEntry) {
	for _, name := range names {
		list = append(list, fuse.DirEntry{Name: name})
	}
	return list
}

func newWalks(dir string, names ...string) *walks {
	w := &walks{of: make(map[string]*walk)}
	w.listed(dir, true, entries(names...))
	return w
}

func TestWalk(t *testing.T) {
	listing := []string{".", "..", "d", "b", "h", "a", "c", "g", "e", "f"}
	tests := map[string]struct {
		lookups string
		want    []string // after the last lookup
	}{
		"two names are chance":           {"db", nil},
		"in the order of the listing":    {"dbh", []string{"show/a", "show/c", "show/g", "show/e", "show/f"}},
		"in the order of names":          {"abc", []string{"show/d", "show/e", "show/f", "show/g", "show/h"}},
		"some left out":                  {"bdf", []string{"show/g", "show/h"}},
		"the same name twice":            {"ddbbh", []string{"show/a", "show/c", "show/g", "show/e", "show/f"}},
		"once only":                      {"dbha", nil},
		"backwards":                      {"fegc", nil},
		"a name that is not there":       {"dbz", nil},
		"an open says that it is a read": {"db!h", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWalks("show", listing...)
			var got []string
			for _, c := range test.lookups {
				if c == '!' {
					w.opened("show/b")
					continue
				}
				got = w.lookedUp("show/" + string(c))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("looks ahead at %q, want %q", got, test.want)
			}
		})
	}
}

func TestWalkBounds(t *testing.T) {
	w := newWalks("", "kept")
	many := make([]string, 1000)
	for d := range 200 {
		for i := range many {
			many[i] = fmt.Sprintf("%d-%d", d, i)
		}
		w.listed(fmt.Sprint("dir", d), true, entries(many...))
		if w.names > maxWalkNames {
			t.Fatalf("%d names are remembered", w.names)
		}
	}
	for range 2 { // listed again: in place of what was
		w.listed("dir199", true, entries("x"))
	}
	total := 0
	for _, d := range w.of {
		total += len(d.listed.names)
	}
	if total != w.names {
		t.Errorf("%d names are counted, %d remembered", w.names, total)
	}
	for i := range maxWalkNames + 1 { // one directory beyond all bounds is not remembered
		w.listed("dir199", false, entries(fmt.Sprint(i)))
	}
	if w.names > maxWalkNames {
		t.Errorf("%d names are remembered", w.names)
	}
	w = newWalks("", many...)
	for i, name := range slices.Sorted(slices.Values(many)) {
		if got := w.lookedUp(name); len(got) > maxWalkAhead {
			t.Fatalf("name %d: %d names ahead at once", i, len(got))
		}
	}
}
