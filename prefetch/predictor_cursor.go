package prefetch

import (
	"hash/maphash"
	"slices"

	"reelahead/naming"
)

// cursor is one reader's way through one sequence: where it is, how it walks,
// and where it turned. A cursor is a stream.
type cursor struct {
	id    StreamID
	owner *reader
	at    place
	walk  walk
	// counter is the number that counts while no listing is known; its
	// position holds for at.name.
	counter naming.Counter
	guided  bool // counter was learned from two names, not guessed from one
	// agreed counts the opens in a row that the walk explained. 0 is a first
	// guess, settled and more survives one deviation.
	agreed  int
	pending walk // the walk that the last deviation suggested
	segment place
	turns   []turn // where the way broke off before, newest last
	blocks  blocks
	holes   int // opens left in which a skipped file may still arrive
	seen    [16]uint64
	seenAt  int
	// expected are the hashes of the next paths by the last prediction.
	expected [reach]uint64
}

const (
	// reach is how far ahead in its expectation a cursor recognises an open
	// as its own: the depth to which players' reader threads run ahead of
	// each other.
	reach = 8
	// settled is how many opens in a row make a walk that one deviation does
	// not change.
	settled = 2
	// maxTurns bounds the places a cursor remembers to have turned at.
	maxTurns = 8
	// quietAfter is how many surprises in a row show that a reader follows no
	// order.
	quietAfter = 2
)

// turn is a place where a reader's way broke off, and where it went on.
type turn struct {
	from, to   place
	before     int // step before
	after      walk
	seen       int
	mirrorless bool
}

var pathSeed = maphash.MakeSeed()

func (p place) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(pathSeed)
	h.WriteString(p.dir)
	h.WriteByte('/')
	h.WriteString(p.name)
	return h.Sum64()
}

// train finds or makes the cursor that the open of at belongs to and moves it.
func (p *Predictor) train(who *reader, at place, dirs Directories) *cursor {
	for _, c := range who.cursors {
		if c.at == at {
			return c // opened again: tells nothing about the order
		}
	}
	hash := at.hash()
	if c, ahead := who.expecting(hash); c != nil {
		who.foreseen()
		c.arrive(at, ahead, dirs)
		who.turns.add(c.id)
		return c
	}
	c := p.surprise(who, at, dirs)
	c.note(hash)
	who.turns.add(c.id)
	return c
}

// expecting returns the cursor that expects the path with this hash soonest.
func (r *reader) expecting(hash uint64) (*cursor, int) {
	var best *cursor
	soonest := reach
	for _, c := range r.cursors {
		if i := slices.Index(c.expected[:soonest], hash); i >= 0 {
			best, soonest = c, i
			if i == 0 {
				break
			}
		}
	}
	return best, soonest
}

// foreseen counts an open that was expected. Two in a row show that the reader
// follows an order after all; one may be chance.
func (r *reader) foreseen() {
	if r.expected++; r.expected >= 2 {
		r.surprises = 0
	}
}

// arrive moves c to an open that it expected after `ahead` others.
func (c *cursor) arrive(at place, ahead int, dirs Directories) {
	if ahead == 0 {
		c.agreed++
		c.pending = walk{}
		c.moveTo(at, true)
		return
	}
	// Opens were left out: dropped, still to come from another thread, or a
	// wider step.
	c.holes = reach
	m, counter := c.relate(at, dirs)
	switch {
	case !m.related:
		c.moveTo(at, true)
	case c.agreed < settled, c.pending == m.walk:
		c.adopt(m.walk, counter)
		c.agreed = 0
		if m.walk == c.pending {
			c.agreed = settled
		}
		c.moveTo(at, false)
	default:
		c.pending = m.walk
		c.blocks.jump(m.delta * c.walk.direction())
		c.moveTo(at, true)
	}
}

// relate measures the move from where c is to at: by the listing if it is
// known, else by arithmetic.
func (c *cursor) relate(at place, dirs Directories) (move, naming.Counter) {
	if at.dir != c.at.dir {
		return move{}, naming.Counter{}
	}
	if l := dirs.Listing(at.dir); l != nil {
		return measure(l, c.at.name, at.name, c.walk), naming.Counter{}
	}
	counter, m := guess(c.at.name, at.name)
	return m, counter
}

// adopt takes a new walk.
func (c *cursor) adopt(w walk, counter naming.Counter) {
	c.walk = w
	if counter.End > 0 {
		c.counter, c.guided = counter, true
	}
	c.pending = walk{}
}

// moveTo sets the place. sameWay tells that the walk goes on.
func (c *cursor) moveTo(at place, sameWay bool) {
	if c.holes > 0 {
		c.holes--
	}
	if !sameWay {
		c.segment = c.at
	}
	c.blocks.step()
	c.at = at
	c.note(at.hash())
}

// note remembers that a path was opened.
func (c *cursor) note(hash uint64) {
	c.seen[c.seenAt%len(c.seen)] = hash
	c.seenAt++
}

// surprise places an open that no cursor expected.
func (p *Predictor) surprise(who *reader, at place, dirs Directories) *cursor {
	who.expected = 0
	tried := 0
	for _, c := range who.cursors {
		if c.at.dir != at.dir {
			continue
		}
		if tried++; tried > 4 {
			break
		}
		m, counter := c.relate(at, dirs)
		if m.related && c.accept(m, counter, at, dirs) {
			return c
		}
	}
	if len(who.cursors) > 0 && who.spoke() {
		who.surprises++
	}
	c := p.newCursor(who, at)
	c.inherit(who, dirs)
	return c
}

// spoke reports whether the reader's last stream made a prediction that this
// open could have confirmed.
func (r *reader) spoke() bool {
	return r.cursors[0].expected[0] != 0 || r.surprises > 0
}

// accept takes an unexpected open as c's own if it is near: a file left out
// before, a turn, another step. It reports false for a jump.
func (c *cursor) accept(m move, counter naming.Counter, at place, dirs Directories) bool {
	unit := m.walk.step == 1 || m.walk.step == -1
	near := m.delta >= -farAway && m.delta <= farAway
	backwards := m.delta*c.walk.direction() < 0
	fresh := !slices.Contains(c.seen[:], at.hash())
	switch {
	case c.holes > 0 && backwards && near && fresh:
		c.fill(m, at)
		return true
	case !unit && !near:
		return false
	case c.agreed >= settled && c.finished(dirs) && m.walk != c.walk.reversed():
		return false // the end was reached: this is a new beginning
	case unit && m.walk.way == natural && backwards, unit && c.agreed < settled:
		c.turn(m.walk, at)
		c.adopt(m.walk, counter)
		c.agreed = 1
		c.moveTo(at, false)
		c.owner.surprises = 0
		return true
	case c.agreed >= settled && backwards:
		return false
	}
	c.owner.surprises++
	repeated := m.walk == c.walk || m.walk == c.pending
	c.turn(m.walk, at)
	c.adopt(m.walk, counter)
	c.pending = m.walk
	c.agreed = 0
	if repeated {
		c.agreed = settled
		c.owner.surprises = 0
	}
	c.moveTo(at, false)
	return true
}

// fill takes a file that was left out before. If the step was a guess from
// that very gap, it was wrong.
func (c *cursor) fill(m move, at place) {
	c.note(at.hash())
	c.pending = walk{}
	c.blocks.forget()
	if c.agreed < settled && c.walk.way == natural {
		c.walk = walk{way: natural, step: c.walk.direction()}
		c.agreed = 1
	}
	c.owner.foreseen()
}

// finished reports whether nothing follows by c's own walk.
func (c *cursor) finished(dirs Directories) bool {
	l := dirs.Listing(c.at.dir)
	if l == nil {
		return false
	}
	_, more := newWalker(l, c.at.name, c.walk).next()
	return !more
}

// turn remembers that the way broke off where c is and goes on at `to`.
func (c *cursor) turn(after walk, to place) {
	c.turns = remember(c.turns, turn{from: c.at, to: to, before: c.walk.step, after: after})
}

func remember(turns []turn, t turn) []turn {
	t.seen = 1
	for i, old := range turns {
		if old.from == t.from && old.before == t.before {
			if old.to == t.to {
				t.seen += old.seen
			}
			turns = slices.Delete(turns, i, i+1)
			break
		}
	}
	if len(turns) >= maxTurns {
		turns = slices.Delete(turns, 0, 1)
	}
	return append(turns, t)
}

// inherit gives a new cursor what its reader's last cursor in the same
// sequence knew: where it turned, now also to here, and how it walked.
func (c *cursor) inherit(who *reader, dirs Directories) {
	for _, old := range who.cursors {
		if old == c || old.at.dir != c.at.dir {
			continue
		}
		m, _ := old.relate(c.at, dirs)
		if !m.related || m.delta == 0 {
			continue
		}
		if old.agreed >= settled {
			c.walk = old.walk
			c.counter, c.guided = naming.Counter{}, false
		}
		c.turns = remember(slices.Clone(old.turns), turn{
			from: old.at, to: c.at, before: old.walk.step, after: c.walk,
		})
		c.blocks = old.blocks
		c.blocks.jump(m.delta * c.walk.direction())
		return
	}
}

func (c *cursor) state() StreamState {
	state := StreamState{
		Stream: c.id, Reader: c.owner.id, Dir: c.at.dir, Pattern: c.at.name,
		Step: c.walk.step, Playhead: c.at.name,
	}
	if counter, ok := c.count(); ok {
		state.Pattern = naming.PatternOf(c.at.name, counter).Printf()
	}
	return state
}

// count returns the number of c's name that counts, by arithmetic.
func (c *cursor) count() (naming.Counter, bool) {
	if c.guided {
		if counter, ok := naming.CounterAt(c.at.name, c.counter); ok {
			return counter, true
		}
	}
	return naming.Suffix(c.at.name)
}
