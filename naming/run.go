package naming

import "strings"

// MaxNameLen is the longest name a directory entry can have on Linux. A
// successor that would be longer does not exist.
const MaxNameLen = 255

// Kind says what a run of digits is.
type Kind uint8

// The kinds of runs. Only a Number counts; the others are text.
const (
	Number     Kind = iota
	Version         // v002, rev3, take4
	Resolution      // 1920x1080, 2160p, 4k, 24fps
	Total           // the 16 of 00003-of-00016
	Format          // mp4, jp2, h264
	Identifier      // digits inside a UUID or a long hash
)

// String returns the word for the kind as predict prints it.
func (k Kind) String() string {
	switch k {
	case Version:
		return "version"
	case Resolution:
		return "resolution or rate"
	case Total:
		return "total"
	case Format:
		return "part of the format's name"
	case Identifier:
		return "part of an identifier"
	}
	return "number"
}

// Run is one run of digits, name[Start:End]. If Negative, the byte before
// Start is its minus sign. If Hyphen, the byte before Start is a minus sign
// only where names without it stand beside this one: shot-0001 is a word and a
// number unless there is shot0000.
type Run struct {
	Start, End int
	Kind       Kind
	Negative   bool
	Hyphen     bool
}

// versionWords stand before a number that tells editions of one thing apart.
var versionWords = map[string]bool{
	"v": true, "ver": true, "version": true, "rev": true, "take": true, "tk": true,
}

// unitWords stand after a number that measures a picture or its rate.
var unitWords = map[string]bool{
	"p": true, "i": true, "k": true, "fps": true, "bit": true, "dpi": true, "ppi": true,
}

// numberedFormats are formats whose names end in two digits or more. With one
// digit (mp4, jp2, hdf5, m3u8) a rule does: it is never a counter.
var numberedFormats = map[string]bool{
	"h261": true, "h263": true, "h264": true, "h265": true, "h266": true,
	"x264": true, "x265": true, "i420": true, "g722": true, "g726": true,
	"sha224": true, "sha256": true, "sha384": true, "sha512": true, "crc32": true,
}

// minHash is the length from which a run of hexadecimal digits with letters in
// it hides no decimal numbers: 64 bits. From maxCounter on (MD5 and longer) it
// is not a hexadecimal counter either.
const (
	minHash    = 16
	maxCounter = 31
)

// Runs returns the runs of decimal digits of name, from the left, each with
// what it is.
func Runs(name string) []Run { return appendRuns(nil, name) }

func appendRuns(runs []Run, name string) []Run {
	extension := len(name) - len(Extension(name))
	identifierEnd := 0
	for i := 0; i < len(name); {
		if i >= identifierEnd && isHex(name[i]) && (i == 0 || !isHex(name[i-1])) {
			if end := identifierAt(name, i); end > 0 {
				identifierEnd = end
			}
		}
		if !isDigit(name[i]) {
			i++
			continue
		}
		run := Run{Start: i}
		for i < len(name) && isDigit(name[i]) {
			i++
		}
		run.End = i
		run.Kind = kindOf(name, run, extension, identifierEnd)
		if run.Kind == Number {
			run.Negative, run.Hyphen = signOf(name, run.Start)
		}
		runs = append(runs, run)
	}
	return runs
}

// appendNumbers appends only the runs that count.
func appendNumbers(numbers []Run, name string) []Run {
	first := len(numbers)
	numbers = appendRuns(numbers, name)
	kept := numbers[:first]
	for _, run := range numbers[first:] {
		if run.Kind == Number {
			kept = append(kept, run)
		}
	}
	return kept
}

// Extension returns the extension of name without its dot: what follows the
// last dot, when it is letters and digits with at least one letter. Else "".
func Extension(name string) string {
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 {
		return ""
	}
	extension := name[dot+1:]
	letters := false
	for i := range len(extension) {
		switch c := extension[i]; {
		case isLetter(c):
			letters = true
		case !isDigit(c):
			return ""
		}
	}
	if !letters {
		return ""
	}
	return extension
}

func kindOf(name string, run Run, extension, identifierEnd int) Kind {
	switch {
	case run.Start < identifierEnd:
		return Identifier
	case run.Start >= extension:
		ext := name[extension:]
		if run.End-run.Start == 1 || run.End < len(name) || numberedFormats[strings.ToLower(ext)] {
			return Format
		}
	case isTotal(name, run.Start):
		return Total
	case isMeasure(name, run):
		return Resolution
	}
	if isVersion(name, run.Start) {
		return Version
	}
	return Number
}

// signOf reports whether the byte before start is a minus, or a hyphen that
// might be one. After a digit it is neither: 10-001, 2012-08-08.
func signOf(name string, start int) (minus, hyphen bool) {
	if start == 0 || name[start-1] != '-' {
		return false, false
	}
	if start == 1 || name[start-2] == '.' || name[start-2] == '_' {
		return true, false
	}
	return false, !isDigit(name[start-2])
}

// wordBefore returns the letters before start in lower case, or "" if they are
// too many to be one of the known words.
func wordBefore(name string, start int) string {
	const longest = len("version")
	first := start
	for first > 0 && isLetter(name[first-1]) {
		if first--; start-first > longest {
			return ""
		}
	}
	return strings.ToLower(name[first:start])
}

// isVersion recognises v2, rev3, take_04: the word may be set off from the
// number, but a lone v may not.
func isVersion(name string, start int) bool {
	if versionWords[wordBefore(name, start)] {
		return true
	}
	if start == 0 || !isSeparator(name[start-1]) {
		return false
	}
	word := wordBefore(name, start-1)
	return len(word) > 1 && versionWords[word]
}

// isTotal recognises the M of N-of-M.
func isTotal(name string, start int) bool {
	i := start
	if i > 0 && isSeparator(name[i-1]) {
		i--
	}
	if i < 2 || !strings.EqualFold(name[i-2:i], "of") {
		return false
	}
	i -= 2
	if i > 0 && isSeparator(name[i-1]) {
		i--
	}
	return i > 0 && isDigit(name[i-1])
}

// isMeasure recognises 1920x1080 (either side of it), 1080p, 4k, 24fps.
func isMeasure(name string, run Run) bool {
	digits := run.End - run.Start
	if name[run.Start] == '0' {
		return false
	}
	after := run.End
	if digits >= 2 && after+2 < len(name) && (name[after] == 'x' || name[after] == 'X') &&
		isDigit(name[after+1]) && name[after+1] != '0' && isDigit(name[after+2]) {
		return true
	}
	if before := run.Start - 1; digits >= 2 && before >= 2 && (name[before] == 'x' || name[before] == 'X') &&
		isDigit(name[before-1]) && isDigit(name[before-2]) {
		first := before - 1
		for first > 0 && isDigit(name[first-1]) {
			first--
		}
		if name[first] != '0' {
			return true
		}
	}
	end := after
	for end < len(name) && end-after <= 3 && isLetter(name[end]) {
		end++
	}
	unit := strings.ToLower(name[after:end])
	if !unitWords[unit] {
		return false
	}
	switch unit {
	case "p", "i":
		return digits == 3 || digits == 4
	case "k":
		return digits <= 2
	}
	return end == len(name) || !isDigit(name[end])
}

// identifierAt returns the end of the UUID or hash that begins at start, or 0.
func identifierAt(name string, start int) int {
	if end := start + len("8c9a1b2c-0000-4000-8000-0123456789ab"); end <= len(name) && isUUID(name[start:end]) {
		return end
	}
	end, letters, digits := start, false, false
	for end < len(name) && isHex(name[end]) {
		letters = letters || !isDigit(name[end])
		digits = digits || isDigit(name[end])
		end++
	}
	if letters && digits && end-start >= minHash {
		return end
	}
	return 0
}

func isUUID(s string) bool {
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHex(s[i]) {
				return false
			}
		}
	}
	return true
}

func isDigit(c byte) bool  { return c-'0' <= 9 }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isHex(c byte) bool    { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isSeparator(c byte) bool { return c == '-' || c == '_' || c == '.' || c == ' ' }
