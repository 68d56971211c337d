package prefetch

import (
	"fmt"
	"strconv"
	"strings"
)

// TraceEvent is one line of a trace: what a reader did. A trace is text, a line
// an event, fields separated by tabs:
//
//	open READER PATH …    READER opens PATH
//	hint READER PATH …    READER announces that it will open PATH
//
// Fields after these are for people and other programs (see AppendTraceOpen).
// Empty lines and lines that begin with # are comments. In READER and PATH a
// tab, a newline, a carriage return and a backslash are written \011, \012,
// \015 and \134, as in /proc/self/mountinfo; any other backslash is itself.
type TraceEvent struct {
	Kind   string // "open" or "hint"
	Reader string
	Path   string // as it was opened, relative to the root
}

// ParseTraceLine reads a line without its newline. The second result is false
// for a comment.
func ParseTraceLine(line string) (TraceEvent, bool, error) {
	if line == "" || line[0] == '#' {
		return TraceEvent{}, false, nil
	}
	fields := strings.Split(line, "\t")
	if len(fields) < 3 || fields[1] == "" || fields[2] == "" {
		return TraceEvent{}, false, fmt.Errorf("want open or hint, reader and path, separated by tabs, not %q", line)
	}
	if fields[0] != "open" && fields[0] != "hint" {
		return TraceEvent{}, false, fmt.Errorf("unknown event %q: want open or hint", fields[0])
	}
	return TraceEvent{fields[0], traceDecoder.Replace(fields[1]), traceDecoder.Replace(fields[2])}, true, nil
}

// AppendTraceOpen appends the line of an open that a mount answered: reader and
// path, how it was served, whether the reader was expected to open this file,
// and when, in seconds since the mount.
func AppendTraceOpen(line []byte, reader Reader, path, served string, expected bool, seconds float64) []byte {
	line = append(line, "open\t"...)
	line = strconv.AppendUint(line, uint64(reader), 10)
	line = append(line, '\t')
	line = append(line, traceEncoder.Replace(path)...)
	line = append(line, '\t')
	line = append(line, served...)
	if expected {
		line = append(line, "\texpected\t"...)
	} else {
		line = append(line, "\tunexpected\t"...)
	}
	line = strconv.AppendFloat(line, seconds, 'f', 6, 64)
	return append(line, '\n')
}

// AppendTraceHint appends the line of a path that a reader announced.
func AppendTraceHint(line []byte, reader Reader, path string) []byte {
	line = append(line, "hint\t"...)
	line = strconv.AppendUint(line, uint64(reader), 10)
	line = append(line, '\t')
	line = append(line, traceEncoder.Replace(path)...)
	return append(line, '\n')
}

var (
	traceEncoder = strings.NewReplacer("\t", `\011`, "\n", `\012`, "\r", `\015`, `\`, `\134`)
	traceDecoder = strings.NewReplacer(`\011`, "\t", `\012`, "\n", `\015`, "\r", `\134`, `\`)
)
