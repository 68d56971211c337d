package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
)

// PlayConfig says what Play plays and how.
type PlayConfig struct {
	// Paths are directories or patterns. Client i plays Paths[i % len(Paths)],
	// so that with more clients than paths several play the same frames.
	Paths   []string
	Clients int // 0: one for each path
	Threads int // of each client, reading frames at once; 0: one

	Rate     Rate          // zero: unpaced, as fast as the frames come
	Frames   int           // each client plays; 0: all of Order
	Duration time.Duration // in place of Frames: so long, Order again and again
	Order    Order
	In, Out  *int // the first and last frame number to play; nil: those there are

	Prebuffer int  // frames read before the clock starts, at least 1
	Queue     int  // frames being read, or read and not yet shown, at least Threads
	Wait      bool // on a miss the clock waits in place of skipping

	StartAt time.Time     // reading begins then; zero: at once
	Aligned bool          // all clocks start at once, when every pre-buffer is full
	Stagger time.Duration // client i begins to read i times as much later

	// Cold drops what caches hold of the frames before, as far as that is
	// possible; the report says what stays.
	Cold   bool
	Reader ReadMode
	Direct bool  // O_DIRECT
	Block  int64 // bytes a read(2); 0: the whole frame
	Size   int64 // bytes of every frame; 0: found out
	Verify bool  // check the stamps and contents that Write made

	// OnFrame is called by the clients, concurrently, for each frame that has
	// been dealt with, if set. It must not block.
	OnFrame func(client int, bytes int64, dropped bool)
	// OnStart is called before the first frame is read, if set, with a function
	// that tells what each client is doing. That may be called at any time and
	// from anywhere but OnFrame.
	OnStart func(states func() []ClientState)

	// Seams of the tests. source is where a thread of a client gets its frames, in
	// place of files; nap sleeps in place of clock_nanosleep(2).
	source func(client int) frameSource
	nap    func(time.Duration)
}

// Validate returns an error that says what is wrong with the configuration.
func (c PlayConfig) Validate() error {
	switch {
	case len(c.Paths) == 0:
		return fmt.Errorf("nothing to play: name a directory or a pattern")
	case c.Clients < 0:
		return fmt.Errorf("the number of clients can't be negative")
	case c.Threads < 0:
		return fmt.Errorf("the number of threads can't be negative")
	case c.Frames < 0:
		return fmt.Errorf("the number of frames can't be negative")
	case c.Duration < 0:
		return fmt.Errorf("the duration can't be negative")
	case c.Frames > 0 && c.Duration > 0:
		return fmt.Errorf("a run ends after a number of frames or a duration, not both")
	case c.In != nil && c.Out != nil && *c.In > *c.Out:
		return fmt.Errorf("the in point %d lies behind the out point %d", *c.In, *c.Out)
	case c.Prebuffer < 1:
		return fmt.Errorf("the pre-buffer needs at least 1 frame, not %d", c.Prebuffer)
	case c.Queue < 1:
		return fmt.Errorf("the queue needs at least 1 frame, not %d", c.Queue)
	case c.Rate != Rate{} && c.Threads > c.Queue:
		return fmt.Errorf("%d threads can't all read with a queue of %d frames: enlarge the queue", c.Threads, c.Queue)
	case c.Stagger < 0:
		return fmt.Errorf("clients can't be staggered by a negative time")
	case c.Aligned && c.Rate == Rate{}:
		return fmt.Errorf("an unpaced run has no clocks to align")
	case c.Aligned && c.Stagger > 0:
		return fmt.Errorf("clients start aligned or staggered, not both")
	}
	if err := c.Order.Validate(); err != nil {
		return err
	}
	return c.Reader.validate(c.Direct, c.Block)
}

// Play plays the frames and reports what came in time. Frames that fail are
// part of the report; an error means that nothing was played. When ctx ends the
// clients stop after the frame they are reading, and the report says so. It does
// not wait longer than stopGrace for a frame that hangs: the report names it, and
// its thread goes on until its read ends.
func Play(ctx context.Context, config PlayConfig) (*Report, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.nap == nil {
		config.nap = nanosleep
	}
	clients, err := newClients(&config)
	if err != nil {
		return nil, err
	}
	machine, mounts := thisMachine(), mountsOf(clients)
	var stays []string
	if config.Cold {
		if stays, err = makeCold(ctx, clients); err != nil {
			return nil, err
		}
	}
	if !config.StartAt.IsZero() {
		sleep(ctx, time.Until(config.StartAt))
	}
	defer letThreadsRun(len(clients) * max(config.Threads, 1))()
	clock := newTimekeeper(config.Rate, config.nap)
	playing, stop := context.WithCancel(ctx)
	defer stop()
	var ticking, running sync.WaitGroup
	if config.Rate != (Rate{}) {
		ticking.Go(func() { clock.tick(playing, config.Rate) })
	}
	for _, c := range clients {
		c.time = clock
	}
	if config.OnStart != nil {
		config.OnStart(func() []ClientState { return statesOf(clients) })
	}
	for _, c := range clients {
		running.Go(func() { c.run(ctx) })
	}
	finished := make(chan struct{})
	go func() { running.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
		select {
		case <-finished:
		case <-time.After(stopGrace):
		}
	}
	stop()
	ticking.Wait()
	report := newReport(config, clients, clock, ctx.Err() != nil)
	report.StaysWarm = append(report.StaysWarm, stays...)
	report.Machine, report.Mounts = machine, mounts
	return report, nil
}

// letThreadsRun gives each thread of the player a place in Go's scheduler, and
// two more for the clock and for who watches: else one that comes back from its
// read waits up to 10 ms for the place of another that is busy. Which of them
// runs is then up to the kernel. The function it returns undoes it.
func letThreadsRun(threads int) (undo func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(before, min(threads+2, maxPlaces)))
	return func() { runtime.GOMAXPROCS(before) }
}

// maxPlaces bounds what the places themselves cost.
const maxPlaces = 256

// makeCold drops the frames of all clients from caches. Clients that play the
// same sequence share it.
func makeCold(ctx context.Context, clients []*client) (stays []string, err error) {
	done := map[*Sequence]bool{}
	for _, c := range clients {
		if done[c.sequence] || ctx.Err() != nil {
			continue
		}
		done[c.sequence] = true
		warm, err := c.sequence.dropCaches(ctx)
		if err != nil {
			return nil, err
		}
		for _, words := range warm {
			if !slices.Contains(stays, words) {
				stays = append(stays, words)
			}
		}
	}
	return stays, nil
}

// stopGrace is how long a run that is to end waits for the frames being read.
const stopGrace = 5 * time.Second

func statesOf(clients []*client) []ClientState {
	states := make([]ClientState, len(clients))
	for i, c := range clients {
		states[i] = c.state()
	}
	return states
}

func newClients(config *PlayConfig) ([]*client, error) {
	sequences := make([]*Sequence, len(config.Paths))
	for i, path := range config.Paths {
		var err error
		if sequences[i], err = OpenSequence(path); err != nil {
			return nil, err
		}
		if err := sequences[i].trim(config.In, config.Out); err != nil {
			return nil, err
		}
	}
	number := config.Clients
	if number == 0 {
		number = len(config.Paths)
	}
	clients := make([]*client, number)
	var start *gate
	if config.Aligned {
		start = &gate{clients: clients}
	}
	for i := range clients {
		var err error
		if clients[i], err = newClient(config, i, sequences[i%len(sequences)]); err != nil {
			return nil, err
		}
		clients[i].gate = start
	}
	return clients, nil
}

func newClient(config *PlayConfig, number int, sequence *Sequence) (*client, error) {
	c := &client{
		number: number, config: config, sequence: sequence,
		began: time.Duration(number) * config.Stagger, event: make(chan struct{}, 1), turn: make(chan struct{}, 1),
	}
	order, frames := config.Order, config.Frames
	if config.Duration > 0 {
		order.Loop = math.MaxInt
		if frames = math.MaxInt; config.Rate != (Rate{}) {
			frames = max(config.Rate.Frames(config.Duration), 1)
		}
	}
	c.program = newProgram(order, len(sequence.Frames))
	switch available := c.program.len(); {
	case frames == 0 || config.Duration > 0 && frames > available:
		frames = available
	case frames > available:
		return nil, fmt.Errorf("%s: %d frames can't be played of %d: loop, or play fewer", sequence.Pattern, frames, available)
	}
	for range max(config.Threads, 1) {
		source, err := newSource(config, number, sequence)
		if err != nil {
			return nil, err
		}
		c.sources = append(c.sources, source)
	}
	c.playhead = playhead{
		rate: config.Rate, frames: frames, prebuffer: config.Prebuffer, queue: config.Queue,
		wait: config.Wait, hold: config.Aligned,
	}
	c.account = newAccount(min(frames, maxRowsAtOnce))
	return c, nil
}

// maxRowsAtOnce is how many rows of a client get their room before the run:
// those of a quarter of an hour at 60 frames a second.
const maxRowsAtOnce = 1 << 16

// frameSource is where a thread gets its frames. It is used by one thread.
type frameSource interface {
	// read reads the frame of a row, whose Began is now, and fills in its times,
	// bytes and error.
	read(row *Row, runBegan time.Time)
	// release gives back what it holds.
	release()
}

func newSource(config *PlayConfig, client int, sequence *Sequence) (frameSource, error) {
	if config.source != nil {
		return config.source(client), nil
	}
	reader := &frameReader{
		mode: config.Reader, direct: config.Direct, block: config.Block, verify: config.Verify, size: sequence.Size,
	}
	if config.Size != 0 {
		reader.size = config.Size
	}
	if err := reader.reserve(max(sequence.MaxSize, reader.size)); err != nil {
		return nil, err
	}
	return reader, nil
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
