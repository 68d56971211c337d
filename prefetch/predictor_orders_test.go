package prefetch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// frames returns names by a printf pattern from first to last by step.
func frames(pattern string, first, last, step int) []string {
	var names []string
	for i := first; i <= last; i += step {
		names = append(names, fmt.Sprintf(pattern, i))
	}
	return names
}

func reversed(names []string) []string {
	out := slices.Clone(names)
	slices.Reverse(out)
	return out
}

func every(names []string, start, step int) []string {
	var out []string
	for i := start; i >= 0 && i < len(names); i += step {
		out = append(out, names[i])
	}
	return out
}

func repeat(times int, names ...string) []string {
	var out []string
	for range times {
		out = append(out, names...)
	}
	return out
}

func interleave(lists ...[]string) []string {
	var out []string
	for i := range lists[0] {
		for _, list := range lists {
			if i < len(list) {
				out = append(out, list[i])
			}
		}
	}
	return out
}

func asOne(files []string) []event {
	events := make([]event, len(files))
	for i, file := range files {
		events[i] = event{1, file}
	}
	return events
}

// score replays events and counts what was predicted. An open is foreseen if
// the reader's previous predictions (within the window) held it; a name is
// wasted if it was predicted and never opened afterwards.
type score struct{ opens, foreseen, first, predicted, wasted int }

func replay(t testing.TB, dirs tree, events []event, n int) score {
	t.Helper()
	p := NewPredictor()
	var s score
	pending := make(map[Reader][]string)
	lastUse := make(map[string]int)
	for i, e := range events {
		lastUse[e.file] = i
	}
	predicted := make(map[string]int)
	window := make(map[StreamID][]string)
	last := make(map[Reader]string)
	for i, e := range events {
		if last[e.reader] != e.file {
			s.opens++
			if next := pending[e.reader]; len(next) > 0 && next[0] == e.file {
				s.first++
			}
			ready := false
			for _, names := range window {
				ready = ready || slices.Contains(names, e.file)
			}
			if ready {
				s.foreseen++
			}
		}
		last[e.reader] = e.file
		prediction := p.Open(e.reader, e.file, dirs, n)
		window[prediction.Stream] = prediction.Next
		pending[e.reader] = p.ReaderNext(e.reader, prediction, dirs, n)
		for _, name := range prediction.Next {
			if _, known := predicted[name]; !known {
				predicted[name] = i
			}
			if !dirs.has(name) {
				t.Errorf("after %s: predicted %s, which does not exist", e.file, name)
			}
		}
	}
	for name, at := range predicted {
		s.predicted++
		if lastUse[name] <= at {
			s.wasted++
		}
	}
	return s
}

func (t tree) has(file string) bool {
	p := splitPlace(file)
	return t[p.dir] != nil && t[p.dir].Contains(p.name)
}

func TestOrders(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))

	padded := frames("shot.%04d.exr", 1001, 1060, 1)
	unpadded := frames("f%d.jpg", 1, 120, 1)
	sortedUnpadded := slices.Sorted(slices.Values(unpadded))
	left, right := frames("foo.l.%04d.exr", 1, 40, 1), frames("foo.r.%04d.exr", 1, 40, 1)
	passes := [][]string{frames("sh.beauty.%04d.exr", 1, 40, 1), frames("sh.diffuse.%04d.exr", 1, 40, 1), frames("sh.z.%04d.exr", 1, 40, 1)}
	camera, lidar := frames("image_2/%06d.png", 1, 40, 1), frames("velodyne/%06d.bin", 1, 40, 1)
	loop := repeat(3, padded...)
	inOut := slices.Concat(padded[:30], repeat(4, padded[20:30]...))
	pingPong := slices.Concat(padded, reversed(padded)[1:], padded[1:], reversed(padded)[1:])
	inOutPing := slices.Concat(padded[10:20], reversed(padded[10:19]), padded[11:20], reversed(padded[10:19]), padded[11:20], reversed(padded[10:19]), padded[11:20])
	shards := frames("shard-%06d.tar", 0, 199, 1)
	var blocks []string
	for i := 0; i < 200; i += 8 {
		blocks = append(blocks, shards[i:i+4]...)
	}
	many := frames("f_%05d.dpx", 1, 4000, 1)
	var shuffled = slices.Clone(shards)
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	manyShuffled := slices.Clone(many)
	random.Shuffle(len(many), func(i, j int) { manyShuffled[i], manyShuffled[j] = manyShuffled[j], manyShuffled[i] })

	cases := []struct {
		name   string
		files  []string
		events []event
		// At most this many opens may be unforeseen and names wasted.
		missed, wasted int
	}{
		{"forward", padded, asOne(padded), 1, 0},
		{"reverse", padded, asOne(reversed(padded)), 2, 0},
		{"by two", padded, asOne(every(padded, 0, 2)), 1, 4},
		{"by seven", padded, asOne(every(padded, 0, 7)), 2, 7},
		{"by twenty", shards, asOne(every(shards, 0, 20)), 3, 16},
		{"reverse by three", padded, asOne(every(padded, 59, -3)), 3, 3},
		{"loop", padded, asOne(loop), 2, 0},
		{"in-out loop", padded, asOne(inOut), 3, 8},
		{"ping-pong", padded, asOne(pingPong), 3, 0},
		{"in-out ping-pong", padded, asOne(inOutPing), 6, 40},
		{"natural", unpadded, asOne(unpadded), 1, 0},
		{"lexicographic", unpadded, asOne(sortedUnpadded), 2, 8},
		{"eyes", slices.Concat(left, right), asOne(interleave(left, right)), 2, 0},
		{"passes", slices.Concat(passes...), asOne(interleave(passes...)), 3, 0},
		{"two folders", slices.Concat(camera, lidar), asOne(interleave(camera, lidar)), 2, 0},
		{"six opens each", padded, asOne(interleave(padded, padded, padded, padded, padded, padded)), 1, 0},
		{"blocks", shards, asOne(blocks), 3, 12},
		{"workers", shards, workers(shards, 4), 8, 40},
		{"threads in ranges", many, threads(random, many, 8, 40), 24, 90},
		{"out of order", many, asOne(jittered(random, many[:200], 3)), 24, 24},
		// Mostly none. What looks like an order by chance cost up to 85 in 120 runs.
		{"shuffled", shards, asOne(shuffled), 200, 150},
		{"shuffled many", many, asOne(manyShuffled), 4000, 160},
		{"stills far apart", many, asOne([]string{many[5], many[900], many[40], many[3000], many[1200], many[77]}), 6, 16},
		{"seek and play", many, asOne(slices.Concat(many[:30], many[1000:1030], many[200:230])), 3, 24},
		{"forward, then by two", many, asOne(slices.Concat(many[:30], every(many[:100], 31, 2))), 3, 14},
		{"forward, then back", many, asOne(slices.Concat(many[:30], reversed(many[:29]))), 2, 9},
		{"dropped frames", many, asOne(slices.Concat(many[:30], many[31:50], many[52:80], many[81:120])), 1, 12},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := replay(t, newTree(c.files...), c.events, 8)
			t.Logf("%d opens: %d foreseen, %d in order; %d names predicted, %d in vain", s.opens, s.foreseen, s.first, s.predicted, s.wasted)
			if missed := s.opens - s.foreseen; missed > c.missed {
				t.Errorf("%d opens unforeseen, want at most %d", missed, c.missed)
			}
			if s.wasted > c.wasted {
				t.Errorf("%d names predicted in vain, want at most %d", s.wasted, c.wasted)
			}
		})
	}
}

// workers are readers that take turns, each every n-th file.
func workers(files []string, n int) []event {
	var events []event
	for i, file := range files {
		events = append(events, event{Reader(i%n + 1), file})
	}
	return events
}

// threads are one reader's threads, each with a range of its own, in any order.
func threads(random *rand.Rand, files []string, n, each int) []event {
	at := make([]int, n)
	var events []event
	for len(events) < n*each {
		k := random.IntN(n)
		if at[k] < each {
			events = append(events, event{1, files[k*len(files)/n+at[k]]})
			at[k]++
		}
	}
	return events
}

// jittered lets opens overtake each other by up to `by` places.
func jittered(random *rand.Rand, files []string, by int) []string {
	out := slices.Clone(files)
	for i := range len(out) - by {
		if random.IntN(4) == 0 {
			j := i + 1 + random.IntN(by)
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}
