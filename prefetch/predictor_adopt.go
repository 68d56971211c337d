package prefetch

import "slices"

// maxDonors bounds how many readers a new one is compared with, last used
// first: as many as open files side by side on one machine.
const maxDonors = 64

// succeed makes a reader that has opened nothing so far the successor of another
// one whose next open this is: a script that starts a process for each frame is
// one way through the sequence, not many. The other reader keeps its cursor, for
// it may only have company: workers that begin one after the other and then each
// take a stride of their own. So does a reader that has surprised and now opens
// what another was expected to: a pool of processes, each of which takes the next
// file that none has taken. It returns nil if no reader expected the open.
func (p *Predictor) succeed(who *reader, at place, dirs Directories) *cursor {
	if len(who.cursors) > 0 && who.disorder == 0 {
		return nil
	}
	hash, tried := at.hash(), 0
	for element := p.recent.Front(); element != nil && tried < maxDonors; element = element.Next() {
		other := element.Value.(*reader)
		tried++
		if other == who || other.disordered() {
			continue
		}
		old, ahead := other.expecting(hash)
		if old == nil || ahead > 0 && old.agreed == 0 {
			continue
		}
		c := p.newCursor(who, old.at)
		c.inheritAll(old)
		c.arrive(at, ahead, dirs)
		c.predecessor = old.id
		return c
	}
	return nil
}

// inheritAll gives c all that another reader's cursor knew.
func (c *cursor) inheritAll(old *cursor) {
	id, owner := c.id, c.owner
	*c = *old
	c.id, c.owner = id, owner
	c.breaks, c.left, c.next = slices.Clone(old.breaks), slices.Clone(old.left), nil
	c.predecessor, c.plan = 0, plan{}
}

// doubtLegacy makes a guess of the way that c has from another reader: its own
// does not go on that way.
func (c *cursor) doubtLegacy() {
	if c.predecessor != 0 {
		c.agreed = 0
	}
}
