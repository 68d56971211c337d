package fusefs

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHintLines(t *testing.T) {
	long := strings.Repeat("x", maxHintLine+1)
	cases := []struct {
		name    string
		text    string
		want    []string
		refused int
	}{
		{"relative and absolute", "a.npz\n/mnt/set/b.npz\nd/c.npz\n", []string{"a.npz", "set/b.npz", "d/c.npz"}, 0},
		{"no last newline", "a\nb", []string{"a", "b"}, 0},
		{"empty lines", "\n\na\n\n", []string{"a"}, 0},
		{"cleaned", "d/../a\n./b\nd//c\nd/.\n/mnt/./x\n", []string{"a", "b", "d/c", "d", "x"}, 0},
		{"outside", "../a\n/etc/passwd\n/mntx/a\n/mnt/../etc\nd/../../a\nok\n", []string{"ok"}, 5},
		{"not a file", ".\n/mnt\n/mnt/\n.reelahead/hints\n/mnt/.reelahead\nok\n", []string{"ok"}, 5},
		{"any bytes", "\xff\xfe\n a \n\ta\r\n", []string{"\xff\xfe", " a ", "\ta\r"}, 0},
		{"a NUL", "a\x00b\nok\n", []string{"ok"}, 1},
		{"a long name", strings.Repeat("n", unix.NAME_MAX+1) + "\n" + strings.Repeat("n", unix.NAME_MAX) + "\n", []string{strings.Repeat("n", unix.NAME_MAX)}, 1},
		{"a long path", strings.Repeat("d/", unix.PathMax/2) + "a\nok\n", []string{"ok"}, 1},
		{"a long line", long + "\nok\n", []string{"ok"}, 1},
		{"a line without end", long, nil, 1},
	}
	for _, c := range cases {
		for _, piece := range []int{1, 7, len(c.text)} {
			l := hintLines{mountpoint: "/mnt"}
			var got []string
			for rest := []byte(c.text); len(rest) > 0; {
				n := min(piece, len(rest))
				got = append(got, l.take(rest[:n])...)
				rest = rest[n:]
			}
			got = append(got, l.last()...)
			if !slices.Equal(got, c.want) || l.refused != c.refused {
				t.Errorf("%s, %d bytes at once: %.200q with %d refused, want %.200q with %d", c.name, piece, got, l.refused, c.want, c.refused)
			}
			if cap(l.rest) > 2*maxHintLine {
				t.Errorf("%s: %d bytes are held", c.name, cap(l.rest))
			}
		}
	}
}

// TestHintLinesCheck closes a copy of a descriptor in the middle of a line.
func TestHintLinesCheck(t *testing.T) {
	l := hintLines{mountpoint: "/mnt"}
	l.take([]byte("a\n/mn"))
	if err := l.check(); err == nil {
		t.Error("a line that is bad as it stands passes")
	}
	got := l.take([]byte("t/b\n../b\n/c\nd"))
	if want := []string{"b"}; !slices.Equal(got, want) {
		t.Errorf("after the check %q came out, want %q", got, want)
	}
	for range 2 {
		if err := l.check(); err == nil || !strings.Contains(err.Error(), "2 lines") || !strings.Contains(err.Error(), "line 3: not a path below") {
			t.Errorf("the check says %v", err)
		}
	}
	if got := l.last(); !slices.Equal(got, []string{"d"}) {
		t.Errorf("the last line: %q", got)
	}
}

// FuzzHintLines writes any bytes in any pieces: what comes out is a clean path
// below the mountpoint, whatever the pieces, and little is held.
func FuzzHintLines(f *testing.F) {
	f.Add([]byte("a.npz\n/mnt/b.npz\n"), byte(3))
	f.Add([]byte("../a\n/etc/passwd\nd/../../x\n\x00\n"), byte(1))
	f.Add([]byte("/mnt/../mnt/a\n//mnt//b\n.\n..\n/\n"), byte(2))
	f.Add([]byte(strings.Repeat("x", maxHintLine+2)+"\n.reelahead/hints"), byte(200))
	f.Fuzz(func(t *testing.T, text []byte, piece byte) {
		const mountpoint = "/mnt"
		whole := hintLines{mountpoint: mountpoint}
		want := append(whole.take(text), whole.last()...)
		pieces := hintLines{mountpoint: mountpoint}
		var got []string
		for part := range slices.Chunk(text, int(piece)+1) {
			got = append(got, pieces.take(part)...)
			if len(pieces.rest) > maxHintLine {
				t.Fatalf("%d bytes of a line are held", len(pieces.rest))
			}
		}
		got = append(got, pieces.last()...)
		if !slices.Equal(got, want) || whole.refused != pieces.refused {
			t.Fatalf("in pieces %q, whole %q", got, want)
		}
		for _, file := range got {
			if file != path.Clean(file) || !filepath.IsLocal(file) || file == "." || strings.ContainsAny(file, "\n\x00") {
				t.Fatalf("%q came out", file)
			}
		}
	})
}
