// Package cache holds what reelahead has read from the source: frames in
// memory files that the kernel can serve by itself, attributes of files, and
// listings of directories.
//
// # Who owns memory
//
// Every byte of frame memory is charged to one [Ledger] before it is allocated
// and given back when it is really free, so the bound holds under any load. An
// [Arena] turns charged bytes into [Buffer]s and recycles them: filling a
// recycled page costs a tenth of filling a fresh one. A [Frame] owns one Buffer
// and is reference counted: the store, each open handle, the fetch that fills
// it and each reply under way hold one reference each; the last one to go
// recycles the Buffer.
//
// # What may be lost and what may not
//
// The [Store] keeps two kinds of frames. Frames of a stream's window, fetched
// and not read yet, are held by the store itself until the scheduler lets go of
// them: no policy can evict one. Frames that were read, or whose stream turned
// away, are kept by ristretto for scrubbing and for other readers, and by
// ristretto's own policy they may go at any time.
//
// # Locks
//
// Store.mu is taken before Arena.mu, which is taken before Ledger.mu. Frame.mu is
// a leaf: nothing is called while it is held. ristretto's callbacks run on its own goroutine and take
// no lock of this package but those of Frame.Release.
package cache
