package naming

import (
	"slices"
	"strings"
	"testing"
)

// FuzzRuns takes a name apart and puts it together again.
func FuzzRuns(f *testing.F) {
	for _, name := range []string{
		"shot_v002.0101.exr", "a.-012.tif", "file.1920x1080.0001.exr", "\xff\x00 1-2--3", "00Ff.jp2",
		"train-00003-of-00016.tfrecord", "3f2504e0-4f89-11d3-9a0c-0305e82c3301.mxf", strings.Repeat("9", 255),
	} {
		f.Add(name, int64(1))
	}
	f.Fuzz(func(t *testing.T, name string, delta int64) {
		var rebuilt strings.Builder
		at := 0
		for _, run := range Runs(name) {
			if run.Start < at || run.End <= run.Start || run.End > len(name) {
				t.Fatalf("%q: run %+v after %d", name, run, at)
			}
			rebuilt.WriteString(name[at:run.Start])
			rebuilt.WriteString(name[run.Start:run.End])
			at = run.End
		}
		rebuilt.WriteString(name[at:])
		if rebuilt.String() != name {
			t.Fatalf("%q became %q", name, rebuilt.String())
		}
		for _, find := range []func(string) (Counter, bool){Suffix, HexSuffix} {
			counter, ok := find(name)
			if !ok {
				continue
			}
			if same := Advance(name, counter, 0); len(name) <= MaxNameLen && counter.Base == 10 && !slices.Contains(same, name) && !isMinusZero(name, counter) {
				t.Fatalf("%q moved by nothing: %q", name, same)
			}
			for _, next := range Advance(name, counter, delta) {
				if len(next) > MaxNameLen {
					t.Fatalf("%q moved by %d is %d bytes long", name, delta, len(next))
				}
			}
			PatternOf(name, counter).Printf()
		}
	})
}

// isMinusZero reports a number that is written -0 and counts as 0.
func isMinusZero(name string, counter Counter) bool {
	return counter.Negative && strings.Trim(name[counter.Start:counter.End], "0") == ""
}

// FuzzListing indexes any names: each is found again, sequences hold names of
// the listing only, each once, and know where their members are.
func FuzzListing(f *testing.F) {
	f.Add("a.1 a.2 a.03 a.-1 a-1 a1")
	f.Add("0009 000a 0010 00FF 0100 cafe caff")
	f.Add("s_1a s_2b s_3c [A1B2] xay xaz xba")
	f.Add("-0 0 -00 00 --0 1x1 10x10 v1 v2 f.r00 f.r01")
	f.Fuzz(func(t *testing.T, text string) {
		names := strings.Split(text, " ")
		l := NewListing(names)
		if l.SizeBytes() <= 0 {
			t.Fatal("no size")
		}
		for _, name := range names {
			if !l.Contains(name) {
				t.Fatalf("%q is not found", name)
			}
			l.Neighbour(name, 1)
			l.Alphabetic(name, -1)
			sequence, ok := l.Sequence(name)
			if !ok {
				continue
			}
			seen := make(map[string]bool)
			for i := range sequence.Len() {
				member := sequence.Name(i)
				if seen[member] || !l.Contains(member) {
					t.Fatalf("%q is twice in the sequence or not in the listing", member)
				}
				seen[member] = true
				if at, exact := sequence.Position(member); !exact || at != i {
					t.Fatalf("%q stands at %d and is found at %d, %v", member, i, at, exact)
				}
			}
			for n := range sequence.Numbers(name) {
				for _, direction := range []int{1, -1} {
					if next, ok := sequence.Along(name, n, direction); ok && !seen[next] {
						t.Fatalf("%q along %d leads out of the sequence: %q", name, n, next)
					}
				}
				sequence.Pattern(name, n).Printf()
			}
		}
	})
}
