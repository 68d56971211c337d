// Package bench measures what a mount delivers to a player of frames: a writer
// of frames, a player with an absolute clock that counts what a person would
// see dropped, a comparison of several mounts, and a demonstration against a
// model of a slow server (package slownas).
//
// The way of a frame through it: Write makes it (mill.go, content.go, format.go
// with dpx.go and exr.go) and writes it when its turn comes (recorder.go,
// writer.go); OpenSequence finds it among the names of its directory (pattern.go,
// sequence.go), an order says when it is played (order.go), a playhead decides
// whether it can still be made and how it counts (playhead.go), a client waits for
// its time (client.go, timekeeper.go), a frameReader reads and times it (reader.go,
// readmode.go), and Report sums it up (account.go, latency.go, buffer.go,
// report.go, csv.go).
//
// The playhead and the recorder are pure: times are passed in. The threads of a
// client of Play share its playhead under its mutex; clients share nothing with
// each other but the timekeeper while they run.
package bench
