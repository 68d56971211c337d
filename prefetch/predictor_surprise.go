package prefetch

import (
	"slices"

	"reelahead/naming"
)

// surprise places an open that no cursor expected: near one of the reader's
// last cursors in that folder it is a file left out before or a change of that
// one's mind, else it is a new place.
func (p *Predictor) surprise(who *reader, at place, dirs Directories) *cursor {
	file := at.path()
	for _, c := range who.cursors {
		if i := slices.Index(c.left, file); i >= 0 {
			c.fill(i)
			return c
		}
	}
	tried := 0
	for _, c := range who.cursors {
		if c.at.dir != at.dir {
			continue
		}
		if tried++; tried > maxTried {
			break
		}
		m, counter := c.relate(at, dirs, tried == 1)
		if m.delta*c.walk.direction() < 0 && m.near() {
			if c.strays(at, dirs) {
				return c
			}
			m, counter = c.relate(at, dirs, true)
		}
		if m.related && c.accept(m, counter, at, dirs) {
			return c
		}
	}
	if last := who.last(); last != nil && last.expected[0] != 0 && !naming.SameNumbers(last.at.name, at.name) {
		who.surprised()
	}
	c := p.newCursor(who, at)
	c.inherit(dirs)
	c.cross(dirs)
	return c
}

// last returns the cursor of the reader's last open.
func (r *reader) last() *cursor {
	if len(r.cursors) == 0 {
		return nil
	}
	return r.cursors[0]
}

// accept takes an unexpected open as c's own if it is near: a turn, another
// step. It reports false for a jump.
func (c *cursor) accept(m move, counter naming.Counter, at place, dirs Directories) bool {
	c.doubtLegacy()
	settledHere := c.agreed >= settled
	backwards := m.delta*c.walk.direction() < 0
	onward := m.walk.way != natural && m.walk.direction() == c.walk.direction()
	c.plan = plan{}
	if c.skipsTo(m) {
		c.skips++
		c.blocks.jump(m.delta * c.walk.direction())
		c.pending = m.walk
		c.moveTo(at)
		return true
	}
	switch {
	case !m.unit() && !m.near():
		return false
	case settledHere && !onward && m.walk != c.walk.reversed() && c.finished(dirs):
		return false // the end was reached: this is a new beginning
	case m.unit() && (!settledHere || onward || m.walk.way == natural):
		c.turnTo(at, m, counter)
		c.agreed = 1
		c.owner.expected = 0
		return true
	case settledHere && backwards:
		return false
	}
	repeated := m.walk == c.walk || m.walk == c.pending
	c.owner.surprised()
	c.turnTo(at, m, counter)
	c.pending = m.walk
	c.agreed = 0
	if repeated {
		c.agreed = settled
		c.owner.trusted()
	}
	return true
}

// skipsTo reports whether a move is that of a player which fell behind and goes
// on further ahead, by its own step. The same jump twice is a new step instead.
func (c *cursor) skipsTo(m move) bool {
	ahead := m.delta * c.walk.direction()
	return c.steady && c.walk.way == natural && m.walk.way == natural && c.skips < maxSkips &&
		ahead > 0 && ahead <= skipReach*max(1, c.walk.step*c.walk.direction()) && m.walk != c.pending
}

// leaveOut remembers that the next `count` expected files were passed over.
func (c *cursor) leaveOut(count int) {
	c.left = append(c.left, c.next[:min(count, len(c.next))]...)
	c.left = c.left[max(0, len(c.left)-reach):]
	c.patience = reach
}

// fill takes a file that was left out before: reader threads overtake each
// other. If the step was a guess from that very gap, it was wrong.
func (c *cursor) fill(i int) {
	c.left = slices.Delete(c.left, i, i+1)
	c.plan = plan{}
	c.overtaken = true
	c.pending = walk{}
	c.blocks.forget()
	if c.owner.surprises >= quietAfter {
		return // among random opens a late one proves nothing
	}
	if c.agreed < settled && c.walk.way == natural {
		c.walk = walk{way: natural, step: c.walk.direction()}
	}
	c.agreed = settled
	c.owner.foreseen(1)
}

// strays reports whether an open behind a reader whose threads overtake each
// other is taken for one more late file. Two in a row that go the same way are
// a change of direction, which then begins at the first of them.
func (c *cursor) strays(at place, dirs Directories) bool {
	if !c.overtaken {
		return false
	}
	first := c.stray
	c.stray = at
	if first == (place{}) {
		return true
	}
	back := *c
	back.at, back.mark = first, mark{}
	m, _ := back.relate(at, dirs, false)
	if !m.related || !m.unit() || m.delta*c.walk.direction() > 0 {
		return true
	}
	c.at, c.hash, c.mark, c.stray, c.overtaken = first, first.hash(), mark{}, place{}, false
	c.plan = plan{}
	return false
}

// finished reports whether nothing follows by c's own walk.
func (c *cursor) finished(dirs Directories) bool {
	l := dirs.Listing(c.at.dir)
	if l == nil {
		return false
	}
	_, more := newWalker(locate(l, c.at.name), c.walk).next()
	return !more
}

// turnTo goes on from `at` by another walk and remembers where.
func (c *cursor) turnTo(at place, m move, counter naming.Counter) {
	w := m.walk
	c.unnumbered = m.delta == 0
	c.breaks = remember(c.breaks, turn{from: c.at, to: at, before: c.walk.step, after: w})
	c.adopt(w, counter)
	c.segment = c.at
	c.left = nil
	c.moveTo(at)
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
// sequence knew: how it walked and where it turned, now also to here. Two
// jumps of one length in a row are a step.
func (c *cursor) inherit(dirs Directories) {
	for _, old := range c.owner.cursors {
		if old == c || old.at.dir != c.at.dir {
			continue
		}
		m, counter := old.relate(c.at, dirs, false)
		if !m.related || m.delta == 0 {
			continue
		}
		c.jumped = m.delta
		if old.jumped == m.delta && old.at == old.segment {
			c.adopt(m.walk, counter)
			c.agreed = 1
			c.owner.trusted()
			return
		}
		if old.agreed >= settled {
			c.walk = old.walk
		}
		c.breaks = remember(slices.Clone(old.breaks), turn{
			from: old.at, to: c.at, before: old.walk.step, after: c.walk,
		})
		c.blocks = old.blocks
		c.blocks.jump(m.delta * c.walk.direction())
		c.blocks.step()
		return
	}
}
