package prefetch

import (
	"container/heap"
	"time"
)

// pending is the fetches that are not ready yet, of which there may be thousands,
// in the order in which they are worked on. Guarded by Engine.mu. Whoever changes
// a fetch's phase, deadline or starved calls file.
type pending struct {
	// queued and late wait for their turn; those in late cannot be ready in time
	// any more.
	queued, late deadlines
	active       map[*fetch]struct{} // the source is being asked for them
	starved      map[*fetch]struct{} // found no memory
}

func newPending() pending {
	return pending{active: make(map[*fetch]struct{}), starved: make(map[*fetch]struct{})}
}

// file puts f where it belongs by its phase.
func (p *pending) file(f *fetch) {
	if f.in != nil {
		if f.phase == phaseQueued && !f.starved && f.in == &p.queued {
			heap.Fix(f.in, f.at)
			return
		}
		heap.Remove(f.in, f.at)
	}
	delete(p.active, f)
	delete(p.starved, f)
	switch {
	case f.phase == phaseQueued && f.starved:
		p.starved[f] = struct{}{}
	case f.phase == phaseQueued:
		heap.Push(&p.queued, f)
	case f.phase < phaseReady:
		p.active[f] = struct{}{}
	}
}

// len returns how many fetches there are.
func (p *pending) len() int {
	return len(p.queued.order) + len(p.late.order) + len(p.active) + len(p.starved)
}

// retry lets those that found no memory try again.
func (p *pending) retry() {
	for f := range p.starved {
		f.starved = false
		p.file(f)
	}
}

// startable reports whether any fetch has a job that could start now.
func (p *pending) startable() bool {
	if len(p.queued.order)+len(p.late.order) > 0 {
		return true
	}
	for f := range p.active {
		if f.startable() {
			return true
		}
	}
	return false
}

// mostUrgent returns the fetch to work on next, nil if there is none: first those
// that a reader waits for; then those that can be ready in time, or are under way;
// then those that will be late, which a player that drops frames will not even
// open. With the late ones first, one late frame would make all that follow it
// late. Among equals the deadline decides. demanded leaves only the first kind.
func (p *pending) mostUrgent(feasible time.Time, demanded bool) *fetch {
	var best *fetch
	for f := range p.active {
		waited := f.readers > 0
		if demanded && !waited || !f.startable() {
			continue
		}
		if best == nil || waited && best.readers == 0 || waited == (best.readers > 0) && f.deadline.Before(best.deadline) {
			best = f
		}
	}
	if demanded || best != nil && best.readers > 0 {
		return best
	}
	for len(p.queued.order) > 0 && !p.queued.order[0].deadline.After(feasible) {
		heap.Push(&p.late, heap.Pop(&p.queued))
	}
	switch {
	case len(p.queued.order) > 0 && (best == nil || p.queued.order[0].deadline.Before(best.deadline)):
		return p.queued.order[0]
	case best == nil && len(p.late.order) > 0:
		return p.late.order[0]
	}
	return best
}

// deadlines is a heap of fetches by their deadlines, which know their places in it.
type deadlines struct{ order []*fetch }

func (d *deadlines) Len() int           { return len(d.order) }
func (d *deadlines) Less(i, j int) bool { return d.order[i].deadline.Before(d.order[j].deadline) }

func (d *deadlines) Swap(i, j int) {
	d.order[i], d.order[j] = d.order[j], d.order[i]
	d.order[i].at, d.order[j].at = i, j
}

func (d *deadlines) Push(f any) {
	added := f.(*fetch)
	added.in, added.at = d, len(d.order)
	d.order = append(d.order, added)
}

func (d *deadlines) Pop() any {
	last := d.order[len(d.order)-1]
	d.order[len(d.order)-1] = nil
	d.order = d.order[:len(d.order)-1]
	last.in = nil
	return last
}
