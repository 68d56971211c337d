package naming

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// grouping builds the groups of a listing: first every name by its decimal
// shape, then those that prove to count in hexadecimal by that one.
type grouping struct {
	l      *Listing
	buffer []Run
	spans  []Run
}

// member is a name and the hash of its shape.
type member struct {
	hash uint64
	name uint32
	span uint32 // index of the hexadecimal span among the name's, for hexadecimal shapes
}

func newGrouping(l *Listing) *grouping {
	return &grouping{l: l, buffer: make([]Run, 0, 16), spans: make([]Run, 0, 16)}
}

func (g *grouping) run() {
	taken := g.hexadecimal()
	members := make([]member, 0, g.l.Len())
	for i := range g.l.Len() {
		if taken != nil && taken[i] {
			continue
		}
		name := g.l.At(i)
		s := decimalShape(g.buffer, name)
		g.buffer = s.numbers
		if len(s.numbers) > 0 {
			members = append(members, member{hash: s.hash(name), name: uint32(i)})
		}
	}
	g.each(members, func(same []member) { g.add(same, asDecimal) })
	l := g.l
	slices.SortFunc(l.groups, func(a, b group) int { return cmp.Compare(a.hash, b.hash) })
	l.groups, l.blocks = slices.Clip(l.groups), slices.Clip(l.blocks)
	l.order, l.pads = slices.Clip(l.order), slices.Clip(l.pads)
	l.texts = slices.Clip(l.texts)
}

// each calls f for the members of every hash that has at least two, in name
// order.
func (g *grouping) each(members []member, f func([]member)) {
	slices.SortFunc(members, func(a, b member) int {
		if order := cmp.Compare(a.hash, b.hash); order != 0 {
			return order
		}
		return cmp.Compare(a.name, b.name)
	})
	for start := 0; start < len(members); {
		end := start + 1
		for end < len(members) && members[end].hash == members[start].hash {
			end++
		}
		if end-start > 1 {
			f(members[start:end])
		}
		start = end
	}
}

// hexadecimal adds the groups that count in hexadecimal and returns which
// names they took, nil if none. Only shapes in which some name mixes letters
// and digits in the span are looked at.
func (g *grouping) hexadecimal() []bool {
	mixed := make(map[uint64]bool)
	for i := range g.l.Len() {
		name := g.l.At(i)
		g.spans = appendHexSpans(g.spans[:0], name)
		for _, span := range g.spans {
			if isMixed(name[span.Start:span.End]) {
				mixed[g.hexHash(name, span)] = true
			}
		}
	}
	if len(mixed) == 0 {
		return nil
	}
	var members []member
	for i := range g.l.Len() {
		name := g.l.At(i)
		g.spans = appendHexSpans(g.spans[:0], name)
		for k, span := range g.spans {
			if hash := g.hexHash(name, span); mixed[hash] {
				members = append(members, member{hash, uint32(i), uint32(k)})
			}
		}
	}
	taken := make([]bool, g.l.Len())
	g.each(members, func(same []member) {
		same = slices.DeleteFunc(same, func(m member) bool { return taken[m.name] })
		if g.add(same, asHexadecimal) || g.wanders(same) {
			for _, m := range same {
				taken[m.name] = true
			}
		}
	})
	return taken
}

// wanders reports whether the letters of the members' spans stand in other
// places from name to name, as they do in random tags and hashes. If the other
// numbers alone order the members, it adds them as such a group; else they
// have no order at all.
func (g *grouping) wanders(same []member) bool {
	const fewest, share = 3, 3 // kinds of spelling, and one kind in so many names
	spellings := make(map[uint64]bool)
	for _, m := range same {
		s := g.shapeOf(m, asDecimal)
		spellings[s.hash(g.l.At(int(m.name)))] = true
	}
	if len(spellings) < fewest || len(spellings)*share < len(same) {
		return false
	}
	g.add(same, asTagged)
	return true
}

func (g *grouping) hexHash(name string, span Run) uint64 {
	s := hexShape(g.buffer, name, span)
	g.buffer = s.numbers
	return s.hash(name)
}

func isMixed(digits string) bool {
	letters := strings.ContainsAny(digits, "abcdefABCDEF")
	return letters && strings.ContainsAny(digits, "0123456789")
}

// reading is how the names of one group are taken apart.
type reading uint8

const (
	asDecimal reading = iota
	asHexadecimal
	asTagged
)

// shapeOf returns the shape of m.
func (g *grouping) shapeOf(m member, as reading) shape {
	name := g.l.At(int(m.name))
	var s shape
	if as != asDecimal {
		g.spans = appendHexSpans(g.spans[:0], name)
		s = hexShape(g.buffer, name, g.spans[m.span])
		s.tag = as == asTagged
	} else {
		s = decimalShape(g.buffer, name)
	}
	g.buffer = s.numbers
	return s
}

// add sorts the members of one hash into a group. A hexadecimal group is added
// only where two neighbours prove it, a tagged one only where the numbers are
// all different.
func (g *grouping) add(same []member, as reading) bool {
	l := g.l
	if len(same) < 2 {
		return false
	}
	first := g.shapeOf(same[0], as)
	first.numbers = slices.Clone(first.numbers)
	firstName := l.At(int(same[0].name))
	pads := make([]paddings, len(first.numbers))
	for _, m := range same {
		s := g.shapeOf(m, as)
		if !s.sameText(l.At(int(m.name)), first, firstName) {
			return false // two shapes of one hash: leave them without a sequence
		}
		for i, run := range s.numbers {
			pads[i].addSign(run)
		}
	}
	for _, m := range same {
		for i, run := range g.shapeOf(m, as).numbers {
			pads[i].addWidth(l.At(int(m.name)), run)
		}
	}

	keys := g.sortedKeys(same, pads, as)
	switch {
	case as == asHexadecimal && !g.proven(keys, first.hex, len(pads)):
		return false
	case as == asTagged && !distinct(keys):
		return false
	}
	added := group{
		hash: first.hash(firstName), numbers: uint16(len(pads)), hexadecimal: int16(first.hex),
		firstBlock: uint32(len(l.blocks)), firstPad: uint32(len(l.pads)), tag: as == asTagged,
	}
	l.hexed = l.hexed || as != asDecimal
	l.pads = append(l.pads, pads...)
	at := 0
	for _, run := range first.numbers {
		l.texts = append(l.texts, uint16(textEnd(run)-at))
		at = run.End
	}
	for i, k := range keys {
		if i == 0 || !bytes.Equal(k.key[:len(pads)], keys[i-1].key[:len(pads)]) {
			l.blocks = append(l.blocks, block{start: uint32(len(l.order))})
			added.blocks++
		}
		l.order = append(l.order, k.name)
		l.blocks[len(l.blocks)-1].end = uint32(len(l.order))
	}
	l.groups = append(l.groups, added)
	return true
}

type keyed struct {
	key  []byte
	name uint32
}

// sortedKeys returns the members in key order. The keys share one allocation.
func (g *grouping) sortedKeys(same []member, pads []paddings, as reading) []keyed {
	ends := make([]int, len(same))
	text := make([]byte, 0, 16*len(same))
	for i, m := range same {
		text = g.shapeOf(m, as).appendKey(text, g.l.At(int(m.name)), pads)
		ends[i] = len(text)
	}
	keys := make([]keyed, len(same))
	start := 0
	for i, m := range same {
		keys[i] = keyed{text[start:ends[i]:ends[i]], m.name}
		start = ends[i]
	}
	byKey := func(a, b keyed) int {
		if order := bytes.Compare(a.key, b.key); order != 0 {
			return order
		}
		return cmp.Compare(a.name, b.name)
	}
	if !slices.IsSortedFunc(keys, byKey) {
		slices.SortFunc(keys, byKey)
	}
	return keys
}

func distinct(keys []keyed) bool {
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(keys[i].key, keys[i-1].key) {
			return false
		}
	}
	return true
}

// proven reports whether two neighbours differ by one in the hexadecimal
// number in a way that decimal counting cannot: across a letter.
func (g *grouping) proven(keys []keyed, hex, numbers int) bool {
	for i := 1; i < len(keys); i++ {
		a, b := keys[i-1].key, keys[i].key
		aStart, aEnd := splitKey(a, numbers, hex)
		bStart, bEnd := splitKey(b, numbers, hex)
		if bytes.Equal(a[:aStart], b[:bStart]) && bytes.Equal(a[aEnd:], b[bEnd:]) &&
			isHexStep(a[aStart+3:aEnd], b[bStart+3:bEnd], g.spanLen(keys[i].name)) {
			return true
		}
	}
	return false
}

// spanLen is the length of the longest hexadecimal span of a name.
func (g *grouping) spanLen(name uint32) int {
	longest := 0
	for _, span := range appendHexSpans(g.spans[:0], g.l.At(int(name))) {
		longest = max(longest, span.End-span.Start)
	}
	return longest
}

// isHexStep reports whether b follows a in hexadecimal and shows it: 9 to a, or
// f to 0, or, in a number of four digits or more, one letter to the next. Words
// such as cafe and caff are no proof: a decimal digit must be there too.
func isHexStep(a, b []byte, width int) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	last, next := a[len(a)-1], b[len(b)-1]
	switch {
	case last|0x20 == 'f' && next == '0':
		return bytes.Equal(increment(a), bytes.ToLower(b))
	case len(a) != len(b) || !bytes.Equal(a[:len(a)-1], b[:len(b)-1]):
		return false
	case last == '9' && next|0x20 == 'a':
		return true
	}
	return width >= 4 && isLetter(last) && next == last+1 && (width > len(a) || isMixed(string(a)))
}

// increment returns the hexadecimal successor of digits in lower case.
func increment(digits []byte) []byte {
	out := bytes.ToLower(digits)
	for i := len(out) - 1; i >= 0; i-- {
		switch out[i] {
		case 'f':
			out[i] = '0'
			continue
		case '9':
			out[i] = 'a'
		default:
			out[i]++
		}
		return out
	}
	return append([]byte{'1'}, out...)
}
