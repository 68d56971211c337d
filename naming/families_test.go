package naming

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// family is one way to number files, with its own definition of what follows:
// its names in the order in which they are played.
type family struct {
	name     string
	generate func(*rand.Rand) (sequence, others []string)
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// base is a stem of words without numbers that ends in no digit.
func base(r *rand.Rand) string {
	words := []string{"shot", "plate", "beauty", "Überblick", "a b", "%d", "clip", "xy"}
	var parts []string
	for range 1 + r.IntN(3) {
		parts = append(parts, words[r.IntN(len(words))])
	}
	return strings.Join(parts, pick(r, "_", ".", "-", ""))
}

func extension(r *rand.Rand) string {
	return pick(r, ".exr", ".dpx", ".jp2", ".tar.gz", ".bgeo.sc", ".ome.tif", "", ".mp4")
}

// numbers returns ascending numbers with gaps.
func numbers(r *rand.Rand, from, step, count int) []int {
	var out []int
	for i := range count {
		if i == 0 || i == count-1 || r.IntN(5) > 0 {
			out = append(out, from+i*step)
		}
	}
	return out
}

var families = []family{
	{"padded with gaps, steps and overflow", func(r *rand.Rand) (names, others []string) {
		stem, end, width := base(r)+pick(r, ".", "_", ""), extension(r), 2+r.IntN(6)
		power := 1
		for range width - r.IntN(2) {
			power *= 10
		}
		// Around the overflow, and from a number that shows the padding.
		values := append([]int{1}, numbers(r, max(2, power-20), 1+r.IntN(3), 30)...)
		for _, v := range values {
			names = append(names, fmt.Sprintf("%s%0*d%s", stem, width, v, end))
			if r.IntN(3) == 0 {
				others = append(others, fmt.Sprintf("%s%0*d%s", stem, width, v, end+".md"))
			}
		}
		others = append(others, fmt.Sprintf("%s%0*d%s", stem, width+4, 1, end))
		return names, others
	}},
	{"unpadded", func(r *rand.Rand) (names, others []string) {
		stem, end := base(r), extension(r)
		if end == "" {
			// What follows the last dot would be an extension, and its one digit
			// part of a format's name, as in mp4.
			stem = strings.ReplaceAll(stem, ".", "-")
		}
		stem += pick(r, ".", "_", "")
		for _, v := range numbers(r, r.IntN(120), 1+r.IntN(9), 40) {
			names = append(names, fmt.Sprintf("%s%d%s", stem, v, end))
		}
		return names, []string{stem + end, "other" + end}
	}},
	{"version before or after", func(r *rand.Rand) (names, others []string) {
		stem, end := base(r), pick(r, ".exr", ".dpx")
		format := pick(r, "%[1]s_v%03[2]d.%04[3]d%[4]s", "%[1]s.%04[3]d.v%[2]d%[4]s", "%[1]s_take_%02[2]d_%05[3]d%[4]s")
		for _, v := range numbers(r, 990, 1, 30) {
			names = append(names, fmt.Sprintf(format, stem, 2, v, end))
			others = append(others, fmt.Sprintf(format, stem, 3, v, end))
		}
		return names, others
	}},
	{"resolution, rate and date around", func(r *rand.Rand) (names, others []string) {
		format := pick(r, "1920x1080_%s.%04d.dpx", "%s_2160p_%05d.exr", "20240229_%s_24fps_%06d.dng", "4k.%s.%04d.tif")
		stem := base(r)
		for _, v := range numbers(r, r.IntN(2000), 1, 30) {
			names = append(names, fmt.Sprintf(format, stem, v))
		}
		return names, nil
	}},
	{"negative, sign outside", func(r *rand.Rand) (names, others []string) {
		stem, width := base(r)+pick(r, ".", "_"), 2+r.IntN(4)
		for v := -12; v <= 12; v++ {
			sign, value := "", v
			if v < 0 {
				sign, value = "-", -v
			}
			names = append(names, fmt.Sprintf("%s%s%0*d.exr", stem, sign, width, value))
		}
		return names, nil
	}},
	{"negative, sign in the width", func(r *rand.Rand) (names, others []string) {
		stem, width := base(r)+pick(r, ".", "_", " ", ""), 3+r.IntN(3)
		for v := -12; v <= 12; v++ {
			names = append(names, fmt.Sprintf("%s%0*d.png", stem, width, v))
		}
		return names, nil
	}},
	{"hyphen as separator", func(r *rand.Rand) (names, others []string) {
		stem := base(r) + pick(r, "", " ", "10")
		for _, v := range numbers(r, r.IntN(30), 1, 30) {
			names = append(names, fmt.Sprintf("%s-%04d.png", stem, v))
		}
		return names, nil
	}},
	{"hexadecimal", func(r *rand.Rand) (names, others []string) {
		stem, width := pick(r, "slice_", "f.", "", "frame"), 4+r.IntN(4)
		format := pick(r, "%s%0*x.tif", "%s%0*X.tif")
		from := r.IntN(1 << 12)
		for v := from; v < from+40; v++ {
			names = append(names, fmt.Sprintf(format, stem, width, v))
		}
		return names, nil
	}},
	{"two numbers with carry", func(r *rand.Rand) (names, others []string) {
		stem := base(r)
		format := pick(r, "%s.%03d.%04d.exr", "%s_%d_%d.tif", "%s-%02d-%03d.dcm", "%s_t%03d_z%02d.tif")
		for i := range 4 {
			for _, j := range numbers(r, r.IntN(3), 1, 5+r.IntN(4)) {
				names = append(names, fmt.Sprintf(format, stem, i, j))
			}
		}
		return names, nil
	}},
	{"N of M", func(r *rand.Rand) (names, others []string) {
		stem, total := pick(r, "train", "model", "data"), 5+r.IntN(20)
		for i := range total {
			names = append(names, fmt.Sprintf("%s-%05d-of-%05d.bin", stem, i, total))
			others = append(others, fmt.Sprintf("%s-%05d-of-%05d.bin", stem, i, total+7))
		}
		return names, others
	}},
	{"random tags", func(r *rand.Rand) (names, others []string) {
		for i := range 20 {
			names = append(names, fmt.Sprintf("Show - %02d [%08X].mkv", i+1, r.Uint32()|0xa0000000))
		}
		return names, nil
	}},
	{"UUIDs", func(r *rand.Rand) (names, others []string) {
		uuid := func() string {
			return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Uint64()>>16)
		}
		mine, other := uuid(), uuid()
		for i := range 9 {
			names = append(names, fmt.Sprintf("part-%05d-%s-c000.parquet", i, mine))
			others = append(others, fmt.Sprintf("part-%05d-%s-c000.parquet", i, other))
		}
		return names, others
	}},
}

// TestFamilies checks, for names generated by each family's definition, that
// the sequence found in a shuffled listing is the family's.
func TestFamilies(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 7))
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			for range 300 {
				names, others := f.generate(random)
				all := slices.Concat(names, others)
				random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				l := NewListing(all)
				for i, name := range names {
					sequence, ok := l.Sequence(name)
					if !ok {
						t.Fatalf("%q has no sequence among %q", name, all)
					}
					position, exact := sequence.Position(name)
					if !exact {
						t.Fatalf("%q is not in its own sequence %q", name, members(sequence))
					}
					if i+1 == len(names) {
						continue
					}
					if position+1 >= sequence.Len() || sequence.Name(position+1) != names[i+1] {
						t.Fatalf("%q is followed by %q, want %q", name, members(sequence)[position+1:min(position+2, sequence.Len())], names[i+1])
					}
				}
			}
		})
	}
}

func members(s Sequence) []string {
	var names []string
	for i := range s.Len() {
		names = append(names, s.Name(i))
	}
	return names
}

// TestAdvanceFamilies checks arithmetic against the same definitions where a
// single name can know them: one more, one less, at any width.
func TestAdvanceFamilies(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 9))
	for range 2000 {
		stem, end, width := base(random)+"_", extension(random), 1+random.IntN(8)
		value := random.IntN(200_000)
		name := fmt.Sprintf("%s%0*d%s", stem, width, value, end)
		counter, ok := Suffix(name)
		if !ok {
			t.Fatalf("no number in %q", name)
		}
		for _, delta := range []int{1, 7, -1, -3} {
			want := fmt.Sprintf("%s%0*d%s", stem, width, value+delta, end)
			if value+delta < 0 {
				continue
			}
			if got := Advance(name, counter, int64(delta)); !slices.Contains(got, want) {
				t.Fatalf("%q moved by %d: %q, want %q", name, delta, got, want)
			}
			got, by, ok := Between(name, want)
			if !ok || by != int64(delta) || got.Base != 10 {
				t.Fatalf("from %q to %q: %d, %v", name, want, by, ok)
			}
		}
	}
}
