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
	hash  uint64 // of at
	mark  mark   // of at, by the listing last looked at
	walk  walk
	// counter is the number that counts while no listing is known; its
	// position holds for at.name.
	counter naming.Counter
	guided  bool // counter was learned from two names, not guessed from one
	// unnumbered tells that the walk led between names that differ in text.
	unnumbered bool
	// agreed counts the opens in a row that the walk explained. 0 is a first
	// guess, settled and more survives one deviation.
	agreed  int
	pending walk // the walk that the last deviation suggested
	// steady: the walk explained `steadyAfter` opens in a row once. Such a reader
	// that jumps ahead has dropped frames; skips counts jumps since it was last
	// where it was expected.
	steady  bool
	skips   int
	segment place  // where the way began that goes on without a break
	breaks  []turn // where it broke off before, newest last
	jumped  int    // how far from the reader's cursor before it this one began
	crossed walk   // across folders, from the reader's cursor before it
	// predecessor is the cursor of another reader that this one goes on for, until
	// its own reader has opened a second file; else 0.
	predecessor StreamID
	blocks      blocks
	// left are files that were expected and left out: another thread of the
	// reader may still open them in the next `patience` opens. overtaken says
	// that this has happened.
	left      []string
	patience  int
	overtaken bool
	stray     place // the last open, if it was behind and not one of left
	// next is the head of the last prediction, expected the hashes of it.
	next     []string
	expected [reach]uint64
	plan     plan
}

const (
	// reach is how far ahead in its expectation a cursor recognises an open
	// as its own: the depth to which players' reader threads run ahead of
	// each other.
	reach = 8
	// settled is how many opens in a row make a walk that one deviation does
	// not change.
	settled = 2
	// steadyAfter is how many opens in a row make a player of a reader.
	steadyAfter = 4
	// skipReach is how many frames a player that fell behind leaves out at most:
	// a second at 60 fps and a little. maxSkips is how often in a row.
	skipReach = 64
	maxSkips  = 8
	// maxTurns bounds the places a cursor remembers to have turned at.
	maxTurns = 8
	// maxTried bounds how many cursors an unexpected open is compared with.
	maxTried = 4
	// quietAfter is how many surprises in a row show that a reader follows no
	// order.
	quietAfter = 2
	// disorderAfter is how many surprises more than expected opens show that two of
	// these in a row are chance, mostDisorder how many are remembered.
	disorderAfter = 6
	mostDisorder  = 12
)

// turn is a place where a reader's way broke off, and where it went on.
type turn struct {
	from, to place
	before   int // step on arriving at from
	after    walk
	seen     int // how often
}

var pathSeed = maphash.MakeSeed()

func (p place) hash() uint64 {
	if p.dir == "" {
		return hashPath(p.name)
	}
	var h maphash.Hash
	h.SetSeed(pathSeed)
	h.WriteString(p.dir)
	h.WriteByte('/')
	h.WriteString(p.name)
	return h.Sum64()
}

// hashPath is the hash of a file's place, by its path.
func hashPath(file string) uint64 { return maphash.String(pathSeed, file) }

// train finds or makes the cursor that the open of at belongs to and moves it.
func (p *Predictor) train(who *reader, at place, dirs Directories) *cursor {
	if len(who.cursors) > 0 && who.cursors[0].at == at {
		return who.cursors[0] // opened again: tells nothing about the order
	}
	hash := at.hash()
	c, ahead := who.expecting(hash)
	if c == nil || ahead > 0 {
		if joined := p.succeed(who, at, dirs); joined != nil {
			p.supersede(joined)
			who.turns.add(joined.id)
			return joined
		}
	}
	if c != nil {
		c.arrive(at, ahead, dirs)
		p.supersede(c)
		who.turns.add(c.id)
		return c
	}
	for _, c := range who.cursors {
		if c.hash == hash && c.at == at {
			return c
		}
	}
	c = p.surprise(who, at, dirs)
	p.supersede(c)
	who.turns.add(c.id)
	return c
}

// supersede drops the other cursors that stand where c now is: a loop has come
// back to where it was left.
func (p *Predictor) supersede(c *cursor) {
	for _, old := range c.owner.cursors {
		if old != c && old.hash == c.hash && old.at == c.at {
			p.Forget(old.id)
			return
		}
	}
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

// foreseen counts an open that was expected after `ahead` others. Two in a row
// show that the reader follows an order after all; one may be chance. In a reader
// that follows none, only the very next counts: its many cursors together expect
// much of a small folder.
func (r *reader) foreseen(ahead int) {
	if r.disordered() && ahead > 0 {
		return
	}
	r.disorder = max(0, r.disorder-1)
	if r.expected++; r.expected >= settled {
		r.surprises = 0
	}
}

// disordered tells that the reader has surprised so often that a coincidence or
// two mean nothing.
func (r *reader) disordered() bool { return r.disorder >= disorderAfter }

// trusted ends the silence about a reader that shows an order.
func (r *reader) trusted() {
	if !r.disordered() {
		r.surprises = 0
	}
}

// surprised counts an open that was not expected.
func (r *reader) surprised() {
	r.expected = 0
	r.surprises++
	r.disorder = min(mostDisorder, r.disorder+1)
}

// arrive moves c to an open that it expected after `ahead` others.
func (c *cursor) arrive(at place, ahead int, dirs Directories) {
	if ahead == 0 {
		c.owner.foreseen(ahead)
		c.agreed++
		c.plan.step()
		c.steady = c.steady || c.agreed >= steadyAfter
		c.skips = 0
		c.pending = walk{}
		c.follow(at)
		return
	}
	c.plan = plan{}
	c.doubtLegacy()
	// Opens were left out: dropped, still to come from another thread, or a
	// wider step.
	m, counter := c.relate(at, dirs, true)
	if !m.related {
		c.moveTo(at)
		return
	}
	c.leaveOut(ahead)
	switch {
	case c.agreed < settled && m.unit():
		c.adopt(m.walk, counter)
		c.agreed = 1
	case c.agreed == 0:
		c.owner.surprised()
		c.adopt(m.walk, counter)
		c.pending = m.walk
	case c.pending == m.walk && !c.overtaken:
		c.adopt(m.walk, counter)
	default:
		c.owner.foreseen(ahead)
		c.pending = m.walk
		c.blocks.jump(m.delta * c.walk.direction())
	}
	c.moveTo(at)
}

// follow moves c to the open that it expected first, taking the turn or the
// jump that it expected there.
func (c *cursor) follow(at place) {
	for i, t := range c.breaks {
		if t.from == c.at && t.to == at && t.before == c.walk.step {
			t.seen++
			c.breaks = append(slices.Delete(c.breaks, i, i+1), t)
			c.walk = t.after
			c.segment = at
			c.blocks.forget()
			c.plan = plan{}
			break
		}
	}
	if distance := c.blocks.due(0); distance > 0 {
		c.plan = plan{}
		c.blocks.jump(distance)
	}
	c.moveTo(at)
}

// relate measures the move from where c is to at: by the listing if it is
// known, else by arithmetic. See measure for thorough.
func (c *cursor) relate(at place, dirs Directories, thorough bool) (move, naming.Counter) {
	if at.dir != c.at.dir {
		return move{}, naming.Counter{}
	}
	if l := dirs.Listing(at.dir); l != nil {
		return measure(c.at.name, c.markIn(l), c.owner.locate(l, at.name), thorough), naming.Counter{}
	}
	counter, m := guess(c.at.name, at.name)
	return m, counter
}

// markIn returns c's place in the listing of its directory.
func (c *cursor) markIn(l *naming.Listing) mark {
	if c.mark.listing.Value() != l {
		c.mark = locate(l, c.at.name).mark()
	}
	return c.mark
}

// locate is locate for the name being opened, which is asked for often.
func (r *reader) locate(l *naming.Listing, name string) spot {
	if r.opening.listing == l && r.opening.name == name {
		return r.opening
	}
	return locate(l, name)
}

// adopt takes a new walk.
func (c *cursor) adopt(w walk, counter naming.Counter) {
	c.plan = plan{}
	c.walk = w
	if counter.End > 0 {
		c.counter, c.guided = counter, true
	}
	c.pending = walk{}
}

// moveTo sets the place.
func (c *cursor) moveTo(at place) {
	c.stray, c.predecessor = place{}, 0
	if c.patience--; c.patience <= 0 {
		c.left = nil
	}
	c.blocks.step()
	c.at, c.hash = at, at.hash()
	c.mark = c.owner.opening.mark()
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
