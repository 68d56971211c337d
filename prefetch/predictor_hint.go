package prefetch

// announcement is the list of files that a reader said it will open, in order.
type announcement struct {
	owner  *reader
	stream StreamID
	list   uint64
	files  []string
	read   int // files before this one are done with
}

// maxAnnounced bounds one list: an epoch over a million files, with room.
const maxAnnounced = 4 << 20

// hintReach is how far ahead in the list an open may be and still be that
// list's next: data loaders keep a few batches in flight.
const hintReach = 1024

// Hint appends paths to list number list of reader r. A new list number
// replaces what is left of the reader's previous list. Paths are relative to
// the root. Announced order outranks what was learned, for as long as the
// reader opens what it announced.
func (p *Predictor) Hint(r Reader, list uint64, paths []string) {
	who := p.reader(r)
	if who.hint == nil || who.hint.list != list {
		if who.hint != nil {
			delete(p.hinted, who.hint.stream)
		}
		p.lastID++
		who.hint = &announcement{owner: who, stream: p.lastID, list: list}
		p.hinted[p.lastID] = who.hint
	}
	a := who.hint
	if a.read > len(a.files)/2 {
		a.files = append(a.files[:0:0], a.files[a.read:]...)
		a.read = 0
	}
	room := maxAnnounced - len(a.files)
	a.files = append(a.files, paths[:min(len(paths), room)]...)
}

// open moves the list past file. It reports false if file is not among the
// next files of the list: then the reader is on a way of its own.
func (a *announcement) open(file string) bool {
	if a.read > 0 && a.files[a.read-1] == file {
		return true
	}
	for i, candidate := range a.files[a.read:min(len(a.files), a.read+hintReach)] {
		if candidate == file {
			a.read += i + 1
			return true
		}
	}
	return false
}

func (a *announcement) predict(n int) Prediction {
	left := a.files[a.read:]
	return Prediction{
		Stream: a.stream, Proven: true, Locked: true,
		Next: append([]string(nil), left[:min(n, len(left))]...),
	}
}

func (a *announcement) state() StreamState {
	state := StreamState{Stream: a.stream, Reader: a.owner.id, Step: 1}
	if a.read > 0 {
		at := splitPlace(a.files[a.read-1])
		state.Dir, state.Pattern, state.Playhead = at.dir, "announced list", at.name
	}
	return state
}
