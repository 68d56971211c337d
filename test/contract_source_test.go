package test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// checkChangedAtSource changes ready frames behind the mount's back, in every
// way, and looks at them as soon as nothing older may be believed.
func checkChangedAtSource(t *testing.T, s *site) {
	ways := map[string]func(t *testing.T, path string, old []byte) (want []byte){
		"overwritten": func(t *testing.T, path string, old []byte) []byte {
			want := content("overwritten", len(old))
			file := openFile(t, path, os.O_WRONLY)
			_, err := file.WriteAt(want, 0)
			must(t, err)
			must(t, file.Close())
			return want
		},
		"truncated": func(t *testing.T, path string, old []byte) []byte {
			must(t, os.Truncate(path, 70_000))
			return old[:70_000]
		},
		"appended": func(t *testing.T, path string, old []byte) []byte {
			file := openFile(t, path, os.O_WRONLY|os.O_APPEND)
			_, err := file.Write([]byte("more"))
			must(t, err)
			must(t, file.Close())
			return append(append([]byte{}, old...), "more"...)
		},
		"replaced": func(t *testing.T, path string, old []byte) []byte {
			want := content("replacement", len(old))
			replaceFile(t, path, want)
			return want
		},
		"deleted": func(t *testing.T, path string, old []byte) []byte {
			must(t, os.Remove(path))
			return nil
		},
	}
	for way, change := range ways {
		t.Run(way, func(t *testing.T) {
			seq := makeSequence(t, s.backing, "source-"+way, siteFrames, frameSize)
			next := seq.leadTo(s.mount)
			// Once for a frame that has been read, once for one that has not.
			for i := next - 1; i <= next; i++ {
				want := change(t, seq.backing(i), seq.frames[i])
				outlast()
				got, err := os.ReadFile(s.at(seq.name(i)))
				if want == nil {
					if !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("open of a deleted frame: %v", err)
					}
					continue
				}
				must(t, err)
				sameBytes(t, got, want, seq.name(i))
			}
		})
	}
}

// checkSameSizeAndTime replaces a ready frame by a file that differs in nothing
// but its content and its inode.
func checkSameSizeAndTime(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "twins", siteFrames, frameSize)
	next := seq.leadTo(s.mount)
	info, err := os.Stat(seq.backing(next))
	must(t, err)
	want := content("twin", frameSize)
	twin := filepath.Join(seq.at, "twin")
	writeFile(t, twin, want)
	must(t, os.Chtimes(twin, info.ModTime(), info.ModTime()))
	must(t, os.Rename(twin, seq.backing(next)))
	outlast()
	sameBytes(t, readFile(t, s.at(seq.name(next))), want, seq.name(next))
}

// checkCreatedAtSource makes files appear where the mount has said that there
// are none.
func checkCreatedAtSource(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "growing", 4, frameSize)
	seq.play(s.mount, 0, 4)
	next := frameName(4)
	if _, err := os.Stat(s.at("growing/" + next)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("stat of a frame to come: %v", err)
	}
	want := content(next, frameSize)
	writeFile(t, filepath.Join(seq.at, next), want)
	outlast()
	sameBytes(t, readFile(t, s.at("growing/"+next)), want, next)
}

// TestValidityZero is the contract's checks of changes at the source without
// any time in which the mount may believe what it knows.
func TestValidityZero(t *testing.T) {
	t.Parallel()
	for _, passthrough := range []string{"auto", "off"} {
		t.Run("passthrough "+passthrough, func(t *testing.T) {
			backing := memory(t)
			source, _ := slowNAS(t, backing, "--rtt", "2ms", "--bandwidth", "200MB/s", "--stream-bandwidth", "100MB/s")
			m := mountOver(t, source, "--cache-size", "64MiB", "--validity", "0", "--passthrough", passthrough)
			seq := makeSequence(t, backing, "show", 12, frameSize)
			next := seq.leadTo(m)
			for i := next; i < next+3; i++ {
				want := content("replacement", frameSize)
				replaceFile(t, seq.backing(i), want)
				sameBytes(t, readFile(t, m.at(seq.name(i))), want, seq.name(i))
			}
			overwritten := content("overwritten", frameSize)
			writeFile(t, seq.backing(next), overwritten)
			sameBytes(t, readFile(t, m.at(seq.name(next))), overwritten, "a frame read before")
			m.unmount()
		})
	}
}
