package prefetch

import (
	"strings"
	"testing"
)

func TestTraceLines(t *testing.T) {
	for line, want := range map[string]TraceEvent{
		"open\tr0\ta.0101.exr":                                 {"open", "r0", "a.0101.exr"},
		"hint\tr 1\tdir/a b.exr":                               {"hint", "r 1", "dir/a b.exr"},
		"open\t7\ta.exr\tready\texpected\t0.1":                 {"open", "7", "a.exr"},
		"open\t7\ta.exr\t":                                     {"open", "7", "a.exr"},
		`open` + "\t7\t" + `tab\011line\012end\015back\134011`: {"open", "7", "tab\tline\nend\rback\\011"},
		"open\t7\t" + `C:\task\01`:                             {"open", "7", `C:\task\01`},
	} {
		if got, ok, err := ParseTraceLine(line); err != nil || !ok || got != want {
			t.Errorf("%q: %q, %v, %v; want %q", line, got, ok, err, want)
		}
	}
	for _, comment := range []string{"", "# ffmpeg 5.1", "#open\t1\ta"} {
		if _, ok, err := ParseTraceLine(comment); ok || err != nil {
			t.Errorf("%q: %v, %v; want a comment", comment, ok, err)
		}
	}
	for line, words := range map[string]string{
		"open r0 a.exr":       "separated by tabs",
		"open\tr0":            "separated by tabs",
		"open\t\ta.exr":       "separated by tabs",
		"open\tr0\t\tready":   "separated by tabs",
		"stat\tr0\ta.exr":     `unknown event "stat"`,
		" open\tr0\ta.1.exr ": "unknown event",
	} {
		if _, _, err := ParseTraceLine(line); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v, want an error with %q", line, err, words)
		}
	}
}

// TestTraceOpens writes opens and reads them back.
func TestTraceOpens(t *testing.T) {
	got := string(AppendTraceOpen([]byte("before\n"), 42, "d/a.1.exr", "ready", true, 1.5))
	if want := "before\nopen\t42\td/a.1.exr\tready\texpected\t1.500000\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := string(AppendTraceHint(nil, 42, "d/a\t1.exr")), "hint\t42\td/a\\0111.exr\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"a", "a\tb", "a\nb\r", `a\b`, `\011`, `\134011`, "a\\\t", "\xff\xfe", "# a"} {
		line := string(AppendTraceOpen(nil, 1, name, "cold", false, 0))
		text, ended := strings.CutSuffix(line, "\n")
		if !ended || strings.ContainsAny(text, "\n\r") || strings.Count(text, "\t") != 5 {
			t.Errorf("%q is written as %q", name, line)
		}
		if event, ok, err := ParseTraceLine(text); err != nil || !ok || event.Path != name || event.Reader != "1" {
			t.Errorf("%q is read back as %q, %v, %v", name, event, ok, err)
		}
	}
}
