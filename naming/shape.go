package naming

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"strings"
)

// shape is how one name splits into text and the numbers that count. At most
// one of the numbers is hexadecimal.
type shape struct {
	numbers []Run
	hex     int // index in numbers of the hexadecimal one, -1 if all are decimal
	// tag says that the hexadecimal one is no number but a random tag, which
	// differs from name to name and tells nothing about their order.
	tag bool
}

// decimalShape splits name with every number decimal; buffer is reused.
func decimalShape(buffer []Run, name string) shape {
	return shape{numbers: appendNumbers(buffer[:0], name), hex: -1}
}

// hexShape splits name with span taken as one hexadecimal number, swallowing
// the decimal numbers inside it.
func hexShape(buffer []Run, name string, span Run) shape {
	numbers := appendNumbers(buffer[:0], name)
	first := 0
	for first < len(numbers) && numbers[first].End <= span.Start {
		first++
	}
	last := first
	for last < len(numbers) && numbers[last].Start < span.End {
		last++
	}
	span.Negative = false
	if first == last {
		numbers = append(numbers, Run{})
		copy(numbers[first+1:], numbers[first:])
	} else {
		numbers = append(numbers[:first+1], numbers[last:]...)
	}
	numbers[first] = span
	return shape{numbers: numbers, hex: first}
}

var shapeSeed = maphash.MakeSeed()

// hash is equal for names with the same text around the same numbers. Signs
// belong to numbers, so -1 and 1 share a shape.
func (s shape) hash(name string) uint64 {
	var h maphash.Hash
	h.SetSeed(shapeSeed)
	from := 0
	for i, run := range s.numbers {
		h.WriteString(name[from:textEnd(run)])
		h.WriteByte(0)
		if i == s.hex {
			h.WriteByte(1)
		}
		from = run.End
	}
	h.WriteString(name[from:])
	return h.Sum64()
}

// sameText reports whether name and other, of shape o, differ in numbers only.
func (s shape) sameText(name string, o shape, other string) bool {
	if len(s.numbers) != len(o.numbers) || s.hex != o.hex {
		return false
	}
	i, j := 0, 0
	for k, run := range s.numbers {
		if name[i:textEnd(run)] != other[j:textEnd(o.numbers[k])] {
			return false
		}
		i, j = run.End, o.numbers[k].End
	}
	return name[i:] == other[j:]
}

// paddings records the widths that leading zeros prove for one number of a
// group, as bit sets, separately for negative numbers.
type paddings struct{ plain, negative uint64 }

const (
	// maxPadding is the largest width the sets can hold.
	maxPadding = 63
	// unsigned is a bit of paddings.plain: some name has no sign, so a hyphen
	// in the others is a minus. It is no width, since width 0 does not exist.
	unsigned = 1
)

// resolve settles whether a hyphen before run is a minus.
func (p paddings) resolve(run Run) Run {
	if run.Hyphen && p.plain&unsigned != 0 {
		run.Negative = true
	}
	return run
}

// addSign is the first pass: it notes whether any name has no sign.
func (p *paddings) addSign(run Run) {
	if !run.Negative && !run.Hyphen {
		p.plain |= unsigned
	}
}

// addWidth is the second pass.
func (p *paddings) addWidth(name string, run Run) {
	run = p.resolve(run)
	width := run.End - run.Start
	if width < 2 || width > maxPadding || name[run.Start] != '0' {
		return
	}
	if run.Negative {
		p.negative |= 1 << width
	} else {
		p.plain |= 1 << width
	}
}

// signInWidth reports that minus signs were counted in the width, as by
// printf("%04d", -1) = "-001": negative numbers are one digit narrower.
func (p paddings) signInWidth() bool {
	return p.negative&p.plain == 0 && p.negative<<1&p.plain != 0
}

// width returns the printf width that wrote run: the length where there are
// leading zeros, else the widest proven width that is not longer (so 1000
// belongs to 0999 and not to 00999), else 1.
func (p paddings) width(name string, run Run) int {
	run = p.resolve(run)
	length := min(run.End-run.Start, maxPadding)
	proven := p.plain
	if run.Negative {
		proven |= p.negative
		if p.signInWidth() {
			return provenWidth(p.plain, length+1)
		}
		if p.negative == 0 && provenWidth(p.plain, length) == 1 {
			return provenWidth(p.plain, length+1)
		}
	}
	if name[run.Start] == '0' && length > 1 {
		return length
	}
	return provenWidth(proven, length)
}

func provenWidth(proven uint64, length int) int {
	fitting := proven &^ unsigned & (1<<(length+1) - 1)
	if fitting == 0 {
		return 1
	}
	return bits.Len64(fitting) - 1
}

func (s shape) isTag(number int) bool { return s.tag && number == s.hex }

// appendKey appends the sort key of name: the widths of all numbers, then
// their values from the left. Names of one width tuple are contiguous in key
// order, and inside it in natural order.
func (s shape) appendKey(key []byte, name string, pads []paddings) []byte {
	for i, run := range s.numbers {
		width := 0
		if !s.isTag(i) {
			width = pads[i].width(name, run)
		}
		key = append(key, byte(width))
	}
	for i, run := range s.numbers {
		if s.isTag(i) {
			run.End = run.Start // all tags are equal
		}
		key = appendValueKey(key, name, pads[i].resolve(run))
	}
	return key
}

// appendValueKey appends a number so that keys compare as values do.
func appendValueKey(key []byte, name string, run Run) []byte {
	digits := strings.TrimLeft(name[run.Start:run.End], "0")
	length := uint16(len(digits))
	if !run.Negative || length == 0 {
		key = append(key, 1, byte(length>>8), byte(length))
		return append(key, digits...)
	}
	key = append(key, 0, ^byte(length>>8), ^byte(length))
	for i := range len(digits) {
		key = append(key, ^digits[i])
	}
	return key
}

// valueKeyLen returns the length of the value at the head of key.
func valueKeyLen(key []byte) int {
	high, low := key[1], key[2]
	if key[0] == 0 {
		high, low = ^high, ^low
	}
	return 3 + int(high)<<8 + int(low)
}

// splitKey returns the bounds of number n's value in key.
func splitKey(key []byte, numbers, n int) (start, end int) {
	start = numbers
	for range n {
		start += valueKeyLen(key[start:])
	}
	return start, start + valueKeyLen(key[start:])
}

// compareNames is the final tie-break: -0 and 0, or 01 and 1 where both have
// the same width by accident, keep byte order.
func compareNames(aKey, bKey []byte, a, b string) int {
	if order := bytes.Compare(aKey, bKey); order != 0 {
		return order
	}
	return strings.Compare(a, b)
}
