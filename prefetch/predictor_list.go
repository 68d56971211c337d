package prefetch

import "slices"

const (
	// hintReach is how far beyond the farthest open a list knows an open as its
	// own: what 16 workers of a data loader have under way with two batches of
	// 128 files each. As much is remembered behind.
	hintReach = 4096
	// hintStep is how far from its last open in a list a reader opens the next
	// one: threads of a worker overtake each other, and workers that take turns
	// file by file leave out the others'. A reader that does not announce is
	// believed to follow a list only while it keeps to that: of the files of an
	// epoch any is due somewhere, to whomever.
	hintStep = 64
	// hintPatience is after how many opens in a list a file that was passed over
	// is given up: 16 workers that open their batches of 64 side by side come by
	// every file within as many. A reader that skips files waits for none longer.
	hintPatience = 1024
	// maxFollowers bounds the readers of one list whose places are known; each is
	// forgotten when it has opened nothing for hintPatience opens of others.
	maxFollowers = 64
)

// announcement is a list of files that a reader said will be opened, in order.
// Places in it are counted from its beginning and go on when its front is
// dropped. Several readers may open from it side by side, each passing over
// what is the others'.
//
// Memory: what lies more than hintReach before the lowest place that is
// expected is forgotten. A file costs its path, 16 bytes for the string, 9 here
// and about 25 in tails.
type announcement struct {
	announcer Reader
	stream    StreamID
	list      uint64

	base  int      // place of files[0]
	files []string // in order
	done  []bool   // opened
	again []int    // the next place of the same file, round to its first; -1: not indexed
	// tails has the last place of each file that is indexed, by hash. Of two
	// files with one hash the later one is not indexed: nothing is due under its
	// name, which costs no more than its prefetch being early.
	tails   map[uint64]int
	indexed int // places before are not in tails any more
	text    int // bytes of all paths

	low   int // places before were opened or given up
	front int // one after the farthest open
	opens int // that followed the list
	// passed has front as it was after each of the last opens: what it had
	// passed hintPatience opens ago is given up.
	passed    [hintPatience]int
	followers []follower // last used first
	overtaken bool       // an open came after a later one
	far       int        // where an open beyond reach would be, if the next one is near; -1: none
}

// follower is one reader's place in a list.
type follower struct {
	reader Reader
	at     int // of its last open
	opens  int // of the list, at that time
}

func newAnnouncement(announcer Reader, stream StreamID, list uint64) *announcement {
	return &announcement{announcer: announcer, stream: stream, list: list, tails: make(map[uint64]int), far: -1}
}

func (a *announcement) end() int              { return a.base + len(a.files) }
func (a *announcement) file(place int) string { return a.files[place-a.base] }
func (a *announcement) isDone(place int) bool { return a.done[place-a.base] }
func (a *announcement) following(at int) *int { return &a.again[at-a.base] }

func (a *announcement) add(file string) {
	at, hash := a.end(), announcedHash(file)
	a.files, a.done, a.again = append(a.files, file), append(a.done, false), append(a.again, at)
	a.text += len(file)
	if tail, ok := a.tails[hash]; ok {
		if a.file(tail) != file {
			*a.following(at) = -1
			return
		}
		*a.following(at) = *a.following(tail)
		*a.following(tail) = at
	}
	a.tails[hash] = at
}

// due returns the first place within reach, or the first at all, at which file
// is still to be opened.
func (a *announcement) due(file string) (place int, ok bool) {
	tail, ok := a.tails[announcedHash(file)]
	if !ok || a.file(tail) != file {
		return 0, false
	}
	for place = *a.following(tail); a.isDone(place); place = *a.following(place) {
		if place == tail {
			return 0, false
		}
	}
	return place, true
}

// leads reports whether file is what reader r opens next by this list: what
// follows its last open, or the very next if it has opened nothing yet.
func (a *announcement) leads(r Reader, file string) bool {
	next := a.low
	if f := a.follower(r); f != nil {
		next = a.skipDone(f.at + 1)
	}
	return next < a.end() && a.file(next) == file
}

// open moves the list past an open of file by who. It reports false if the file
// is not due there: then the reader is on a way of its own.
func (a *announcement) open(who *reader, file string) bool {
	f := a.follower(who.id)
	place, due := a.due(file)
	if f != nil && who.list == a.stream && !(due && place == f.at+1) {
		if a.within(f.at+1-reach, f.at+1, file) >= 0 {
			return true // programs open a file several times, their threads in turns
		}
		if at := a.within(f.at+1, f.at+1+hintStep, file); at >= 0 && !due {
			a.place(who.id, at) // another has opened it before
			return true
		}
	}
	switch {
	case !due:
		return false
	case place > a.front+hintReach && !a.begins(who.id, place):
		a.far = place
		return false
	}
	if who.list != a.stream {
		who.list, who.followed = a.stream, 0
	}
	if f != nil && near(f.at, place) || who.id == a.announcer {
		if f != nil {
			a.take(f.at)
		}
		a.take(place)
		a.pass(place)
		who.followed++
	}
	a.place(who.id, place)
	return true
}

// near reports whether a reader at one place may come to the other next.
func near(at, place int) bool { return max(at-place, place-at) <= hintStep }

// begins reports whether an open beyond reach is one of a reader that goes on
// from the middle of an epoch. One open of the announcer's own says so at
// first, later, or by others, two near each other.
func (a *announcement) begins(r Reader, place int) bool {
	agreed := a.far >= 0 && near(a.far, place)
	if a.opens == 0 && (agreed || r == a.announcer) || agreed && r == a.announcer {
		a.low = place
		return true
	}
	return false
}

// within returns the first place from first to before last that has file, -1 if
// none has.
func (a *announcement) within(first, last int, file string) int {
	first, last = max(first, a.base), min(last, a.end())
	if i := slices.Index(a.files[first-a.base:last-a.base], file); i >= 0 {
		return first + i
	}
	return -1
}

// take marks a place as opened.
func (a *announcement) take(place int) {
	if place < a.base || a.isDone(place) {
		return
	}
	a.done[place-a.base] = true
	a.overtaken = a.overtaken || place < a.front-1
}

// pass moves the front past a place and gives up what was passed long ago.
func (a *announcement) pass(place int) {
	a.far = -1
	a.front = max(a.front, place+1)
	passed := &a.passed[a.opens%hintPatience]
	a.low = a.skipDone(max(a.low, *passed))
	*passed = a.front
	a.opens++
	a.forget()
}

// skipDone returns the first place from here on that is not opened yet.
func (a *announcement) skipDone(place int) int {
	for place < a.end() && a.isDone(place) {
		place++
	}
	return place
}

// place makes r the last follower.
func (a *announcement) place(r Reader, place int) {
	a.followers = slices.DeleteFunc(a.followers, func(f follower) bool {
		return f.reader == r || a.opens-f.opens > hintPatience
	})
	a.followers = slices.Insert(a.followers, 0, follower{r, place, a.opens})
	a.followers = a.followers[:min(len(a.followers), maxFollowers)]
}

func (a *announcement) follower(r Reader) *follower {
	i := slices.IndexFunc(a.followers, func(f follower) bool { return f.reader == r && f.at >= a.base })
	if i < 0 {
		return nil
	}
	return &a.followers[i]
}

// lastReader returns who has opened from the list last, 0 if nobody has.
func (a *announcement) lastReader() Reader {
	if len(a.followers) == 0 {
		return 0
	}
	return a.followers[0].reader
}

// forget drops what lies far behind.
func (a *announcement) forget() {
	for ; a.indexed < a.low-hintReach; a.indexed++ {
		a.text -= len(a.file(a.indexed))
		first := *a.following(a.indexed)
		if first < 0 {
			continue
		}
		// Places leave in order, so this one is its file's first.
		hash := announcedHash(a.file(a.indexed))
		tail := a.tails[hash]
		if tail == a.indexed {
			delete(a.tails, hash)
		} else {
			*a.following(tail) = first
		}
	}
	if gone := a.indexed - a.base; gone > len(a.files)/2 {
		a.files = slices.Clone(a.files[gone:])
		a.done = slices.Clone(a.done[gone:])
		a.again = slices.Clone(a.again[gone:])
		a.base = a.indexed
	}
}

// predict returns what the list's readers open next, in turns: what follows the
// last open of r, then of each other; and what was passed over, if others than r
// may still come for it.
func (a *announcement) predict(r Reader, n int) Prediction {
	heads := make([]int, 0, len(a.followers)+1)
	if f := a.follower(r); f != nil {
		heads = append(heads, f.at+1)
	}
	for _, f := range a.followers {
		if f.reader != r && f.at >= a.base {
			heads = append(heads, f.at+1)
		}
	}
	if len(heads) != 1 || a.overtaken {
		heads = append(heads, a.low)
	}
	return Prediction{Stream: a.stream, Next: a.inTurns(heads, n), Proven: true, Locked: true, Announced: true}
}

// onward returns what r opens next by this list.
func (a *announcement) onward(r Reader, n int) []string {
	if f := a.follower(r); f != nil {
		return a.inTurns([]int{f.at + 1}, n)
	}
	return a.inTurns([]int{a.low}, n)
}

// inTurns goes on from each head to places that were not opened, one of each in
// turn. Each goes as far as the next one begins, so that no place comes twice.
func (a *announcement) inTurns(heads []int, n int) []string {
	type run struct{ at, end int }
	runs := make([]run, 0, len(heads))
	for i, head := range heads {
		end := a.end()
		for _, other := range heads {
			if other > head {
				end = min(end, other)
			}
		}
		if !slices.Contains(heads[:i], head) {
			runs = append(runs, run{head, end})
		}
	}
	next := make([]string, 0, n)
	for len(runs) > 0 && len(next) < n {
		left := runs[:0]
		for _, r := range runs {
			for r.at < r.end && a.isDone(r.at) {
				r.at++
			}
			if r.at < r.end && len(next) < n {
				next = append(next, a.file(r.at))
				left = append(left, run{r.at + 1, r.end})
			}
		}
		runs = left
	}
	return next
}

func (a *announcement) state() StreamState {
	state := StreamState{Stream: a.stream, Reader: a.announcer, Pattern: "announced list", Step: 1}
	if len(a.followers) > 0 && a.followers[0].at >= a.base {
		at := splitPlace(a.file(a.followers[0].at))
		state.Dir, state.Playhead = at.dir, at.name
	}
	return state
}
