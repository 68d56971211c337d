package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Order says in which order the frames of a sequence are played. The zero value
// is once from the first to the last.
type Order struct {
	Reverse  bool
	Random   bool   // each pass in another random order
	Seed     uint64 // of Random
	Run      int    // frames in a row between two seeks of Random; 0: one
	PingPong bool   // there and back; the frames at the ends are not repeated
	Step     int    // every Step-th frame; 0 and 1: all
	Loop     int    // passes; 0: one
}

// Validate returns an error that says which parts contradict each other.
func (o Order) Validate() error {
	switch {
	case o.Random && (o.Reverse || o.PingPong):
		return fmt.Errorf("a random order has no direction: it goes with neither reverse nor ping-pong")
	case o.Run < 0:
		return fmt.Errorf("the number of frames between two seeks can't be negative")
	case o.Run > 0 && !o.Random:
		return fmt.Errorf("seeks go to random places: they need a random order")
	case o.Step < 0:
		return fmt.Errorf("the step can't be negative: play in reverse instead")
	case o.Loop < 0:
		return fmt.Errorf("the number of passes can't be negative")
	}
	return nil
}

// program is an Order over a number of frames. It is not safe for concurrent
// use.
type program struct {
	order  Order
	pass   []int // the indexes of one pass
	passes int
	number int // of the pass that a random pass has been shuffled for
}

func newProgram(order Order, frames int) *program {
	p := &program{order: order, passes: max(order.Loop, 1), number: -1}
	for i := 0; i < frames; i += max(order.Step, 1) {
		p.pass = append(p.pass, i)
	}
	if order.Reverse {
		slices.Reverse(p.pass)
	}
	if order.PingPong && len(p.pass) > 2 {
		back := slices.Clone(p.pass[1 : len(p.pass)-1])
		slices.Reverse(back)
		p.pass = append(p.pass, back...)
	}
	return p
}

// len is how many frames are played in all passes.
func (p *program) len() int {
	if p.passes > math.MaxInt/len(p.pass) {
		return math.MaxInt
	}
	return len(p.pass) * p.passes
}

// at returns the index of the frame that is played k-th. k must not decrease
// from a call to the next in a random order.
func (p *program) at(k int) int {
	if pass := k / len(p.pass); p.order.Random && pass != p.number {
		p.number = pass
		slices.Sort(p.pass)
		runs := slices.Collect(slices.Chunk(slices.Clone(p.pass), max(p.order.Run, 1)))
		random := rand.New(rand.NewPCG(p.order.Seed, uint64(pass)))
		random.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		p.pass = slices.Concat(runs...)
	}
	return p.pass[k%len(p.pass)]
}
