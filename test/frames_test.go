package test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// content returns bytes that depend on all of the label: another file, another
// version, another length give other bytes everywhere.
func content(label string, size int) []byte {
	bytes := make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%s %d", label, size))).Read(bytes)
	return bytes
}

// settleTime is how long a file must have been at rest to be fetched, with a
// margin: what changed just now may change again within the clock's tick.
const settleTime = 80 * time.Millisecond

// sequence is a directory of frames.
type sequence struct {
	t      *testing.T
	dir    string // relative to the source
	at     string // where the source's files really are
	frames [][]byte
}

// makeSequence writes frames of the given size, or of each size in turn.
func makeSequence(t *testing.T, backing, dir string, frames int, sizes ...int) *sequence {
	t.Helper()
	s := &sequence{t: t, dir: dir, at: filepath.Join(backing, dir)}
	if err := os.MkdirAll(s.at, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		s.frames = append(s.frames, content(fmt.Sprint(dir, i), sizes[i%len(sizes)]))
		writeFile(t, s.backing(i), s.frames[i])
	}
	time.Sleep(settleTime)
	return s
}

// name returns the path of a frame relative to the source.
func (s *sequence) name(i int) string { return filepath.Join(s.dir, frameName(i)) }

// frameName begins at 996, so that a sequence crosses a power of ten.
func frameName(i int) string { return fmt.Sprintf("shot.%04d.exr", 996+i) }

// backing returns where frame i can be changed behind the mount's back.
func (s *sequence) backing(i int) string { return filepath.Join(s.at, frameName(i)) }

// play reads frames [from, to) through the mount and compares them.
func (s *sequence) play(m *mount, from, to int) {
	s.t.Helper()
	for i := from; i < to; i++ {
		sameBytes(s.t, readFile(s.t, m.at(s.name(i))), s.frames[i], s.name(i))
	}
}

// leadTo plays the first frames until those that follow are ready, and returns
// the first that is.
func (s *sequence) leadTo(m *mount) (next int) {
	s.t.Helper()
	s.play(m, 0, 3)
	m.settle(s.dir)
	return 3
}

// at returns the path of a source file in the mount.
func (m *mount) at(name string) string { return filepath.Join(m.path, name) }

// sameBytes fails with the place of the first difference.
func sameBytes(t *testing.T, got, want []byte, what string) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	t.Fatalf("%s: %s", what, difference(got, want))
}

func difference(got, want []byte) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("byte %d of %d differs: got %#x, want %#x", i, len(want), got[i], want[i])
		}
	}
	return fmt.Sprintf("%d bytes, want %d", len(got), len(want))
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaceFile puts a new file in the place of another, as renderers do.
func replaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	writeFile(t, path+".new", content)
	must(t, os.Rename(path+".new", path))
}

// openFile opens a file until the test ends.
func openFile(t *testing.T, path string, flags int) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func splitLines(text []byte) []string {
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
