package prefetch

import (
	"weak"

	"reelahead/naming"
)

// way is an order in which the names of a directory can be walked.
type way uint8

const (
	natural    way = iota // by number: 9, 10, 100
	byteOrder             // as strings sort: 1, 10, 100, 11
	along                 // one number of several first: tile 0, 1, 2 of frame 1, then frame 2
	alphabetic            // by letters: xaz, xba
	asGiven               // as the directory gives its names: no order of theirs
	across                // the same name in one numbered folder after the other
)

// walk is an order and how far each open goes in it.
type walk struct {
	way    way
	number int   // along: which number runs fastest; across: how many folders up the number is
	step   int   // files an open, negative for backwards
	value  int64 // what the number itself moves by, where the step skips members; else 0
}

// reversed returns the walk in the other direction.
func (w walk) reversed() walk {
	w.step, w.value = -w.step, -w.value
	return w
}

func (w walk) direction() int {
	if w.step < 0 {
		return -1
	}
	return 1
}

// spot is a name's place in one listing.
type spot struct {
	listing  *naming.Listing
	name     string
	sequence naming.Sequence
	position int  // in sequence, or where the name would be
	exact    bool // the name itself is there
	member   bool // there is a sequence
}

func locate(l *naming.Listing, name string) spot {
	s := spot{listing: l, name: name}
	if s.sequence, s.member = l.Sequence(name); s.member {
		s.position, s.exact = s.sequence.Position(name)
	}
	return s
}

// mark is what a cursor keeps of its spot. It does not keep the listing alive:
// a cursor may outlive many.
type mark struct {
	listing  weak.Pointer[naming.Listing]
	sequence int // its ID, 0 if there is none
	position int
}

func (s spot) mark() mark {
	m := mark{listing: weak.Make(s.listing), position: s.position}
	if s.member {
		m.sequence = s.sequence.ID()
	}
	return m
}

// walker follows a walk through one listing from a spot on.
type walker struct {
	walk
	spot
	closes bool // the sequence may hold sets that do not lead into each other
	// chapter names the parts of recordings that a convention numbers apart.
	chapter func(name string, by int) string
}

// newWalker starts at a spot, whose name need not be in the listing.
func newWalker(at spot, w walk) *walker {
	k := &walker{walk: w, spot: at}
	if !k.member {
		return k
	}
	if !k.exact && w.step > 0 {
		k.position-- // a name between two members: the next member is one step on
	}
	k.closes = k.sequence.MayClose(k.name)
	if convention, ok := ConventionOf(k.name); ok {
		k.chapter = convention.chapter
	}
	return k
}

// next moves one step and returns the name there; false at the end.
func (k *walker) next() (string, bool) {
	name, ok := k.step1()
	if ok {
		k.name = name
	}
	return name, ok
}

func (k *walker) step1() (string, bool) {
	switch k.way {
	case byteOrder:
		return k.repeat(k.listing.Neighbour)
	case asGiven:
		return k.repeat(k.listing.Listed)
	case alphabetic:
		return k.repeat(k.listing.Alphabetic)
	case along:
		return k.repeat(k.alongOne)
	}
	if !k.member {
		return k.listing.Alphabetic(k.name, k.direction())
	}
	if k.value != 0 {
		if name, ok := k.byValue(); ok {
			return name, true
		}
		k.position, _ = k.sequence.Position(k.name)
	}
	if k.chapter != nil {
		return k.repeat(k.chapterOne)
	}
	at := k.position + k.walk.step
	if at < 0 || at >= k.sequence.Len() {
		return "", false
	}
	name := k.sequence.Name(at)
	if k.closes && !k.sequence.Carries(k.name, name) {
		return "", false
	}
	k.position = at
	return name, true
}

// repeat takes as many single steps as the walk's step has.
func (k *walker) repeat(one func(name string, direction int) (string, bool)) (string, bool) {
	name, ok := k.name, true
	for range k.walk.step * k.direction() {
		if name, ok = one(name, k.direction()); !ok {
			return "", false
		}
	}
	return name, true
}

// chapterOne moves to the next chapter of a recording, and after its last one
// to the first of the next recording.
func (k *walker) chapterOne(name string, direction int) (string, bool) {
	if next := k.chapter(name, direction); k.listing.Contains(next) {
		return next, true
	}
	first := name
	for previous := k.chapter(first, -1); previous != ""; previous = k.chapter(first, -1) {
		first = previous
	}
	sequence, ok := k.listing.Sequence(first)
	if !ok {
		return "", false
	}
	at, exact := sequence.Position(first)
	if exact || direction < 0 {
		at += direction
	}
	if at < 0 || at >= sequence.Len() {
		return "", false
	}
	next := sequence.Name(at)
	if k.chapter(next, -1) != "" {
		return "", false // the later chapters of all recordings follow the first ones
	}
	for direction < 0 {
		later := k.chapter(next, 1)
		if !k.listing.Contains(later) {
			break
		}
		next = later
	}
	return next, true
}

// alongOne moves along the fast number; at its end it goes back to the start
// of the line and moves the next slower number.
func (k *walker) alongOne(name string, direction int) (string, bool) {
	if !k.member {
		return "", false
	}
	if next, ok := k.sequence.Along(name, k.number, direction); ok {
		return next, true
	}
	start := name
	for range maxLine {
		before, ok := k.sequence.Along(start, k.number, -direction)
		if !ok {
			break
		}
		start = before
	}
	for n := len(k.sequence.Numbers(name)) - 1; n >= 0; n-- {
		if n == k.number {
			continue
		}
		if next, ok := k.sequence.Along(start, n, direction); ok {
			return next, true
		}
	}
	return "", false
}

// maxLine bounds the search for a line's start; longer lines have no carry.
const maxLine = 256

// byValue moves the number itself: frames 1, 3, 5 of which 7 is missing go on
// with 9, not with 8. Below zero it does not know how numbers are written.
func (k *walker) byValue() (string, bool) {
	const patience = 16
	name := k.name
	for range patience {
		counters := k.sequence.Numbers(name)
		if k.number >= len(counters) {
			return "", false
		}
		spellings := naming.Advance(name, counters[k.number], k.value)
		if len(spellings) == 0 {
			return "", false
		}
		for _, spelling := range spellings {
			if k.listing.Contains(spelling) {
				return spelling, true
			}
		}
		name = spellings[0]
	}
	return "", false
}

// move is how one open relates to the one before it.
type move struct {
	related bool // the names differ in numbers only, or are neighbours
	walk    walk // the walk that one such move suggests
	delta   int  // distance in natural order, 0 if not related by numbers
}

// unit reports whether the move goes to a direct neighbour.
func (m move) unit() bool { return m.walk.step == 1 || m.walk.step == -1 }

func (m move) near() bool { return m.delta >= -farAway && m.delta <= farAway }

// farAway is the distance from which two opens in one sequence are two places
// rather than one step: the widest stride of loader workers seen in practice.
const farAway = 16

// measure relates a name, whose place is marked, to a spot in the same listing.
// Only a move that is near, or thorough, is also looked at in other orders than
// by number.
func measure(from string, marked mark, to spot, thorough bool) move {
	m := move{}
	if k := newWalker(to, walk{way: natural, step: 1}); k.chapter != nil {
		for _, direction := range [...]int{1, -1} {
			if name, ok := k.chapterOne(to.name, -direction); ok && name == from {
				return move{true, walk{way: natural, step: direction}, direction}
			}
		}
	}
	if to.member && marked.sequence == to.sequence.ID() {
		m.delta = to.position - marked.position
		m.related = m.delta != 0
		m.walk = walk{way: natural, step: m.delta}
		if m.unit() || !m.near() && !thorough {
			return m
		}
	}
	for _, direction := range [...]int{1, -1} {
		if name, ok := to.listing.Neighbour(to.name, -direction); ok && name == from {
			return move{true, walk{way: byteOrder, step: direction}, m.delta}
		}
	}
	if m.delta != 0 {
		m.refine(from, to)
	}
	if (!m.unit() || m.delta == 0) && to.listing.Len() >= fewestGiven {
		for _, direction := range [...]int{1, -1} {
			if name, ok := to.listing.Listed(to.name, -direction); ok && name == from {
				return move{true, walk{way: asGiven, step: direction}, m.delta}
			}
		}
	}
	return m
}

// fewestGiven is how many names a directory must have for two neighbours in its own
// order to tell anything: among few every other name is a neighbour by chance.
const fewestGiven = 16

// refine finds out by which of several numbers, or by how much of one, a move by
// m.delta names of a sequence goes.
func (m *move) refine(from string, to spot) {
	differing := to.sequence.Differing(from, to.name)
	if len(differing) != 1 {
		return
	}
	number, last := differing[0], len(to.sequence.Numbers(to.name))-1
	for _, direction := range [...]int{1, -1} {
		if last == 0 {
			break // the only number: along it is the natural order
		}
		if name, ok := to.sequence.Along(from, number, direction); ok && name == to.name {
			m.walk = walk{way: along, number: number, step: direction}
			return
		}
	}
	if _, by, ok := naming.Between(from, to.name); ok && by == int64(m.delta) {
		m.walk.number, m.walk.value = number, by
	}
}

// guess relates two names by arithmetic.
func guess(from, to string) (naming.Counter, move) {
	counter, by, ok := naming.Between(from, to)
	if !ok || by > 1<<30 || by < -1<<30 {
		return counter, move{}
	}
	return counter, move{true, walk{way: natural, step: int(by)}, int(by)}
}
