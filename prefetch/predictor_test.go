package prefetch

import (
	"fmt"
	"slices"
	"testing"

	"reelahead/naming"
)

var unknown = tree{} // no listing has arrived

func TestGuessesUntilTheListingArrives(t *testing.T) {
	p := NewPredictor()
	first := p.Open(1, "d/f_0009.dpx", unknown, 2)
	if want := []string{"d/f_0010.dpx", "d/f_0011.dpx"}; !slices.Equal(first.Next, want) {
		t.Errorf("decimal set %q, want %q", first.Next, want)
	}
	if want := []string{"d/f_000a.dpx", "d/f_000b.dpx"}; !slices.Equal(first.Fallback, want) {
		t.Errorf("hexadecimal set %q, want %q", first.Fallback, want)
	}
	if first.Proven || first.Locked || !slices.Equal(first.WantListings, []string{"d"}) {
		t.Errorf("proven %v, locked %v, wants %q", first.Proven, first.Locked, first.WantListings)
	}

	arrived := newTree("d/f_0009.dpx", "d/f_000a.dpx", "d/f_0010.dpx")
	second := p.Peek(first.Stream, arrived, 2)
	if want := []string{"d/f_000a.dpx", "d/f_0010.dpx"}; !slices.Equal(second.Next, want) || !second.Proven || second.Stream != first.Stream {
		t.Errorf("with the listing: %+v, want %q", second, want)
	}
}

func TestGuessesLearn(t *testing.T) {
	cases := []struct {
		opens []string
		want  []string
	}{
		{[]string{"f_0001", "f_0002"}, []string{"f_0003", "f_0004"}},
		{[]string{"f_0005", "f_0004"}, []string{"f_0003", "f_0002"}},
		{[]string{"f_0001", "f_0003", "f_0005"}, []string{"f_0007", "f_0009"}},
		{[]string{"f_09_c1", "f_10_c1"}, []string{"f_11_c1", "f_12_c1"}},
		{[]string{"f_00fe", "f_00ff"}, []string{"f_0100", "f_0101"}},
		{[]string{"f_0009", "f_000a"}, []string{"f_000b", "f_000c"}},
		{[]string{"Asset_v001.exr"}, nil},
		{[]string{"readme"}, nil},
	}
	for _, c := range cases {
		p := NewPredictor()
		var got Prediction
		for _, file := range c.opens {
			got = p.Open(1, file, unknown, 2)
		}
		if !slices.Equal(got.Next, c.want) {
			t.Errorf("after %q: %q, want %q", c.opens, got.Next, c.want)
		}
		if len(c.opens) > 1 && !got.Locked {
			t.Errorf("after %q: not locked", c.opens)
		}
	}
}

func TestHintsOutrankLearning(t *testing.T) {
	files := frames("f_%03d.npz", 0, 20, 1)
	dirs := newTree(files...)
	p := NewPredictor()
	p.Hint(1, 1, []string{files[4], files[1]})
	p.Hint(1, 1, []string{files[9], files[0]})
	got := p.Open(1, files[4], dirs, 8)
	if want := []string{files[1], files[9], files[0]}; !slices.Equal(got.Next, want) || !got.Proven || !got.Locked {
		t.Fatalf("%+v, want %q", got, want)
	}
	if again := p.Open(1, files[4], dirs, 8); !slices.Equal(again.Next, got.Next) {
		t.Errorf("opened again: %q", again.Next)
	}
	if skipped := p.Open(1, files[9], dirs, 8); !slices.Equal(skipped.Next, []string{files[0]}) {
		t.Errorf("one left out: %q", skipped.Next)
	}
	if left := p.Open(1, files[12], dirs, 2); !slices.Equal(left.Next, files[13:15]) {
		t.Errorf("off the list: %q, want learning to go on", left.Next)
	}
	if other := p.Open(2, files[4], dirs, 1); !slices.Equal(other.Next, files[5:6]) {
		t.Errorf("another reader: %q", other.Next)
	}
	p.Hint(1, 2, []string{files[7], files[3]})
	if next := p.Open(1, files[7], dirs, 8); !slices.Equal(next.Next, []string{files[3]}) {
		t.Errorf("new list: %q", next.Next)
	}
}

func TestStreamsComeAndGo(t *testing.T) {
	dirs := newTree(frames("a/s.%04d.exr", 1, 50, 1)...)
	p := NewPredictor()
	p.Open(7, "a/s.0001.exr", dirs, 4)
	opened := p.Open(7, "a/s.0002.exr", dirs, 4)
	state, ok := p.Stream(opened.Stream)
	if want := (StreamState{opened.Stream, 7, "a", "s.%04d.exr", 1, "s.0002.exr"}); !ok || state != want {
		t.Errorf("got %+v, want %+v", state, want)
	}
	p.Hint(7, 1, []string{"a/s.0009.exr"})
	if states := p.Streams(); len(states) != 2 {
		t.Errorf("streams: %+v", states)
	}
	for _, state := range p.Streams() {
		p.Forget(state.Stream)
		if gone := p.Peek(state.Stream, dirs, 4); gone.Stream != 0 {
			t.Errorf("forgotten, and still there: %+v", gone)
		}
	}
	p.Forget(opened.Stream)
	if fresh := p.Open(7, "a/s.0003.exr", dirs, 4); fresh.Stream == opened.Stream || fresh.Stream == 0 {
		t.Errorf("stream %d was used before", fresh.Stream)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	files := frames("f%06d.dpx", 0, 9999, 1)
	dirs := newTree(files...)
	p := NewPredictor()
	for i := range 200_000 {
		p.Open(Reader(i%3000), files[i*7919%len(files)], unknown, 1)
	}
	if readers := len(p.readers); readers > maxReaders {
		t.Errorf("%d readers", readers)
	}
	for i := range 5000 {
		p.Open(1, files[i*7919%len(files)], dirs, 1)
	}
	cursors := 0
	for _, element := range p.readers {
		who := element.Value.(*reader)
		cursors += len(who.cursors)
		if len(who.cursors) > maxCursorsPerReader {
			t.Errorf("reader %d has %d cursors", who.id, len(who.cursors))
		}
	}
	if cursors != len(p.streams) {
		t.Errorf("%d cursors, %d streams", cursors, len(p.streams))
	}
}

func TestFolders(t *testing.T) {
	card := slices.Concat(frames("100CANON/IMG_%04d.JPG", 9990, 9999, 1), frames("101CANON/IMG_%04d.JPG", 1, 9, 1))
	cases := []struct {
		name  string
		files []string
		opens []string
		want  []string
	}{
		{"number goes on", slices.Concat(frames("a_1/%04d.dpx", 1, 9, 1), frames("a_2/%04d.dpx", 10, 19, 1)), []string{"a_1/0009.dpx"}, []string{"a_2/0010.dpx", "a_2/0011.dpx"}},
		{"backwards", slices.Concat(frames("a_1/%04d.dpx", 1, 9, 1), frames("a_2/%04d.dpx", 10, 19, 1)), []string{"a_2/0011.dpx", "a_2/0010.dpx"}, []string{"a_1/0009.dpx", "a_1/0008.dpx"}},
		{"camera rolls over", card, []string{"100CANON/IMG_9999.JPG"}, []string{"101CANON/IMG_0001.JPG", "101CANON/IMG_0002.JPG"}},
		{"folder's number in the name", slices.Concat(frames("snap_009/s_009.%d.h5", 0, 3, 1), frames("snap_010/s_010.%d.h5", 0, 3, 1)), []string{"snap_009/s_009.3.h5"}, []string{"snap_010/s_010.0.h5", "snap_010/s_010.1.h5"}},
		{"starts over for a known reader", slices.Concat(frames("c_1/%d.jpg", 1, 3, 1), frames("c_2/%d.jpg", 1, 3, 1)), []string{"c_1/2.jpg", "c_1/3.jpg"}, []string{"c_2/1.jpg", "c_2/2.jpg"}},
		{"not after one open", slices.Concat(frames("c_1/%d.jpg", 1, 3, 1), frames("c_2/%d.jpg", 1, 3, 1)), []string{"c_1/3.jpg"}, nil},
		{"day and hour", slices.Concat(frames("d1/23/cam/%02d.mp4", 57, 59, 1), frames("d2/00/cam/%02d.mp4", 0, 2, 1), frames("d2/01/cam/%02d.mp4", 0, 2, 1)), []string{"d1/23/cam/58.mp4", "d1/23/cam/59.mp4"}, []string{"d2/00/cam/00.mp4", "d2/00/cam/01.mp4"}},
		{"version", slices.Concat(frames("v001/%d.jpg", 1, 3, 1), frames("v002/%d.jpg", 1, 3, 1)), []string{"v001/2.jpg", "v001/3.jpg"}, nil},
		{"resolution", slices.Concat(frames("1920x1080/%d.jpg", 1, 3, 1), frames("3840x2160/%d.jpg", 1, 3, 1)), []string{"1920x1080/2.jpg", "1920x1080/3.jpg"}, nil},
		{"a longer twin", slices.Concat(frames("run_1/%d.jpg", 1, 3, 1), frames("run_2/%d.jpg", 1, 5, 1)), []string{"run_1/3.jpg"}, nil},
		{"checkpoints", []string{"checkpoint-500/model.pt", "checkpoint-1000/model.pt"}, []string{"checkpoint-500/model.pt"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dirs := newTree(c.files...)
			p := NewPredictor()
			var got Prediction
			for _, file := range c.opens {
				got = p.Open(1, file, dirs, 2)
			}
			if !slices.Equal(got.Next, c.want) {
				t.Errorf("got %q, want %q", got.Next, c.want)
			}
		})
	}
}

// TestAsksForFolders checks that the folders that could tell more are named,
// nearest first, until they are known.
func TestAsksForFolders(t *testing.T) {
	all := newTree(slices.Concat(frames("a_1/%04d.dpx", 1, 9, 1), frames("a_2/%04d.dpx", 10, 19, 1))...)
	known := make(tree)
	p := NewPredictor()
	stream := p.Open(1, "a_1/0009.dpx", known, 2).Stream
	for _, want := range []string{"a_1", "", "a_2"} {
		got := p.Peek(stream, known, 2)
		if !slices.Equal(got.WantListings, []string{want}) {
			t.Fatalf("wants %q, expected %q", got.WantListings, want)
		}
		known[want] = all[want]
	}
	if got := p.Peek(stream, known, 2); !slices.Equal(got.Next, []string{"a_2/0010.dpx", "a_2/0011.dpx"}) {
		t.Errorf("got %q", got.Next)
	}
}

func TestReadersAreApart(t *testing.T) {
	files := frames("s.%04d.exr", 1, 100, 1)
	dirs := newTree(files...)
	p := NewPredictor()
	for i := range 10 {
		for r := range 5 {
			at, step := r*20+i, 1
			if r%2 == 1 {
				at, step = r*20+19-i, -1
			}
			got := p.Open(Reader(r), files[at], dirs, 1)
			if i < 2 || i == 9 {
				continue
			}
			if want := []string{files[at+step]}; !slices.Equal(got.Next, want) {
				t.Fatalf("reader %d after %s: %q, want %q", r, files[at], got.Next, want)
			}
		}
	}
}

func TestNamesOfAnyBytes(t *testing.T) {
	names := []string{"a\xff b\n1", "a\xff b\n2", "\x00\t9", "\x00\t10"}
	dirs := tree{"": naming.NewListing(names)}
	for _, pair := range [][2]string{{names[0], names[1]}, {names[2], names[3]}} {
		if got := NewPredictor().Open(1, pair[0], dirs, 3).Next; !slices.Equal(got, []string{pair[1]}) {
			t.Errorf("after %q: %q", pair[0], got)
		}
	}
}

func ExamplePredictor() {
	dirs := newTree("shot.0999.exr", "shot.1000.exr", "shot.1002.exr")
	p := NewPredictor()
	fmt.Println(p.Open(1, "shot.0999.exr", dirs, 4).Next)
	// Output: [shot.1000.exr shot.1002.exr]
}
