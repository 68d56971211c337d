package slownas

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Faults are lines of a file, which is looked at before each request, so that
// they begin and end while the mount is used:
//
//	WHAT OPERATION NAME [after BYTES]
//
// WHAT is "stall" (no answer while the line is there), "eof" (a file that ends
// before its size) or an error such as EIO. OPERATION is lookup, getattr, open,
// create, read, write, … or any. NAME is a pattern as of path.Match for the last
// part of the name; requests that carry none fit "*" only. "after" restricts
// reads and writes to those that go beyond so many bytes of the file.
type faults struct {
	file string // "": none ever

	mu sync.Mutex
	// The fields below are guarded by mu.
	seen  os.FileInfo
	lines []fault
}

type fault struct {
	what      string // "stall", "eof" or ""
	errno     syscall.Errno
	operation string
	name      string
	after     int64
}

// faultPoll is how often a request that is stalled looks whether it still is.
const faultPoll = 10 * time.Millisecond

// find returns the first fault for a request, whose data ends at the given byte
// of the file.
func (f *faults) find(operation, name string, end int64) (fault, bool) {
	if f.file == "" {
		return fault{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	for _, line := range f.lines {
		if line.operation != "any" && line.operation != operation || end <= line.after {
			continue
		}
		if fits, _ := path.Match(line.name, name); fits || line.name == "*" {
			return line, true
		}
	}
	return fault{}, false
}

// look reads the file if it is another than before. A file that is missing or
// not understood has no faults; the second is complained of.
func (f *faults) look() {
	info, err := os.Stat(f.file)
	if err != nil {
		f.seen, f.lines = nil, nil
		return
	}
	if f.seen != nil && os.SameFile(info, f.seen) && info.ModTime().Equal(f.seen.ModTime()) && info.Size() == f.seen.Size() {
		return
	}
	text, err := os.ReadFile(f.file)
	if err != nil {
		return
	}
	f.seen = info
	if f.lines, err = parseFaults(string(text)); err != nil {
		fmt.Fprintf(os.Stderr, "slownas: %s: %v\n", f.file, err)
	}
}

func parseFaults(text string) (lines []fault, err error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		parsed, err := parseFault(words)
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", strings.TrimSpace(line), err)
		}
		lines = append(lines, parsed)
	}
	return lines, nil
}

func parseFault(words []string) (f fault, err error) {
	if len(words) != 3 && (len(words) != 5 || words[3] != "after") {
		return f, fmt.Errorf("it is not WHAT OPERATION NAME [after BYTES]")
	}
	f = fault{operation: words[1], name: words[2], after: -1}
	if _, err := path.Match(f.name, ""); err != nil {
		return f, fmt.Errorf("pattern %q: %w", f.name, err)
	}
	switch words[0] {
	case "stall", "eof":
		f.what = words[0]
	default:
		for number := syscall.Errno(1); number < 140 && f.errno == 0; number++ {
			if unix.ErrnoName(number) == words[0] {
				f.errno = number
			}
		}
		if f.errno == 0 {
			return f, fmt.Errorf("%q is neither stall, eof nor an error", words[0])
		}
	}
	if len(words) == 5 {
		if f.after, err = strconv.ParseInt(words[4], 10, 64); err != nil {
			return f, fmt.Errorf("after %q: %w", words[4], err)
		}
	}
	return f, nil
}

// meet lets a request meet its fault, if there is one: it waits while it is
// stalled, and returns an error, or for "eof" at which byte the file ends.
func (d *delayer) meet(cancel <-chan struct{}, thread uint32, operation, name string, end int64) (eof int64, errno syscall.Errno) {
	const never = 1<<63 - 1
	var interrupted bool
	for {
		f, ok := d.faults.find(operation, name, end)
		switch {
		case !ok:
			return never, 0
		case f.errno != 0:
			return never, f.errno
		case f.what == "eof":
			return f.after, 0
		}
		if !interrupted {
			select {
			case <-cancel:
				interrupted = true
			case <-time.After(faultPoll):
			}
			continue
		}
		if killed(thread) {
			return never, unix.EINTR
		}
		time.Sleep(faultPoll)
	}
}
