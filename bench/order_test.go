package bench

import (
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
	for _, test := range []struct {
		name   string
		order  Order
		frames int
		want   []int
	}{
		{"forward", Order{}, 4, []int{0, 1, 2, 3}},
		{"reverse", Order{Reverse: true}, 4, []int{3, 2, 1, 0}},
		{"loop", Order{Loop: 2}, 3, []int{0, 1, 2, 0, 1, 2}},
		{"step", Order{Step: 3}, 8, []int{0, 3, 6}},
		{"step in reverse", Order{Step: 3, Reverse: true}, 8, []int{6, 3, 0}},
		{"ping-pong", Order{PingPong: true}, 4, []int{0, 1, 2, 3, 2, 1}},
		{"ping-pong twice", Order{PingPong: true, Loop: 2}, 3, []int{0, 1, 2, 1, 0, 1, 2, 1}},
		{"ping-pong of one", Order{PingPong: true}, 1, []int{0}},
	} {
		p := newProgram(test.order, test.frames)
		var got []int
		for k := range p.len() {
			got = append(got, p.at(k))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestRandomOrderIsAPermutationOfEachPass(t *testing.T) {
	play := func(seed uint64) []int {
		p := newProgram(Order{Random: true, Seed: seed, Loop: 2}, 50)
		var order []int
		for k := range p.len() {
			order = append(order, p.at(k))
		}
		return order
	}
	order := play(1)
	if !slices.Equal(order, play(1)) {
		t.Error("the same seed gives another order")
	}
	if slices.Equal(order, play(2)) || slices.Equal(order[:50], order[50:]) {
		t.Error("another seed or pass gives the same order")
	}
	for _, pass := range [][]int{order[:50], order[50:]} {
		sorted := slices.Sorted(slices.Values(pass))
		for i, index := range sorted {
			if i != index {
				t.Fatalf("not a permutation: %v", pass)
			}
		}
	}
}

func TestSeeksPlayRunsInARow(t *testing.T) {
	const frames, run = 50, 8
	p := newProgram(Order{Random: true, Seed: 1, Run: run, Loop: 2}, frames)
	for pass := range 2 {
		seeks, seen := 0, map[int]bool{}
		for k, last := 0, -1; k < frames; k++ {
			index := p.at(pass*frames + k)
			if seen[index] = true; index != last+1 || k == 0 {
				if seeks++; index%run != 0 {
					t.Errorf("a seek to %d within a run", index)
				}
			}
			last = index
		}
		if len(seen) != frames || seeks < 2 || seeks > (frames+run-1)/run {
			t.Errorf("%d of %d frames in %d runs", len(seen), frames, seeks)
		}
	}
}

func TestOrderValidate(t *testing.T) {
	for _, order := range []Order{{Random: true, Reverse: true}, {Random: true, PingPong: true}, {Step: -1}, {Loop: -1}, {Run: 2}, {Random: true, Run: -1}} {
		if order.Validate() == nil {
			t.Errorf("%+v is accepted", order)
		}
	}
}
