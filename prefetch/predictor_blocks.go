package prefetch

// blocks recognises a reader that takes a run of files and then leaves some
// out, again and again: a loader's worker that reads batch k of N.
type blocks struct {
	run      int // single steps since the last jump
	length   int // single steps before the last jump
	distance int // of the last jump, in the walk's direction
	repeats  int // how often this length and distance came in a row
}

func (b *blocks) step() { b.run++ }

// jump ends a run. It is called before step, which counts the jump itself.
func (b *blocks) jump(distance int) {
	if distance == b.distance && b.run == b.length {
		b.repeats++
	} else {
		b.repeats = 1
	}
	b.length, b.distance, b.run = b.run, distance, -1
}

func (b *blocks) forget() { *b = blocks{} }

// due returns the distance to jump after `more` further single steps, 0 if
// none is due then.
func (b *blocks) due(more int) int {
	if b.length == 0 || b.repeats < 2 || b.distance < 2 {
		return 0
	}
	if (b.run+more)%(b.length+1) == b.length {
		return b.distance
	}
	return 0
}
