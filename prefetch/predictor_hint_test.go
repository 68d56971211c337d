package prefetch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// epoch is a shuffled order of the files of a set.
func epoch(seed uint64, files []string) []string {
	order := slices.Clone(files)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// batches are the files that one of several workers of a data loader reads.
func batches(order []string, worker, workers, size int) []string {
	var own []string
	for at := worker * size; at < len(order); at += workers * size {
		own = append(own, order[at:min(at+size, len(order))]...)
	}
	return own
}

func hinted(t *testing.T, announcer Reader, order []string) *Predictor {
	t.Helper()
	p := NewPredictor()
	if _, err := p.Hint(announcer, 1, order); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWorkersReadOneList lets the workers of a loader read batches in turns, at
// their own pace, from a list that another process announced. What a worker opens
// must be expected before it is opened, within a window of four batches a worker.
func TestWorkersReadOneList(t *testing.T) {
	files := frames("img_%05d.npz", 0, 3999, 1)
	dirs := newTree(files...)
	order := epoch(1, files)
	for _, c := range []struct{ workers, size int }{{1, 32}, {2, 32}, {4, 1}, {4, 100}, {16, 64}, {16, 8}} {
		t.Run(fmt.Sprintf("%dx%d", c.workers, c.size), func(t *testing.T) {
			p := hinted(t, 100, order)
			pace := rand.New(rand.NewPCG(7, uint64(c.workers)))
			left := make([][]string, c.workers)
			for w := range left {
				left[w] = batches(order, w, c.workers, c.size)
			}
			window := p.Peek(1, dirs, maxAheadAnnounced).Next
			unforeseen, unlisted := 0, 0
			for {
				most := slices.MaxFunc(left, func(a, b []string) int { return len(a) - len(b) })
				if len(most) == 0 {
					break
				}
				w := pace.IntN(c.workers)
				if len(left[w]) == 0 || len(most)-len(left[w]) > c.size {
					continue // a loader lets no worker get far ahead of the others
				}
				file := left[w][0]
				left[w] = left[w][1:]
				if !slices.Contains(window, file) {
					unforeseen++
				}
				prediction := p.Open(Reader(w), file, dirs, maxAheadAnnounced)
				if !prediction.Announced {
					unlisted++
				}
				window = prediction.Next
			}
			if unforeseen > len(order)/20 || unlisted > len(order)/100 {
				t.Errorf("of %d opens %d were not expected, %d were not taken for the list's", len(order), unforeseen, unlisted)
			}
		})
	}
}

// TestWhatFollowsInTheList checks what a reader is told to open next.
func TestWhatFollowsInTheList(t *testing.T) {
	files := frames("f_%03d.npz", 0, 40, 1)
	dirs := newTree(files...)
	at := func(places ...int) []string {
		var names []string
		for _, i := range places {
			names = append(names, files[i])
		}
		return names
	}
	cases := []struct {
		name  string
		list  []string
		opens []event
		want  []string
	}{
		{"the announcer's own", at(5, 3, 9, 1), []event{{1, files[5]}}, at(3, 9, 1)},
		{"another process", at(5, 3, 9, 1), []event{{2, files[5]}}, at(3, 9, 1)},
		{"begun in the middle", at(5, 3, 9, 1), []event{{2, files[9]}}, at(1)},
		{"skipping", at(5, 3, 9, 1, 8), []event{{1, files[5]}, {1, files[9]}}, at(1, 8)},
		{"opened again", at(5, 3, 9, 1), []event{{1, files[5]}, {1, files[3]}, {1, files[5]}, {1, files[3]}}, at(9, 1)},
		{"what another worker has opened", at(5, 3, 9, 1), []event{{1, files[3]}, {2, files[5]}, {2, files[3]}}, at(9, 1)},
		{"the same file twice", at(5, 3, 5, 3, 9), []event{{1, files[5]}, {1, files[3]}, {1, files[5]}}, at(3, 9)},
		{"twice at once", at(5, 5, 9), []event{{1, files[5]}, {1, files[5]}}, at(9)},
		{"the end", at(5, 3), []event{{1, files[5]}, {1, files[3]}}, nil},
		{"in order of the names", at(4, 5, 6, 7), []event{{2, files[4]}, {2, files[5]}}, at(6, 7)},
		{"left", at(5, 3, 9, 1), []event{{1, files[5]}, {1, files[20]}, {1, files[21]}}, at(22, 23, 24, 25)},
		{"left and come back", at(5, 3, 9, 1), []event{{1, files[5]}, {1, files[20]}, {1, files[3]}}, at(9, 1)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := hinted(t, 1, c.list)
			var got []string
			for _, e := range c.opens {
				got = p.ReaderNext(e.reader, p.Open(e.reader, e.file, dirs, 4), dirs, 4)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestAnOrderOfItsOwn checks that a reader which walks through files that another
// announced in another order is not led away, and leads nobody away.
func TestAnOrderOfItsOwn(t *testing.T) {
	files := frames("f_%04d.npz", 0, 999, 1)
	dirs := newTree(files...)
	order := epoch(3, files)
	p := hinted(t, 1, order)
	chance := rand.New(rand.NewPCG(5, 5))
	for i := range 400 {
		if i >= 100 {
			if got := p.Open(2, files[i], dirs, 2); i > 102 && !slices.Equal(got.Next, files[i+1:i+3]) {
				t.Fatalf("in order, after %s: %q", files[i], got.Next)
			}
		}
		p.Open(3, files[chance.IntN(len(files))], dirs, 2)
		got := p.Open(1, order[i], dirs, 2)
		// What reader 3 has met by chance does not count as due any more.
		if next := p.ReaderNext(1, got, dirs, 1); !slices.Contains(order[i+1:i+5], next[0]) {
			t.Fatalf("the list, after %d: %q, want %q", i, next, order[i+1:i+5])
		}
		if !got.Announced {
			t.Fatalf("open %d of the list was not taken for it", i)
		}
	}
}

// TestAReaderThatSkips checks that what was passed over is not waited for.
func TestAReaderThatSkips(t *testing.T) {
	files := frames("f_%05d.npz", 0, 20_000, 1)
	dirs := newTree(files...)
	order := epoch(1, files)
	p := hinted(t, 9, order)
	for i := 0; i < 12_000; i += 2 {
		for w := range Reader(2) { // two, so that what one passed over may be the other's
			at := i + int(w)*1001
			if got := p.Open(w, order[at], dirs, 64).Next; i > 4 && !slices.Contains(got, order[at+2]) {
				t.Fatalf("reader %d at %d does not go on in the list", w, at)
			}
		}
	}
	a := p.lists.byReader[9]
	if a.low < a.front-3*hintPatience {
		t.Errorf("the front is at %d and %d is waited for still", a.front, a.low)
	}
}

func TestListsAreReplaced(t *testing.T) {
	files := frames("f_%03d.npz", 0, 20, 1)
	dirs := newTree(files...)
	p := hinted(t, 1, files[:8])
	p.Open(1, files[0], dirs, 4)
	first, _ := p.Hint(1, 1, files[8:10])
	second, err := p.Hint(1, 2, []string{files[15], files[2], files[11]})
	if first != second || err != nil {
		t.Errorf("a new list is stream %d (%v), the old one was %d", second, err, first)
	}
	if _, err := p.Hint(1, 1, files[10:12]); !errors.Is(err, ErrHintReplaced) {
		t.Errorf("more of a list that was replaced: %v", err)
	}
	if got := p.Peek(second, dirs, 9).Next; !slices.Equal(got, []string{files[15], files[2], files[11]}) {
		t.Errorf("before the first open: %q", got)
	}
	if got := p.Open(4, files[15], dirs, 9).Next; !slices.Equal(got, []string{files[2], files[11]}) {
		t.Errorf("after it: %q", got)
	}
	if p.Announced(files[5]) || !p.Announced(files[11]) {
		t.Error("what is to come in the list is not told from what was replaced")
	}
	p.Forget(second)
	if got := p.Open(5, files[2], dirs, 1); got.Announced || p.Knows(second) {
		t.Errorf("a forgotten list goes on: %+v", got)
	}
}

// TestBegunFarIntoTheList resumes an epoch beyond what a list looks ahead.
func TestBegunFarIntoTheList(t *testing.T) {
	files := frames("f_%05d.npz", 0, 20_000, 1)
	dirs := newTree(files...)
	order := epoch(2, files)
	p := hinted(t, 1, order)
	if got := p.Open(1, order[15_000], dirs, 2).Next; !slices.Equal(got, order[15_001:15_003]) {
		t.Errorf("the announcer: %q", got)
	}
	p = hinted(t, 1, order)
	if p.Open(2, order[15_000], dirs, 2).Announced {
		t.Error("another process needs two opens")
	}
	p.Open(2, order[15_001], dirs, 2)
	if got := p.Open(2, order[15_002], dirs, 2).Next; !slices.Equal(got, order[15_003:15_005]) {
		t.Errorf("another process: %q", got)
	}
}

// TestAnnouncedMemory announces more than is held, plays a long list, and looks
// at what is left.
func TestAnnouncedMemory(t *testing.T) {
	long := strings.Repeat("d/", 2000)
	p := NewPredictor()
	var err error
	for i := 0; err == nil; i++ {
		if _, err = p.Hint(Reader(i%100), uint64(1+i/100), []string{fmt.Sprint(long, i), fmt.Sprint(long, -i)}); i > maxAnnouncedText/len(long) {
			t.Fatal("paths without end were taken")
		}
		if len(p.lists.recent) > maxLists || len(p.lists.byReader) > maxLists {
			t.Fatalf("%d lists", len(p.lists.recent))
		}
		if i == 500 {
			p = hinted(t, 1, nil)
			_, _ = p.Hint(1, 1, []string{"x"})
			for range maxAnnouncedText / len(long) {
				if _, err = p.Hint(1, 1, []string{long}); err != nil {
					break
				}
			}
			break
		}
	}
	if err != nil && !errors.Is(err, ErrHintsFull) {
		t.Error(err)
	}

	p = NewPredictor()
	name := func(i int) string { return fmt.Sprintf("f%07d.npz", i) }
	for i := range 100_000 {
		if _, err := p.Hint(1, 1, []string{name(i)}); err != nil {
			t.Fatal(err)
		}
		if i >= 100 {
			p.Open(1, name(i-100), unknown, 1)
		}
	}
	a := p.lists.byReader[1]
	if most := 4 * hintReach; len(a.files) > most || len(a.tails) > most || a.text > most*len(name(0)) {
		t.Errorf("%d files, %d indexed, %d bytes are left of a list that was read", len(a.files), len(a.tails), a.text)
	}
}

// TestOneFileForEver is a list that names one file again and again.
func TestOneFileForEver(t *testing.T) {
	p := hinted(t, 1, slices.Repeat([]string{"a", "a", "b"}, 30_000))
	for i := range 60_000 {
		file := []string{"a", "b"}[i%2]
		if got := p.Open(1, file, unknown, 2); len(got.Next) != 2 && i < 50_000 {
			t.Fatalf("open %d: %q", i, got.Next)
		}
	}
}

func BenchmarkAnnouncedOpen(b *testing.B) {
	files := frames("f_%07d.npz", 0, 999_999, 1)
	order := epoch(1, files)
	p := NewPredictor()
	if _, err := p.Hint(1, 1, order); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		p.Open(1, order[i%len(order)], unknown, 16)
	}
}
