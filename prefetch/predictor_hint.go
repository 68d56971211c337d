package prefetch

import (
	"errors"
	"hash/maphash"
	"slices"
)

// Bounds of what may be announced: an epoch over a million files, with room.
// An announced file costs about 50 bytes and its path.
const (
	maxLists         = 64        // that live at once; the least recently used goes
	maxAnnounced     = 4 << 20   // files in all lists that were not passed yet
	maxAnnouncedText = 256 << 20 // bytes of their paths
)

// trustedOpens is how many opens in a row must have followed a list that another
// process announced for the reader's own order not to be learned any more.
const trustedOpens = 4

// Reasons for which Hint takes nothing more of a list.
var (
	// ErrHintsFull says that as much is announced as may be.
	ErrHintsFull = errors.New("as many files are announced as can be")
	// ErrHintReplaced says that the same reader has begun another list.
	ErrHintReplaced = errors.New("a newer list has replaced this one")
)

// announcements are the lists of all readers.
type announcements struct {
	byReader map[Reader]*announcement
	byStream map[StreamID]*announcement
	recent   []*announcement // last used first
}

func newAnnouncements() announcements {
	return announcements{byReader: make(map[Reader]*announcement), byStream: make(map[StreamID]*announcement)}
}

// Hint appends paths, relative to the root and clean, to list number list of
// reader r and returns the list's stream. A higher number begins a new list,
// which takes the place and the stream of what is left of the reader's old one.
// Announced order outranks what was learned, for r and for whoever else opens
// what is due in the list: the process that announces need not be the one that
// reads. It fails with ErrHintsFull, having taken the first of paths, or with
// ErrHintReplaced.
func (p *Predictor) Hint(r Reader, list uint64, paths []string) (StreamID, error) {
	a := p.lists.byReader[r]
	switch {
	case a == nil:
		if len(p.lists.recent) >= maxLists {
			p.lists.drop(p.lists.recent[len(p.lists.recent)-1])
		}
		p.lastID++
		a = newAnnouncement(r, p.lastID, list)
		p.lists.byReader[r], p.lists.byStream[a.stream] = a, a
		p.lists.recent = append(p.lists.recent, a)
	case list < a.list:
		return 0, ErrHintReplaced
	case list > a.list:
		*a = *newAnnouncement(r, a.stream, list)
	}
	p.lists.use(a)
	files, text := 0, 0
	for _, other := range p.lists.recent {
		files += len(other.files)
		text += other.text
	}
	for _, file := range paths {
		files, text = files+1, text+len(file)
		if files > maxAnnounced || text > maxAnnouncedText {
			return a.stream, ErrHintsFull
		}
		a.add(file)
	}
	return a.stream, nil
}

// Announced reports whether some list still has file to come.
func (p *Predictor) Announced(file string) bool {
	for _, a := range p.lists.recent {
		if _, ok := a.due(file); ok {
			return true
		}
	}
	return false
}

// use makes a the most recently used list.
func (l *announcements) use(a *announcement) {
	i := slices.Index(l.recent, a)
	copy(l.recent[1:i+1], l.recent[:i])
	l.recent[0] = a
}

func (l *announcements) drop(a *announcement) {
	delete(l.byReader, a.announcer)
	delete(l.byStream, a.stream)
	l.recent = slices.DeleteFunc(l.recent, func(o *announcement) bool { return o == a })
}

// claim returns the list that an open belongs to, moved past it, or nil: the
// reader's own list first, then any in which the file is due, unless the
// reader's own order led to this very file.
func (p *Predictor) claim(who *reader, file string) *announcement {
	own := p.lists.byReader[who.id]
	if own != nil && own.open(who, file) {
		p.lists.use(own)
		return own
	}
	for _, a := range p.lists.recent {
		if a == own || who.learned(file) && !a.leads(who.id, file) {
			continue
		}
		if a.open(who, file) {
			p.lists.use(a)
			return a
		}
	}
	who.list = 0
	return nil
}

// learned reports whether one of the reader's own cursors expected file as its
// very next and is to be believed.
func (r *reader) learned(file string) bool {
	if len(r.cursors) == 0 {
		return false
	}
	hash := splitPlace(file).hash()
	return slices.ContainsFunc(r.cursors, func(c *cursor) bool { return c.expected[0] == hash && !c.mute() })
}

// follow answers an open that a list has claimed. A reader that follows the
// list of another keeps being learned until it is trusted to: it may have met
// the list by chance.
func (p *Predictor) follow(who *reader, a *announcement, file string, dirs Directories, n int) Prediction {
	prediction := a.predict(who.id, n)
	if who.id != a.announcer && who.followed <= trustedOpens {
		prediction.WantListings = p.learn(who, file, dirs, 1).WantListings
	}
	return prediction
}

var announcedSeed = maphash.MakeSeed()

func announcedHash(file string) uint64 { return maphash.String(announcedSeed, file) }
