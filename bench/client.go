package bench

import (
	"context"
	"slices"
	"sync"
	"time"
)

// client plays one stream with one or more threads, each with a source of its
// own.
//
// A thread takes the next frame while it holds the token of turn, and keeps that
// while it waits for room in the queue: the others wait behind it. It is taken
// before mu.
type client struct {
	number   int
	config   *PlayConfig
	sequence *Sequence
	time     *timekeeper
	gate     *gate         // nil: its clock starts when its own pre-buffer is full
	began    time.Duration // when it started to read
	sources  []frameSource // one a thread
	// event holds a token when what advance said may no longer hold: a frame has
	// been finished or the clock has begun.
	event chan struct{}
	turn  chan struct{} // a channel of one token, since who waits for it waits long

	mu sync.Mutex
	// The fields below are guarded by mu.
	program  *program
	playhead playhead
	account  *account
	reading  []Row // those on their way
	arrived  bool  // at the gate
	ended    bool  // nothing changes any more
}

// run plays until the end or until ctx ends.
func (c *client) run(ctx context.Context) {
	if c.began > 0 {
		if c.time.wait(ctx, c.began, nil); ctx.Err() != nil {
			return
		}
	}
	var threads sync.WaitGroup
	for _, source := range c.sources {
		threads.Go(func() { c.read(ctx, source) })
	}
	threads.Wait()
	c.end()
}

// read is the life of a thread.
func (c *client) read(ctx context.Context, source frameSource) {
	defer source.release()
	for {
		row, ok := c.take(ctx)
		if !ok {
			return
		}
		source.read(&row, c.time.began)
		c.finish(row)
	}
}

// take returns the frame to read, when its time has come.
func (c *client) take(ctx context.Context) (row Row, ok bool) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	var late time.Duration
	for ctx.Err() == nil {
		select {
		case <-c.event: // what it tells of is seen now
		default:
		}
		row, notBefore, ok := c.next()
		switch {
		case !ok:
			return row, false
		case notBefore <= row.Began:
			row.Own = late
			return row, true
		case notBefore == never:
			select {
			case <-ctx.Done():
			case <-c.event:
			}
		default:
			late = c.time.wait(ctx, notBefore, c.event)
		}
	}
	return Row{}, false
}

// next asks the playhead for the next frame, and accounts for those that it
// skips. Nothing was taken when notBefore is later than the row's Began, which is
// now.
func (c *client) next() (row Row, notBefore time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.time.now()
	if c.ended {
		return Row{}, 0, false
	}
	if limit := c.config.Duration; limit > 0 && c.config.Rate == (Rate{}) && now >= c.began+limit {
		return Row{}, 0, false
	}
	k, skipped, notBefore, ok := c.playhead.advance(now)
	for i := k - skipped; i < k; i++ {
		c.add(Row{K: i, Frame: c.frame(i), Due: c.due(i), Began: now, Result: OutcomeSkipped})
	}
	row = Row{K: k, Began: now}
	if ok && notBefore <= now {
		row.Frame = c.frame(k)
		c.reading = append(c.reading, row)
	}
	return row, notBefore, ok
}

// end makes the account final. It returns the frames that are still being read,
// by threads that hang.
func (c *client) end() (unfinished []Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	return slices.Clone(c.reading)
}

// frame is the frame that is played k-th.
func (c *client) frame(k int) Frame { return c.sequence.Frames[c.program.at(k)] }

// due is when frame k was due, 0 where it never was: unpaced, and before the
// clock has started.
func (c *client) due(k int) time.Duration {
	if !c.playhead.started {
		return 0
	}
	return c.playhead.due(k)
}

// finish accounts for a frame that has been read or has failed.
func (c *client) finish(row Row) {
	c.mu.Lock()
	if c.ended { // the report has been made without it
		c.mu.Unlock()
		return
	}
	c.reading = slices.DeleteFunc(c.reading, func(taken Row) bool { return taken.K == row.K })
	started := c.playhead.started
	row.Due = c.due(row.K) // before a stall moves it
	var stalled time.Duration
	row.Result, stalled = c.playhead.finish(row.K, row.Began, row.Done, row.Err == nil)
	c.add(row)
	switch {
	case c.playhead.started && !started:
		c.setDue()
	case stalled > 0: // those read ahead of it are shown later too
		for i := range c.account.rows {
			if ahead := &c.account.rows[i]; ahead.K > row.K {
				ahead.Due += stalled
			}
		}
	}
	arrives := c.gate != nil && !c.arrived && c.playhead.buffered()
	c.arrived = c.arrived || arrives
	c.mu.Unlock()
	c.signal()
	if arrives {
		c.gate.arrive(c.time)
	}
}

// add appends a row and tells who watches.
func (c *client) add(row Row) {
	c.account.add(row)
	if c.config.OnFrame != nil {
		c.config.OnFrame(c.number, row.Bytes, row.Result != OutcomeOnTime)
	}
}

// setDue fills in when the frames of the pre-buffer are due, once it is known.
func (c *client) setDue() {
	for i := range c.account.rows {
		c.account.rows[i].Due = c.due(c.account.rows[i].K)
	}
}

// begin starts the clock.
func (c *client) begin(at time.Duration) {
	c.mu.Lock()
	c.playhead.begin(at)
	c.setDue()
	c.mu.Unlock()
	c.signal()
}

// signal makes the thread whose turn it is ask again.
func (c *client) signal() {
	select {
	case c.event <- struct{}{}:
	default:
	}
}

// gate starts the clocks of all clients at once, when the last of them has
// filled its pre-buffer.
type gate struct {
	clients []*client

	mu      sync.Mutex
	arrived int // guarded by mu
}

// arrive is called once for each client, by a thread that holds no lock.
func (g *gate) arrive(clock *timekeeper) {
	g.mu.Lock()
	g.arrived++
	last := g.arrived == len(g.clients)
	g.mu.Unlock()
	if !last {
		return
	}
	at := clock.now()
	for _, c := range g.clients {
		c.begin(at)
	}
}

// ClientState is what a client is doing at a moment, for a live view.
type ClientState struct {
	Client   int
	Path     string
	Playing  bool // its clock runs, or it is unpaced and reads
	Ended    bool
	Frames   int // to play; with a duration and no clock: not known, 0
	OnTime   int
	Late     int
	Skipped  int
	Failed   int
	Bytes    int64
	Buffered int // read and not yet shown
}

func (c *client) state() ClientState {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.playhead
	s := ClientState{
		Client: c.number, Path: c.sequence.Pattern.String(),
		Playing: (p.started || p.rate == Rate{} && p.next > 0) && !c.ended, Ended: c.ended, Frames: p.frames,
		OnTime: p.onTime, Late: p.late, Skipped: p.skipped, Failed: p.failed, Bytes: c.account.bytes,
	}
	if c.config.Duration > 0 && p.rate == (Rate{}) {
		s.Frames = 0
	}
	now := c.time.now()
	for _, k := range p.held {
		if !p.started || p.due(k) > p.clock(now) {
			s.Buffered++
		}
	}
	return s
}
