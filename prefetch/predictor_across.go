package prefetch

import (
	"path"
	"strings"

	"reelahead/naming"
)

// crossing relates two places that hold files of one name in folders that
// differ in one number: frame_0001/beauty.exr and frame_0002/beauty.exr, or
// columns of map tiles, 2047/1361.png and 2048/1361.png. It tells the walk that
// one such move suggests.
func crossing(from, to place, dirs Directories) (walk, bool) {
	if from.dir == to.dir || from.name != to.name {
		return walk{}, false
	}
	a, b := strings.Split(from.dir, "/"), strings.Split(to.dir, "/")
	if len(a) != len(b) {
		return walk{}, false
	}
	up := 0
	for a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
		up++
	}
	last := len(a) - 1
	if up >= maxLevels || path.Join(a[:last]...) != path.Join(b[:last]...) {
		return walk{}, false
	}
	siblings := dirs.Listing(path.Join(b[:last]...))
	m := move{}
	if siblings != nil {
		m = measure(a[last], locate(siblings, a[last]).mark(), locate(siblings, b[last]), false)
	} else {
		_, m = guess(a[last], b[last])
	}
	if !m.related || !m.near() || m.walk.way != natural {
		return walk{}, false
	}
	return walk{way: across, number: up, step: m.walk.step}, true
}

// aheadAcross follows a walk across folders for up to n files. Folders whose
// names are known not to hold the file are left out; proven tells that no name
// is a guess.
func aheadAcross(dirs Directories, at place, w walk, n int) (next, want []string, proven bool) {
	parent, rest := at.dir, ""
	for range w.number {
		up := splitPlace(parent)
		parent, rest = up.dir, path.Join(up.name, rest)
	}
	folder := splitPlace(parent)
	siblings := dirs.Listing(folder.dir)
	if siblings == nil {
		return nil, []string{folder.dir}, false
	}
	proven = true
	k := newWalker(locate(siblings, folder.name), walk{way: natural, step: w.step})
	for range 4 * n {
		name, ok := k.next()
		if !ok || len(next) == n {
			break
		}
		to := place{path.Join(folder.dir, name, rest), at.name}
		if l := dirs.Listing(to.dir); l == nil {
			proven = false
		} else if !l.Contains(to.name) {
			continue
		}
		next = append(next, to.path())
	}
	return next, nil, proven
}

// cross gives a new cursor the walk across folders if its reader's cursors show
// one: by two such moves alike, or by one where the file's own folder has
// nothing that could follow and the folders are no checkpoints. Readers that take turns between folders (image,
// lidar) make one such move and then go on in the first folder.
func (c *cursor) cross(dirs Directories) {
	for _, old := range c.owner.cursors {
		if old == c {
			continue
		}
		w, ok := crossing(old.at, c.at, dirs)
		if !ok {
			continue
		}
		c.crossed = w
		if old.crossed == w || c.alone(dirs) && !isCheckpoint(old.at.dir, c.at.dir) {
			c.adopt(w, naming.Counter{})
			c.agreed = 1
			if old.crossed == w {
				c.agreed = settled
				c.owner.trusted()
			}
		}
		return
	}
}

// alone reports whether the folder is known to hold nothing that follows or
// precedes c's file.
func (c *cursor) alone(dirs Directories) bool {
	l := dirs.Listing(c.at.dir)
	if l == nil {
		return false
	}
	_, inSequence := l.Sequence(c.at.name)
	return !inSequence
}
