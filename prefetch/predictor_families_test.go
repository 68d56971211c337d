package prefetch

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
)

// way of reading: how a reader walks a sequence, by its own definition.
type reading struct {
	name string
	// order makes the opens of one reader from the names of a sequence, which are
	// at least 24, and tells after how many opens every further one must have been
	// the very next that was predicted. Fewer opens than that: no claim.
	order func(*rand.Rand, []string) (opens []string, learned int)
	// counts says that the reader counts files. One that leaves some out may as
	// well count by the number in the name; where numbers are missing nothing can
	// tell before the first gap.
	counts bool
}

var readings = []reading{
	{"forward", func(r *rand.Rand, names []string) ([]string, int) { return names[r.IntN(4):], 1 }, false},
	{"reverse", func(r *rand.Rand, names []string) ([]string, int) { return reversed(names[:len(names)-r.IntN(4)]), 2 }, false},
	{"step", func(r *rand.Rand, names []string) ([]string, int) { return every(names, r.IntN(3), 2+r.IntN(7)), 2 }, true},
	{"reverse by step", func(r *rand.Rand, names []string) ([]string, int) {
		return every(names, len(names)-1-r.IntN(3), -2-r.IntN(6)), 3
	}, true},
	{"each opened several times", func(r *rand.Rand, names []string) ([]string, int) {
		var opens []string
		times := 2 + r.IntN(5)
		for _, name := range names[:12] {
			opens = append(opens, repeat(times, name)...)
		}
		return opens, 1
	}, false},
	{"loop", func(r *rand.Rand, names []string) ([]string, int) {
		names = names[:8+r.IntN(8)]
		return repeat(4, names...), len(names) + 1
	}, false},
	{"in-out loop", func(r *rand.Rand, names []string) ([]string, int) {
		in := r.IntN(6)
		section := names[in : in+8+r.IntN(8)]
		return slices.Concat(names[:in], repeat(4, section...)), in + 2*len(section) + 1
	}, false},
	{"ping-pong", func(r *rand.Rand, names []string) ([]string, int) {
		names = names[:8+r.IntN(8)]
		there, back := names[1:], reversed(names[:len(names)-1])
		return slices.Concat(names, back, there, back, there, back), 2 * len(names)
	}, false},
	{"forward, then back", func(r *rand.Rand, names []string) ([]string, int) {
		turn := 8 + r.IntN(10)
		return slices.Concat(names[:turn], reversed(names[:turn-1])), turn + 1
	}, false},
	{"blocks", func(r *rand.Rand, names []string) ([]string, int) {
		length, gap := 2+r.IntN(3), 2+r.IntN(4)
		var opens []string
		for i := 0; i+length <= len(names); i += length + gap {
			opens = append(opens, names[i:i+length]...)
		}
		return opens, 2*length + 1
	}, true},
}

// numbering is a way to name a sequence, with what else lies in the directory.
type numbering struct {
	name  string
	names func(r *rand.Rand, dir string) (names, others []string)
	gaps  bool // numbers are missing
}

func stem(r *rand.Rand) string {
	word := []string{"shot", "plate", "beauty pass", "Überblick", "%d", "clip_v003", "1920x1080", "take_02", "x"}
	return word[r.IntN(len(word))] + []string{".", "_", "-", " "}[r.IntN(4)]
}

var endings = []string{".exr", ".dpx", ".jp2", ".tar.gz", ".bgeo.sc", "_L.tif", ".beauty.exr", ".mp4"}

var numberings = []numbering{
	{"padded", func(r *rand.Rand, dir string) (names, others []string) {
		s, end, width := stem(r), endings[r.IntN(len(endings))], 4+r.IntN(4)
		first := r.IntN(3000)
		for i := range 40 {
			names = append(names, path.Join(dir, fmt.Sprintf("%s%0*d%s", s, width, first+i, end)))
		}
		return names, []string{path.Join(dir, s+end), path.Join(dir, fmt.Sprintf("%s%0*d%s.md", s, width, first, end))}
	}, false},
	{"padded with gaps", func(r *rand.Rand, dir string) (names, others []string) {
		s, end := stem(r), endings[r.IntN(len(endings))]
		for i := 1001; len(names) < 40; i++ {
			if len(names) < 2 || r.IntN(6) > 0 {
				names = append(names, path.Join(dir, fmt.Sprintf("%s%06d%s", s, i, end)))
			}
		}
		return names, nil
	}, true},
	{"rendered by step", func(r *rand.Rand, dir string) (names, others []string) {
		s, step := stem(r), 2+r.IntN(9)
		for i := range 40 {
			names = append(names, path.Join(dir, fmt.Sprintf("%s%05d.exr", s, 1+i*step)))
		}
		return names, nil
	}, false},
	{"through the padding", func(r *rand.Rand, dir string) (names, others []string) {
		s, width := stem(r), 2+r.IntN(4)
		power := 1
		for range width {
			power *= 10
		}
		for i := range 40 {
			names = append(names, path.Join(dir, fmt.Sprintf("%s%0*d.dpx", s, width, power-20+i)))
		}
		return names, []string{path.Join(dir, fmt.Sprintf("%s%0*d.dpx", s, width, 1))}
	}, false},
	{"hexadecimal", func(r *rand.Rand, dir string) (names, others []string) {
		s, first := stem(r), 0xe0+r.IntN(0x100)
		for i := range 40 {
			names = append(names, path.Join(dir, fmt.Sprintf("%s%06x.tif", s, first+i)))
		}
		return names, nil
	}, false},
	{"negative", func(r *rand.Rand, dir string) (names, others []string) {
		s := strings.TrimRight(stem(r), "._- ") + "."
		for i := range 40 {
			if v := i - 10; v < 0 {
				names = append(names, path.Join(dir, fmt.Sprintf("%s-%04d.exr", s, -v)))
			} else {
				names = append(names, path.Join(dir, fmt.Sprintf("%s%04d.exr", s, v)))
			}
		}
		return names, nil
	}, false},
	{"versions and views beside it", func(r *rand.Rand, dir string) (names, others []string) {
		for i := range 40 {
			names = append(names, path.Join(dir, fmt.Sprintf("sh_v002.L.%04d.exr", 990+i)))
			others = append(others, path.Join(dir, fmt.Sprintf("sh_v003.L.%04d.exr", 990+i)), path.Join(dir, fmt.Sprintf("sh_v002.R.%04d.exr", 990+i)))
		}
		return names, others
	}, false},
	{"full names", func(r *rand.Rand, dir string) (names, others []string) {
		long := strings.Repeat("n", 245)
		for i := range 40 {
			names = append(names, path.Join(dir, fmt.Sprintf("%s.%05d.exr", long[:245], i)))
		}
		return names, nil
	}, false},
	{"letters, digits and bytes that are no text", func(r *rand.Rand, dir string) (names, others []string) {
		for i := range 40 {
			names = append(names, path.Join(dir, fmt.Sprintf("\xff\xfe\x01 %05d\x80.raw", 7+i)))
		}
		return names, nil
	}, false},
}

// TestEveryReadingOfEveryNumbering draws sequences at random, has each read in
// each way, and wants every open to be the first that was predicted once the way
// is known; and no name that does not exist, ever.
func TestEveryReadingOfEveryNumbering(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	seed := rand.Uint64()
	t.Logf("seed %d, %d cases", seed, rounds*len(readings)*len(numberings))
	r := rand.New(rand.NewPCG(seed, 2))
	for _, numbering := range numberings {
		for _, reading := range readings {
			if numbering.gaps && reading.counts {
				continue
			}
			t.Run(numbering.name+"/"+reading.name, func(t *testing.T) {
				for range rounds {
					dir := []string{"", "plates", "show/sh010/v001"}[r.IntN(3)]
					names, others := numbering.names(r, dir)
					opens, learned := reading.order(r, names)
					if wrong := foretold(newTree(slices.Concat(names, others)...), opens, learned); wrong != "" {
						t.Fatalf("%q: %s", opens, wrong)
					}
				}
			})
		}
	}
}

// foretold plays opens and says where one was not the first predicted though
// learned others came before it.
func foretold(dirs tree, opens []string, learned int) string {
	p := NewPredictor()
	var next []string
	last := ""
	count := 0
	for i, file := range opens {
		if file != last {
			if count >= learned && (len(next) == 0 || next[0] != file) {
				return fmt.Sprintf("open %d, %q: predicted %q", i, file, next)
			}
			count++
		}
		last = file
		next = p.Open(1, file, dirs, 8).Next
		for _, name := range next {
			if !dirs.has(name) {
				return fmt.Sprintf("after open %d, %q: predicted %q, which does not exist", i, file, name)
			}
		}
	}
	return ""
}
