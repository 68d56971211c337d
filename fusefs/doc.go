// Package fusefs is the filesystem: a view of a source directory in which
// frames that were fetched ahead are served from memory.
//
// # How an open is answered
//
// open.go decides, in this order: a ready frame is handed to the kernel as a
// backing file (FUSE passthrough), so that reads never come here; a frame on
// its way is served by this process as its chunks land; everything else, and
// every writer, gets the source's own file as backing file. Without
// passthrough (no CAP_SYS_ADMIN, or a kernel before 6.9) the same cases are
// served by this process's reads.
//
// # One mode per inode
//
// The kernel refuses with EIO what mixes on one inode: a backing file with
// another, or passthrough with reads through this process. So the mode of an
// inode belongs to its node while it is open, and an open that does not fit is
// answered with ESTALE after the name was given to a new node with the same
// inode number. The kernel then looks the name up again and opens the new
// node, without the application noticing.
//
// # Locks
//
// fileSystem.mu guards the node table and the state of every node; the source
// is never asked while it is held. It is taken before the engine's lock only
// where the engine is told nothing (frames are released after it was given up).
package fusefs
