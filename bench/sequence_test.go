package bench

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// makeFiles makes files of the given size in a new directory.
func makeFiles(t *testing.T, size int, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func numbersOf(s *Sequence) []int {
	var numbers []int
	for _, frame := range s.Frames {
		numbers = append(numbers, frame.Number)
	}
	return numbers
}

func TestOpenSequence(t *testing.T) {
	for _, test := range []struct {
		name    string
		files   string
		pattern string // as found
		numbers []int
	}{
		{"padded", "a.0001.exr a.0002.exr a.0003.exr notes.txt", "a.%04d.exr", []int{1, 2, 3}},
		{"plain, crossing ten", "a9.exr a10.exr a11.exr", "a%d.exr", []int{9, 10, 11}},
		{"padding outgrown", "a.999.exr a.1000.exr a.001.exr", "a.%03d.exr", nil},
		{"the number nearest the extension", "sc010_v002.0007.exr sc010_v002.0008.exr", "sc010_v002.%04d.exr", []int{7, 8}},
		{"digits of the extension", "a.01.mp4 a.02.mp4", "a.%02d.mp4", []int{1, 2}},
		{"a hole", "a.1.exr a.2.exr a.4.exr", "a.%d.exr", []int{1, 2, 3, 4}},
		{"on twos", "a.10.exr a.12.exr a.16.exr", "a.%02d.exr", []int{10, 12, 14, 16}},
		{"a single frame", "a.0001.exr readme.txt", "a.%04d.exr", []int{1}},
		{"no extension", "f1 f2", "f%d", []int{1, 2}},
		{"single files aside", "a.1.exr a.2.exr take7.wav .a.3.exr", "a.%d.exr", []int{1, 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := makeFiles(t, 10, strings.Fields(test.files)...)
			sequence, err := OpenSequence(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := filepath.Base(sequence.Pattern.String()); got != test.pattern {
				t.Errorf("found %s, want %s", got, test.pattern)
			}
			if got := numbersOf(sequence); test.numbers != nil && !slices.Equal(got, test.numbers) {
				t.Errorf("frames %v, want %v", got, test.numbers)
			}
			if sequence.Size != 10 && len(sequence.Frames) > 0 {
				t.Errorf("size %d, want 10", sequence.Size)
			}
		})
	}
}

func TestOpenSequenceErrors(t *testing.T) {
	dir := makeFiles(t, 10, "a.1.exr", "a.2.exr", "b.1.exr", "b.2.exr")
	if _, err := OpenSequence(dir); err == nil || !strings.Contains(err.Error(), "a.%d.exr") || !strings.Contains(err.Error(), "b.%d.exr") {
		t.Errorf("two sequences: %v, want an error that names both", err)
	}
	if s, err := OpenSequence(filepath.Join(dir, "b.#.exr")); err != nil || len(s.Frames) != 2 {
		t.Errorf("one of two sequences by pattern: %v, %v", s, err)
	}
	if _, err := OpenSequence(filepath.Join(dir, "c.####.exr")); !errors.Is(err, ErrNoFrames) {
		t.Errorf("no frames: %v, want ErrNoFrames", err)
	}
	if _, err := OpenSequence(t.TempDir()); !errors.Is(err, ErrNoFrames) {
		t.Errorf("an empty directory: %v, want ErrNoFrames", err)
	}
	if _, err := OpenSequence(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v, want ErrNotExist", err)
	}
	if _, err := OpenSequence(filepath.Join(dir, "a.1.exr")); err == nil {
		t.Error("a file in place of a directory is accepted")
	}
}

func TestSequenceSizeOutvotesOneTruncatedFile(t *testing.T) {
	names := []string{"a.1.exr", "a.2.exr", "a.3.exr", "a.4.exr", "a.5.exr", "a.6.exr"}
	dir := makeFiles(t, 100, names...)
	if err := os.Truncate(filepath.Join(dir, "a.1.exr"), 7); err != nil {
		t.Fatal(err)
	}
	if s, err := OpenSequence(dir); err != nil || s.Size != 100 {
		t.Errorf("one truncated of six: size %d, %v; want 100", s.Size, err)
	}
	for i, name := range names {
		if err := os.Truncate(filepath.Join(dir, name), int64(100+i)); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := OpenSequence(dir); err != nil || s.Size != 0 || s.MaxSize != 105 {
		t.Errorf("all sizes differ: size %d, largest %d, %v; want 0, 105", s.Size, s.MaxSize, err)
	}
}
