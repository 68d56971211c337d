package prefetch

import (
	"weak"

	"reelahead/naming"
)

// plan is what a cursor that goes its way expects, worked out for longer than is
// asked for, so that an open of the very next file costs only a step on: a window
// of hundreds of names is not computed anew at each. It holds while the reader
// does what it says in the folder whose names it was made from, the next one
// included where it goes on there.
type plan struct {
	names         []string
	listing, then weak.Pointer[naming.Listing]
	thenDir       string // where the plan ends; "" if in the reader's folder
	toEnd         bool   // nothing follows the last of names
}

// step moves past the file that was opened as planned.
func (p *plan) step() {
	if len(p.names) > 0 {
		p.names = p.names[1:]
	}
}

// holds reports whether the plan tells n names, or all that follow, by the listing
// that is known now. The end is looked at again when it comes near.
func (p *plan) holds(dirs Directories, l *naming.Listing, n int) bool {
	return (len(p.names) >= n || p.toEnd && len(p.names) >= reach) && p.listing.Value() == l &&
		(p.thenDir == "" || p.then.Value() == dirs.Listing(p.thenDir))
}

// planned makes a plan of what was foreseen. There is none where it leads through
// more than the next folder.
func (c *cursor) planned(dirs Directories, l *naming.Listing, next []string, toEnd bool) plan {
	made := plan{names: next, listing: weak.Make(l), toEnd: toEnd}
	last := splitPlace(next[len(next)-1]).dir
	if last == c.at.dir {
		return made
	}
	for _, name := range next {
		if dir := splitPlace(name).dir; dir != c.at.dir && dir != last {
			return plan{}
		}
	}
	made.thenDir, made.then = last, weak.Make(dirs.Listing(last))
	return made
}

// foresee returns at least n names if there are as many, from the plan if it
// holds. Only a cursor that has shown its way keeps one.
func (c *cursor) foresee(dirs Directories, l *naming.Listing, n int) (next, want []string) {
	if c.plan.holds(dirs, l, n) {
		return c.plan.names, nil
	}
	c.plan = plan{}
	if c.agreed < settled {
		return c.ahead(dirs, n)
	}
	next, want = c.ahead(dirs, 2*n)
	toEnd := len(next) < 2*n && len(want) == 0
	if len(next) > 0 && (toEnd || len(next) > n) {
		c.plan = c.planned(dirs, l, next, toEnd)
	}
	return next, want
}
