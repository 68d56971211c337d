package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// epochFiles is a set that is read in an order which no name tells.
const epochFiles, epochSize = 300, 40_000

// makeEpoch writes a set of files and returns it with a shuffled order of it.
func makeEpoch(t *testing.T, backing string) (seq *sequence, order []string) {
	t.Helper()
	seq = makeSequence(t, backing, "set", epochFiles, epochSize)
	for _, i := range rand.New(rand.NewPCG(4, 2)).Perm(epochFiles) {
		order = append(order, seq.name(i))
	}
	return seq, order
}

func (m *mount) hints() string { return filepath.Join(m.path, ".reelahead", "hints") }

// announced waits until the head of a list is fetched.
func (m *mount) announced() {
	m.t.Helper()
	eventually(m.t, "the head of a list is ready", func() bool {
		for _, s := range m.status().Streams {
			if s.Pattern == "announced list" && s.Ahead > 8 {
				return true
			}
		}
		return false
	})
}

// writeList puts names into a file and returns its name.
func writeList(t *testing.T, order []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "order")
	writeFile(t, path, []byte(strings.Join(order, "\n")+"\n"))
	return path
}

// heap returns how much memory the process holds besides frames, in bytes.
func (s *server) heap() int64 {
	s.t.Helper()
	for _, line := range splitLines(readFile(s.t, fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	s.t.Fatal("the kernel does not tell RssAnon")
	return 0
}

// TestHintedEpoch lets every way of announcing announce a shuffled epoch, and two
// worker processes read it in turns of eight files from a slow server.
func TestHintedEpoch(t *testing.T) {
	t.Parallel()
	ways := map[string]func(t *testing.T, m *mount, list string){
		"command": func(t *testing.T, m *mount, list string) {
			status, said := run(t, "hint", m.path, list)
			if status != 0 || !strings.Contains(said, "announced 300 files") {
				t.Fatalf("hint: status %d, %s", status, said)
			}
		},
		"shell": func(t *testing.T, m *mount, list string) {
			out, err := exec.Command("sh", "-c", `cat "$1" > "$2"`, "sh", list, m.hints()).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		},
		"python": func(t *testing.T, m *mount, list string) {
			python, err := exec.LookPath("python3")
			if err != nil {
				t.Skip("there is no python3")
			}
			out, err := exec.Command(python, "-c", `import sys
with open(sys.argv[2] + "/.reelahead/hints", "w") as hints:
    hints.writelines(sys.argv[2] + "/" + name for name in open(sys.argv[1]))`, list, m.path).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		},
	}
	for name, announce := range ways {
		t.Run(name, func(t *testing.T) {
			backing := memory(t)
			_, order := makeEpoch(t, backing)
			nas, _ := slowNAS(t, backing, "--rtt", "3ms")
			m := mountOver(t, nas, "--cache-size", "256MiB")
			announce(t, m, writeList(t, order))
			m.announced()
			const batch = 8
			var workers []*exec.Cmd
			var said []*syncBuffer
			for w := range 2 {
				var own []string
				for at := w * batch; at < len(order); at += 2 * batch {
					own = append(own, order[at:min(at+batch, len(order))]...)
				}
				cmd, words := client(t, "compare", m.path, backing, writeList(t, own))
				must(t, cmd.Start())
				workers = append(workers, cmd)
				said = append(said, words)
			}
			for i, cmd := range workers {
				if err := cmd.Wait(); err != nil {
					t.Fatalf("worker %d: %v: %s", i, err, said[i])
				}
			}
			c := m.status()
			if c.Opens != epochFiles || c.OpensCold > epochFiles/20 {
				t.Errorf("%d opens, %d cold", c.Opens, c.OpensCold)
			}
			if c.BytesFetched != epochFiles*epochSize || c.BytesFetchedUnread > 0 {
				t.Errorf("%d bytes fetched, %d of them unread; the set has %d", c.BytesFetched, c.BytesFetchedUnread, epochFiles*epochSize)
			}
			m.unmount()
		})
	}
}

// TestHintsFile checks what the file is to whom.
func TestHintsFile(t *testing.T) {
	t.Parallel()
	backing := memory(t)
	seq, order := makeEpoch(t, backing)
	m := mountAt(t, backing, memory(t), "--cache-size", "64MiB", "--allow-other")
	hints := m.hints()

	entries, err := os.ReadDir(filepath.Dir(hints))
	must(t, err)
	for _, e := range entries {
		if e.Name() == "hints" {
			t.Error("the hints file is listed")
		}
	}
	for flags, want := range map[int]error{
		os.O_RDONLY: syscall.EACCES, os.O_RDWR: syscall.EACCES,
		os.O_WRONLY: nil, os.O_WRONLY | os.O_TRUNC: nil, os.O_WRONLY | os.O_APPEND: nil,
		os.O_WRONLY | os.O_CREATE | os.O_TRUNC: nil, os.O_WRONLY | os.O_CREATE | os.O_EXCL: syscall.EEXIST,
	} {
		fd, err := unix.Open(hints, flags, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		if err != want {
			t.Errorf("open with flags %#x: %v, want %v", flags, err, want)
		}
	}
	for what, err := range map[string]error{
		"remove": os.Remove(hints), "chmod": os.Chmod(hints, 0o666), "rename": os.Rename(hints, hints+"2"),
		"another file": os.WriteFile(hints+"2", nil, 0o600),
	} {
		if err == nil {
			t.Errorf("%s went through", what)
		}
	}
	if said, err := asNobody(`echo a > "$1"`, hints); err == nil {
		t.Errorf("another user may announce: %q", said)
	}

	// A list in pieces that end in the middle of lines, and without a last newline.
	file, err := os.OpenFile(hints, os.O_WRONLY, 0)
	must(t, err)
	text := strings.Join(order, "\n")
	for at := 0; at < len(text); at += 1000 {
		_, err := file.WriteString(text[at:min(at+1000, len(text))])
		must(t, err)
	}
	must(t, file.Close())
	m.announced()
	last, err := os.OpenFile(hints, os.O_WRONLY, 0)
	must(t, err)
	_, err = last.WriteString(order[0])
	must(t, err)
	must(t, last.Close())
	sameBytes(t, readFile(t, m.at(seq.name(0))), seq.frames[0], "a file of the set")
	m.unmount()
}

// TestHostileHints names everything that must not be touched.
func TestHostileHints(t *testing.T) {
	t.Parallel()
	backing := memory(t)
	outside := filepath.Join(memory(t), "outside")
	writeFile(t, outside, content("outside", epochSize))
	seq, order := makeEpoch(t, backing)
	must(t, os.Symlink(outside, filepath.Join(backing, "link")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(backing, "linkdir")))
	must(t, unix.Mkfifo(filepath.Join(backing, "fifo"), 0o666))
	must(t, os.Mkdir(filepath.Join(backing, "dir"), 0o755))
	writeFile(t, filepath.Join(backing, "empty"), nil)
	m := mountOver(t, backing, "--cache-size", "64MiB")

	var before, after unix.Stat_t
	must(t, unix.Stat(outside, &before))
	bad := []string{
		"../outside", outside, "/etc/passwd", "set/../../outside", "a\x00b", strings.Repeat("x", 20_000),
		strings.Repeat("n", 256), ".reelahead/hints", ".", "/",
	}
	file, err := os.OpenFile(m.hints(), os.O_WRONLY, 0)
	must(t, err)
	for _, line := range append(bad, "", "link", "linkdir/outside", "fifo", "dir", "empty", "gone", "set/\xff\xfe") {
		_, err := file.WriteString(line + "\n")
		must(t, err)
	}
	_, err = file.WriteString(strings.Join(order, "\n"))
	must(t, err)
	if err := file.Close(); err == nil || !strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("the close of a list with bad lines: %v, want EINVAL", err)
	}
	left := fmt.Sprintf("%d lines of an announced list left out, the first of them line 1", len(bad))
	eventually(t, "the log says "+left, func() bool { return strings.Contains(m.log.String(), left) })
	m.announced()
	for _, name := range order[:50] {
		got, err := os.ReadFile(m.at(name))
		must(t, err)
		sameBytes(t, got, readFile(t, filepath.Join(backing, name)), name)
	}
	must(t, unix.Stat(outside, &after))
	if before.Atim != after.Atim {
		t.Error("a file outside of the source was read")
	}
	if c := m.status(); c.OpensCold > 5 || c.SourceErrors > 0 {
		t.Errorf("the rest of the list was lost: %d of %d opens cold, %d errors", c.OpensCold, c.Opens, c.SourceErrors)
	}

	// A line without end, as far as a test goes.
	file, err = os.OpenFile(m.hints(), os.O_WRONLY, 0)
	must(t, err)
	held := m.heap()
	for range 64 {
		_, err := file.Write(bytes.Repeat([]byte("x"), 1<<20))
		must(t, err)
	}
	if grown := m.heap() - held; grown > 48<<20 {
		t.Errorf("a line without end took %d bytes", grown)
	}
	if err := file.Close(); err == nil {
		t.Error("a line without end was taken")
	}
	seq.play(m, 0, 3)
	m.unmount()
}

// TestMillionHints announces a million files at once while others read.
func TestMillionHints(t *testing.T) {
	t.Parallel()
	backing := memory(t)
	_, order := makeEpoch(t, backing)
	m := mountOver(t, backing, "--cache-size", "64MiB")
	var list bytes.Buffer
	for _, name := range order {
		fmt.Fprintln(&list, name)
	}
	for i := len(order); i < 1_000_000; i++ {
		fmt.Fprintf(&list, "set/%07d.npz\n", i)
	}
	before := m.heap()
	cmd := exec.Command(program, "hint", m.path, "-")
	cmd.Stdin = &list
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.announced()
	// 18 bytes of name and at most 100 more a file, twice while tables grow.
	if grown := m.heap() - before; grown > 400<<20 && !raceDetector { // which takes memory of its own
		t.Errorf("a million files take %d bytes", grown)
	}
	for _, name := range order {
		readFile(t, m.at(name))
	}
	if c := m.status(); c.OpensCold > epochFiles/20 {
		t.Errorf("%d of %d opens cold", c.OpensCold, c.Opens)
	}
	m.unmount()
}
