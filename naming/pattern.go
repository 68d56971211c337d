package naming

import (
	"fmt"
	"strings"
)

// Pattern is a name with one number left open.
type Pattern struct {
	head, tail string
	width      int // of the printf conversion
	upper      bool
	base       int
}

// Pattern returns the pattern of the sequence along the given number of name.
func (s Sequence) Pattern(name string, n int) Pattern {
	counter := s.Numbers(name)[n]
	width := s.l.padsOf(s.group)[n].width(name, counter.Run)
	if width <= 1 && s.sameLength(n) {
		width = assumedWidth(counter)
	}
	return newPattern(name, counter, width)
}

// sameLength reports whether number n has as many digits in the first name of
// the sequence as in the last.
func (s Sequence) sameLength(n int) bool {
	length := func(name string) int {
		counter := s.Numbers(name)[n]
		return counter.End - counter.Start
	}
	return length(s.Name(0)) == length(s.Name(s.Len()-1))
}

// PatternOf returns the pattern of name along counter, going by the name only.
func PatternOf(name string, counter Counter) Pattern {
	width := assumedWidth(counter)
	if name[counter.Start] == '0' {
		width = counter.End - counter.Start
	}
	return newPattern(name, counter, width)
}

// assumedWidth is the padding of a number that shows none, such as the 1001 that
// shots begin with: four digits and more are taken for padded to that width, as
// everybody would write it. It names a pattern; no successor depends on it.
func assumedWidth(counter Counter) int {
	const padded = 4
	if digits := counter.End - counter.Start; digits >= padded {
		return digits
	}
	return 1
}

func newPattern(name string, counter Counter, width int) Pattern {
	digits := name[counter.Start:counter.End]
	head := name[:counter.Start]
	if counter.Negative {
		head = head[:len(head)-1]
	}
	return Pattern{
		head: head, tail: name[counter.End:],
		width: width, base: counter.Base,
		upper: strings.ToLower(digits) != digits,
	}
}

// Printf returns the pattern as C and most tools write it: shot.%04d.exr, with
// %x for hexadecimal. Percent signs of the name are doubled.
func (p Pattern) Printf() string {
	verb := "d"
	if p.base == 16 {
		verb = "x"
		if p.upper {
			verb = "X"
		}
	}
	width := ""
	if p.width > 1 {
		width = fmt.Sprintf("0%d", p.width)
	}
	escape := func(text string) string { return strings.ReplaceAll(text, "%", "%%") }
	return escape(p.head) + "%" + width + verb + escape(p.tail)
}

// Hashes returns the pattern with one # for each digit: shot.####.exr.
func (p Pattern) Hashes() string {
	return p.head + strings.Repeat("#", p.width) + p.tail
}
