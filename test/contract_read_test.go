package test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func checkReady(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "ready", siteFrames, frameSize)
	next := seq.leadTo(s.mount)
	before := s.status()

	file := openFile(t, s.at(seq.name(next)), os.O_RDONLY)
	want := seq.frames[next]
	if after := s.status(); after.OpensReady != before.OpensReady+1 {
		t.Errorf("the open was not answered by a ready frame: before %+v, after %+v", before, after)
	}
	sameBytes(t, readInPieces(t, file, 4096), want, "4 KiB pieces")
	whole := make([]byte, len(want)+4096)
	n, err := unix.Pread(int(file.Fd()), whole, 0)
	must(t, err)
	sameBytes(t, whole[:n], want, "one read beyond the end")
	tail := make([]byte, 100)
	if n, err := file.ReadAt(tail, int64(len(want)-50)); n != 50 || !errors.Is(err, io.EOF) {
		t.Errorf("read across the end: %d bytes, %v", n, err)
	}
	sameBytes(t, tail[:50], want[len(want)-50:], "last bytes")
	info, err := file.Stat()
	must(t, err)
	if info.Size() != int64(len(want)) {
		t.Errorf("size %d, want %d", info.Size(), len(want))
	}
	if after := s.status(); s.passthrough && after.DaemonReads != before.DaemonReads {
		t.Errorf("the daemon answered %d reads of a ready frame", after.DaemonReads-before.DaemonReads)
	}
}

func readInPieces(t *testing.T, file *os.File, size int) []byte {
	t.Helper()
	var all bytes.Buffer
	piece := make([]byte, size)
	for {
		n, err := file.Read(piece)
		all.Write(piece[:n])
		if errors.Is(err, io.EOF) {
			return all.Bytes()
		}
		must(t, err)
	}
}

// checkInFlight reads frames from the end, so that every read but the first of
// each waits for bytes that have not come.
func checkInFlight(t *testing.T, s *site) {
	sizes := []int{frameSize}
	if s.slow {
		sizes = []int{1000, 1000, 1000, 16 << 20} // the last takes a third of a second
	}
	seq := makeSequence(t, s.backing, "inflight", siteFrames, sizes...)
	before := s.status()
	for i, want := range seq.frames {
		file, err := os.Open(s.at(seq.name(i)))
		must(t, err)
		got := make([]byte, len(want))
		for _, at := range []int{len(want) / 4 * 3, len(want) / 2, len(want) / 4, 0} {
			n, err := file.ReadAt(got[at:min(at+len(want)/4+3, len(want))], int64(at))
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("read at %d: %d bytes, %v", at, n, err)
			}
		}
		file.Close()
		sameBytes(t, got, want, seq.name(i))
	}
	if after := s.status(); s.slow && after.OpensInflight == before.OpensInflight {
		t.Errorf("no open met a frame on its way: %+v", after)
	}
}

func checkCold(t *testing.T, s *site) {
	must(t, os.Mkdir(filepath.Join(s.backing, "cold"), 0o755))
	before := s.status()
	for _, name := range []string{"notes.txt", "Makefile", "reference", "ünïcode näme.tar"} {
		want := content(name, 300_000)
		writeFile(t, filepath.Join(s.backing, "cold", name), want)
		sameBytes(t, readFile(t, s.at("cold/"+name)), want, name)
	}
	if after := s.status(); after.OpensCold != before.OpensCold+4 {
		t.Errorf("%d of 4 opens are counted as cold", after.OpensCold-before.OpensCold)
	}
}

// checkSizes plays frames that end at, before and after the ends of pages and
// chunks, twice: on their way or cold, and kept.
func checkSizes(t *testing.T, s *site) {
	const page, chunk = 4096, 1 << 20
	seq := makeSequence(t, s.backing, "sizes", 18, 1, 0, page-1, page, page+1, chunk-1, chunk, chunk+1, 2*chunk)
	seq.play(s.mount, 0, len(seq.frames))
	seq.play(s.mount, 0, len(seq.frames))
}

func checkDirect(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "direct", siteFrames, frameSize)
	next := seq.leadTo(s.mount)
	writeFile(t, filepath.Join(s.backing, "direct", "cold.txt"), seq.frames[0])
	for name, want := range map[string][]byte{
		seq.name(next):    seq.frames[next],
		"direct/cold.txt": seq.frames[0],
	} {
		fd, err := unix.Open(s.at(name), unix.O_RDONLY|unix.O_DIRECT, 0)
		if err != nil {
			t.Fatalf("open %s with O_DIRECT: %v", name, err)
		}
		sameBytes(t, preadAligned(t, fd, len(want)), want, name)
		unix.Close(fd)
	}
}

// preadAligned reads in pieces of 256 KiB into aligned memory.
func preadAligned(t *testing.T, fd, size int) []byte {
	t.Helper()
	const piece = 256 << 10
	aligned, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	must(t, err)
	defer unix.Munmap(aligned)
	var got []byte
	for len(got) < size {
		n, err := unix.Pread(fd, aligned, int64(len(got)))
		if err != nil {
			t.Fatalf("direct read at %d: %v", len(got), err)
		}
		if n == 0 {
			break
		}
		got = append(got, aligned[:n]...)
	}
	return got
}

func checkMappings(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "mapped", siteFrames, frameSize)
	// The first are cold or on their way, the last are ready.
	for i := range 3 {
		sameMapping(t, s.at(seq.name(i)), seq.frames[i])
	}
	s.settle(seq.dir)
	for i := 3; i < siteFrames; i++ {
		sameMapping(t, s.at(seq.name(i)), seq.frames[i])
	}
}

func sameMapping(t *testing.T, path string, want []byte) {
	t.Helper()
	mapping := mapFile(t, path, len(want), unix.MAP_SHARED)
	sameBytes(t, mapping, want, "mapping of "+path)
}

// mapFile maps a file whose descriptor is closed again.
func mapFile(t *testing.T, path string, size, kind int) []byte {
	t.Helper()
	file, err := os.Open(path)
	must(t, err)
	defer file.Close()
	mapping, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, kind)
	if err != nil {
		t.Fatalf("map %s: %v", path, err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mapping) })
	return mapping
}

// checkExecution runs a program from the mount: the kernel maps and reads it by
// itself.
func checkExecution(t *testing.T, s *site) {
	path, err := exec.LookPath("echo")
	must(t, err)
	text := readFile(t, path)
	must(t, os.MkdirAll(filepath.Join(s.backing, "bin"), 0o755))
	for _, name := range []string{"say.1", "say.2", "say.3", "say.4"} {
		must(t, os.WriteFile(filepath.Join(s.backing, "bin", name), text, 0o755))
	}
	for _, name := range []string{"say.1", "say.2", "say.3", "say.4"} {
		out, err := exec.Command(s.at("bin/"+name), "hello").CombinedOutput()
		if string(out) != "hello\n" {
			t.Errorf("%s said %q, %v", name, out, err)
		}
	}
}
