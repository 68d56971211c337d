package prefetch

import (
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"reelahead/cache"
	"reelahead/naming"
)

const (
	// blockSize is the unit in which a large file is fetched, in bytes: a few
	// reads side by side, and small beside the memory of one reader.
	blockSize = 4 << 20
	// smallBlockSize is the unit for a file of less than smallBlocksBelow bytes,
	// that all descriptors have a part in it.
	smallBlockSize   = 1 << 20
	smallBlocksBelow = maxDescriptors * blockSize
	// leastWatched is the size in bytes from which on a file that nobody expected is
	// read ahead of its reader: below, it is read before that could begin.
	leastWatched = 4 << 20
	// largeShare is the part of the cache from which on a file is large: fewer
	// than so many whole files ahead would be no window. In a cache that is no
	// larger than leastForBlocks there is no room for a window of blocks either.
	largeShare     = 4
	leastForBlocks = 16 * blockSize
	// sequentialAfter is how many reads must follow each other before what comes
	// after them is fetched; a random reader makes no such run.
	sequentialAfter = 2
	// wholeRead is the length in bytes of a first read, at the beginning, that tells
	// by itself of a reader in order: who looks at a header reads less.
	wholeRead = 128 << 10
	// spanStreams is where the ids of streams inside files begin, far above those
	// that the predictor gives.
	spanStreams StreamID = 1 << 62
)

// large tells whether a file of so many bytes is too large to be held whole: an
// hour of MXF, a tar shard. Of such a file the head is fetched before it is
// opened, then what lies ahead of where its reader is.
func (e *Engine) large(size int64) bool {
	return e.config.CacheSize >= leastForBlocks && size > e.config.CacheSize/largeShare
}

// watched tells whether the reader of a file is watched even if nobody expected it,
// on a source on which one reader alone is slow: reads that follow each other are
// fetched ahead, others go to the source one by one. So is each reader of a large
// file, and of numbered ones: the first frames of a sequence, an order that nobody
// announced. Others are left to the kernel, which reads at random faster. A local disk
// does as well by itself.
func (e *Engine) watched(name string, size int64) bool {
	switch {
	case !e.source.remote || e.config.CacheSize < leastForBlocks:
		return false
	case e.large(size):
		return true
	}
	return size >= leastWatched && slices.ContainsFunc(naming.Runs(path.Base(name)), func(run naming.Run) bool { return run.Kind == naming.Number })
}

// span is one state of a large file while it is open: all its readers share its
// descriptors and its blocks.
type span struct {
	id    uint64
	name  string
	attr  cache.Attr
	block int64 // size of its blocks in bytes

	// Guarded by Engine.mu:
	users   int  // readers
	opening int  // blocks that are being opened
	void    bool // changed through the mount
	over    bool // its last reader is gone

	descriptors descriptors // the blocks' in turn
}

// block is one part of a span.
type block struct {
	span  *span
	index int64
}

func (b *block) base() int64 { return b.index * b.span.block }

// name is the block's key among the fetches. No path holds a NUL.
func (s *span) blockName(index int64) string {
	return fmt.Sprintf("%s\x00%d\x00%d", s.name, s.id, index)
}

// open returns a descriptor of the span's file for one of its blocks, to be closed
// by the caller, or -1.
func (s *span) open(e *Engine, index int64) (fd int, err error) {
	e.mu.Lock()
	s.opening++
	e.mu.Unlock()
	fd, err = s.descriptors.get(e, s.name, s.attr, index)
	if err == nil {
		fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.opening--
	s.releaseLocked(e)
	return fd, err
}

// spanReader is one open of a large file: where its reader is, and its stream of
// blocks. Its reads may come from several threads.
type spanReader struct {
	engine *Engine
	span   *span

	mu     sync.Mutex
	next   int64 // where the last read ended
	inRow  int   // reads that followed each other
	stream *stream
	at     int64 // block of the last read
}

// readSpanLocked begins reading the state of a large file that attr describes.
func (e *Engine) readSpanLocked(name string, attr cache.Attr) *spanReader {
	s := e.spans[name]
	if s == nil || s.void || !s.attr.SameContent(attr) {
		e.lastSpan++
		s = &span{id: e.lastSpan, name: name, attr: attr, block: blockSize}
		if attr.Size < smallBlocksBelow {
			s.block = smallBlockSize
		}
		e.spans[name] = s
	}
	s.users++
	return &spanReader{engine: e, span: s}
}

// closeLocked ends the reader, and the span with its last one.
func (r *spanReader) closeLocked() {
	if r.stream != nil {
		r.engine.endLocked(r.stream.id)
	}
	s := r.span
	if s.users--; s.users > 0 {
		return
	}
	if r.engine.spans[s.name] == s {
		delete(r.engine.spans, s.name)
	}
	s.over = true
	s.releaseLocked(r.engine)
}

// releaseLocked closes the descriptors once no reader is left, and no job that may
// open one.
func (s *span) releaseLocked(e *Engine) {
	if s.over && s.opening == 0 {
		s.descriptors.release(e.source)
	}
}

// spansChangedLocked ends reading ahead in a file that was or will be changed
// through the mount.
func (e *Engine) spansChangedLocked(name string, dev, ino uint64) {
	for _, s := range e.spans {
		if s.name == name || ino != 0 && s.attr.Dev == dev && s.attr.Ino == ino {
			s.void = true
		}
	}
}

// note records a read and tells whether the reader goes through the file in
// order: a little out of it, as several requests of one reader may arrive, but
// not by more than a block.
func (r *spanReader) note(offset, end int64) (inOrder bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if distance := offset - r.next; distance < -blockSize || distance > blockSize {
		r.inRow = 0
		r.next = end
		return false
	}
	if offset == 0 && end >= wholeRead && r.inRow == 0 {
		r.inRow = sequentialAfter
	}
	r.inRow++
	r.next = max(r.next, end)
	return r.inRow > sequentialAfter
}

// read returns the bytes at [offset, end), of at most two blocks; of more with
// cache.ErrBeyond.
func (r *spanReader) read(offset, end int64, giveUp <-chan struct{}) (p Piece, err error) {
	size := r.span.block
	if (end-1)/size > offset/size+1 {
		return Piece{}, cache.ErrBeyond
	}
	for offset < end {
		index := offset / size
		stop := min(end, (index+1)*size)
		frame, bytes, err := r.readBlock(index, offset, stop-offset, giveUp)
		if err != nil {
			p.Release()
			r.giveUpOrder()
			return Piece{}, err
		}
		p.add(frame, bytes)
		offset = stop
	}
	return p, nil
}

// giveUpOrder lets some reads go to the source before a block is tried again: one
// that cannot be read must not be asked for at every read.
func (r *spanReader) giveUpOrder() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inRow = 0
}

// readBlock waits for a part of a block and returns it with the frame that holds
// it, and a reference to that.
func (r *spanReader) readBlock(index, offset, length int64, giveUp <-chan struct{}) (*cache.Frame, []byte, error) {
	e := r.engine
	f := r.moveTo(index, true)
	if f == nil {
		return nil, nil, errChanged
	}
	defer func() {
		e.mu.Lock()
		f.readers--
		e.settleLocked(f)
		e.mu.Unlock()
	}()
	select {
	case <-f.opened:
	case <-giveUp:
		return nil, nil, cache.ErrInterrupted
	}
	e.mu.Lock()
	if f.phase == phaseGone {
		err := f.err
		e.mu.Unlock()
		return nil, nil, err
	}
	frame := f.frame.Acquire()
	e.mu.Unlock()
	bytes, err := frame.Read(offset, length, giveUp)
	if err != nil {
		frame.Release()
		return nil, nil, err
	}
	return frame, bytes, nil
}

// moveTo lets the window follow the reader to a block. It returns the block's
// fetch, with the caller counted as its reader if it waits for it; nil if there
// is none, since the file has changed.
func (r *spanReader) moveTo(index int64, waits bool) *fetch {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || r.span.void {
		return nil
	}
	now := time.Now()
	if r.stream == nil {
		e.lastSpanStream++
		r.stream = &stream{id: spanStreams + e.lastSpanStream, size: float64(r.span.block), trust: sequentialAfter}
		if r.span.block == smallBlockSize {
			r.stream.trust = maxDescriptors // one block each
		}
		r.at = -1
	}
	e.streams[r.stream.id] = r.stream // a long pause ends a stream
	name := r.span.blockName(index)
	f := e.fetches[name]
	if waits {
		f = e.expectBlockLocked(r.span, index)
		f.readers++
		f.deadline = now
		e.pending.file(f)
	}
	if index > r.at || index < r.at-1 {
		r.at = index
		r.stream.advance(name, now, f == nil || f.phase != phaseReady, nil)
		r.followLocked(index, now)
	}
	e.pumpLocked()
	return f
}

// followLocked has the blocks fetched that the reader is at and comes to.
func (r *spanReader) followLocked(index int64, now time.Time) {
	s, e := r.stream, r.engine
	s.locked, s.proven = true, true
	// The block that the reader is at, the one before it and one whose last bytes
	// are on their way to it take memory too.
	room := int(e.shareLocked()/r.span.block) - 2
	s.ahead = max(1, min(1+e.windowLocked(s), room))
	last := min((r.span.attr.Size-1)/r.span.block, index+int64(s.ahead)-1)
	before := s.wants
	s.wants, s.next = nil, nil
	e.round++
	if f := e.fetches[r.span.blockName(index-1)]; f != nil && f.wants[s.id] != (want{}) {
		// Requests of one reader may overtake each other where a block ends.
		f.round = e.round
		s.wants = append(s.wants, f)
	}
	for i := index; i <= last; i++ {
		f := e.expectBlockLocked(r.span, i)
		f.round = e.round
		e.wantedLocked(f, s.id, want{deadline: now.Add(time.Duration(float64(i-index) * s.interval * float64(time.Second)))})
		s.wants = append(s.wants, f)
		if i > index {
			s.next = append(s.next, f.name)
		}
	}
	for _, f := range before {
		switch {
		case f.round == e.round:
		case f.block.index > last && len(s.wants) < room:
			s.wants = append(s.wants, f) // the window shrank for a moment
		default:
			delete(f.wants, s.id)
			e.settleLocked(f)
		}
	}
}

// expectBlockLocked returns the fetch of a block, made if need be.
func (e *Engine) expectBlockLocked(s *span, index int64) *fetch {
	f := e.expectLocked(s.blockName(index))
	if f.block == nil {
		f.block = &block{s, index}
	}
	return f
}
