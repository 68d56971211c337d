package test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReadyFramesBypassTheDaemon reads ready frames in every way and counts the
// requests that the daemon answers.
func TestReadyFramesBypassTheDaemon(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	m := mountOver(t, source, "--cache-size", "256MiB", "--ahead", "16")
	if !m.status().Passthrough {
		t.Skip("the kernel has no passthrough")
	}
	seq := makeSequence(t, source, "show", 12, frameSize)
	next := seq.leadTo(m)
	before := m.status()
	for i := next; i < 10; i++ {
		path, want := m.at(seq.name(i)), seq.frames[i]
		sameBytes(t, readFile(t, path), want, "whole")
		sameBytes(t, readInPieces(t, openFile(t, path, os.O_RDONLY), 4096), want, "in pieces")
		sameMapping(t, path, want)
	}
	after := m.status()
	if opens := after.OpensReady - before.OpensReady; opens != 3*int64(10-next) {
		t.Fatalf("%d of %d opens were ready", opens, 3*(10-next))
	}
	if reads := after.DaemonReads - before.DaemonReads; reads != 0 {
		t.Errorf("the daemon answered %d reads of ready frames", reads)
	}
}

// TestReadersWriterAndMapping uses one file in all ways at the same time, from
// each state in which it may be found.
func TestReadersWriterAndMapping(t *testing.T) {
	t.Parallel()
	for _, passthrough := range []string{"auto", "off"} {
		for _, state := range []string{"ready", "on its way", "cold"} {
			t.Run(fmt.Sprintf("passthrough %s/%s", passthrough, state), func(t *testing.T) {
				backing := memory(t)
				source, _ := slowNAS(t, backing, "--rtt", "1ms", "--bandwidth", "200MB/s", "--stream-bandwidth", "50MB/s")
				m := mountOver(t, source, "--cache-size", "64MiB", "--passthrough", passthrough)
				seq := makeSequence(t, backing, "show", 6, mixedSize)
				must(t, os.WriteFile(seq.backing(3), version(0), 0o644))
				time.Sleep(settleTime)
				switch state {
				case "ready":
					seq.play(m, 0, 3)
					m.settle(seq.dir)
				case "on its way":
					seq.play(m, 0, 3)
				}
				mix(t, m.at(seq.name(3)), seq.backing(3))
			})
		}
	}
}

const mixedSize = 512 << 10

// version is a file every word of which names its version.
func version(n uint64) []byte {
	bytes := make([]byte, mixedSize)
	for i := 0; i < len(bytes); i += 8 {
		binary.LittleEndian.PutUint64(bytes[i:], n)
	}
	return bytes
}

// mix has one writer, and readers and mappings that come and go, on one file
// for a while.
func mix(t *testing.T, path, backing string) {
	const versions, duration = 15, 1500 * time.Millisecond
	var written, begun atomic.Uint64
	var done atomic.Bool
	began := time.Now()
	var working sync.WaitGroup
	defer working.Wait()

	// check wants every word to be a version that was there between the open and
	// the read: at least the one written before the open.
	check := func(how string, got []byte, least uint64) {
		for i := 0; i+8 <= len(got); i += 8 {
			if v := binary.LittleEndian.Uint64(got[i:]); v < least || v > begun.Load() {
				t.Errorf("%s: version %d at %d, want between %d and %d", how, v, i, least, begun.Load())
				return
			}
		}
		if len(got) != mixedSize {
			t.Errorf("%s: %d bytes, want %d", how, len(got), mixedSize)
		}
	}
	pause := func() { time.Sleep(time.Duration(rand.IntN(8)) * time.Millisecond) }

	for range 3 {
		working.Go(func() {
			for !done.Load() {
				least := written.Load()
				file, err := os.Open(path)
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				pause()
				got := make([]byte, mixedSize)
				n, err := file.ReadAt(got, 0)
				if err != nil && !errors.Is(err, io.EOF) {
					t.Errorf("read: %v", err)
				}
				check("read", got[:n], least)
				file.Close()
			}
		})
	}
	working.Go(func() {
		for !done.Load() {
			least := written.Load()
			file, err := os.Open(path)
			if err != nil {
				t.Errorf("open to map: %v", err)
				return
			}
			mapping, err := unix.Mmap(int(file.Fd()), 0, mixedSize, unix.PROT_READ, unix.MAP_SHARED)
			file.Close()
			if err != nil {
				t.Errorf("map: %v", err)
				return
			}
			pause()
			check("mapping", mapping, least)
			_ = unix.Munmap(mapping)
		}
	})
	working.Go(func() {
		defer done.Store(true)
		for n := uint64(1); n <= versions || time.Since(began) < duration; n++ {
			pause()
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Errorf("open to write: %v", err)
				return
			}
			begun.Store(n)
			if _, err := file.WriteAt(version(n), 0); err != nil {
				t.Errorf("write: %v", err)
			}
			written.Store(n)
			if n%2 == 0 {
				pause() // others open it while the writer still has it
			}
			if err := file.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
	working.Wait()
	sameBytes(t, readFile(t, backing), version(written.Load()), "at the source, in the end")
	sameBytes(t, readFile(t, path), version(written.Load()), "through the mount, in the end")
}
