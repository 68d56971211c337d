package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// predictIn runs predict with the given input and returns what it printed.
func predictIn(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	cmd := newRootCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetIn(strings.NewReader(input))
	cmd.SetArgs(append([]string{"predict"}, args...))
	err := cmd.Execute()
	return out.String(), err
}

// folder makes empty files and returns their directory.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, file := range files {
		at := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPredictExplains(t *testing.T) {
	root := folder(t, "shot_v002.0101.exr", "shot_v002.0102.exr", "shot_v002.0104.exr", "notes.txt")
	out, err := predictIn(t, "", filepath.Join(root, "shot_v002.0102.exr"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"002 is a version: never counts",
		"0102 is a number: varies, by shot_v002.0101.exr and shot_v002.0104.exr",
		"shot_v002.%04d.exr (shot_v002.####.exr), 3 files from shot_v002.0101.exr to shot_v002.0104.exr",
		"does not exist: shot_v002.0103.exr",
		"next: shot_v002.0104.exr\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestPredictExplainsOtherNames(t *testing.T) {
	root := folder(t, "notes.txt", "f_0009.dpx", "f_000a.dpx", "f_0010.dpx")
	cases := map[string][]string{
		"notes.txt":  {"no digits in the name", "sequence: none", "next: nothing"},
		"f_0009.dpx": {"hexadecimal", "next: f_000a.dpx f_0010.dpx"},
		"f_000c.dpx": {"does not exist; the names beside it tell the same", "next: f_0010.dpx"},
	}
	for name, wants := range cases {
		out, err := predictIn(t, "", filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
	}
}

func TestPredictExplainsConventions(t *testing.T) {
	root := folder(t, "GX010048.MP4", "GX020048.MP4", "GX010049.MP4")
	out, err := predictIn(t, "", filepath.Join(root, "GX010048.MP4"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"named by convention: chapters of a GoPro recording", "next: GX020048.MP4 GX010049.MP4\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestPredictTrace(t *testing.T) {
	root := folder(t, "a.0101.exr", "a.0102.exr", "a.0103.exr", "b/x<1>.exr", "b/x<2>.exr", "alone.mov")
	input := strings.Join([]string{
		"open\tr0\ta.0101.exr",
		"open\tr 1\tb/x<1>.exr",
		"open\tr0\talone.mov",
		"hint\tr2\ta.0103.exr",
		"hint\tr2\ta.0101.exr",
		"hint\tr2\talone.mov",
		"open\tr2\ta.0103.exr",
		"",
	}, "\n")
	want := strings.Join([]string{
		`{"reader":"r0","open":"a.0101.exr","next":["a.0102.exr","a.0103.exr"]}`,
		`{"reader":"r 1","open":"b/x<1>.exr","next":["b/x<2>.exr"]}`,
		`{"reader":"r0","open":"alone.mov","next":[]}`,
		`{"reader":"r2","open":"a.0103.exr","next":["a.0101.exr","alone.mov"]}`,
		"",
	}, "\n")
	out, err := predictIn(t, input, "--trace", "-", "--root", root, "--count", "2", "--json")
	if err != nil {
		t.Fatal(err)
	}
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}

	trace := filepath.Join(t.TempDir(), "opens.tsv")
	if err := os.WriteFile(trace, []byte(input), 0o644); err != nil {
		t.Fatal(err)
	}
	fromFile, err := predictIn(t, "", "--trace", trace, "--root", root, "--count", "2", "--json")
	if err != nil || fromFile != want {
		t.Errorf("from a file: %v\n%s", err, fromFile)
	}
}

// TestPredictRecord reads what a mount writes: more columns, comments, and names
// of any bytes.
func TestPredictRecord(t *testing.T) {
	root := folder(t, "a\tb 1.exr", "a\tb 2.exr", "c\\1.exr", "c\\2.exr")
	input := strings.Join([]string{
		"# ffmpeg 5.1",
		"",
		"open\t812\t" + `a\011b 1.exr` + "\tcold\tunexpected\t0.001000",
		"open\t812\t" + `c\1341.exr` + "\tready\texpected\t0.002000",
	}, "\n")
	want := strings.Join([]string{
		`{"reader":"812","open":"a\tb 1.exr","next":["a\tb 2.exr"]}`,
		`{"reader":"812","open":"c\\1.exr","next":["c\\2.exr"]}`,
		"",
	}, "\n")
	out, err := predictIn(t, input, "--trace", "-", "--root", root, "--json")
	if err != nil || out != want {
		t.Errorf("%v, got\n%swant\n%s", err, out, want)
	}
}

func TestPredictErrors(t *testing.T) {
	root := folder(t, "a.1.exr")
	file := filepath.Join(root, "a.1.exr")
	cases := []struct {
		name   string
		input  string
		args   []string
		status int
		words  string
	}{
		{"no file", "", nil, exitUsage, "exactly one FILE"},
		{"two files", "", []string{file, file}, exitUsage, "exactly one FILE"},
		{"no directory", "", []string{filepath.Join(root, "gone", "a.1.exr")}, exitFailure, "directory of"},
		{"a file as directory", "", []string{filepath.Join(file, "a.2.exr")}, exitFailure, "not a directory"},
		{"count", "", []string{"--count", "0", file}, exitUsage, "--count 0"},
		{"json alone", "", []string{"--json", file}, exitUsage, "go with --trace"},
		{"trace and file", "", []string{"--trace", "-", "--root", root, file}, exitUsage, "leave out"},
		{"trace without root", "", []string{"--trace", "-"}, exitUsage, "needs --root"},
		{"root missing", "", []string{"--trace", "-", "--root", filepath.Join(root, "gone")}, exitFailure, "--root"},
		{"root a file", "", []string{"--trace", "-", "--root", file}, exitFailure, "not a directory"},
		{"trace missing", "", []string{"--trace", filepath.Join(root, "gone"), "--root", root}, exitFailure, "--trace"},
		{"spaces for tabs", "open\tr0\ta.1.exr\nopen r0 a.1.exr\n", []string{"--trace", "-", "--root", root}, exitFailure, "standard input, line 2"},
		{"unknown event", "stat\tr0\ta.1.exr\n", []string{"--trace", "-", "--root", root}, exitFailure, `unknown event "stat"`},
		{"outside", "open\tr0\t../a.1.exr\n", []string{"--trace", "-", "--root", root}, exitFailure, "not inside --root"},
		{"absolute", "open\tr0\t/etc/passwd\n", []string{"--trace", "-", "--root", root}, exitFailure, "not inside --root"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := predictIn(t, c.input, c.args...)
			if err == nil {
				t.Fatal("no error")
			}
			status := exitFailure
			var exit *exitError
			if errors.As(err, &exit) {
				status = exit.status
			}
			if status != c.status || !strings.Contains(err.Error(), c.words) {
				t.Errorf("status %d, %q; want %d and %q", status, err, c.status, c.words)
			}
		})
	}
}

// TestPredictTraceEpochs announces two epochs for workers that are not the
// announcer.
func TestPredictTraceEpochs(t *testing.T) {
	root := folder(t, "a.1", "a.2", "a.3", "a.4", "b.1", "b.2")
	var input strings.Builder
	for _, line := range []string{
		"hint main a.3", "hint main a.1", "hint main a.4", "hint main a.2",
		"open w0 a.3", "open w1 a.1", "open other b.1",
		"hint main a.2", "hint main a.4", "hint main a.1",
		"open w1 a.2", "open main a.4",
	} {
		input.WriteString(strings.ReplaceAll(line, " ", "\t") + "\n")
	}
	want := strings.Join([]string{
		`{"reader":"w0","open":"a.3","next":["a.1","a.4","a.2"]}`,
		`{"reader":"w1","open":"a.1","next":["a.4","a.2"]}`,
		`{"reader":"other","open":"b.1","next":["b.2"]}`,
		`{"reader":"w1","open":"a.2","next":["a.4","a.1"]}`,
		`{"reader":"main","open":"a.4","next":["a.1"]}`,
		"",
	}, "\n")
	out, err := predictIn(t, input.String(), "--trace", "-", "--root", root, "--json")
	if err != nil || out != want {
		t.Errorf("%v, got\n%swant\n%s", err, out, want)
	}
}
