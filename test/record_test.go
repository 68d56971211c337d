package test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reelahead/prefetch"
)

// recordedOpen is one line that mount --record wrote.
type recordedOpen struct {
	hint                 bool
	reader, path, served string
	expected             bool
}

// readRecord reads what a mount that has ended wrote.
func readRecord(t *testing.T, path string) []recordedOpen {
	t.Helper()
	var opens []recordedOpen
	last := 0.0
	for _, line := range splitLines(readFile(t, path)) {
		event, ok, err := prefetch.ParseTraceLine(line)
		fields := strings.Split(line, "\t")
		if err == nil && ok && event.Kind == "hint" && len(fields) == 3 {
			opens = append(opens, recordedOpen{hint: true, reader: event.Reader, path: event.Path})
			continue
		}
		if err != nil || !ok || event.Kind != "open" || len(fields) != 6 {
			t.Fatalf("line %q: %v", line, err)
		}
		seconds, err := strconv.ParseFloat(fields[5], 64)
		if err != nil || fields[4] != "expected" && fields[4] != "unexpected" {
			t.Fatalf("line %q: %v", line, err)
		}
		if seconds < last {
			t.Errorf("line %q comes after one of %f seconds", line, last)
		}
		last = seconds
		opens = append(opens, recordedOpen{reader: event.Reader, path: event.Path, served: fields[3], expected: fields[4] == "expected"})
	}
	return opens
}

// TestRecord plays with all kinds of opens and reads the record, which must say
// what the counters say, and be a trace.
func TestRecord(t *testing.T) {
	t.Parallel()
	source, record := memory(t), filepath.Join(t.TempDir(), "opens.tsv")
	writeFile(t, record, []byte("what an earlier mount wrote\n"))
	seq := makeSequence(t, source, "show", 12, frameSize)
	odd := "a\tb\nc\\d 1.exr"
	writeFile(t, filepath.Join(source, odd), []byte("x"))
	writeFile(t, filepath.Join(source, strings.Replace(odd, "1", "2", 1)), []byte("y"))
	m := mountOver(t, source, "--cache-size", "64MiB", "-o", "record="+record)
	next := seq.leadTo(m)
	seq.play(m, next, next+2)
	readFile(t, m.at(seq.name(next+1))) // opened again: as expected as before
	readFile(t, m.at(odd))
	writeFile(t, m.hints(), []byte(seq.name(11)+"\n"+seq.name(6)))
	readFile(t, m.at(seq.name(11)))
	if _, err := os.ReadFile(m.at("show/missing.exr")); err == nil {
		t.Error("a missing file was read")
	}
	writeFile(t, m.at("show/new.txt"), []byte("written, not read"))
	c := m.status()
	m.unmount()

	opens := readRecord(t, record)
	var names []string
	count := map[string]int64{}
	var expected int64
	for _, o := range opens {
		names = append(names, o.path)
		if !o.hint {
			count[o.served]++
		}
		if o.expected {
			expected++
		}
		if o.reader != strconv.Itoa(os.Getpid()) {
			t.Errorf("%s was opened by %s, this process is %d", o.path, o.reader, os.Getpid())
		}
	}
	want := []string{seq.name(0), seq.name(1), seq.name(2), seq.name(3), seq.name(4), seq.name(4), odd, seq.name(11), seq.name(6), seq.name(11)}
	if strings.Join(names, "|") != strings.Join(want, "|") {
		t.Fatalf("recorded %q, want %q", names, want)
	}
	if opens[0].expected || opens[0].served != "cold" {
		t.Errorf("the first open: %+v", opens[0])
	}
	for _, o := range opens[3:6] {
		if !o.expected || o.served != "ready" {
			t.Errorf("a frame that was ready ahead: %+v", o)
		}
	}
	if !opens[7].hint || !opens[8].hint || !opens[9].expected {
		t.Errorf("what was announced, and its open: %+v", opens[7:])
	}
	if c.Opens != int64(len(opens)-2) || c.OpensReady != count["ready"] || c.OpensInflight != count["inflight"] ||
		c.OpensCold != count["cold"]+count["source"] || c.OpensExpected != expected {
		t.Errorf("the counters %+v are not those of %+v", c, opens)
	}

	status, said := run(t, "predict", "--trace", record, "--root", source, "--count", "1", "--json")
	lines := splitLines([]byte(said))
	if status != 0 || len(lines) != len(opens)-2 {
		t.Fatalf("replay: status %d, %q", status, said)
	}
	for i, want := range map[int]string{3: `"next":["` + seq.name(4) + `"]`, 6: `"next":["a\tb\nc\\d 2.exr"]`, 7: `"next":["` + seq.name(6) + `"]`} {
		if !strings.HasSuffix(lines[i], want+"}") {
			t.Errorf("replay line %d is %s, want %s", i, lines[i], want)
		}
	}
}

// TestRecordOverItself records into a directory that the mount covers.
func TestRecordOverItself(t *testing.T) {
	t.Parallel()
	source := memory(t)
	seq := makeSequence(t, source, "show", 4, 1000)
	record := filepath.Join(source, "opens.tsv")
	m := mountAt(t, source, source, "--cache-size", "64MiB", "--record", record)
	seq.play(m, 0, 4)
	eventually(t, "the record appears while the mount is there", func() bool {
		text, err := os.ReadFile(record)
		return err == nil && strings.Count(string(text), "\n") >= 4
	})
	m.unmount()
	if opens := readRecord(t, record); len(opens) < 5 || opens[3].path != seq.name(3) || opens[4].path != "opens.tsv" {
		t.Errorf("recorded %+v", opens)
	}
}

// TestRecordErrors mounts nothing if there is no record to write, and goes on
// if there is none any more.
func TestRecordErrors(t *testing.T) {
	t.Parallel()
	source, path := memory(t), t.TempDir()
	for _, record := range []string{filepath.Join(source, "missing", "opens.tsv"), source} {
		if status, said := run(t, "mount", source, path, "--record", record); status != 1 || !strings.Contains(said, record) || isMounted(path) {
			t.Errorf("--record %s: status %d, %q", record, status, said)
		}
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skipf("the rest needs /dev/full: %v", err)
	}
	seq := makeSequence(t, source, "show", 4, 1000)
	m := mountAt(t, source, path, "--cache-size", "64MiB", "--record", "/dev/full")
	seq.play(m, 0, 4)
	m.unmount()
	if log := m.log.String(); !strings.Contains(log, "not recorded any more") || !strings.Contains(log, unix.ENOSPC.Error()) {
		t.Errorf("the log does not say that the record is lost:\n%s", log)
	}
}
