package prefetch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// mix is a way in which several sequences, folders or readers meet, drawn at
// random: after `learned` opens of a reader each of its opens must have been
// predicted, as the very first name if exact.
type mix struct {
	name  string
	draw  func(*rand.Rand) (files []string, events []event, learned int)
	exact bool
}

var mixes = []mix{
	{"views in turn", func(r *rand.Rand) ([]string, []event, int) {
		s, count, views := stem(r), 15+r.IntN(20), [][2]string{{"l", "r"}, {"left", "right"}, {"L", "R"}}[r.IntN(3)]
		form := []string{"%[1]s%[2]s.%04[3]d.exr", "%[1]s%04[3]d_%[2]s.exr", "%[2]s/%[1]s%04[3]d.exr"}[r.IntN(3)]
		var sides [2][]string
		for i := range count {
			for side, view := range views {
				sides[side] = append(sides[side], fmt.Sprintf(form, s, view, 95+i))
			}
		}
		return slices.Concat(sides[0], sides[1]), asOne(interleave(sides[0], sides[1])), 3
	}, true},
	{"passes in turn", func(r *rand.Rand) ([]string, []event, int) {
		names := []string{"beauty", "diffuse", "spec", "depth", "normal"}[:3+r.IntN(3)]
		var passes [][]string
		for _, pass := range names {
			passes = append(passes, frames("sh010_"+pass+".%04d.exr", 1001, 1030, 1))
		}
		return slices.Concat(passes...), asOne(interleave(passes...)), 2 * len(names)
	}, true},
	{"two sensors in two folders", func(r *rand.Rand) ([]string, []event, int) {
		first := r.IntN(1000)
		a, b := frames("image_2/%06d.png", first, first+30, 1), frames("velodyne/%06d.bin", first, first+30, 1)
		return slices.Concat(a, b), asOne(interleave(a, b)), 3
	}, true},
	{"workers of a stride", func(r *rand.Rand) ([]string, []event, int) {
		n := 2 + r.IntN(6)
		shards := frames("train-%06d.tar", 0, n*12, 1)
		return shards, workers(shards, n), 2
	}, true},
	{"readers at places and in directions of their own", func(r *rand.Rand) ([]string, []event, int) {
		names := frames("f.%05d.dpx", 1, 2000, 1)
		var ways [][]string
		for i := range 4 {
			at := 100 + 450*i + r.IntN(200)
			way := names[at : at+40]
			if r.IntN(2) == 0 {
				way = reversed(way)
			}
			ways = append(ways, way)
		}
		var events []event
		for i := range 40 {
			for reader, way := range ways {
				events = append(events, event{Reader(reader + 1), way[i]})
			}
		}
		return names, events, 2
	}, true},
	{"threads of one reader overtake each other", func(r *rand.Rand) ([]string, []event, int) {
		names := frames("f.%05d.dpx", 1, 200, 1)
		return names, asOne(jittered(r, names[:150], 1+r.IntN(3))), 6
	}, false},
	{"threads with a range each", func(r *rand.Rand) ([]string, []event, int) {
		names, n := frames("f.%05d.dpx", 1, 1000, 1), 2+r.IntN(4)
		var ways [][]string
		for i := range n {
			ways = append(ways, names[i*1000/n:i*1000/n+40])
		}
		return names, asOne(interleave(ways...)), 3 * n
	}, false},
	{"sorted as strings", func(r *rand.Rand) ([]string, []event, int) {
		names := frames(stem(r)+"%d.jpg", r.IntN(2), 60+r.IntN(60), 1)
		return names, asOne(slices.Sorted(slices.Values(names))), 4
	}, false},
	{"as the directory gives them", func(r *rand.Rand) ([]string, []event, int) {
		names := frames(stem(r)+"%05d.exr", 1, 100, 1)
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var opens []string
		for _, name := range names {
			opens = append(opens, "set/"+name)
		}
		return opens, asOne(opens), 8
	}, false},
	{"tiles inside frames", func(r *rand.Rand) ([]string, []event, int) {
		var names []string
		tiles, fast := 3+r.IntN(5), r.IntN(2)
		for frame := range 12 {
			for tile := range tiles {
				if fast == 0 {
					names = append(names, fmt.Sprintf("im_t%02d_z%03d.tif", frame, tile))
				} else {
					names = append(names, fmt.Sprintf("im_z%03d_t%02d.tif", tile, frame))
				}
			}
		}
		return names, asOne(names), 2
	}, true},
	{"folders of a thousand", func(r *rand.Rand) ([]string, []event, int) {
		var names []string
		for i := 2990 + r.IntN(8); len(names) < 40; i++ {
			names = append(names, fmt.Sprintf("scan/%07d/%07d.dpx", i/1000*1000, i))
		}
		return names, asOne(names), 1
	}, true},
	{"camera folders", func(r *rand.Rand) ([]string, []event, int) {
		maker := []string{"CANON", "ND750", "_PANA", "MSDCF"}[r.IntN(4)]
		folder, number := 100+r.IntN(800), 9980+r.IntN(10)
		var names []string
		for range 40 {
			names = append(names, fmt.Sprintf("DCIM/%d%s/IMG_%04d.JPG", folder, maker, number))
			if number++; number > 9999 {
				folder, number = folder+1, 1
			}
		}
		return names, asOne(names), 1
	}, true},
	{"one file of a name in each folder", func(r *rand.Rand) ([]string, []event, int) {
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("renders/f%04d/beauty.exr", 85+i))
		}
		if r.IntN(2) == 0 {
			return names, asOne(reversed(names)), 2
		}
		return names, asOne(names), 2
	}, true},
	{"a process for each frame", func(r *rand.Rand) ([]string, []event, int) {
		names, step := frames(stem(r)+"%05d.exr", 80, 160, 1), 1+r.IntN(3)
		var events []event
		for i := 0; i < len(names); i += step {
			events = append(events, event{Reader(i + 1), names[i]})
		}
		return names, events, 0
	}, false},
	{"chapters of recordings", func(r *rand.Rand) ([]string, []event, int) {
		var names []string
		for recording := range 12 {
			for chapter := range 1 + r.IntN(4) {
				names = append(names, fmt.Sprintf("GX%02d%04d.MP4", chapter+1, 95+recording))
			}
		}
		return names, asOne(names), 1
	}, true},
}

// TestMixes draws each mix many times.
func TestMixes(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	seed := rand.Uint64()
	t.Logf("seed %d, %d cases", seed, rounds*len(mixes))
	r := rand.New(rand.NewPCG(seed, 3))
	for _, m := range mixes {
		t.Run(m.name, func(t *testing.T) {
			opens, missed := 0, 0
			for range rounds {
				files, events, learned := m.draw(r)
				o, wrong := m.play(newTree(files...), events, learned)
				opens += o
				missed += len(wrong)
				if m.exact && len(wrong) > 0 {
					t.Fatalf("%s\nof %v", wrong[0], events)
				}
			}
			if share := float64(missed) / float64(opens); share > 0.05 {
				t.Errorf("%d of %d opens were not predicted", missed, opens)
			}
		})
	}
}

// play returns how many opens were counted and which of them were not predicted.
func (m mix) play(dirs tree, events []event, learned int) (opens int, wrong []string) {
	p := NewPredictor()
	next := make(map[Reader][]string)
	windows := make(map[StreamID][]string)
	seen := make(map[Reader]int)
	for i, e := range events {
		if seen[e.reader] >= learned && i > 2 {
			opens++
			known := len(next[e.reader]) > 0 && next[e.reader][0] == e.file
			if !m.exact {
				for _, names := range windows {
					known = known || slices.Contains(names, e.file)
				}
			}
			if !known {
				wrong = append(wrong, fmt.Sprintf("open %d, %s by %d: predicted %q", i, e.file, e.reader, next[e.reader]))
			}
		}
		seen[e.reader]++
		prediction := p.Open(e.reader, e.file, dirs, 8)
		if c := p.streams[prediction.Stream]; c != nil {
			kept := c.plan
			c.plan = plan{}
			if fresh := p.Peek(c.id, dirs, 8).Next; !slices.Equal(fresh, prediction.Next) {
				wrong = append(wrong, fmt.Sprintf("open %d, %s: planned %q, and would be %q", i, e.file, prediction.Next, fresh))
				opens = 1
				return opens, wrong
			}
			c.plan = kept
		}
		windows[prediction.Stream] = prediction.Next
		next[e.reader] = p.ReaderNext(e.reader, prediction, dirs, 8)
	}
	return opens, wrong
}
