package prefetch

import "time"

const (
	// headSize is how much of a file is fetched for a reader that looks at heads
	// only, in bytes. What identifies a picture (the headers of DPX, EXR with its
	// table of offsets, TIFF, QuickTime) lies in it; players that scan a folder
	// read 4 to 12 KiB of each file.
	headSize = 64 << 10
	// headShare is how many times larger a file must be for its head to be less
	// work than the whole.
	headShare = 4
	// headsAfter is how many files in a row a reader must have left after their
	// heads.
	headsAfter = 2
)

// headsOnly tells whether the stream's reader looks at the heads of files only,
// as players do that scan a folder, and tools that tell what is in it.
func (s *stream) headsOnly() bool { return s.heads >= headsAfter }

func (e *Engine) headsOnlyLocked(id StreamID) bool {
	s := e.streams[id]
	return s != nil && s.headsOnly()
}

// fasterThanMemory is more than any processor reads from memory, in bytes a
// nanosecond: a file that was open for less than its size takes at this rate was
// not read whole.
const fasterThanMemory = 32

// observeDepthLocked notes how far into a file a reader went before it closed
// it. What the kernel reads of a ready frame is not seen; there only the time
// tells, and only if it was too short.
func (e *Engine) observeDepthLocked(lease *Lease, now time.Time) {
	s, size := e.streams[lease.stream], lease.Frame.Size()
	switch {
	case s == nil || size <= headShare*headSize:
	case lease.fetch == nil:
		if now.Sub(lease.opened).Nanoseconds() < size/fasterThanMemory {
			s.heads++
		}
	case lease.depth.Load() > headSize:
		s.heads = 0
	default:
		s.heads++
	}
}
