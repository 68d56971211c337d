package prefetch

import (
	"path"
	"strings"

	"reelahead/naming"
)

// maxLevels is how many folders up a sequence may be numbered: cameras write
// day/hour/camera/minute.
const maxLevels = 3

// nextFolder returns where a walk that ended at a place goes on in another
// folder, and the folders whose names would be needed to say so. The next
// folder is the neighbour in number of the folder itself or, for a reader
// whose order is known, of one above it. It counts only on evidence:
//
//   - the files' own number goes on there (0086999 in 0086000, 0087000 in
//     0087000), or
//   - the folder's number is in the files' names (snapdir_005/snap_005.3,
//     snapdir_006/snap_006.0), or
//   - the reader's order is known, or the folders are a camera's by their
//     names, and the folder with the very next number starts over.
//
// Versions and resolutions are no numbers, so their folders have no next.
func nextFolder(dirs Directories, at place, w walk, locked bool) (to place, missing []string, ok bool) {
	var below []string
	dir := at.dir
	for level := 0; level < maxLevels && dir != ""; level++ {
		if level > 0 && !locked {
			break
		}
		parent, folder := splitPlace(dir).dir, splitPlace(dir).name
		siblings := dirs.Listing(parent)
		if siblings == nil {
			return place{}, append(missing, parent), false
		}
		single := walk{way: natural, step: w.direction()}
		if next, found := newWalker(locate(siblings, folder), single).next(); found {
			h := hop{at.name, folder, next, w.direction(), locked}
			target := place{dir: h.descend(dirs, path.Join(parent, next), below)}
			names := dirs.Listing(target.dir)
			if names == nil {
				return place{}, append(missing, target.dir), false
			}
			if target.name, ok = h.entry(names); ok {
				return target, missing, true
			}
		}
		below, dir = append([]string{folder}, below...), parent
	}
	return place{}, missing, false
}

// descend returns the folder below dir that corresponds to the one left:
// folders that are mere numbers (the hours of a day) start over, others keep
// their names. It stops where a listing is missing.
func (h hop) descend(dirs Directories, dir string, below []string) string {
	for _, folder := range below {
		names := dirs.Listing(dir)
		if names == nil {
			return dir
		}
		if strings.Trim(folder, "0123456789") == "" {
			if edge, ok := h.edge(names, folder); ok {
				folder = edge
			}
		}
		dir = path.Join(dir, folder)
	}
	return dir
}

// hop is the question whether a sequence that ends with name in folder goes on
// in the folder next.
type hop struct {
	name, folder, next string
	direction          int
	locked             bool
}

// entry returns the first name to read in the next folder.
func (h hop) entry(names *naming.Listing) (string, bool) {
	if name, ok := h.continued(names); ok {
		return name, true
	}
	_, by, numbered := naming.Between(h.folder, h.next)
	if !numbered {
		return "", false
	}
	if name, ok := h.renamed(names); ok {
		return name, true
	}
	if by == int64(h.direction) && (h.locked || isCameraFolder(h.folder)) {
		return h.edge(names, h.name)
	}
	return "", false
}

// continued returns the arithmetic successor of the last name if the next
// folder begins with it.
func (h hop) continued(names *naming.Listing) (string, bool) {
	counter, ok := naming.Suffix(h.name)
	if !ok {
		return "", false
	}
	for _, name := range naming.Advance(h.name, counter, int64(h.direction)) {
		if !names.Contains(name) {
			continue
		}
		if edge, ok := h.edge(names, name); !ok || edge == name {
			return name, true
		}
	}
	return "", false
}

// renamed returns the edge of the sequence that is named for the next folder
// as this one is for its own.
func (h hop) renamed(names *naming.Listing) (string, bool) {
	counter, _, _ := naming.Between(h.next, h.folder)
	to, _, _ := naming.Between(h.folder, h.next)
	old, fresh := h.folder[counter.Start:counter.End], h.next[to.Start:to.End]
	for _, run := range naming.Runs(h.name) {
		if run.Kind != naming.Number || !strings.HasPrefix(h.name[run.Start:run.End], old) {
			continue
		}
		name := h.name[:run.Start] + fresh + h.name[run.Start+len(old):]
		if edge, ok := h.edge(names, name); ok && strings.HasPrefix(edge, name[:run.Start+len(fresh)]) {
			return edge, true
		}
	}
	return "", false
}

// edge returns the first name, in reading direction, of the sequence that name
// belongs to in the next folder.
func (h hop) edge(names *naming.Listing, name string) (string, bool) {
	sequence, ok := names.Sequence(name)
	switch {
	case !ok:
		return name, names.Contains(name)
	case h.direction < 0:
		return sequence.Name(sequence.Len() - 1), true
	}
	return sequence.Name(0), true
}
