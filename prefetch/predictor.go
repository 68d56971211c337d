package prefetch

import (
	"container/list"
	"path"
	"slices"

	"reelahead/naming"
)

// Reader identifies who opens files: one process, or one reader of a trace.
type Reader uint64

// StreamID identifies a cursor: one reader's way through one sequence. Ids are
// never reused; 0 is none.
type StreamID uint64

// Directories gives the predictor its evidence. dir is relative to the root,
// slash-separated, "" for the root itself. Listing returns nil while the
// directory's names are not known yet (the predictor then guesses by
// arithmetic and names the directory in WantListings). An empty listing for a
// directory that is known not to exist keeps it from being asked for again. It
// never blocks.
type Directories interface {
	Listing(dir string) *naming.Listing
}

// Prediction is what one stream's reader is expected to open next.
type Prediction struct {
	// Stream is the cursor that the open belongs to; 0 if there is none, then
	// the rest is empty.
	Stream StreamID
	// Next holds paths relative to the root in the order in which they are
	// expected, at most as many as asked for. Empty: stay quiet.
	Next []string
	// Fallback is what to try if none of Next exists: the hexadecimal
	// successors. Only where Next is not proven.
	Fallback []string
	// Proven says that every name of Next stands in a listing or a hint.
	Proven bool
	// Locked says that at least two opens agree on direction and step, or that
	// a hint announced them; else Next is the first guess after one open.
	Locked bool
	// Announced says that Stream is an announced list.
	Announced bool
	// Continues is the stream of another reader that this open goes on with, as
	// processes that read one frame each do; else 0.
	Continues StreamID
	// Loops says that the reader comes back to what it has read in this stream.
	Loops bool
	// WantListings names directories whose listing would tell more now.
	WantListings []string
}

// StreamState describes a live stream for status.
type StreamState struct {
	Stream   StreamID
	Reader   Reader
	Dir      string // relative to the root
	Pattern  string // printf notation, or the name itself
	Step     int    // in files, negative for backwards
	Playhead string // base name of the last open
}

// Bounds of the predictor's memory. A reader is a process; a machine that
// serves a render farm has hundreds, and a player a few dozen cursors at most.
const (
	maxReaders          = 1024
	maxCursorsPerReader = 64
)

// Predictor learns the order in which readers open files and says what comes
// next. It knows only what it is told: opens, hints, and the listings it asks
// for, so the same events always give the same predictions. It is not safe for
// concurrent use.
type Predictor struct {
	lastID  StreamID
	readers map[Reader]*list.Element // of *reader
	recent  *list.List               // of *reader, last used first
	streams map[StreamID]*cursor
	lists   announcements
}

// NewPredictor returns a predictor that has seen nothing.
func NewPredictor() *Predictor {
	return &Predictor{
		readers: make(map[Reader]*list.Element),
		recent:  list.New(),
		streams: make(map[StreamID]*cursor),
		lists:   newAnnouncements(),
	}
}

// reader is what is known of one Reader.
type reader struct {
	id      Reader
	cursors []*cursor // last used first
	turns   turns
	opening spot // of the name being opened, by the listing of its directory
	// surprises counts opens that nothing expected since the last time that
	// two in a row were expected.
	surprises int
	expected  int // opens in a row that some cursor expected
	disorder  int // surprises less the expected opens since, bounded
	// list is the announced list that the last open belonged to, 0 if to none;
	// followed counts the opens in a row that did.
	list     StreamID
	followed int
}

// Open records that r opens file and returns what its stream expects next, at
// most n paths.
func (p *Predictor) Open(r Reader, file string, dirs Directories, n int) Prediction {
	who := p.reader(r)
	if a := p.claim(who, file); a != nil {
		return p.follow(who, a, file, dirs, n)
	}
	return p.learn(who, file, dirs, n)
}

// learn gives an open to the reader's cursors.
func (p *Predictor) learn(who *reader, file string, dirs Directories, n int) Prediction {
	at := splitPlace(file)
	if isSideFile(at.name) {
		return Prediction{}
	}
	who.opening = spot{}
	if l := dirs.Listing(at.dir); l != nil {
		who.opening = locate(l, at.name)
	}
	c := p.train(who, at, dirs)
	who.use(c)
	prediction := c.predict(dirs, n)
	prediction.Continues = c.predecessor
	who.opening = spot{} // keeps no listing alive
	return prediction
}

// Peek returns what stream s expects next without an open: when a listing has
// arrived, or when more names are wanted.
func (p *Predictor) Peek(s StreamID, dirs Directories, n int) Prediction {
	if a := p.lists.byStream[s]; a != nil {
		return a.predict(a.lastReader(), n)
	}
	if c := p.streams[s]; c != nil {
		return c.predict(dirs, n)
	}
	return Prediction{}
}

// Forget drops stream s: its reader has been silent for too long.
func (p *Predictor) Forget(s StreamID) {
	if a := p.lists.byStream[s]; a != nil {
		p.lists.drop(a)
		return
	}
	c := p.streams[s]
	if c == nil {
		return
	}
	delete(p.streams, s)
	c.owner.cursors = slices.DeleteFunc(c.owner.cursors, func(o *cursor) bool { return o == c })
}

// Knows reports whether stream s is live.
func (p *Predictor) Knows(s StreamID) bool { return p.lists.byStream[s] != nil || p.streams[s] != nil }

// Stream describes stream s.
func (p *Predictor) Stream(s StreamID) (StreamState, bool) {
	if a := p.lists.byStream[s]; a != nil {
		return a.state(), true
	}
	if c := p.streams[s]; c != nil {
		return c.state(), true
	}
	return StreamState{}, false
}

// Streams describes every live stream, oldest first.
func (p *Predictor) Streams() []StreamState {
	states := make([]StreamState, 0, len(p.streams)+len(p.lists.recent))
	for _, c := range p.streams {
		states = append(states, c.state())
	}
	for _, a := range p.lists.recent {
		states = append(states, a.state())
	}
	slices.SortFunc(states, func(a, b StreamState) int { return int(a.Stream) - int(b.Stream) })
	return states
}

// reader returns the record of r, which becomes the most recently used one.
func (p *Predictor) reader(r Reader) *reader {
	if element, ok := p.readers[r]; ok {
		p.recent.MoveToFront(element)
		return element.Value.(*reader)
	}
	if p.recent.Len() >= maxReaders {
		p.dropReader(p.recent.Back())
	}
	who := &reader{id: r}
	p.readers[r] = p.recent.PushFront(who)
	return who
}

func (p *Predictor) dropReader(element *list.Element) {
	who := p.recent.Remove(element).(*reader)
	delete(p.readers, who.id)
	for _, c := range who.cursors {
		delete(p.streams, c.id)
	}
}

// newCursor starts a stream of who at a place, dropping its least recently
// used one if there are too many.
func (p *Predictor) newCursor(who *reader, at place) *cursor {
	if len(who.cursors) >= maxCursorsPerReader {
		oldest := who.cursors[len(who.cursors)-1]
		delete(p.streams, oldest.id)
		who.cursors = who.cursors[:len(who.cursors)-1]
	}
	p.lastID++
	c := &cursor{id: p.lastID, owner: who, at: at, hash: at.hash(), walk: walk{way: natural, step: 1}}
	c.segment = at
	if at.name == who.opening.name {
		c.mark = who.opening.mark()
	}
	p.streams[c.id] = c
	who.cursors = append(who.cursors, c)
	return c
}

// use makes c the reader's most recently used cursor.
func (r *reader) use(c *cursor) {
	i := slices.Index(r.cursors, c)
	copy(r.cursors[1:i+1], r.cursors[:i])
	r.cursors[0] = c
}

// place is a file as a directory and a name in it.
type place struct{ dir, name string }

func splitPlace(file string) place {
	dir, name := path.Split(file)
	if dir != "" {
		dir = dir[:len(dir)-1]
	}
	return place{dir, name}
}

func (p place) path() string {
	if p.dir == "" {
		return p.name
	}
	return p.dir + "/" + p.name
}
