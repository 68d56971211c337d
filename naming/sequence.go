package naming

import (
	"bytes"
	"sort"
)

// Sequence is the names of one directory that differ in their numbers only and
// are padded alike, in natural order. Positions count from 0.
type Sequence struct {
	l     *Listing
	group *group
	block block
}

// Sequence returns the sequence that name belongs to, whether or not name is
// itself in the directory (a file may be younger than the listing). There is
// none where no other name is like it.
func (l *Listing) Sequence(name string) (Sequence, bool) {
	var runs, spans [16]Run
	if l.hexed {
		for _, span := range appendHexSpans(spans[:0], name) {
			if s, ok := l.sequenceOf(name, hexShape(runs[:0], name, span)); ok {
				return s, true
			}
		}
	}
	return l.sequenceOf(name, decimalShape(runs[:0], name))
}

func (l *Listing) sequenceOf(name string, s shape) (Sequence, bool) {
	if len(s.numbers) == 0 {
		return Sequence{}, false
	}
	hash := s.hash(name)
	i, found := sort.Find(len(l.groups), func(i int) int {
		switch h := l.groups[i].hash; {
		case hash < h:
			return -1
		case hash > h:
			return 1
		}
		return 0
	})
	if !found {
		return Sequence{}, false
	}
	g := &l.groups[i]
	if int(g.numbers) != len(s.numbers) || int(g.hexadecimal) != s.hex {
		return Sequence{}, false
	}
	s.tag = g.tag
	var keyBuffer, otherBuffer [128]byte
	pads := l.padsOf(g)
	key := s.appendKey(keyBuffer[:0], name, pads)[:len(s.numbers)]
	blocks := l.blocks[g.firstBlock : g.firstBlock+g.blocks]
	at, found := sort.Find(len(blocks), func(i int) int {
		candidate := Sequence{l, g, blocks[i]}
		return bytes.Compare(key, candidate.appendKey(otherBuffer[:0], candidate.Name(0))[:len(key)])
	})
	if !found {
		return Sequence{}, false
	}
	sequence := Sequence{l, g, blocks[at]}
	var other [16]Run
	first := sequence.Name(0)
	if !s.sameText(name, sequence.shape(other[:0], first), first) {
		return Sequence{}, false
	}
	return sequence, true
}

func (l *Listing) padsOf(g *group) []paddings {
	return l.pads[g.firstPad : g.firstPad+uint32(g.numbers)]
}

// Len returns the number of names, at least one.
func (s Sequence) Len() int { return int(s.block.end - s.block.start) }

// Name returns the name at position i.
func (s Sequence) Name(i int) string { return s.l.At(int(s.l.order[int(s.block.start)+i])) }

// ID tells the sequences of one listing apart. It is not 0.
func (s Sequence) ID() int { return int(s.block.start) + 1 }

// Position returns where name is, or where it would be, and whether it is
// there. The name must be of this sequence.
func (s Sequence) Position(name string) (int, bool) {
	var buffer, otherBuffer [128]byte
	key := s.appendKey(buffer[:0], name)
	return sort.Find(s.Len(), func(i int) int {
		other := s.Name(i)
		return compareNames(key, s.appendKey(otherBuffer[:0], other), name, other)
	})
}

// shape splits a name of the sequence. All its names have the same text, so
// the first name's serves as a template: no run is judged again.
func (s Sequence) shape(buffer []Run, name string) shape {
	shaped := shape{numbers: buffer[:0], hex: int(s.group.hexadecimal), tag: s.group.tag}
	at := 0
	for _, length := range s.l.texts[s.group.firstPad : s.group.firstPad+uint32(s.group.numbers)] {
		run := Run{Start: at + int(length)}
		if run.Start < len(name) && name[run.Start] == '-' {
			run.Start++
			run.Negative, run.Hyphen = signOf(name, run.Start)
		}
		run.End = run.Start
		hexadecimal := len(shaped.numbers) == shaped.hex
		for run.End < len(name) && (isDigit(name[run.End]) || hexadecimal && isHex(name[run.End])) {
			run.End++
		}
		if run.End == run.Start {
			break // not of this sequence
		}
		shaped.numbers = append(shaped.numbers, run)
		at = run.End
	}
	return shaped
}

func (s Sequence) appendKey(key []byte, name string) []byte {
	var buffer [16]Run
	shaped := s.shape(buffer[:0], name)
	if len(shaped.numbers) != int(s.group.numbers) {
		return appendForeignKey(key, int(s.group.numbers))
	}
	return shaped.appendKey(key, name, s.l.padsOf(s.group))
}

// appendForeignKey appends a well-formed key that sorts before all others, for
// names that are not of the sequence.
func appendForeignKey(key []byte, numbers int) []byte {
	key = append(key, make([]byte, numbers)...)
	for range numbers {
		key = append(key, 0, 0xff, 0xff)
	}
	return key
}

// Numbers returns the runs of name that count in this sequence, from the left.
// That of a hexadecimal number includes its letters; a random tag, which does
// not count, is among them as an Identifier.
func (s Sequence) Numbers(name string) []Counter {
	shaped := s.shape(nil, name)
	if len(shaped.numbers) != int(s.group.numbers) {
		return nil
	}
	counters := make([]Counter, len(shaped.numbers))
	pads := s.l.padsOf(s.group)
	for i, run := range shaped.numbers {
		counters[i] = Counter{pads[i].resolve(run), 10}
		if i == shaped.hex {
			counters[i].Base = 16
		}
		if shaped.isTag(i) {
			counters[i].Kind = Identifier
		}
	}
	return counters
}

// labelWords stand before a number that names one thing among several like it.
// Each has a sequence of its own, which does not go on in the next one's.
var labelWords = map[string]bool{
	"shot": true, "sh": true, "scene": true, "sc": true, "seq": true, "sq": true,
	"cut": true, "cam": true, "camera": true, "stream": true, "clip": true,
	"reel": true, "track": true, "layer": true,
}

// Carries reports whether next, a later name of the sequence, may follow name
// as by a carry. It may not in two cases: a total closes the set that name
// counts (00001-of-00002 is the last), or the carry would lead from one shot,
// camera or stream to another.
func (s Sequence) Carries(name, next string) bool {
	differing := s.Differing(name, next)
	if len(differing) == 0 {
		return true
	}
	numbers := s.Numbers(name)
	var buffer [16]Run
	for _, run := range appendRuns(buffer[:0], name) {
		if run.Kind != Total {
			continue
		}
		counted := -1
		for n, number := range numbers {
			if number.End <= run.Start {
				counted = n
			}
		}
		return len(differing) == 1 && differing[0] == counted
	}
	if len(differing) == 1 {
		return true
	}
	for _, n := range differing {
		if labelWords[wordBefore(name, numbers[n].Start)] {
			return false
		}
	}
	return true
}

// MayClose reports whether Carries can be false for any two names: it is the
// same for all names of the sequence.
func (s Sequence) MayClose(name string) bool {
	var buffer [16]Run
	for _, run := range appendRuns(buffer[:0], name) {
		if run.Kind == Total || labelWords[wordBefore(name, run.Start)] {
			return true
		}
	}
	return false
}

// Differing returns which numbers differ between two names of the sequence, as
// indices into Numbers.
func (s Sequence) Differing(a, b string) []int {
	var aBuffer, bBuffer [128]byte
	x, y := s.appendKey(aBuffer[:0], a), s.appendKey(bBuffer[:0], b)
	var differing []int
	for n := range int(s.group.numbers) {
		xStart, xEnd := splitKey(x, int(s.group.numbers), n)
		yStart, yEnd := splitKey(y, int(s.group.numbers), n)
		if !bytes.Equal(x[xStart:xEnd], y[yStart:yEnd]) {
			differing = append(differing, n)
		}
	}
	return differing
}

// Along returns the nearest name to name in direction (1 or -1) that differs
// from it in number n only: the next slice of the same channel, the next frame
// of the same tile.
func (s Sequence) Along(name string, n, direction int) (string, bool) {
	const patience = 64 // values of number n that exist for other tiles only
	var buffer [128]byte
	key := s.appendKey(buffer[:0], name)
	start, end := splitKey(key, int(s.group.numbers), n)
	prefix, tail := key[:start], key[end:]
	value := key[start:end]
	for range patience {
		at := s.searchPrefix(prefix, value, direction > 0)
		if direction < 0 {
			at--
		}
		if at < 0 || at >= s.Len() {
			return "", false
		}
		candidate := s.appendKey(nil, s.Name(at))
		if !bytes.HasPrefix(candidate, prefix) {
			return "", false
		}
		_, valueEnd := splitKey(candidate, int(s.group.numbers), n)
		value = candidate[start:valueEnd]
		wanted := append(append([]byte{}, candidate[:valueEnd]...), tail...)
		if found, ok := s.searchKey(wanted); ok {
			return s.Name(found), true
		}
	}
	return "", false
}

// searchPrefix returns the first position whose key has number value after
// prefix that is greater than value (past), or not less than value (not past).
func (s Sequence) searchPrefix(prefix, value []byte, past bool) int {
	var otherBuffer [128]byte
	bound := append(append([]byte{}, prefix...), value...)
	return sort.Search(s.Len(), func(i int) bool {
		other := s.appendKey(otherBuffer[:0], s.Name(i))
		head := other[:min(len(other), len(bound))]
		order := bytes.Compare(head, bound)
		if past {
			return order > 0
		}
		return order >= 0
	})
}

func (s Sequence) searchKey(key []byte) (int, bool) {
	var otherBuffer [128]byte
	return sort.Find(s.Len(), func(i int) int {
		return bytes.Compare(key, s.appendKey(otherBuffer[:0], s.Name(i)))
	})
}
