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
	return newPattern(name, counter, width)
}

// PatternOf returns the pattern of name along counter, going by the name only.
func PatternOf(name string, counter Counter) Pattern {
	width := 1
	if digits := counter.End - counter.Start; name[counter.Start] == '0' {
		width = digits
	}
	return newPattern(name, counter, width)
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
