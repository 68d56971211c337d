package main

import "context"

// figure is one thing that is measured. Its number is that of
// docs/performance.md.
type figure struct {
	number  int
	name    string
	measure func(context.Context, *bencher) ([]row, error)
	rivals  bool // needs other programs: only when asked for
}

// figures are all of them, figure n at n-1. The memory comes last of those that
// run by default, since it sums up what the others have made the daemon use.
var figures = []figure{
	{1, "ready frame of 51 MB against tmpfs", readyLarge, false},
	{2, "ready frame of 12.8 MB against tmpfs", readyMedium, false},
	{3, "open, fstat, read and close of a ready small file against a passthrough loopback", smallFiles, false},
	{4, "one unpaced reader over 10 ms, 60 MB/s a stream, 400 MB/s in all", streamAtTen, false},
	{5, "the same over 1 to 50 ms", streamCurve, false},
	{6, "30 clients of small frames over 15 ms", manyClients, false},
	{7, "4 clients of 2K from a source without a limit", heavyClients, false},
	{8, "fio: cold random reads and sequential writes against the source", fioAgainstSource, false},
	{9, "listings of many files over 5 ms", listings, false},
	{10, "a random reader beside 8 streams, prefetch on and off", randomBesideStreams, false},
	{11, "bytes taken from the source for a byte read", bytesTaken, false},
	{12, "processor time for a byte delivered", processorTime, false},
	{13, "memory beyond the cache", memoryBeyondCache, false},
	{14, "rclone's cache and Samba's preopen on the same playback", rivals, true},
}
