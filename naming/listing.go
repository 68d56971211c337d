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
	sorted := names
	if !slices.IsSorted(names) {
		sorted = slices.Clone(names)
		slices.Sort(sorted)
	}
	l := &Listing{offsets: make([]uint32, 0, len(sorted)+1)}
	total := 0
	for _, name := range sorted {
		total += len(name)
	}
	var text strings.Builder
	text.Grow(min(total, math.MaxUint32))
	previous, any := "", false
	for _, name := range sorted {
		if any && name == previous || text.Len()+len(name) > math.MaxUint32 {
			continue
		}
		l.offsets = append(l.offsets, uint32(text.Len()))
		text.WriteString(name)
		previous, any = name, true
	}
	l.offsets = append(l.offsets, uint32(text.Len()))
	l.text = text.String()
	newGrouping(l).run()
	return l
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
	return listing + int64(len(l.text)) + 4*int64(cap(l.offsets)+cap(l.order)) +
		group*int64(cap(l.groups)) + block*int64(cap(l.blocks)) + pad*int64(cap(l.pads)) + text*int64(cap(l.texts))
}

// Neighbour returns the next name in byte order with the same extension as
// name, the way a reader that sorts a glob goes; direction is 1 or -1. It
// gives up after a bounded number of names of other kinds.
func (l *Listing) Neighbour(name string, direction int) (string, bool) {
	const patience = 256 // a companion or two for each name, and then some
	i, found := l.Search(name)
	if direction > 0 && !found {
		i--
	}
	extension := Extension(name)
	for range patience {
		i += direction
		if i < 0 || i >= l.Len() {
			return "", false
		}
		if other := l.At(i); Extension(other) == extension {
			return other, true
		}
	}
	return "", false
}
