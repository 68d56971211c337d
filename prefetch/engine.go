package prefetch

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"reelahead/cache"
)

// Config says how an Engine fetches.
type Config struct {
	CacheSize     int64         // hard bound on frame memory in bytes
	Ahead         int           // frames ahead of each reader; 0: from rate and fetch time
	BehindPercent int           // how much of the cache frames that were read may fill
	MaxInflight   int           // reads on the source at once; 0: adapts to the source
	MaxBandwidth  int64         // bytes a second taken from the source; 0: no limit
	Validity      time.Duration // how long what the source said holds
	Disabled      bool          // fetch nothing: every open reads the source
	Log           zerolog.Logger
}

// Engine turns opens into fetches: it trains the predictor, keeps a window of
// frames ahead of every stream, and fetches them, earliest deadline first, into
// the store.
//
// One lock, mu, guards the predictor, the streams, the fetches and the
// dispatcher; no call on the source and no allocation of frame memory is made
// while it is held. It is taken before the locks of package cache.
type Engine struct {
	config    Config
	source    *Source
	ledger    *cache.Ledger
	arena     *cache.Arena
	store     *cache.Store
	attrs     *cache.Answers[cache.Attr]
	bandwidth *rate.Limiter // nil: no limit

	// Writing tells whether an application has the inode open for writing: such
	// a file is never kept. Set before the first Open.
	Writing func(dev, ino uint64) bool

	counters counters

	mu        sync.Mutex
	idle      *sync.Cond // signalled when jobs reaches 0
	predictor *Predictor
	streams   map[StreamID]*stream
	fetches   map[string]*fetch
	pending   pending              // those of fetches that are not ready
	absent    map[string]time.Time // names that can't be fetched for now, and when that was found
	listings  listings
	spans     map[string]*span // of large files that are open
	lastSpan  uint64
	// lastSpanStream is the last stream inside a file, counted from spanStreams.
	lastSpanStream StreamID
	reach          int    // names to ask the predictor for: more than any window needs
	round          uint64 // counts the times that a stream's window was brought up to date
	limiter        limiter
	looks          looks
	lookers        int // goroutines that ask for attributes ahead, beside the jobs
	jobs           int // goroutines that work on the source now
	timing         timing
	closed         bool
	stop           chan struct{}
}

type counters struct {
	fetched      atomic.Int64
	sourceBytes  atomic.Int64
	sourceErrors atomic.Int64
}

// Counters are totals since the mount. Bytes are bytes.
type Counters struct {
	BytesFetched       int64 // landed in the cache
	BytesSource        int64 // read from the source by this process for any reason
	BytesFetchedUnread int64 // fetched and dropped without having been opened
	SourceErrors       int64
	CacheBytes         int64
	CacheBytesPeak     int64
	CacheLimit         int64
	Inflight           int // reads on the source under way
	InflightLimit      int
}

// tick is how often streams are looked over: idle ones let go, frames ahead of
// a playhead confirmed.
const tick = 500 * time.Millisecond

// answersBytes bounds what is remembered of attributes.
const answersBytes = 64 << 20

// NewEngine starts an engine over source. Close it after use.
func NewEngine(source *Source, config Config) (*Engine, error) {
	ledger := cache.NewLedger(config.CacheSize)
	arena := cache.NewArena(ledger)
	store, err := cache.NewStore(ledger, arena, config.BehindPercent)
	if err != nil {
		return nil, err
	}
	attrs, err := cache.NewAnswers[cache.Attr](answersBytes)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		config:    config,
		source:    source,
		ledger:    ledger,
		arena:     arena,
		store:     store,
		attrs:     attrs,
		Writing:   func(dev, ino uint64) bool { return false },
		predictor: NewPredictor(),
		streams:   make(map[StreamID]*stream),
		fetches:   make(map[string]*fetch),
		pending:   newPending(),
		absent:    make(map[string]time.Time),
		listings:  newListings(),
		looks:     looks{of: make(map[string]*look)},
		spans:     make(map[string]*span),
		reach:     minAhead,
		limiter:   newLimiter(config.MaxInflight),
		stop:      make(chan struct{}),
	}
	e.idle = sync.NewCond(&e.mu)
	if config.MaxBandwidth > 0 {
		e.bandwidth = rate.NewLimiter(rate.Limit(config.MaxBandwidth), cache.ChunkSize)
	}
	go e.watch()
	go e.watchPressure()
	return e, nil
}

// Open is told of every open of a regular file for reading, before it is
// answered, unless OpenReady has answered it. It returns the frame to serve it
// from, ready or on its way and promoted before everything that no reader waits
// for, or nil: serve from the source. size is what the opener was told that the
// file has, in bytes, 0 if nothing. It may wait for the source, giveUp ends that.
//
// What it returns is what the source has now, or had at most the validity time
// ago. expected tells that the open was predicted, at least one open before it,
// as one of those that come next, whether or not its fetch has come that far.
func (e *Engine) Open(reader Reader, name string, size int64, giveUp <-chan struct{}) (lease *Lease, expected bool) {
	if e.config.Disabled {
		return nil, false
	}
	arrived := time.Now()
	frame := e.store.Lookup(name)
	if frame != nil && frame.Ready() && !e.confirm(frame, arrived) {
		frame.Release()
		frame = nil
	}
	f, id, confirmed, expected := e.train(reader, name, frame, arrived)
	if frame != nil {
		if f == nil && frame.Ready() {
			return &Lease{Frame: frame, Source: -1, stream: id, opened: arrived}, expected
		}
		frame.Release()
	}
	if f == nil && !confirmed && !e.watched(name, size) {
		return nil, expected
	}
	return e.join(f, id, confirmed, name, arrived, giveUp), expected
}

// OpenReady is Open for a frame that is ready and need not be confirmed; nil: it
// is not. It never waits for the source.
func (e *Engine) OpenReady(reader Reader, name string) (lease *Lease, expected bool) {
	if e.config.Disabled {
		return nil, false
	}
	now := time.Now()
	frame := e.store.Lookup(name)
	if frame == nil {
		return nil, false
	}
	if !frame.Ready() || now.Sub(frame.Attr().Known) > e.config.Validity {
		frame.Release()
		return nil, false
	}
	_, id, _, expected := e.train(reader, name, frame, now)
	return &Lease{Frame: frame, Source: -1, stream: id, opened: now}, expected
}

// confirm makes sure that a frame is still what the source has, asking it if
// the last word is older than the validity.
func (e *Engine) confirm(frame *cache.Frame, now time.Time) bool {
	known := frame.Attr()
	if now.Sub(known.Known) <= e.config.Validity {
		return true
	}
	attr, err := e.Stat(frame.Path)
	if err == nil && attr.SameContent(known) {
		frame.Confirm(attr.Known)
		return true
	}
	e.store.Drop(frame)
	e.mu.Lock()
	if f := e.fetches[frame.Path]; f != nil && f.frame == frame {
		e.failLocked(f, errChanged)
	}
	e.mu.Unlock()
	return false
}

// Close gives back what Open returned.
func (e *Engine) Close(lease *Lease) {
	if lease.Source >= 0 {
		e.source.Release(lease.Source)
	}
	lease.Frame.Release()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observeDepthLocked(lease, time.Now())
	if lease.reader != nil {
		lease.reader.closeLocked()
	}
	if lease.fetch != nil {
		lease.fetch.readers--
		e.settleLocked(lease.fetch)
	}
	e.pending.retry()
	e.pumpLocked()
}

// Changed forgets what is known of the file at name, and of the inode under its
// other names: it was or will be changed through the mount.
func (e *Engine) Changed(name string, dev, ino uint64) {
	e.attrs.Changed(name)
	e.mu.Lock()
	delete(e.absent, name)
	e.spansChangedLocked(name, dev, ino)
	e.mu.Unlock()
	e.cancel(e.store.DropTree(name))
	if ino != 0 {
		e.cancel(e.store.DropInode(dev, ino))
	}
}

// TreeChanged forgets everything known at and below a directory that was
// renamed or removed through the mount.
func (e *Engine) TreeChanged(name string) {
	e.attrs.TreeChanged()
	e.mu.Lock()
	e.listings.treeChanged()
	maps.DeleteFunc(e.absent, func(absent string, _ time.Time) bool { return within(absent, name) })
	e.mu.Unlock()
	e.source.ForgetDirectories(name)
	e.cancel(e.store.DropTree(name))
}

func (e *Engine) cancel(dropped []*cache.Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, frame := range dropped {
		if f := e.fetches[frame.Path]; f != nil && f.frame == frame {
			e.failLocked(f, errChanged)
		}
		frame.Fail(errChanged)
		frame.Release()
	}
}

// Stat answers with the source's attributes for name, asking it now.
func (e *Engine) Stat(name string) (cache.Attr, error) {
	return e.learn(name, e.source.Stat)
}

func (e *Engine) learn(name string, stat func(name string) (cache.Attr, error)) (cache.Attr, error) {
	epoch := e.attrs.Epoch()
	attr, err := stat(name)
	if err == nil {
		e.attrs.Put(name, attr, attrCost(name), attr.Known, epoch)
	}
	return attr, err
}

// Known answers with attributes of name that the source gave at most the
// validity ago, if there are any, without asking it.
func (e *Engine) Known(name string) (attr cache.Attr, ok bool) {
	if frame := e.store.Lookup(name); frame != nil {
		attr := frame.Attr()
		failed := frame.Failure() != nil
		frame.Release()
		if !failed && time.Since(attr.Known) <= e.config.Validity {
			return attr, true
		}
	}
	attr, known, ok := e.attrs.Get(name)
	return attr, ok && time.Since(known) <= e.config.Validity
}

// attrCost is the memory that remembering one file's attributes takes, in
// bytes: the struct, its map slots and the name.
func attrCost(name string) int64 { return int64(256 + len(name)) }

// Source returns the source, for what goes to it directly.
func (e *Engine) Source() *Source { return e.source }

// CountSourceRead adds bytes that a caller read from the source by itself.
func (e *Engine) CountSourceRead(bytes int64) { e.counters.sourceBytes.Add(bytes) }

// CountSourceError adds an error that the source gave a caller.
func (e *Engine) CountSourceError() { e.counters.sourceErrors.Add(1) }

// Counters returns the totals.
func (e *Engine) Counters() Counters {
	used, peak := e.ledger.Used()
	e.mu.Lock()
	inflight, limit := e.jobs, e.limiter.limit
	e.mu.Unlock()
	return Counters{
		BytesFetched:       e.counters.fetched.Load(),
		BytesSource:        e.counters.sourceBytes.Load(),
		BytesFetchedUnread: e.store.FetchedUnread(),
		SourceErrors:       e.counters.sourceErrors.Load(),
		CacheBytes:         used,
		CacheBytesPeak:     peak,
		CacheLimit:         e.ledger.Limit(),
		Inflight:           inflight,
		InflightLimit:      limit,
	}
}

// Shutdown cancels all fetches, drops all frames and waits for the source to
// answer what is under way, at most for patience: a dead server must not hold
// up an unmount. It fails if something was left: reads that the server never
// answered, or frames that applications still hold.
func (e *Engine) Shutdown(patience time.Duration) error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	close(e.stop)
	for _, f := range e.fetches {
		clear(f.wants)
		f.readers = 0
		e.settleLocked(f)
	}
	patient := true
	deadline := time.AfterFunc(patience, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		patient = false
		e.idle.Broadcast()
	})
	defer deadline.Stop()
	for e.jobs+e.lookers > 0 && patient {
		e.idle.Wait()
	}
	left := e.jobs + e.lookers
	e.mu.Unlock()
	e.store.Close()
	e.attrs.Close()
	e.arena.Close()
	if left > 0 {
		return fmt.Errorf("the source has not answered %d reads within %s", left, patience)
	}
	if used, _ := e.ledger.Used(); used > 0 {
		return fmt.Errorf("%d bytes of frames are still held by applications", used)
	}
	return nil
}

func (e *Engine) watch() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-e.stop:
			return
		case now := <-ticker.C:
			e.mu.Lock()
			e.lookOverLocked(now)
			e.pumpLocked()
			quiet := len(e.streams) == 0
			e.mu.Unlock()
			if quiet {
				// Nobody has read in order for a while: what is free goes back to the
				// system. Frames that were read stay, as long as there is room.
				e.arena.Trim()
			}
		}
	}
}
