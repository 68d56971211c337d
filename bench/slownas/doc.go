// Package slownas is a model of a network file server: a FUSE filesystem over
// a local directory in which every request takes as long as it would take over
// a network with the given round trip and bandwidths.
//
// # The model
//
// A request (lookup, open, getattr, readdir, read, write and every change of
// the tree) waits for one of Slots slots, takes one round trip, and, where it
// carries data, then occupies two links for the time its bytes need: the link
// of its stream (one open file handle) and the link that all streams share.
// Requests of one reader that overlap share the round trip but not the link,
// so that a reader which keeps requests in flight reaches the stream bandwidth
// and one which waits for each request does not. No request carries more than
// 1 MiB, as with rsize=1048576.
//
// Closing costs nothing: an NFS client does not wait for the CLOSE of a file
// it has read. Nothing is cached between two opens of a file unless
// Config.KeepCache asks for it, and names and
// attributes only for as long as Config.AttrTimeout says.
//
// # Concurrency
//
// model is a pure calculation of completion times under one mutex; alarm wakes
// each request at its completion time from one kernel timer. The data goes from
// a mapping of the backing file to the kernel in one copy.
package slownas
