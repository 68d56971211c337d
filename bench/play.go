package bench

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// PlayConfig says what Play plays and how.
type PlayConfig struct {
	// Paths are directories or patterns. Client i plays Paths[i % len(Paths)],
	// so that with more clients than paths several play the same frames.
	Paths   []string
	Clients int // 0: one for each path

	Rate      Rate // zero: unpaced, as fast as the frames come
	Frames    int  // each client plays; 0: all of Order
	Order     Order
	Prebuffer int  // frames read before the clock starts, at least 1
	Queue     int  // frames read and not yet shown, at least 1
	Wait      bool // on a miss the clock waits in place of skipping

	Direct bool  // O_DIRECT
	Block  int64 // bytes a read(2); 0: the whole frame
	Size   int64 // bytes of every frame; 0: found out
	Verify bool  // check the stamps and contents that Write made

	// OnFrame is called by the clients, concurrently, for each frame that has
	// been dealt with, if set. It must not block.
	OnFrame func(client int, bytes int64, dropped bool)
}

// Validate returns an error that says what is wrong with the configuration.
func (c PlayConfig) Validate() error {
	switch {
	case len(c.Paths) == 0:
		return fmt.Errorf("nothing to play: name a directory or a pattern")
	case c.Clients < 0:
		return fmt.Errorf("the number of clients can't be negative")
	case c.Frames < 0:
		return fmt.Errorf("the number of frames can't be negative")
	case c.Prebuffer < 1:
		return fmt.Errorf("the pre-buffer needs at least 1 frame, not %d", c.Prebuffer)
	case c.Queue < 1:
		return fmt.Errorf("the queue needs at least 1 frame, not %d", c.Queue)
	case c.Block < 0:
		return fmt.Errorf("the block size can't be negative")
	case c.Direct && c.Block%directAlign != 0:
		return fmt.Errorf("direct reads take multiples of %d bytes, not blocks of %d", directAlign, c.Block)
	}
	return c.Order.Validate()
}

// client plays one stream. Only its own goroutine uses it while it runs.
type client struct {
	number   int
	config   *PlayConfig
	sequence *Sequence
	program  *program
	reader   frameReader
	playhead playhead
	account  *account
}

// Play plays the frames and reports what came in time. Frames that fail are
// part of the report; an error means that nothing was played. When ctx ends the
// clients stop after the frame they are reading, and the report says so.
func Play(ctx context.Context, config PlayConfig) (*Report, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	clients, err := newClients(&config)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var running sync.WaitGroup
	for _, c := range clients {
		running.Go(func() { c.play(ctx, began) })
	}
	running.Wait()
	return newReport(config, clients, ctx.Err() != nil), nil
}

func newClients(config *PlayConfig) ([]*client, error) {
	sequences := make([]*Sequence, len(config.Paths))
	for i, path := range config.Paths {
		var err error
		if sequences[i], err = OpenSequence(path); err != nil {
			return nil, err
		}
	}
	number := config.Clients
	if number == 0 {
		number = len(config.Paths)
	}
	clients := make([]*client, number)
	for i := range clients {
		sequence := sequences[i%len(sequences)]
		c := &client{number: i, config: config, sequence: sequence}
		c.program = newProgram(config.Order, len(sequence.Frames))
		frames := config.Frames
		switch {
		case frames == 0:
			frames = c.program.len()
		case frames > c.program.len():
			return nil, fmt.Errorf("%s: %d frames can't be played of %d: loop, or play fewer", sequence.Pattern, frames, c.program.len())
		}
		c.reader = frameReader{direct: config.Direct, block: config.Block, verify: config.Verify, size: sequence.Size}
		if config.Size != 0 {
			c.reader.size = config.Size
		}
		if err := c.reader.reserve(max(sequence.MaxSize, c.reader.size)); err != nil {
			return nil, err
		}
		c.playhead = playhead{rate: config.Rate, frames: frames, prebuffer: config.Prebuffer, queue: config.Queue, wait: config.Wait}
		c.account = newAccount(frames)
		clients[i] = c
	}
	return clients, nil
}

func (c *client) play(ctx context.Context, began time.Time) {
	defer c.reader.release()
	for ctx.Err() == nil {
		now := time.Since(began)
		k, skipped, notBefore, ok := c.playhead.advance(now)
		for i := k - skipped; i < k; i++ {
			c.skip(i)
		}
		if !ok {
			return
		}
		if notBefore > now {
			sleep(ctx, notBefore-now)
			continue
		}
		frame := c.sequence.Frames[c.program.at(k)]
		times, n, err := c.reader.read(frame)
		row := Row{
			K: k, Frame: frame, Began: now, Done: times.done.Sub(began),
			Open: times.open, Read: times.read, Close: times.close, Bytes: n, Err: err,
		}
		c.finish(row)
	}
}

// finish accounts for a frame that has been read or has failed.
func (c *client) finish(row Row) {
	buffering := !c.playhead.started
	row.Due = c.due(row.K) // before a stall moves it
	row.Result = c.playhead.finish(row.K, row.Began, row.Done, row.Err == nil)
	c.account.add(row)
	if buffering && c.playhead.started {
		for i := range c.account.rows {
			c.account.rows[i].Due = c.due(c.account.rows[i].K)
		}
	}
	if c.config.OnFrame != nil {
		c.config.OnFrame(c.number, row.Bytes, row.Result != outcomeOnTime)
	}
}

// skip accounts for a frame that is not read.
func (c *client) skip(k int) {
	c.account.add(Row{K: k, Frame: c.sequence.Frames[c.program.at(k)], Due: c.due(k), Result: outcomeSkipped})
	if c.config.OnFrame != nil {
		c.config.OnFrame(c.number, 0, true)
	}
}

// due is when frame k was due, 0 where it never was: unpaced, and before the
// clock has started.
func (c *client) due(k int) time.Duration {
	if !c.playhead.started {
		return 0
	}
	return c.playhead.due(k)
}

// sleep returns after d or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
