package prefetch

import (
	"math"
	"path"
	"slices"
	"sort"
	"time"

	"reelahead/cache"
	"reelahead/naming"
)

// stream is what the engine knows of one cursor: how fast it moves and which
// frames it is expected to open next.
type stream struct {
	id       StreamID
	reader   Reader
	dir      string    // of its latest open
	at       string    // what it opened then
	foreseen bool      // and whether that was expected
	before   time.Time // of the open before its latest
	locked   bool
	proven   bool
	loops    bool          // it comes back to what it has read
	last     time.Time     // of its latest open
	interval float64       // seconds a frame, smoothed, frames left out counted; 0: not known yet
	next     []string      // what was expected at the latest open, in order
	size     float64       // bytes a frame, smoothed
	pace     time.Duration // between deadlines in the window
	grown    float64       // frames ahead that stalls have asked for
	trust    int           // opens that were expected; halved by each that was not
	ahead    int           // frames asked for now
	wants    []*fetch
	fallback []string // names to probe if none of the guesses exists
	heads    int      // files in a row of which its reader read the head only
	// wantsHeads: the window holds heads.
	wantsHeads bool
	paused     bool // idle for long: its frames may go if others need the room
	// announced: the stream is a list that a reader announced. Its frames go first
	// once they were read.
	announced bool
	opened    bool // a reader has opened from it
}

const (
	// firstGuess is how many frames are fetched after a single open, before the
	// reader has shown where it goes: a random reader has each of them fetched in
	// vain, twice.
	firstGuess = 1
	// credit is how many frames more than twice those that it has opened as expected
	// a reader has fetched ahead at most.
	credit = 2
	// minAhead and maxAhead bound the window of a stream in frames.
	minAhead = 4
	maxAhead = 256
	// cushion is how much time a window holds beyond what fetching takes, to
	// ride out a source that stalls.
	cushion = 0.35
	// restAfter is when a stream without opens counts as paused, forgetAfter
	// when it ends.
	restAfter   = 3 * time.Second
	forgetAfter = 60 * time.Second
)

// train tells the predictor of an open and brings the stream's window up to
// date. frame is what the store has for name. It returns the fetch under way
// for name, with the caller counted as its reader, unless the frame is ready,
// whether the open belongs to a stream whose direction is confirmed, and
// whether it was expected.
func (e *Engine) train(reader Reader, name string, frame *cache.Frame, now time.Time) (f *fetch, id StreamID, confirmed, expected bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, 0, false, false
	}
	expected = e.expectedLocked(reader, name)
	ready := frame != nil && frame.Ready()
	if ready {
		frame.MarkOpened()
	} else if f = e.fetches[name]; f != nil {
		f.readers++
		if f.deadline.After(now) {
			f.deadline = now
			e.pending.file(f)
		}
	}
	prediction := e.predictor.Open(reader, name, e, e.reach)
	if prediction.Announced {
		prediction.Next = e.predictor.Peek(prediction.Stream, e, maxAheadAnnounced).Next
	}
	if s := e.streamLocked(prediction); s != nil {
		e.continueLocked(s, prediction.Continues)
		held := f != nil && f.phase == phaseReady
		if f != nil && !s.headsOnly() {
			f.whole = true
		}
		s.advance(name, now, !ready && !held, frame)
		s.reader, s.dir, s.at, s.foreseen = reader, parentOf(name), name, expected
		e.followLocked(s, prediction, now)
		e.leaveLocked(s, now)
		e.endLocked(prediction.Continues)
		confirmed = s.locked
		// A known listing is read again when its directory has changed.
		e.wantListingsLocked([]string{parentOf(name)})
	}
	e.pumpLocked()
	return f, prediction.Stream, confirmed, expected
}

// expectedLocked tells whether reader was expected to open name now: it is wanted
// by a stream, or was within the window of one of the reader's streams, should
// its fetch have failed. Opening a file again is as expected as the first time.
func (e *Engine) expectedLocked(reader Reader, name string) bool {
	if f := e.fetches[name]; f != nil && len(f.wants) > 0 {
		return true
	}
	for _, s := range e.streams {
		if s.reader != reader {
			continue
		}
		if s.foreseen && s.at == name || slices.Contains(s.next[:min(len(s.next), s.ahead)], name) {
			return true
		}
	}
	return false
}

func (e *Engine) streamLocked(p Prediction) *stream {
	e.wantListingsLocked(p.WantListings)
	if p.Stream == 0 {
		return nil
	}
	s := e.streams[p.Stream]
	if s == nil {
		s = &stream{id: p.Stream}
		e.streams[p.Stream] = s
	}
	return s
}

// continueLocked lets a new stream begin with the measure of the one that it
// goes on with.
func (e *Engine) continueLocked(s *stream, id StreamID) {
	old := e.streams[id]
	if old == nil || !s.last.IsZero() {
		return
	}
	s.before, s.last, s.interval, s.size, s.grown, s.next = old.before, old.last, old.interval, old.size, old.grown, old.next
	s.heads, s.trust, s.at = old.heads, old.trust, old.at
}

// endLocked ends stream id here, not in the predictor: if its reader goes on
// after all, it begins anew.
func (e *Engine) endLocked(id StreamID) {
	s := e.streams[id]
	if s == nil {
		return
	}
	for _, f := range s.wants {
		delete(f.wants, id)
		e.settleLocked(f)
	}
	delete(e.streams, id)
}

// leaveLocked cancels what the reader of s was expected to open where it was
// before: it sought away. It has when it has gone on twice in s while it left out
// several opens there; a reader that takes turns between places leaves out none. A
// first guess goes at once: there was never more than one open to it. Not so where
// the other file is the same frame in another view or pass.
func (e *Engine) leaveLocked(s *stream, now time.Time) {
	for id, old := range e.streams {
		if old == s || old.announced || old.reader != s.reader || old.dir != s.dir || len(old.wants) == 0 || old.locked && !old.last.Before(s.before) {
			continue
		}
		overdue := max(4*old.interval, tick.Seconds()/4)
		guess := !old.locked && !naming.SameNumbers(path.Base(old.at), path.Base(s.at))
		if !guess && now.Sub(old.last).Seconds() < overdue {
			continue
		}
		for _, f := range old.wants {
			delete(f.wants, id)
			e.settleLocked(f)
		}
		old.wants = nil
	}
}

// advance measures the reader: stalled tells that it found its frame not ready.
func (s *stream) advance(name string, now time.Time, stalled bool, frame *cache.Frame) {
	s.paused = false
	ahead := slices.Index(s.next, name)
	switch {
	case ahead >= 0:
		s.trust++
	case ahead < 0 && name != s.at:
		s.trust /= 2
	}
	if s.opened {
		// A player that drops frames opens fewer than pass.
		passed := 1 + max(0, ahead)
		gap := min(now.Sub(s.last).Seconds(), 1) / float64(passed)
		if s.interval == 0 {
			s.interval = gap
		} else {
			s.interval += (gap - s.interval) / 8
		}
	}
	s.before, s.last, s.opened = s.last, now, true
	if frame != nil {
		s.observe(frame.Cost())
	}
	switch {
	case !s.locked:
	case stalled:
		s.grown = max(minAhead, s.grown*1.5+1)
	default:
		s.grown -= s.grown / 64
	}
}

func (s *stream) observe(size int64) {
	if s.size == 0 {
		s.size = float64(size)
	} else {
		s.size += (float64(size) - s.size) / 8
	}
}

// window returns how many frames to hold ready or under way for s: what passes
// while one is fetched, plus a cushion, plus what stalls have asked for, in the
// stream's share of the memory.
func (e *Engine) windowLocked(s *stream) int {
	if e.config.Disabled {
		return 0
	}
	frames, most := firstGuess, maxAhead
	switch {
	case s.announced:
		frames, most = maxAheadAnnounced, maxAheadAnnounced
		if s.size == 0 {
			frames = int(e.usefulLocked(s)) // until it is known how large they are
		}
	case s.locked:
		frames = minAhead
		if s.interval > 0 {
			rate := 1 / max(s.interval, 1e-4)
			frames = max(frames, int(math.Ceil(rate*(2*e.timing.fetchSeconds+cushion))))
		}
		// A reader that takes all it can get moves as fast as the source: its
		// rate says nothing about how much the source could give.
		s.grown = min(s.grown, e.usefulLocked(s))
		frames = max(frames, int(s.grown))
		// Who reads a few files quickly, or in order by chance, is not to have
		// fetched many that it never opens: twice as many as it has shown.
		frames = min(frames, credit+2*s.trust)
	}
	if e.config.Ahead > 0 {
		frames = e.config.Ahead
	}
	if s.size > 0 {
		share := e.shareLocked()
		if s.loops {
			// The rest keeps a part of the loop from one turn to the next.
			share -= share / 100 * int64(e.config.BehindPercent)
		}
		frames = min(frames, int(share/int64(s.size)))
	}
	return max(1, min(frames, most))
}

// usefulLocked is how many frames ahead keep the source busy: as many as are
// read side by side, and as many again that are ready or next in line. A window
// grown beyond only makes frames that are due soon wait for others.
func (e *Engine) usefulLocked(s *stream) float64 {
	chunks := math.Ceil(max(1, s.size) / cache.ChunkSize)
	return 2*math.Ceil(float64(e.limiter.limit)/min(chunks, prefetchChunks)) + minAhead
}

// shareLocked is the memory one stream may fill: an equal part of the cache for
// each stream that moves, leaving an eighth for frames that readers hold open.
func (e *Engine) shareLocked() int64 {
	moving := 0
	for _, s := range e.streams {
		if !s.paused && s.locked {
			moving++
		}
	}
	return e.ledger.Limit() / 8 * 7 / int64(max(1, moving))
}

// followLocked makes the fetches wanted by s those that the prediction names.
func (e *Engine) followLocked(s *stream, p Prediction, now time.Time) {
	s.locked, s.proven, s.announced, s.loops = p.Locked, p.Proven, p.Announced, p.Loops
	s.ahead = e.windowLocked(s)
	if !p.Proven {
		s.ahead = min(s.ahead, minAhead)
	}
	e.reach = max(e.reach, min(maxAhead, 2*s.ahead))
	s.fallback = p.Fallback
	pace := time.Duration(s.interval * float64(time.Second))
	if s.announced && !s.opened {
		pace = leisure
	}
	if e.stepLocked(s, p, pace, now) {
		return
	}
	s.next, s.pace, s.wantsHeads = p.Next, pace, s.headsOnly()
	before := s.wants
	s.wants = make([]*fetch, 0, min(s.ahead, len(p.Next)))
	e.round++
	for i, name := range p.Next {
		if len(s.wants) == s.ahead {
			break
		}
		if at, missing := e.absent[name]; missing && now.Sub(at) <= e.config.Validity {
			continue
		}
		e.wantLocked(s, name, now.Add(time.Duration(i+1)*pace))
	}
	for _, f := range before {
		if f.round != e.round {
			if f.underWay() && slices.Contains(p.Next, f.name) {
				// The window shrank by a little: what is half read comes later.
				s.wants = append(s.wants, f)
				continue
			}
			f.spent = e.spentLocked(s, f)
			delete(f.wants, s.id)
			e.settleLocked(f)
		}
	}
	if len(s.wants) == 0 && !p.Proven {
		e.probeFallbackLocked(s, now)
	}
}

// stepLocked moves a window on by the one frame that was opened, where nothing else
// has changed: what it held is not looked at again. It reports false, having done
// nothing, if there is more to do.
func (e *Engine) stepLocked(s *stream, p Prediction, pace time.Duration, now time.Time) bool {
	held := len(s.wants) - 1
	if held < 0 || s.announced || s.wantsHeads != s.headsOnly() || s.wants[0].name != s.at || len(p.Next) < held || held > s.ahead+s.ahead/4 ||
		pace > s.pace+s.pace/4 || pace < s.pace-s.pace/4 {
		return false
	}
	for i, f := range s.wants[1:] {
		if f.phase == phaseGone || f.name != p.Next[i] {
			return false
		}
	}
	fresh := p.Next[held:min(len(p.Next), max(held, s.ahead))]
	for _, name := range fresh {
		_, missing := e.absent[name]
		if f := e.fetches[name]; missing || f != nil && !f.wants[s.id].deadline.IsZero() {
			return false // a gap, or a loop that comes by a frame of the window again
		}
	}
	opened := s.wants[0]
	opened.spent = e.spentLocked(s, opened)
	s.next, s.wants = p.Next, s.wants[1:]
	e.round++
	for i, name := range fresh {
		e.wantLocked(s, name, now.Add(time.Duration(held+i+1)*pace))
	}
	delete(opened.wants, s.id)
	e.settleLocked(opened)
	return true
}

// spentLocked tells whether a frame that stream s has read goes before others. In
// an announced list it does if the list does not come to it again. In a loop that
// is larger than the memory every frame would be gone when it comes again if the
// oldest went first; so those go that there was no room to keep, and the others
// stay from one turn to the next.
func (e *Engine) spentLocked(s *stream, f *fetch) bool {
	switch {
	case s.announced:
		return !e.predictor.Announced(f.name)
	case s.loops && f.frame != nil:
		return !e.store.KeepsMore(f.frame.Cost())
	}
	return false
}

// underWay tells whether the source is being asked for the file's content.
func (f *fetch) underWay() bool { return f.phase > phaseQueued && f.phase < phaseReady }

// probeNextLocked tries the guess after one that does not exist, and reports
// whether there is one.
func (e *Engine) probeNextLocked(s *stream, missing string) bool {
	i := slices.Index(s.next, missing) + 1
	if i == 0 || i >= min(len(s.next), minAhead) {
		return false
	}
	e.round++
	e.wantLocked(s, s.next[i], time.Now())
	return true
}

// probeFallbackLocked tries the hexadecimal successors after none of the
// decimal ones was found, the order in which ONTAP probes.
func (e *Engine) probeFallbackLocked(s *stream, now time.Time) {
	e.round++
	for _, name := range s.fallback[:min(len(s.fallback), minAhead)] {
		if at, missing := e.absent[name]; missing && now.Sub(at) <= e.config.Validity {
			continue
		}
		e.wantLocked(s, name, now)
	}
	s.fallback = nil
}

// refollowLocked asks the predictor again, without an open: a listing has
// come, or a guess did not exist.
func (e *Engine) refollowLocked(s *stream, now time.Time) {
	names := e.reach
	if s.announced {
		names = maxAheadAnnounced
	}
	p := e.predictor.Peek(s.id, e, names)
	if p.Stream == 0 {
		return
	}
	e.wantListingsLocked(p.WantListings)
	e.followLocked(s, p, now)
}

// lookOverLocked lets go of streams that stand still and confirms frames ahead
// of those that move, so that an open finds them valid.
func (e *Engine) lookOverLocked(now time.Time) {
	for id, s := range e.streams {
		idle, patience := now.Sub(s.last), forgetAfter
		if s.announced {
			patience = forgetAnnouncedAfter
		}
		switch {
		case idle > patience || s.announced && !e.predictor.Knows(id):
			e.endLocked(id)
			e.predictor.Forget(id)
			continue
		case idle > restAfter:
			s.paused = true
		}
		if s.paused && len(e.pending.starved) > 0 {
			for _, f := range s.wants {
				delete(f.wants, id)
				e.settleLocked(f)
			}
			s.wants = nil
		}
	}
	e.pending.retry()
	for _, f := range e.fetches {
		if f.phase == phaseReady && !f.confirming && e.agesLocked(f, now) {
			f.confirming = true
			e.goLocked(f, func() { e.reconfirm(f) })
		}
	}
	for name, at := range e.absent {
		if now.Sub(at) > e.config.Validity {
			delete(e.absent, name)
		}
	}
	e.listings.tidy(now)
}

// agesLocked tells whether a ready frame should be confirmed before it is
// opened: its last word is older than half the validity, and a stream that moves
// will come to it. A player on pause costs the source nothing.
func (e *Engine) agesLocked(f *fetch, now time.Time) bool {
	if e.config.Validity == 0 || f.block != nil || now.Sub(f.frame.Attr().Known) <= e.config.Validity/2 {
		return false
	}
	for id := range f.wants {
		if s := e.streams[id]; s != nil && !s.paused {
			return true
		}
	}
	return false
}

// StreamStatus is what status shows of a stream.
type StreamStatus struct {
	Dir      string  `json:"dir"`
	Pattern  string  `json:"pattern"`
	Step     int     `json:"step"`
	Playhead string  `json:"playhead"`
	Rate     float64 `json:"rate"`  // opens a second
	Ahead    int     `json:"ahead"` // frames ready ahead of the playhead
	Window   int     `json:"window"`
	Paused   bool    `json:"paused"`
}

// Streams lists the streams whose direction is confirmed, in the order in which
// they began. A file that was opened by itself is none.
func (e *Engine) Streams() []StreamStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := make([]StreamID, 0, len(e.streams))
	for id := range e.streams {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	states := make([]StreamStatus, 0, len(ids))
	for _, id := range ids {
		s := e.streams[id]
		state, ok := e.predictor.Stream(id)
		if !ok || !s.locked {
			continue
		}
		status := StreamStatus{Dir: state.Dir, Pattern: state.Pattern, Step: state.Step, Playhead: state.Playhead, Window: s.ahead, Paused: s.paused}
		if s.interval > 0 {
			status.Rate = math.Round(100/s.interval) / 100
		}
		counted := make(map[*fetch]bool, len(s.wants))
		for _, f := range s.wants { // a loop comes by the same file again
			if f.phase == phaseReady && !counted[f] {
				counted[f] = true
				status.Ahead++
			}
		}
		states = append(states, status)
	}
	return states
}
