package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refused runs a mount that must fail, say each of the words, and mount nothing.
func refused(t *testing.T, words []string, args ...string) {
	t.Helper()
	before := readFile(t, "/proc/self/mountinfo")
	for _, args := range [][]string{
		append([]string{"mount"}, args...),
		append([]string{"mount", "--daemon"}, args...),
	} {
		status, said := run(t, args...)
		if status == 0 {
			t.Errorf("reelahead %s: exit status 0", strings.Join(args, " "))
		}
		for _, word := range words {
			if !strings.Contains(said, word) {
				t.Errorf("reelahead %s says %q, without %q", strings.Join(args, " "), said, word)
			}
		}
		if strings.Count(said, "\n") != 1 {
			t.Errorf("reelahead %s says more than one line: %q", strings.Join(args, " "), said)
		}
	}
	for line := range strings.Lines(string(readFile(t, "/proc/self/mountinfo"))) {
		if !strings.Contains(string(before), line) && strings.Contains(line, "reelahead") && mentions(line, args) {
			t.Errorf("something was mounted: %s", line)
		}
	}
}

// mentions tells whether a line of the mount table concerns one of the paths.
func mentions(line string, paths []string) bool {
	for _, path := range paths {
		if strings.HasPrefix(path, "/") && strings.Contains(line, path) {
			return true
		}
	}
	return false
}

func TestMountErrors(t *testing.T) {
	t.Parallel()
	source, empty, full := t.TempDir(), t.TempDir(), t.TempDir()
	file := filepath.Join(full, "file")
	writeFile(t, file, []byte("x"))
	inside := filepath.Join(source, "inside")
	must(t, os.Mkdir(inside, 0o755))
	missing := filepath.Join(empty, "missing")
	link := filepath.Join(full, "link")
	must(t, os.Symlink(inside, link))

	for _, in := range []struct {
		name  string
		args  []string
		words []string // the path, and the remedy
	}{
		{"no source", []string{missing, empty}, []string{missing, "does not exist", "mounted"}},
		{"source is a file", []string{file, empty}, []string{file, "not a directory"}},
		{"no mountpoint", []string{source, missing}, []string{missing, "does not exist", "mkdir"}},
		{"mountpoint is a file", []string{source, file}, []string{file, "not a directory"}},
		{"mountpoint is not empty", []string{source, full}, []string{full, "not empty", "--allow-non-empty"}},
		{"mountpoint in the source", []string{source, inside}, []string{inside, source, "inside the source"}},
		{"mountpoint leads into the source", []string{source, link}, []string{inside, source, "inside the source"}},
		{"cache larger than the memory", []string{source, empty, "--cache-size", "1000T"}, []string{"--cache-size", "memory"}},
		{"cache too small", []string{source, empty, "--cache-size", "1000"}, []string{"cache", "small"}},
		{"cache size", []string{source, empty, "--cache-size", "many"}, []string{"cache-size", `"many"`, "512MiB"}},
		{"rate", []string{source, empty, "--max-bandwidth", "fast"}, []string{"max-bandwidth", `"fast"`, "800MB/s"}},
		{"validity", []string{source, empty, "--validity", "-1s"}, []string{"--validity", "negative"}},
		{"unknown flag", []string{source, empty, "--frobnicate"}, []string{"--frobnicate", "--help"}},
		{"unknown choice", []string{source, empty, "--passthrough", "maybe"}, []string{"--passthrough", "auto", "off"}},
		{"contradiction", []string{source, empty, "--prefetch", "off", "--ahead", "4"}, []string{"--prefetch", "--ahead", "contradict"}},
		{"unknown option", []string{source, empty, "-o", "cache-size=64M,frobnicate=1"}, []string{"frobnicate", "--help"}},
		{"option without value", []string{source, empty, "-o", "cache_size"}, []string{"cache-size", "needs a value"}},
		{"option with a bad value", []string{source, empty, "-o", "behind=half"}, []string{"behind", "half"}},
		{"one argument", []string{source}, []string{"SOURCE and MOUNTPOINT"}},
		{"log level", []string{source, empty, "--log-level", "loud"}, []string{"--log-level", "loud"}},
	} {
		t.Run(in.name, func(t *testing.T) { refused(t, in.words, in.args...) })
	}
}

func TestMountTwice(t *testing.T) {
	t.Parallel()
	m, seq := played(t)
	refused2 := func(source, path string) {
		t.Helper()
		status, said := run(t, "mount", source, path)
		if status == 0 || !strings.Contains(said, "reelahead unmount "+path) {
			t.Errorf("a second mount: status %d, %q", status, said)
		}
	}
	refused2(m.source, m.path)
	refused2(t.TempDir(), m.path)
	seq.play(m, 0, 8) // the first is none the worse
	m.unmount()
}
