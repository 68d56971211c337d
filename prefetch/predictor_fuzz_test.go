package prefetch

import (
	"strings"
	"testing"
)

// FuzzOpens lets readers open names of a known directory in any order: no
// panic, no more names than asked for, none that does not exist, none twice.
func FuzzOpens(f *testing.F) {
	f.Add("a.1 a.2 a.3 b1.x b2.x", []byte{0, 1, 2, 2, 1, 0, 3, 4})
	f.Add("0009 000a 0010 -1 -01 1 00", []byte{0, 1, 3, 5, 6, 2})
	f.Add("xay xaz xba d/1 d/2 e/3 e/4", []byte{0, 1, 2, 3, 4, 5, 6})
	f.Add("100CANON/IMG_9999.JPG 101CANON/IMG_0001.JPG 101CANON/IMG_0002.JPG", []byte{0, 1, 0, 2})
	f.Add("v1.5-of-9 v1.6-of-9 v2.6-of-9 s_1a s_2b s_3c s_00ff s_0100", []byte{0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4})
	f.Fuzz(func(t *testing.T, text string, order []byte) {
		var files []string
		for _, file := range strings.Fields(text) {
			if len(files) < 64 && isPath(file) {
				files = append(files, file)
			}
		}
		if len(files) == 0 {
			return
		}
		dirs := newTree(files...)
		p := NewPredictor()
		for _, b := range order {
			file := files[int(b)%len(files)]
			n := int(b)%20 + 1
			reader := Reader(b >> 6)
			prediction := p.Open(reader, file, dirs, n)
			if len(prediction.Next) > n {
				t.Fatalf("%d names, asked for %d", len(prediction.Next), n)
			}
			for _, next := range prediction.Next {
				if !dirs.has(next) {
					t.Fatalf("after %q: %q does not exist", file, next)
				}
			}
			p.ReaderNext(reader, prediction, dirs, n)
			p.Peek(prediction.Stream, dirs, n)
			p.Peek(prediction.Stream, tree{}, n)
		}
		for _, state := range p.Streams() {
			p.Forget(state.Stream)
		}
		if left := len(p.Streams()); left > 0 {
			t.Fatalf("%d streams left after all were forgotten", left)
		}
	})
}

// isPath reports whether a file could have this path: a file and a folder
// cannot share one, so folders are one letter and files are not.
func isPath(file string) bool {
	dir, name, nested := strings.Cut(file, "/")
	if !nested {
		return len(file) > 1
	}
	return len(dir) > 0 && len(name) > 1 && !strings.Contains(name, "/")
}
