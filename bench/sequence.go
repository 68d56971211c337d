package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNoFrames says that no file matches.
var ErrNoFrames = errors.New("no frames match")

// Frame is one file of a sequence.
type Frame struct {
	Number int
	Path   string
}

// Sequence is the frames to play from one path, in the order of their numbers.
// It includes the frames that are missing between the first and the last.
type Sequence struct {
	Pattern Pattern
	Frames  []Frame
	// Size is that of every frame in bytes, 0 for a sequence of files that
	// differ, as those of compressed formats do.
	Size int64
	// MaxSize is the largest that was seen; it is where a buffer may start.
	MaxSize int64
}

// OpenSequence finds the frames of a directory or a pattern.
func OpenSequence(path string) (*Sequence, error) {
	pattern, err := ParsePattern(path)
	if err != nil {
		info, statErr := os.Stat(path)
		switch {
		case statErr != nil && errors.Is(err, ErrNoNumber):
			return nil, statErr
		case statErr != nil:
			return nil, err
		case !info.IsDir():
			return nil, fmt.Errorf("%s is a file: name its directory or a pattern such as shot.%%04d.exr", path)
		}
		if pattern, err = findPattern(path); err != nil {
			return nil, err
		}
	}
	names, err := readNames(pattern.Dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, name := range names {
		if number, ok := pattern.Number(name); ok {
			numbers = append(numbers, number)
		}
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("%s: %w", pattern, ErrNoFrames)
	}
	slices.Sort(numbers)
	sequence := &Sequence{Pattern: pattern}
	sequence.sampleSizes(numbers)
	step := commonStep(numbers)
	for number := numbers[0]; number <= numbers[len(numbers)-1]; number += step {
		sequence.Frames = append(sequence.Frames, Frame{number, pattern.Path(number)})
	}
	return sequence, nil
}

// trim leaves the frames from in to out, by their numbers; nil is an open end.
func (s *Sequence) trim(in, out *int) error {
	first, last := s.Frames[0].Number, s.Frames[len(s.Frames)-1].Number
	s.Frames = slices.DeleteFunc(s.Frames, func(frame Frame) bool {
		return in != nil && frame.Number < *in || out != nil && frame.Number > *out
	})
	if len(s.Frames) == 0 {
		return fmt.Errorf("%s: %w: it has frames %d to %d, and none between the in and out points", s.Pattern, ErrNoFrames, first, last)
	}
	return nil
}

// sizeSamples is how many files are asked for their size: enough to outvote a
// truncated one, few enough to cost nothing on a slow mount.
const sizeSamples = 5

// sampleSizes finds out whether all frames have one size: they do when at most
// one of the samples differs from the others.
func (s *Sequence) sampleSizes(numbers []int) {
	samples := min(len(numbers), sizeSamples)
	votes := map[int64]int{}
	for i := range samples {
		at := 0
		if samples > 1 {
			at = i * (len(numbers) - 1) / (samples - 1)
		}
		if info, err := os.Stat(s.Pattern.Path(numbers[at])); err == nil {
			votes[info.Size()]++
			s.MaxSize = max(s.MaxSize, info.Size())
		}
	}
	for size, n := range votes {
		if n >= max(samples-1, min(samples, 2)) {
			s.Size = size
		}
	}
}

// commonStep is the distance of neighbouring frames: 2 in a sequence animated
// on twos, where the odd numbers are not missing.
func commonStep(numbers []int) int {
	step := 0
	for i := 1; i < len(numbers); i++ {
		for a, b := step, numbers[i]-numbers[i-1]; ; a, b = b, a%b {
			if b == 0 {
				step = a
				break
			}
		}
	}
	return max(step, 1)
}

// findPattern finds the one sequence of a directory.
func findPattern(dir string) (Pattern, error) {
	names, err := readNames(dir)
	if err != nil {
		return Pattern{}, err
	}
	type around struct{ prefix, suffix string }
	digits := map[around][]string{}
	for _, name := range names {
		if prefix, number, suffix, ok := splitLastNumber(name); ok {
			key := around{prefix, suffix}
			digits[key] = append(digits[key], number)
		}
	}
	var found []Pattern
	for key, numbers := range digits {
		if len(numbers) > 1 || len(digits) == 1 {
			found = append(found, Pattern{Dir: filepath.Clean(dir), Prefix: key.prefix, Suffix: key.suffix, Width: padding(numbers)})
		}
	}
	switch len(found) {
	case 0:
		return Pattern{}, fmt.Errorf("%s: %w", dir, ErrNoFrames)
	case 1:
		return found[0], nil
	}
	var list []string
	for _, pattern := range found {
		list = append(list, pattern.String())
	}
	slices.Sort(list)
	if len(list) > 5 {
		list = append(list[:5], "…")
	}
	return Pattern{}, fmt.Errorf("%s holds %d sequences, name one of them: %s", dir, len(found), strings.Join(list, ", "))
}

// splitLastNumber splits a file name around its last number in front of the
// extension.
func splitLastNumber(name string) (prefix, number, suffix string, ok bool) {
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	last := strings.LastIndexFunc(stem, isDigit)
	if last < 0 || name[0] == '.' {
		return "", "", "", false
	}
	end := last + 1
	start := strings.LastIndexFunc(stem[:end], func(r rune) bool { return !isDigit(r) }) + 1
	return name[:start], name[start:end], name[end:], true
}

// padding is the width that the numbers of a sequence are padded to.
func padding(numbers []string) int {
	shortest, longest, padded := len(numbers[0]), len(numbers[0]), false
	for _, number := range numbers {
		shortest, longest = min(shortest, len(number)), max(longest, len(number))
		padded = padded || number[0] == '0' && len(number) > 1
	}
	if padded || shortest == longest {
		return shortest
	}
	return 1
}

func readNames(dir string) ([]string, error) {
	opened, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return names, nil
}
