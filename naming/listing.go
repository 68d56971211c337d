package naming

import (
	"math"
	"slices"
	"sort"
	"strings"
)

// Listing is the names of one directory, sorted and indexed. It is immutable
// and safe for concurrent use. Its size is about the names' own bytes plus ten
// for each name, and some tens for each sequence.
type Listing struct {
	text    string   // all names in byte order, one after the other
	offsets []uint32 // of each name in text, and of text's end

	groups []group    // by hash
	blocks []block    // of all groups
	order  []uint32   // names of all blocks, each block in natural order
	pads   []paddings // of all groups, one for each number
	texts  []uint16   // length of the text before each of those numbers
	hexed  bool       // some group has a hexadecimal number

	// The order in which the directory gave its names, if it is not that of the
	// names themselves: names by rank, and the ranks of names.
	given, ranks []uint32
}

// group is the names of one shape, at least two of them.
type group struct {
	hash        uint64
	firstBlock  uint32
	blocks      uint32
	firstPad    uint32
	numbers     uint16
	hexadecimal int16 // index of the hexadecimal number or -1
	tag         bool  // that number is a random tag
}

// block is a group's names of one padding: order[start:end].
type block struct{ start, end uint32 }

// NewListing indexes names, in any order; duplicates are dropped. It keeps no
// reference to names. Names beyond 4 GiB of text in one directory are left
// out, which no real directory reaches.
func NewListing(names []string) *Listing {
	places := make([]uint32, len(names)) // in names, in the order of names
	total := 0
	for i, name := range names {
		places[i] = uint32(i)
		total += len(name)
	}
	up, down := slices.IsSorted(names), isSortedDown(names)
	if !up {
		slices.SortFunc(places, func(a, b uint32) int { return strings.Compare(names[a], names[b]) })
	}
	l := &Listing{offsets: make([]uint32, 0, len(names)+1)}
	var text strings.Builder
	text.Grow(min(total, math.MaxUint32))
	kept := places[:0]
	for _, place := range places {
		name := names[place]
		if len(kept) > 0 && name == names[kept[len(kept)-1]] || text.Len()+len(name) > math.MaxUint32 {
			continue
		}
		l.offsets = append(l.offsets, uint32(text.Len()))
		text.WriteString(name)
		kept = append(kept, place)
	}
	l.offsets = append(l.offsets, uint32(text.Len()))
	l.text = text.String()
	if !up && !down {
		l.rank(kept, len(names))
	}
	newGrouping(l).run()
	return l
}

func isSortedDown(names []string) bool {
	return slices.IsSortedFunc(names, func(a, b string) int { return strings.Compare(b, a) })
}

// rank remembers the order in which the names were given: places[i] is where the
// i-th of the sorted ones stood among count.
func (l *Listing) rank(places []uint32, count int) {
	const none = math.MaxUint32
	at := make([]uint32, count)
	for i := range at {
		at[i] = none
	}
	for i, place := range places {
		at[place] = uint32(i)
	}
	l.given, l.ranks = make([]uint32, 0, len(places)), make([]uint32, len(places))
	for _, i := range at {
		if i != none {
			l.ranks[i] = uint32(len(l.given))
			l.given = append(l.given, i)
		}
	}
}

// Len returns the number of names.
func (l *Listing) Len() int { return len(l.offsets) - 1 }

// At returns the i-th name in byte order.
func (l *Listing) At(i int) string { return l.text[l.offsets[i]:l.offsets[i+1]] }

// Search returns the position of name in byte order, or where it would be, and
// whether it is there.
func (l *Listing) Search(name string) (int, bool) {
	return sort.Find(l.Len(), func(i int) int { return strings.Compare(name, l.At(i)) })
}

// Contains reports whether name is in the directory.
func (l *Listing) Contains(name string) bool {
	_, ok := l.Search(name)
	return ok
}

// SizeBytes returns the memory that the listing holds.
func (l *Listing) SizeBytes() int64 {
	const listing, group, block, pad, text = 160, 32, 8, 16, 2
	return listing + int64(len(l.text)) + 4*int64(cap(l.offsets)+cap(l.order)+cap(l.given)+cap(l.ranks)) +
		group*int64(cap(l.groups)) + block*int64(cap(l.blocks)) + pad*int64(cap(l.pads)) + text*int64(cap(l.texts))
}

// Neighbour returns the next name in byte order with the same extension as
// name, the way a reader that sorts a glob goes; direction is 1 or -1. It
// gives up after a bounded number of names of other kinds.
func (l *Listing) Neighbour(name string, direction int) (string, bool) {
	i, found := l.Search(name)
	if direction > 0 && !found {
		i--
	}
	return l.alike(name, i, direction, l.At)
}

// Listed returns the next name with the same extension in the order in which the
// directory gave its names, the way of a reader that does not sort: find, tar,
// os.listdir. There is none where that is the order of the names, or name is not
// there.
func (l *Listing) Listed(name string, direction int) (string, bool) {
	if l.given == nil {
		return "", false
	}
	i, found := l.Search(name)
	if !found {
		return "", false
	}
	return l.alike(name, int(l.ranks[i]), direction, func(rank int) string { return l.At(int(l.given[rank])) })
}

// alike returns the nearest name from place i on that has name's extension.
func (l *Listing) alike(name string, i, direction int, at func(int) string) (string, bool) {
	const patience = 256 // a companion or two for each name, and then some
	extension := Extension(name)
	for range patience {
		i += direction
		if i < 0 || i >= l.Len() {
			return "", false
		}
		if other := at(i); Extension(other) == extension {
			return other, true
		}
	}
	return "", false
}
