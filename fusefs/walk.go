package fusefs

import (
	"path"
	"slices"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// maxWalkNames bounds the names of all directories that are remembered for
	// walks: some 100 bytes each.
	maxWalkNames = 1 << 17
	// walkConfirmed is how many names in a row have to be looked up in order.
	walkConfirmed = 3
	// maxWalkAhead is how many names of a directory are looked up ahead.
	maxWalkAhead = 64
	// maxWalkGap is how many names a reader may leave out that looks at some kinds
	// of files only.
	maxWalkGap = 4
)

// walks tells from the names that are looked up in a directory whether a reader
// goes through it, as ls -l, find -size and rsync do: in the order in which it was
// listed, or in that of the names. A server is then asked for several names at
// once and not for one after the other.
type walks struct {
	mu    sync.Mutex
	of    map[string]*walk
	names int // in all of them
}

// walk is a directory that was listed.
type walk struct {
	listed, sorted order
	complete       bool // sorted is up to date
}

// order is the state of a reader that goes by one order of the names.
type order struct {
	names []string
	at    map[string]int // nil: names are sorted
	last  int            // position of the name looked up last
	run   int            // names that were looked up in order until then
	ahead int            // position up to which names were asked for
}

// listed records names as a directory's reader gets them.
func (w *walks) listed(dir string, first bool, entries []fuse.DirEntry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.of[dir]
	if first {
		w.dropLocked(dir)
		d = &walk{listed: order{at: make(map[string]int)}}
		w.of[dir] = d
	}
	if d == nil {
		return
	}
	for _, entry := range entries {
		if _, twice := d.listed.at[entry.Name]; twice || entry.Name == "." || entry.Name == ".." {
			continue
		}
		d.listed.at[entry.Name] = len(d.listed.names)
		d.listed.names = append(d.listed.names, entry.Name)
		d.complete = false
		w.names++
	}
	for other := range w.of {
		if w.names <= maxWalkNames {
			break
		}
		if other != dir || len(w.of) == 1 {
			w.dropLocked(other)
		}
	}
}

func (w *walks) dropLocked(dir string) {
	if d := w.of[dir]; d != nil {
		w.names -= len(d.listed.names)
		delete(w.of, dir)
	}
}

// opened ends the walk of a reader that opens what it finds: what comes next is
// fetched ahead by other rules.
func (w *walks) opened(file string) {
	dir, _ := split(file)
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.of[dir]; d != nil {
		d.listed.run, d.sorted.run = 0, 0
	}
}

// lookedUp is told of every lookup and returns the files to look up ahead.
func (w *walks) lookedUp(file string) []string {
	dir, name := split(file)
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.of[dir]
	if d == nil {
		return nil
	}
	ahead := d.listed.step(name)
	if d.listed.run < walkConfirmed {
		if !d.complete {
			d.sorted, d.complete = order{names: slices.Sorted(slices.Values(d.listed.names))}, true
		}
		ahead = d.sorted.step(name)
	}
	files := make([]string, len(ahead))
	for i, name := range ahead {
		files[i] = path.Join(dir, name)
	}
	return files
}

// step moves a reader to a name and returns those to be asked for: twice as many
// as it has gone through.
func (o *order) step(name string) []string {
	position, ok := o.at[name]
	if o.at == nil {
		position, ok = slices.BinarySearch(o.names, name)
	}
	if !ok {
		return nil
	}
	if gap := position - o.last; o.run > 0 && 0 < gap && gap <= maxWalkGap {
		o.run++
	} else if gap != 0 || o.run == 0 {
		o.run, o.ahead = 1, 0
	}
	o.last = position
	if o.run < walkConfirmed {
		return nil
	}
	from := max(position+1, o.ahead)
	to := min(position+1+min(2*o.run, maxWalkAhead), len(o.names))
	if from >= to {
		return nil
	}
	o.ahead = to
	return o.names[from:to]
}

func split(file string) (dir, name string) {
	dir, name = path.Split(file)
	return path.Clean("/" + dir)[1:], name
}
