package prefetch

import "slices"

// turns is the order in which a reader's cursors took turns.
type turns struct {
	ids [32]StreamID
	n   int
}

func (t *turns) add(id StreamID) {
	t.ids[t.n%len(t.ids)] = id
	t.n++
}

// last returns the id i turns ago, 0 if it is forgotten.
func (t *turns) last(i int) StreamID {
	if i >= len(t.ids) || i >= t.n {
		return 0
	}
	return t.ids[(t.n-1-i)%len(t.ids)]
}

// round returns the cursors that took turns between the last two opens of the
// current one, in order, the current one last. One cursor alone is a round.
func (t *turns) round() []StreamID {
	current := t.last(0)
	for period := 1; period < len(t.ids); period++ {
		if t.last(period) != current {
			continue
		}
		round := make([]StreamID, period)
		for i := range round {
			round[period-1-i] = t.last(i)
		}
		return round
	}
	return []StreamID{current}
}

// ReaderNext returns what reader r as a whole is expected to open next. A
// reader that takes turns between streams (left eye, right eye; image, lidar)
// has a window for each stream; this is the one order in which it will open
// them. In an announced list it is what follows in that list.
func (p *Predictor) ReaderNext(r Reader, last Prediction, dirs Directories, n int) []string {
	if a := p.lists.byStream[last.Stream]; a != nil {
		return a.onward(r, n)
	}
	element := p.readers[r]
	if element == nil {
		return last.Next
	}
	round := element.Value.(*reader).turns.round()
	if len(round) < 2 || round[len(round)-1] != last.Stream {
		return last.Next
	}
	windows := make(map[StreamID][]string, len(round))
	for _, id := range round {
		if _, ok := windows[id]; !ok {
			windows[id] = p.Peek(id, dirs, n).Next
		}
	}
	var next []string
	for i := 0; len(next) < n; i++ {
		id := round[i%len(round)]
		if len(windows[id]) == 0 {
			break
		}
		if file := windows[id][0]; !slices.Contains(next, file) {
			next = append(next, file)
		}
		windows[id] = windows[id][1:]
	}
	return next
}
