// Package bench measures what a mount delivers to a player of frames: a writer
// of frames, a player with an absolute clock that counts what a person would
// see dropped, a comparison of several mounts, and a demonstration against a
// model of a slow server (package slownas).
//
// The way of a frame through it: Write makes it (content.go, dpx.go),
// OpenSequence finds it among the names of its directory (pattern.go,
// sequence.go), an order says when its turn comes (order.go), a playhead decides
// whether it can still be made and how it counts (playhead.go), a frameReader
// reads and times it (reader.go), and Report sums it up (report.go, csv.go).
//
// The playhead is pure: times are passed in. Each client of Play owns its
// playhead, reader and buffer, and shares nothing with the others while it runs.
package bench
