package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHintPaths(t *testing.T) {
	inside := &hintBase{mountpoints: []string{"/show", "/mnt/show"}, current: "reel1"}
	outside := &hintBase{mountpoints: []string{"/show", "/mnt/show"}}
	cases := []struct {
		base       *hintBase
		line, want string
	}{
		{outside, "a.exr", "a.exr"},
		{outside, "./d//a.exr", "d/a.exr"},
		{outside, "/show/d/a.exr", "d/a.exr"},
		{outside, "/mnt/show/d/a.exr", "d/a.exr"},
		{outside, "/show/../show/a.exr", "a.exr"},
		{outside, "d/../a.exr", "a.exr"},
		{inside, "a.exr", "reel1/a.exr"},
		{inside, "../a.exr", "a.exr"},
		{inside, "/show/a.exr", "a.exr"},
		{outside, "../a.exr", ""},
		{inside, "../../a.exr", ""},
		{outside, "/shows/a.exr", ""},
		{outside, "/etc/passwd", ""},
		{outside, "/show/../etc/passwd", ""},
		{outside, "/show", ""},
		{outside, ".", ""},
		{outside, ".reelahead/status.json", ""},
		{outside, "a\x00b", ""},
		{outside, strings.Repeat("n", 256), ""},
		{outside, strings.Repeat("d/", 2048) + "a", ""},
	}
	for _, c := range cases {
		got, err := c.base.path(c.line)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%.80q in %q: %q, %v; want %q", c.line, c.base.current, got, err, c.want)
		}
	}
}

func TestHintListErrors(t *testing.T) {
	base := &hintBase{mountpoints: []string{"/show"}}
	cases := map[string]string{
		"":                            "names no file",
		"\n\n":                        "names no file",
		"a.exr\n\n/etc/passwd\nb.exr": "order.txt, line 3: \"/etc/passwd\": not a path below the mountpoint",
		"a.exr\n" + strings.Repeat("x", maxTraceLine+1): "order.txt, line 2",
	}
	for text, words := range cases {
		var l announcedList
		if err := l.read(strings.NewReader(text), "order.txt", base); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%.40q: %v; want %q", text, err, words)
		}
	}
}

func TestHintErrors(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "order.txt")
	if err := os.WriteFile(list, []byte("a.exr\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A directory that only looks like a mount.
	if err := os.MkdirAll(filepath.Join(dir, "x", ".reelahead"), 0o755); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args   []string
		status int
		words  string
	}{
		{nil, exitUsage, "hint takes MOUNTPOINT"},
		{[]string{dir, list, list}, exitUsage, "got 3 arguments"},
		{[]string{dir, list}, exitFailure, "not a reelahead mount"},
		{[]string{filepath.Join(dir, "x"), list}, exitFailure, "not a reelahead mount"},
		{[]string{filepath.Join(dir, "gone"), list}, exitFailure, "not a reelahead mount"},
		{[]string{dir, filepath.Join(dir, "gone")}, exitFailure, "the list: open"},
	}
	for _, c := range cases {
		cmd := newRootCommand()
		cmd.SetArgs(append([]string{"hint"}, c.args...))
		err := cmd.Execute()
		if err == nil {
			t.Fatalf("hint %q: no error", c.args)
		}
		status := exitFailure
		var exit *exitError
		if errors.As(err, &exit) {
			status = exit.status
		}
		if status != c.status || !strings.Contains(err.Error(), c.words) {
			t.Errorf("hint %q: status %d, %v; want %d and %q", c.args, status, err, c.status, c.words)
		}
	}
}
