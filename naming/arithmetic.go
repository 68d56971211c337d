package naming

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// A Counter is a number found in a name: where it stands and its base. Its
// width is the width it was written with.
type Counter struct {
	Run
	Base int // 10 or 16
}

// Suffix returns the run that most likely counts when there is only the name
// itself to go by: the last number, but a number of one or two digits glued to
// a word (cam1, take2a) only if there is no other.
func Suffix(name string) (Counter, bool) {
	var buffer [8]Run
	numbers := appendNumbers(buffer[:0], name)
	for i := len(numbers) - 1; i >= 0; i-- {
		run := numbers[i]
		glued := run.Start > 0 && isLetter(name[run.Start-1]) || run.End < len(name) && isLetter(name[run.End])
		if !glued || run.End-run.Start > 2 {
			return Counter{run, 10}, true
		}
	}
	if len(numbers) == 0 {
		return Counter{}, false
	}
	return Counter{numbers[len(numbers)-1], 10}, true
}

// HexSuffix returns the last run of hexadecimal digits that holds a decimal
// digit and is not glued to a following letter.
func HexSuffix(name string) (Counter, bool) {
	var buffer [8]Run
	spans := appendHexSpans(buffer[:0], name)
	stem := len(name) - len(Extension(name))
	for i := len(spans) - 1; i >= 0; i-- {
		if run := spans[i]; run.Start < stem && strings.ContainsAny(name[run.Start:run.End], "0123456789") {
			return Counter{run, 16}, true
		}
	}
	return Counter{}, false
}

// Between returns the one number in which two names differ and by how much:
// decimal where the difference is inside a run of digits, else hexadecimal.
func Between(from, to string) (Counter, int64, bool) {
	if counter, delta, ok := between(from, to, 10); ok {
		return counter, delta, ok
	}
	return between(from, to, 16)
}

func between(from, to string, base int) (Counter, int64, bool) {
	var fromBuffer, toBuffer [8]Run
	a, b := countersOf(fromBuffer[:0], from, base), countersOf(toBuffer[:0], to, base)
	for i, run := range a {
		if i >= len(b) || from[:textEnd(run)] != to[:min(textEnd(run), len(to))] {
			break
		}
		other := b[i]
		if textEnd(other) != textEnd(run) || from[run.End:] != to[other.End:] {
			continue
		}
		x, y := valueOf(from, run, base), valueOf(to, other, base)
		delta := y.Sub(y, x)
		if !delta.IsInt64() || delta.Sign() == 0 {
			return Counter{}, 0, false
		}
		return Counter{other, base}, delta.Int64(), true
	}
	return Counter{}, 0, false
}

func countersOf(runs []Run, name string, base int) []Run {
	if base == 16 {
		return appendHexSpans(runs, name)
	}
	return appendNumbers(runs, name)
}

// textEnd is where the text before a run ends: before its sign, if any.
func textEnd(run Run) int {
	if run.Negative || run.Hyphen {
		return run.Start - 1
	}
	return run.Start
}

func valueOf(name string, run Run, base int) *big.Int {
	value, _ := new(big.Int).SetString(name[run.Start:run.End], base)
	if run.Negative {
		value.Neg(value)
	}
	return value
}

// moved returns the digits of a number moved by delta, without padding, and its
// sign. Numbers that fit are counted by the processor: it is a hundred times as
// fast, and hardly a frame's number is longer.
func moved(name string, counter Counter, delta int64) (text string, sign int) {
	const fits, far = 15, 1 << 60
	if counter.End-counter.Start <= fits && delta < far && delta > -far {
		value, err := strconv.ParseInt(name[counter.Start:counter.End], counter.Base, 64)
		if err == nil {
			if counter.Negative {
				value = -value
			}
			value += delta
			sign = cmp.Compare(value, 0)
			if value < 0 {
				value = -value
			}
			return strconv.FormatInt(value, counter.Base), sign
		}
	}
	value := valueOf(name, counter.Run, counter.Base)
	value.Add(value, big.NewInt(delta))
	return new(big.Int).Abs(value).Text(counter.Base), value.Sign()
}

// Advance returns name with its counter moved by delta, written as printf
// would with the width the counter has now: 0999 becomes 1000, 9 becomes 10.
// Downwards the width that 1000 or 10 came from is unknown, so there are two
// spellings, the likelier first; so are there from -001 to zero, since some
// programs count the sign in the width. None are returned where no such name
// can exist.
func Advance(name string, counter Counter, delta int64) []string {
	digits := name[counter.Start:counter.End]
	text, sign := moved(name, counter, delta)
	signed := counter.Negative
	if sign < 0 && !signed {
		return nil
	}
	if counter.Base == 16 && strings.ContainsAny(digits, "ABCDEF") {
		text = strings.ToUpper(text)
	}
	padded := text
	if missing := len(digits) - len(text); missing > 0 {
		padded = strings.Repeat("0", missing) + text
	}
	spellings := []string{padded}
	switch {
	case signed && sign >= 0:
		spellings = append(spellings, "0"+padded)
	case padded != text && digits[0] != '0':
		spellings = append(spellings, text)
	}
	head, tail := name[:counter.Start], name[counter.End:]
	if signed && sign >= 0 {
		head = head[:len(head)-1]
	}
	names := spellings[:0]
	for _, spelling := range spellings {
		if len(head)+len(spelling)+len(tail) <= MaxNameLen {
			names = append(names, head+spelling+tail)
		}
	}
	return names
}

// appendHexSpans appends the maximal runs of hexadecimal digits of one case
// that can be a number as a whole: not followed by another letter, not part of
// a UUID, at most maxCounter long.
func appendHexSpans(spans []Run, name string) []Run {
	for i := 0; i < len(name); {
		if !isHex(name[i]) {
			i++
			continue
		}
		if end := identifierAt(name, i); end > i+maxCounter {
			i = end
			continue
		}
		start, letterCase := i, byte(0)
		for i < len(name) && isHex(name[i]) {
			if c := name[i]; isLetter(c) {
				if letterCase != 0 && c&0x20 != letterCase&0x20 {
					break
				}
				letterCase = c
			}
			i++
		}
		if i < len(name) && isLetter(name[i]) {
			for i < len(name) && isLetter(name[i]) {
				i++
			}
			continue
		}
		spans = append(spans, Run{Start: start, End: i})
	}
	return spans
}

// CounterAt returns the number of name that stands where counter stood in
// another name of the same sequence.
func CounterAt(name string, counter Counter) (Counter, bool) {
	var buffer [8]Run
	for _, run := range countersOf(buffer[:0], name, counter.Base) {
		if textEnd(run) == textEnd(counter.Run) {
			return Counter{run, counter.Base}, true
		}
	}
	return Counter{}, false
}

// SameNumbers reports whether two names hold the same numbers in the same
// order, whatever the text around them: two views or passes of one frame.
func SameNumbers(a, b string) bool {
	var aBuffer, bBuffer [8]Run
	x, y := appendNumbers(aBuffer[:0], a), appendNumbers(bBuffer[:0], b)
	if len(x) == 0 || len(x) != len(y) {
		return false
	}
	for i := range x {
		if a[x[i].Start:x[i].End] != b[y[i].Start:y[i].End] {
			return false
		}
	}
	return true
}
