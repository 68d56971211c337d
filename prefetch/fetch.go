package prefetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"reelahead/cache"
)

// Reasons for which a frame is given up. Readers that wait for it read the
// source instead.
var (
	errChanged   = errors.New("the file changed while it was fetched")
	errCancelled = errors.New("no reader expects the file any more")
	errUnfit     = errors.New("the file is not one to hold in memory")
	errNever     = errors.New("not a regular file, or too large to hold in memory")
	errClosed    = errors.New("the mount is being closed")
)

// settleTime is how old a file's last change must be before its timestamps can
// tell it from a change right after: filesystems stamp by the timer tick.
const settleTime = 50 * time.Millisecond

type phase uint8

const (
	phaseQueued     phase = iota // waits for its turn
	phaseOpening                 // the source is asked for the file
	phaseReading                 // chunks are read
	phaseConfirming              // whole; the source is asked whether it is the same still
	phaseReady                   // in the store's window
	phaseGone                    // failed or given up
)

// fetch is one file on its way into the store, or ready there and expected.
// There is at most one for a name, however many streams and readers want it.
// All fields are guarded by Engine.mu, except that the goroutine which opens
// the file owns fd, attr and frame until the phase moves on.
type fetch struct {
	name     string
	phase    phase
	wants    map[StreamID]want // who expects to open it
	readers  int               // opens that wait for it or are served from it on its way
	whole    bool              // one of them reads files whole
	deadline time.Time
	started  time.Time
	opened   chan struct{} // closed when phaseOpening ends

	fd          int
	more        *descriptors // of the same file, once a reader waits for it
	frame       *cache.Frame // one reference
	next        int          // chunks below were issued
	ahead       map[int]bool // issued out of order, for readers that wait there
	outstanding int          // jobs under way
	landed      int
	err         error
	starved     bool // found no memory; tried again when some may be free
	confirming  bool
	in          *deadlines // where it waits for its turn, nil if it does not, and its place there
	at          int
	block       *block // the part of a large file that it is, nil for a file
	round       uint64 // of Engine.round, when a stream last wanted it
	spent       bool   // goes before others once it was read
}

// want is one stream's interest in a file.
type want struct {
	deadline time.Time // when it is expected to be opened
	head     bool      // its reader looks at the heads of files only
}

func (e *Engine) expectLocked(name string) *fetch {
	if f := e.fetches[name]; f != nil {
		return f
	}
	f := &fetch{name: name, wants: make(map[StreamID]want), opened: make(chan struct{}), fd: -1}
	e.fetches[name] = f
	if frame := e.store.Lookup(name); frame != nil {
		if frame.Ready() {
			// Read before and kept since: it only has to stay.
			e.store.Pin(frame)
			f.frame, f.phase = frame, phaseReady
			close(f.opened)
			return f
		}
		frame.Release()
	}
	e.pending.file(f)
	return f
}

// wantedLocked notes the interest of a stream.
func (e *Engine) wantedLocked(f *fetch, id StreamID, w want) {
	f.want(id, w)
	if f.phase == phaseQueued {
		e.pending.file(f)
	}
}

func (f *fetch) want(id StreamID, w want) {
	f.wants[id] = w
	f.deadline = w.deadline
	if len(f.wants) == 1 {
		return
	}
	for _, other := range f.wants {
		if other.deadline.Before(f.deadline) {
			f.deadline = other.deadline
		}
	}
}

// wantLocked makes stream s want a file. A head that another reader wants is not
// enough for one that reads files whole: it is fetched anew.
func (e *Engine) wantLocked(s *stream, name string, deadline time.Time) {
	f := e.expectLocked(name)
	if f.round == e.round {
		return // a loop comes by the same file again
	}
	w := want{deadline, s.headsOnly()}
	if f.frame != nil && f.frame.Partial() && !w.head && !e.large(f.frame.Size()) {
		others := f.wants
		f.wants = nil
		e.failLocked(f, errCancelled)
		f = e.expectLocked(name)
		for id, other := range others {
			e.wantedLocked(f, id, other)
		}
	}
	f.round = e.round
	e.wantedLocked(f, s.id, w)
	s.wants = append(s.wants, f)
}

// headOnly tells whether nobody needs more of the file than its head.
func (f *fetch) headOnly() bool {
	for _, w := range f.wants {
		if !w.head {
			return false
		}
	}
	return !f.whole
}

// settleLocked ends what nobody wants any more.
func (e *Engine) settleLocked(f *fetch) {
	if len(f.wants) > 0 || f.readers > 0 {
		return
	}
	switch f.phase {
	case phaseReady:
		f.phase = phaseGone
		delete(e.fetches, f.name)
		if f.spent && f.frame.Opened() {
			e.store.Spend(f.frame)
		} else {
			e.store.Unpin(f.frame)
		}
		e.finishLocked(f)
	case phaseGone:
	default:
		e.failLocked(f, errCancelled)
	}
}

// failLocked gives a fetch up; what its jobs still hold is released when the
// last of them ends.
func (e *Engine) failLocked(f *fetch, err error) {
	if f.phase == phaseGone {
		return
	}
	if f.phase < phaseReading {
		close(f.opened)
	}
	f.phase, f.err = phaseGone, err
	e.pending.file(f)
	if e.fetches[f.name] == f {
		delete(e.fetches, f.name)
	}
	if f.frame != nil {
		f.frame.Fail(err)
		e.store.Drop(f.frame)
	}
	e.finishLocked(f)
}

// jobEndedLocked counts a job as ended and reports whether the fetch goes on; of
// one that was given up meanwhile it releases what the last job held.
func (e *Engine) jobEndedLocked(f *fetch) bool {
	f.outstanding--
	if f.phase == phaseGone {
		e.finishLocked(f)
		return false
	}
	return true
}

// finishLocked releases what a fetch holds once no job uses it.
func (e *Engine) finishLocked(f *fetch) {
	if f.phase != phaseGone || f.outstanding > 0 {
		return
	}
	e.releaseSource(f)
	if f.frame != nil {
		f.frame.Release()
		f.frame = nil
	}
}

// releaseSource closes what f has open of the source. No job may be reading.
func (e *Engine) releaseSource(f *fetch) {
	if f.fd >= 0 {
		e.source.Release(f.fd)
		f.fd = -1
	}
	if f.more != nil {
		f.more.release(e.source)
		f.more = nil
	}
}

// Lease is a frame that an open is served from. Give it back by Engine.Close.
type Lease struct {
	Frame *cache.Frame
	// Source is a descriptor of the very file that is being fetched, for what
	// the frame cannot serve should its fetch fail; -1 for a ready frame. It
	// belongs to the lease.
	Source int
	// Checked is closed once the source has confirmed, after the open, that what
	// had landed by then is what it has; until then no byte may be served. If it
	// has something else the frame has failed. nil: nothing to wait for.
	Checked <-chan struct{}

	fetch  *fetch      // set if the lease counts as one of its readers
	reader *spanReader // of a large file, beyond what the frame holds; else nil
	stream StreamID
	opened time.Time
	depth  atomic.Int64 // how far into the file was read, in bytes
}

// Read returns the bytes of the file at [offset, offset+length), less where it
// ends, once nothing forbids it any more. It fails if they are to be read from
// the source, or with cache.ErrInterrupted when giveUp is closed first.
func (l *Lease) Read(offset, length int64, giveUp <-chan struct{}) (Piece, error) {
	if end := offset + length; end > l.depth.Load() {
		l.depth.Store(end)
	}
	if l.Checked != nil {
		select {
		case <-l.Checked:
		case <-giveUp:
			return Piece{}, cache.ErrInterrupted
		}
	}
	end := min(offset+length, l.Frame.Size())
	inOrder := l.reader != nil && l.reader.note(offset, end)
	bytes, err := l.Frame.Read(offset, length, giveUp)
	switch {
	case err == nil:
		if inOrder && len(bytes) > 0 { // not at the end of the file
			l.reader.moveTo(l.Frame.End()/l.reader.span.block, false)
		}
		return pieceOf(l.Frame, bytes), nil
	case inOrder && errors.Is(err, cache.ErrBeyond):
		return l.reader.read(offset, end, giveUp)
	}
	return Piece{}, err
}

// join makes an open take part in the fetch f, or start one for a stream that
// was not far enough ahead, and waits until the source has opened the file. It
// returns nil if the source must serve. confirmed tells that s is a stream whose
// direction is; of the file of another only the head is fetched, the rest as it is read.
func (e *Engine) join(f *fetch, s StreamID, confirmed bool, name string, arrived time.Time, giveUp <-chan struct{}) *Lease {
	e.mu.Lock()
	if f == nil {
		f = e.expectLocked(name)
		f.readers++
		f.deadline = arrived
		f.whole = confirmed && !e.headsOnlyLocked(s)
	}
	switch f.phase {
	case phaseQueued:
		f.phase = phaseOpening
		e.pending.file(f)
		f.outstanding++
		e.mu.Unlock()
		e.open(f) // here, not by the dispatcher: a reader waits
	case phaseOpening:
		e.mu.Unlock()
		select {
		case <-f.opened:
		case <-giveUp:
		}
	default:
		e.mu.Unlock()
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.pumpLocked()
	if f.phase < phaseReading || f.phase == phaseGone {
		f.readers--
		e.settleLocked(f)
		return nil
	}
	f.frame.MarkOpened()
	lease := &Lease{Frame: f.frame.Acquire(), Source: -1, fetch: f, stream: s, opened: arrived}
	if f.fd >= 0 {
		if fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			lease.Source = fd
		}
	}
	if e.large(f.frame.Size()) || f.frame.Partial() && e.watched(name, f.frame.Size()) {
		lease.reader = e.readSpanLocked(name, f.frame.Attr())
	}
	valid := f.phase == phaseReady && arrived.Sub(f.frame.Attr().Known) <= e.config.Validity
	if known := f.frame.Attr(); !valid && known.Known.Before(arrived) {
		// Chunks that landed before this open may be older than the open.
		lease.Checked = e.recheckLocked(f, known)
	}
	return lease
}

// recheckLocked asks the source in the background whether a file that is being
// fetched is still the one whose chunks have landed.
func (e *Engine) recheckLocked(f *fetch, known cache.Attr) <-chan struct{} {
	checked := make(chan struct{})
	e.goLocked(f, func() {
		defer close(checked)
		attr, err := e.Stat(f.name)
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.jobEndedLocked(f) {
			return
		}
		if err == nil && !attr.SameContent(known) {
			err = errChanged
		}
		if err != nil {
			e.failLocked(f, err)
		}
	})
	return checked
}

// Discard drops the frame of a lease for all: the source has been seen to have
// something else.
func (e *Engine) Discard(lease *Lease) {
	e.store.Drop(lease.Frame)
	e.mu.Lock()
	if f := e.fetches[lease.Frame.Path]; f != nil && f.frame == lease.Frame {
		e.failLocked(f, errChanged)
	}
	e.mu.Unlock()
	e.Close(lease)
}

// open asks the source for the file and finds memory for it. The caller has
// counted it as outstanding and moved the fetch to phaseOpening.
func (e *Engine) open(f *fetch) {
	var fd int
	var attr cache.Attr
	var err error
	if f.block != nil {
		attr = f.block.span.attr
		fd, err = f.block.span.open(e, f.block.index)
	} else {
		fd, attr, err = e.openSource(f.name)
	}
	var frame *cache.Frame
	if err == nil {
		frame, err = e.allocate(f, attr)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	f.outstanding--
	if err == nil && f.phase == phaseOpening && !e.closed {
		f.fd, f.frame, f.phase, f.started = fd, frame, phaseReading, time.Now()
		e.store.Pin(frame)
		close(f.opened)
		return
	}
	if fd >= 0 {
		e.source.Release(fd)
	}
	if frame != nil {
		frame.Release()
	}
	switch {
	case f.phase == phaseGone:
		e.finishLocked(f)
	case errors.Is(err, cache.ErrFull) && f.readers == 0:
		f.phase, f.starved = phaseQueued, true
		e.pending.file(f)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, errNever):
		e.absent[f.name] = time.Now()
		wanted := f.wants
		e.failLocked(f, err)
		e.missedLocked(wanted, f)
	default:
		if err == nil {
			err = errClosed
		}
		e.failLocked(f, err)
	}
}

// missedLocked tells the streams that a guessed name does not exist.
func (e *Engine) missedLocked(wanted map[StreamID]want, f *fetch) {
	for id := range wanted {
		s := e.streams[id]
		if s == nil || s.proven {
			continue
		}
		for i, other := range s.wants {
			if other == f {
				s.wants = append(s.wants[:i:i], s.wants[i+1:]...)
				break
			}
		}
		if len(s.wants) == 0 && !e.probeNextLocked(s, f.name) {
			e.probeFallbackLocked(s, time.Now())
		}
	}
}

// openSource opens a file to be fetched and decides whether it is fit to be.
func (e *Engine) openSource(name string) (int, cache.Attr, error) {
	epoch := e.attrs.Epoch()
	fd, err := e.source.OpenFrame(name)
	if err != nil {
		return -1, cache.Attr{}, err
	}
	attr, err := StatOpened(fd)
	if err != nil {
		e.counters.sourceErrors.Add(1)
		e.source.Release(fd)
		return -1, cache.Attr{}, err
	}
	e.attrs.Put(name, attr, attrCost(name), attr.Known, epoch)
	if err := e.unfit(attr); err != nil {
		e.source.Release(fd)
		return -1, attr, err
	}
	return fd, attr, nil
}

// unfit tells why a file is not one to hold in memory: it is no regular one, or
// larger than half the cache; or for now it is empty, not at rest, or being
// written through the mount.
func (e *Engine) unfit(attr cache.Attr) error {
	changed := time.Unix(attr.Ctime.Sec, int64(attr.Ctime.Nsec))
	switch {
	case !attr.IsRegular(), attr.Size > e.config.CacheSize/2 && !e.large(attr.Size):
		return errNever
	case attr.Size == 0 || time.Since(changed).Abs() <= settleTime || e.Writing(attr.Dev, attr.Ino):
		return errUnfit
	}
	return nil
}

// allocate finds memory for a file, or for its head where nobody needs more.
func (e *Engine) allocate(f *fetch, attr cache.Attr) (*cache.Frame, error) {
	e.mu.Lock()
	base, extent := int64(0), attr.Size
	switch {
	case f.block != nil:
		base, extent = f.block.base(), f.block.span.block
	case e.large(attr.Size) && len(f.wants) > 0:
		extent = blockSize
	case e.large(attr.Size) || f.headOnly() && attr.Size > headShare*headSize:
		extent = headSize
	}
	e.mu.Unlock()
	frame, err := cache.NewPart(e.arena, f.name, attr, base, extent)
	if errors.Is(err, cache.ErrFull) && e.store.Reclaim(extent) {
		frame, err = cache.NewPart(e.arena, f.name, attr, base, extent)
	}
	return frame, err
}

// nextChunkLocked returns the chunk to read next: where a reader waits, else
// the first that was not issued; -1 if all were.
func (f *fetch) nextChunkLocked() int {
	if wanted := f.frame.Wanted(); f.readers > 0 && wanted >= f.next && !f.ahead[wanted] {
		if f.ahead == nil {
			f.ahead = make(map[int]bool)
		}
		f.ahead[wanted] = true
		return wanted
	}
	for f.ahead[f.next] {
		delete(f.ahead, f.next)
		f.next++
	}
	if f.next >= f.frame.Chunks() {
		return -1
	}
	f.next++
	return f.next - 1
}

// readChunk reads one chunk of the file into the frame, through one of more
// descriptors if there are.
func (e *Engine) readChunk(f *fetch, chunk int, more *descriptors) {
	offset, into := f.frame.Chunk(chunk)
	began, fd := time.Now(), f.fd
	if nth := int64(chunk) % maxDescriptors; more != nil && nth != 0 {
		if another, err := more.get(e, f.name, f.frame.Attr(), nth); err == nil {
			fd = another
		}
	}
	err := e.readFull(fd, into, offset)
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limiter.observe(len(into), now.Sub(began), now, e.queuedLocked)
	if !e.jobEndedLocked(f) {
		return
	}
	if err != nil {
		if !errors.Is(err, errChanged) {
			e.counters.sourceErrors.Add(1)
		}
		e.failLocked(f, fmt.Errorf("read %s at %d: %w", f.name, offset, err))
		return
	}
	e.counters.fetched.Add(int64(len(into)))
	f.frame.Land(chunk)
	f.landed++
	switch {
	case f.landed < f.frame.Chunks():
	case f.block != nil:
		// Read after the open that it is for: nothing to confirm.
		e.readyLocked(f)
	default:
		f.phase = phaseConfirming
	}
}

// readFull fills into from the file; a file that ends before is a changed one.
func (e *Engine) readFull(fd int, into []byte, offset int64) error {
	if e.bandwidth != nil {
		if err := e.bandwidth.WaitN(context.Background(), len(into)); err != nil {
			return err
		}
	}
	for len(into) > 0 {
		n, err := unix.Pread(fd, into, offset)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%w: %w", errChanged, io.ErrUnexpectedEOF)
		}
		e.counters.sourceBytes.Add(int64(n))
		into, offset = into[n:], offset+int64(n)
	}
	return nil
}

// confirmWhole asks the source whether the file is still as it was when it was
// opened, and publishes the frame if so. It asks by the open file, which takes one
// round trip where a name takes two: a file that was replaced, deleted or given
// another name meanwhile has another change time or fewer links.
func (e *Engine) confirmWhole(f *fetch) {
	attr, err := e.source.Refresh(f.fd)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.jobEndedLocked(f) {
		return
	}
	if before := f.frame.Attr(); err == nil && (!attr.SameContent(before) || attr.Nlink != before.Nlink || e.Writing(attr.Dev, attr.Ino)) {
		err = errChanged
	}
	if err != nil {
		e.failLocked(f, err)
		return
	}
	if f.frame.Partial() {
		f.frame.Confirm(attr.Known)
	} else {
		f.frame.Publish(attr.Known)
	}
	e.readyLocked(f)
}

// readyLocked ends a fetch that is whole.
func (e *Engine) readyLocked(f *fetch) {
	e.releaseSource(f)
	f.phase = phaseReady
	e.pending.file(f)
	e.timing.observe(time.Since(f.started))
	for id := range f.wants {
		if s := e.streams[id]; s != nil {
			s.observe(f.frame.Cost())
			if s.announced && !s.opened && s.ahead < e.windowLocked(s) {
				e.refollowLocked(s, time.Now()) // how large its files are is known now
			}
		}
	}
	e.settleLocked(f)
}

// reconfirm asks the source again about a ready frame whose last word grows
// old, so that the open it waits for does not have to.
func (e *Engine) reconfirm(f *fetch) {
	attr, err := e.Stat(f.name)
	e.mu.Lock()
	defer e.mu.Unlock()
	f.confirming = false
	if !e.jobEndedLocked(f) {
		return
	}
	if err == nil && attr.SameContent(f.frame.Attr()) {
		f.frame.Confirm(attr.Known)
		return
	}
	// Fetched again, as it is now, if its streams still expect it.
	wants := f.wants
	e.store.Drop(f.frame)
	f.phase = phaseGone
	delete(e.fetches, f.name)
	e.finishLocked(f)
	if err != nil {
		return
	}
	again := e.expectLocked(f.name)
	for id, w := range wants {
		if s := e.streams[id]; s != nil {
			e.wantedLocked(again, id, w)
			for i, other := range s.wants {
				if other == f {
					s.wants[i] = again
				}
			}
		}
	}
	e.settleLocked(again)
}
