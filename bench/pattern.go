package bench

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Pattern names the frames of a sequence: files of one directory whose names
// differ in one number.
type Pattern struct {
	Dir            string
	Prefix, Suffix string // of the file name, around the number
	Width          int    // digits at least, padded with zeros; 1: not padded
}

// numberVerb is the place of the number: %d, %04d or ####.
var numberVerb = regexp.MustCompile(`%(0?[0-9]*)d|#+`)

// ErrNoNumber says that a path has no place for a number and so is no pattern.
var ErrNoNumber = errors.New("no place for the frame number (%04d or ####)")

// ParsePattern reads a path such as dir/shot.%04d.exr or dir/shot.####.exr.
func ParsePattern(path string) (Pattern, error) {
	dir, name := filepath.Split(path)
	verbs := numberVerb.FindAllStringSubmatchIndex(name, -1)
	switch {
	case len(verbs) == 0:
		return Pattern{}, fmt.Errorf("%s: %w", path, ErrNoNumber)
	case len(verbs) > 1:
		return Pattern{}, fmt.Errorf("%s: more than one place for the frame number", path)
	}
	verb := verbs[0]
	width := verb[1] - verb[0] // of ####
	if verb[2] >= 0 {
		width = 1
		if digits := name[verb[2]:verb[3]]; digits != "" {
			parsed, err := strconv.Atoi(digits)
			if err != nil || parsed > 32 || digits[0] != '0' {
				return Pattern{}, fmt.Errorf("%s: %q pads with zeros only, as in %%04d", path, name[verb[0]:verb[1]])
			}
			width = max(parsed, 1)
		}
	}
	if strings.ContainsRune(name[:verb[0]]+name[verb[1]:], '%') {
		return Pattern{}, fmt.Errorf("%s: %%d and %%04d are the only places for a number", path)
	}
	return Pattern{Dir: filepath.Clean(dir + "."), Prefix: name[:verb[0]], Suffix: name[verb[1]:], Width: width}, nil
}

// Name returns the file name of a frame.
func (p Pattern) Name(number int) string {
	return fmt.Sprintf("%s%0*d%s", p.Prefix, p.Width, number, p.Suffix)
}

// Path returns the path of a frame.
func (p Pattern) Path(number int) string { return filepath.Join(p.Dir, p.Name(number)) }

// Number is the inverse of Name.
func (p Pattern) Number(name string) (int, bool) {
	digits, found := strings.CutPrefix(name, p.Prefix)
	if found {
		digits, found = strings.CutSuffix(digits, p.Suffix)
	}
	number, err := strconv.Atoi(digits)
	if !found || err != nil || digits[0] < '0' || digits[0] > '9' || p.Name(number) != name {
		return 0, false
	}
	return number, true
}

// String returns the pattern as ParsePattern reads it.
func (p Pattern) String() string {
	verb := "%d"
	if p.Width > 1 {
		verb = fmt.Sprintf("%%0%dd", p.Width)
	}
	return filepath.Join(p.Dir, p.Prefix+verb+p.Suffix)
}
