package prefetch

import (
	"slices"

	"reelahead/naming"
)

// predict says what c expects next and remembers the first of it, so that the
// next open can be recognised.
func (c *cursor) predict(dirs Directories, n int) Prediction {
	p := Prediction{Stream: c.id, Locked: c.agreed > 0, Loops: c.loops()}
	wanted := max(n, reach)
	if c.mute() {
		wanted = reach // only to recognise the next open
	}
	l := dirs.Listing(c.at.dir)
	if c.walk.way == across {
		p.Next, p.WantListings, p.Proven = aheadAcross(dirs, c.at, c.walk, wanted)
	} else if l == nil {
		p.WantListings = []string{c.at.dir}
		p.Next, p.Fallback = c.compute(wanted)
	} else {
		p.Proven = true
		p.Next, p.WantListings = c.foresee(dirs, l, wanted)
	}
	c.expect(p.Next, p.Fallback)
	if c.overtaken && len(c.left) > 0 && len(p.Next) > 0 {
		p.Next = slices.Concat(p.Next[:1], c.left, p.Next[1:])
	}
	if !c.speaks(p.Next) {
		return Prediction{Stream: c.id, WantListings: p.WantListings}
	}
	p.Next = p.Next[:min(n, len(p.Next))]
	p.Fallback = p.Fallback[:min(n, len(p.Fallback))]
	return p
}

// speaks reports whether the evidence is good enough to act on next. A reader
// that surprised again and again must first be right twice; so must one that
// goes from name to name as they sort, whatever the numbers say, or as the
// directory gives them; and one
// checkpoint restored does not mean that the next will be.
func (c *cursor) speaks(next []string) bool {
	switch {
	case len(next) == 0:
		return true
	case c.mute():
		return false
	case c.agreed >= settled:
		return true
	case c.walk.way == asGiven, c.walk.way == byteOrder && c.unnumbered:
		return false
	}
	return c.agreed > 0 || !isCheckpoint(c.at.name, splitPlace(next[0]).name)
}

// mute reports whether c's reader has surprised too often for c to be believed.
func (c *cursor) mute() bool {
	return c.owner.surprises >= quietAfter && c.agreed < settled || c.owner.disordered() && !c.steady
}

// expect remembers what the next opens should be.
func (c *cursor) expect(next, fallback []string) {
	c.next = append(c.next[:0], next[:min(reach, len(next))]...)
	c.next = append(c.next, fallback[:min(reach-len(c.next), len(fallback))]...)
	c.expected = [reach]uint64{}
	for i, file := range c.next {
		c.expected[i] = hashPath(file)
	}
}

// ahead follows the walk through the listings for up to n files: to the end of
// the sequence, round the turns that the reader took before, into the next
// folder where the evidence says so.
func (c *cursor) ahead(dirs Directories, n int) (next, want []string) {
	at, w, blocks, single := c.at, c.walk, c.blocks, 0
	k := newWalker(c.owner.locate(dirs.Listing(at.dir), at.name), w)
	next = make([]string, 0, n)
	for len(next) < n {
		if t := c.turnAt(at, w, k); t != nil {
			at, w = t.to, t.after
			l := dirs.Listing(at.dir)
			if l == nil {
				return next, append(want, at.dir)
			}
			k = newWalker(locate(l, at.name), w)
			next = append(next, at.path())
			continue
		}
		if distance := blocks.due(single); distance > 0 && w.way == natural {
			k.walk.step *= distance
			name, ok := k.next()
			k.walk.step = w.step
			if ok {
				at.name = name
				next = append(next, at.path())
				single++
				continue
			}
		}
		name, ok := k.next()
		if ok {
			at.name = name
			next = append(next, at.path())
			single++
			continue
		}
		to, missing, ok := nextFolder(dirs, at, w, c.agreed > 0)
		want = append(want, missing...)
		if !ok {
			return next, want
		}
		at = to
		k = newWalker(locate(dirs.Listing(at.dir), at.name), w)
		next = append(next, at.path())
	}
	return next, want
}

// turnAt returns the turn that the reader takes at a place: one seen twice, or
// once where the walk has no other way to go on, where it closes a loop, or
// where the reader has turned back since at another place and so goes to and fro.
func (c *cursor) turnAt(at place, w walk, k *walker) *turn {
	for i := range c.breaks {
		t := &c.breaks[i]
		if t.from != at || t.before != w.step {
			continue
		}
		if t.seen >= 2 || t.to == c.segment || c.mirrored(*t) {
			return t
		}
		ahead := *k
		if _, more := ahead.next(); !more {
			return t
		}
	}
	return nil
}

// mirrored tells whether the reader's last turn undid t.
func (c *cursor) mirrored(t turn) bool {
	last := c.breaks[len(c.breaks)-1]
	return t.after == last.after.reversed() && last.before == t.after.step && last.after.step == t.before
}

// loops tells whether the reader goes the same way again and again.
func (c *cursor) loops() bool {
	return slices.ContainsFunc(c.breaks, func(t turn) bool {
		return t.after.step == t.before && (t.seen >= 2 || t.to == c.segment)
	})
}

// compute guesses the next names by arithmetic: the decimal successors, and
// the hexadecimal ones for when none of them exists.
func (c *cursor) compute(n int) (next, fallback []string) {
	if next = c.conventional(n); len(next) > 0 {
		return next, nil
	}
	counter, ok := c.count()
	if ok {
		next = c.successors(counter, n)
	}
	if ok && (counter.Base == 16 || c.guided) {
		return next, nil
	}
	if hex, found := naming.HexSuffix(c.at.name); found {
		fallback = c.successors(hex, n)
		fallback = slices.DeleteFunc(fallback, func(file string) bool { return slices.Contains(next, file) })
	}
	return next, fallback
}

// conventional returns the next names where a convention says them.
func (c *cursor) conventional(n int) (next []string) {
	convention, ok := ConventionOf(c.at.name)
	if !ok || convention.successor == nil || c.walk.step != 1 {
		return nil
	}
	for name := c.at.name; len(next) < n; {
		name = convention.successor(name)
		next = append(next, place{c.at.dir, name}.path())
	}
	return next
}

func (c *cursor) successors(counter naming.Counter, n int) []string {
	next := make([]string, 0, n)
	for i := 1; len(next) < n; i++ {
		names := naming.Advance(c.at.name, counter, int64(i)*int64(c.walk.step))
		if len(names) == 0 {
			break
		}
		for _, name := range names {
			next = append(next, place{c.at.dir, name}.path())
		}
	}
	return next
}
