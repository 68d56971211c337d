package test

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestChangedWhileFetched changes a frame at the source while it is fetched. An
// open that comes after the change may see the old file or the new one, never a
// bit of both.
func TestChangedWhileFetched(t *testing.T) {
	t.Parallel()
	const size = 6 << 20 // takes 150 ms
	ways := map[string]func(t *testing.T, path string, content []byte){
		"replaced": replaceFile,
		"overwritten": func(t *testing.T, path string, content []byte) {
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			must(t, err)
			_, err = file.WriteAt(content, 0)
			must(t, err)
			must(t, file.Close())
		},
	}
	for _, passthrough := range []string{"auto", "off"} {
		backing := memory(t)
		source, _ := slowNAS(t, backing, "--rtt", "2ms", "--bandwidth", "200MB/s", "--stream-bandwidth", "40MB/s")
		// The default validity: how long an old file may be shown.
		m := mountOver(t, source, "--cache-size", "256MiB", "--passthrough", passthrough)
		for way, change := range ways {
			for _, after := range []time.Duration{0, 20, 50, 80, 110, 140, 170} {
				after *= time.Millisecond
				t.Run(fmt.Sprintf("passthrough %s/%s/after %s", passthrough, way, after), func(t *testing.T) {
					m.t = t
					seq := makeSequence(t, backing, fmt.Sprint(way, after.Milliseconds()), 5, 1000, 1000, 1000, size)
					seq.play(m, 0, 3) // the next is being fetched now
					time.Sleep(after)
					changed := content("changed", size)
					change(t, seq.backing(3), changed)
					got := readFile(t, m.at(seq.name(3)))
					if a, b := difference(got, seq.frames[3]), difference(got, changed); string(got) != string(seq.frames[3]) && string(got) != string(changed) {
						t.Fatalf("neither the old file (%s) nor the new one (%s)", a, b)
					}
				})
			}
		}
		m.t = t
		m.unmount()
	}
}

// TestRenderedWhilePlayed plays a sequence whose frames are rewritten while it
// is played, each several times in pieces, as a renderer does. Once it stands
// still everything read is what it wrote.
func TestRenderedWhilePlayed(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	m := mountOver(t, source, "--cache-size", "64MiB", "--validity", "50ms")
	seq := makeSequence(t, source, "render", 12, 1<<20+5)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pass := range 3 {
			for i := range seq.frames {
				seq.frames[i] = content(fmt.Sprint("pass", pass, i), 1<<20+5+1000*pass)
				file, err := os.Create(seq.backing(i))
				if err != nil {
					t.Error(err)
					return
				}
				for from := 0; from < len(seq.frames[i]); from += 300_000 {
					_, _ = file.Write(seq.frames[i][from:min(from+300_000, len(seq.frames[i]))])
					time.Sleep(time.Millisecond)
				}
				file.Close()
			}
		}
	}()
	for playing := true; playing; {
		select {
		case <-done:
			playing = false
		default:
		}
		for i := range 12 {
			if _, err := os.ReadFile(m.at(seq.name(i))); err != nil {
				t.Errorf("while it is rendered: %v", err)
			}
		}
	}
	time.Sleep(51 * time.Millisecond)
	seq.play(m, 0, 12)
	m.unmount()
}
