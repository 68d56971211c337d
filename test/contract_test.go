package test

import (
	"testing"
	"time"
)

// site is one way of being mounted.
type site struct {
	*mount
	backing     string // the source's files as another client of the server sees them
	slow        bool   // the source is a model of a file server
	passthrough bool
}

// validity is how long the sites may believe what they know of a file.
const validity = 300 * time.Millisecond

// outlast waits until nothing that was known before may be believed any more.
func outlast() { time.Sleep(validity + time.Millisecond) }

// siteFrames is how many frames the checks use, and frameSize their size: some
// chunks and a part of a page.
const (
	siteFrames = 8
	frameSize  = 2<<20 + 777
)

// contract is what holds in every mount. Each check has the site for itself but
// shares its mount with those before it.
var contract = []struct {
	name  string
	check func(*testing.T, *site)
}{
	{"ready frames", checkReady},
	{"frames on their way", checkInFlight},
	{"files outside of sequences", checkCold},
	{"sizes", checkSizes},
	{"direct I/O", checkDirect},
	{"mappings", checkMappings},
	{"running a program", checkExecution},

	{"writing into frames", checkWrite},
	{"writing into mappings", checkMappedWrite},
	{"appending", checkAppend},
	{"truncating", checkTruncate},
	{"creating", checkCreate},
	{"replacing by rename", checkReplace},
	{"deleting while open", checkDelete},
	{"copying", checkCopy},
	{"exchanging", checkRenameFlags},
	{"snapshots of readers", checkSnapshot},

	{"changed at the source", checkChangedAtSource},
	{"another file of the same size and time", checkSameSizeAndTime},
	{"created at the source", checkCreatedAtSource},

	{"directories", checkDirectories},
	{"links", checkLinks},
	{"modes and owners", checkModes},
	{"times", checkTimes},
	{"extended attributes", checkXattrs},
	{"special files", checkSpecial},
	{"names", checkNames},
	{"renaming directories", checkRenameDirectory},
	{"listings", checkListing},
	{"free space", checkStatfs},
}

func TestContract(t *testing.T) {
	sites := []struct {
		name  string
		slow  bool
		flags []string
	}{
		{"local", false, nil},
		{"local without passthrough", false, []string{"--passthrough", "off"}},
		{"server", true, nil},
		{"server without passthrough", true, []string{"--passthrough", "off"}},
	}
	for _, in := range sites {
		t.Run(in.name, func(t *testing.T) {
			t.Parallel()
			s := &site{slow: in.slow, passthrough: in.flags == nil}
			var source string
			if in.slow {
				s.backing = memory(t)
				source, _ = slowNAS(t, s.backing, "--rtt", "2ms", "--bandwidth", "200MB/s", "--stream-bandwidth", "50MB/s")
			} else {
				s.backing = t.TempDir()
				source = s.backing
			}
			flags := append([]string{"--cache-size", "384MiB", "--validity", validity.String()}, in.flags...)
			s.mount = mountOver(t, source, flags...)
			if got := s.status().Passthrough; got != s.passthrough {
				t.Fatalf("passthrough is %t, want %t", got, s.passthrough)
			}
			for _, c := range contract {
				t.Run(c.name, func(t *testing.T) {
					s.t = t
					c.check(t, s)
				})
			}
			s.t = t
			s.unmount()
		})
	}
}
