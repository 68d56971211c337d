package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMemoryBound lets 16 applications play different sequences in a cache of
// four frames, again and again.
func TestMemoryBound(t *testing.T) {
	t.Parallel()
	const readers, frames, size = 16, 6, 1<<20 - 1000
	for name, in := range map[string]struct {
		slow  bool
		flags []string
	}{
		"local":              {false, nil},
		"server":             {true, nil},
		"server, no passing": {true, []string{"--passthrough", "off"}},
	} {
		t.Run(name, func(t *testing.T) {
			backing := memory(t)
			source := backing
			if in.slow {
				source, _ = slowNAS(t, backing, "--rtt", "2ms", "--bandwidth", "300MB/s", "--stream-bandwidth", "100MB/s")
			}
			m := mountOver(t, source, append([]string{"--cache-size", "4MiB"}, in.flags...)...)
			stop, watched := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(watched)
				for {
					if c := m.status(); c.CacheBytes > c.CacheLimit || c.CacheBytesPeak > c.CacheLimit || c.CacheLimit != 4<<20 {
						t.Errorf("%d bytes in a cache of %d, at most %d", c.CacheBytes, c.CacheLimit, c.CacheBytesPeak)
					}
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
			}()
			var sequences []*sequence
			for i := range readers {
				sequences = append(sequences, makeSequence(t, backing, fmt.Sprintf("show%02d", i), frames, size))
			}
			var first, last usage
			rounds := 3
			if raceDetector {
				rounds = 2 // starting the readers takes most of the time then
			}
			for round := range rounds {
				playAll(t, m, sequences)
				last = m.usageAtRest()
				if round == 0 {
					first = last
				}
			}
			close(stop)
			<-watched
			if last.descriptors > first.descriptors+4 || last.threads > 2*first.threads {
				t.Errorf("it grows: %+v after the first of %d rounds, %+v after the last", first, rounds, last)
			}
			if c := m.status(); c.Opens < int64(readers*frames*rounds) || c.SourceErrors > 0 {
				t.Errorf("%d opens, %d errors of the source", c.Opens, c.SourceErrors)
			}
			m.unmount()
		})
	}
}

// playAll plays each sequence in an application of its own, all at once.
func playAll(t *testing.T, m *mount, sequences []*sequence) {
	t.Helper()
	var playing sync.WaitGroup
	for _, seq := range sequences {
		sums := seq.writeSums()
		playing.Go(func() {
			cmd, said := client(t, "play", m.at(seq.dir), sums)
			if err := cmd.Run(); err != nil {
				t.Errorf("%s: %v: %s", seq.dir, err, said)
			}
		})
	}
	playing.Wait()
}

// usage is what a process holds of the system.
type usage struct{ descriptors, threads int }

// usageAtRest waits until nothing is read from the source any more.
func (m *mount) usageAtRest() usage {
	m.t.Helper()
	eventually(m.t, "no read on the source", func() bool { return m.status().SourceReads == 0 })
	proc := fmt.Sprintf("/proc/%d/", m.cmd.Process.Pid)
	descriptors, err := os.ReadDir(proc + "fd")
	must(m.t, err)
	threads, err := os.ReadDir(proc + "task")
	must(m.t, err)
	return usage{len(descriptors), len(threads)}
}

// TestMappingOutlivesItsFile maps frames, closes them, and plays many others
// through a small cache: the mapped memory must not be given to another frame.
func TestMappingOutlivesItsFile(t *testing.T) {
	t.Parallel()
	for _, passthrough := range []string{"auto", "off"} {
		t.Run("passthrough "+passthrough, func(t *testing.T) {
			backing := memory(t)
			source, _ := slowNAS(t, backing, "--rtt", "1ms", "--bandwidth", "400MB/s", "--stream-bandwidth", "100MB/s")
			m := mountOver(t, source, "--cache-size", "16MiB", "--passthrough", passthrough)
			seq := makeSequence(t, backing, "mapped", 6, 1<<20)
			seq.play(m, 0, 2)
			// The first is likely to be on its way.
			inflight := mapFile(t, m.at(seq.name(2)), 1<<20, unix.MAP_SHARED)
			sameBytes(t, inflight, seq.frames[2], "frame on its way")
			m.settle(seq.dir)
			ready := mapFile(t, m.at(seq.name(3)), 1<<20, unix.MAP_PRIVATE)
			sameBytes(t, ready[:4096], seq.frames[3][:4096], "ready frame")

			other := makeSequence(t, backing, "other", 60, 1<<20)
			other.play(m, 0, 60)
			sameBytes(t, inflight, seq.frames[2], "frame that was on its way")
			sameBytes(t, ready, seq.frames[3], "frame that was ready")
			if c := m.status(); c.CacheBytesPeak > c.CacheLimit {
				t.Errorf("%d bytes in a cache of %d", c.CacheBytesPeak, c.CacheLimit)
			}
		})
	}
}

// TestManyFiles plays 30,000 small frames of one directory in order: more than a
// process may usually have files open.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	frames := 30_000
	if raceDetector {
		frames = 5_000 // each open costs several times as much
	}
	source := memory(t)
	dir := filepath.Join(source, "small")
	must(t, os.Mkdir(dir, 0o755))
	name := func(i int) string { return fmt.Sprintf("frame.%05d.tst", i) }
	text := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "frame %d\n", i), 1+i%20) }
	for i := range frames {
		writeFile(t, filepath.Join(dir, name(i)), text(i))
	}
	m := mountOver(t, source, "--cache-size", "256MiB")
	before := m.status()
	for i := range frames {
		sameBytes(t, readFile(t, m.at("small/"+name(i))), text(i), name(i))
	}
	after := m.status()
	opens, ready := after.Opens-before.Opens, after.OpensReady-before.OpensReady
	t.Logf("%d of %d opens were ready, %d on their way", ready, opens, after.OpensInflight)
	if opens != int64(frames) || ready < opens/2 {
		t.Errorf("%d of %d opens were answered by ready frames", ready, opens)
	}
	out, err := exec.Command("ls", "-U", m.at("small")).Output()
	must(t, err)
	listed := make(map[string]bool)
	for _, line := range splitLines(out) {
		listed[line] = true
	}
	for i := range frames {
		if !listed[name(i)] {
			t.Fatalf("ls does not show %s", name(i))
		}
	}
	if len(listed) != frames {
		t.Errorf("ls shows %d names, want %d", len(listed), frames)
	}
	m.unmount()
}
