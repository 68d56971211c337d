package test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// recordings is where the tests of readers write what they have recorded.
var recordings = flag.String("recordings", "", "write the opens of each real reader to this directory")

// reading is a real program that reads files through a mount.
type reading struct {
	name    string
	needs   string // command that must be there
	pkg     string // Debian package that has it
	version string // shell command whose first line tells the version
	files   []fileSet
	// command runs in the mount, by sh; $OUT is a directory to write to.
	command string
	// ways is how often the program starts a way of its own through files: its
	// processes, unless told. The first three opens of each are not counted.
	ways int
	// unread is how much may be fetched and never read, as a part of what was read.
	// Not told: 5 %.
	unread float64
	// shuffled tells that the order cannot be foreseen; only unread counts.
	shuffled bool
	// weak tells that most opens are not foreseen, although the order has a reason:
	// how many are is for the predictor's tests to say, which replay the recording.
	weak bool
	// asGiven tells that it reads files as the directory gives them, all of them.
	asGiven bool
}

// lockOn is how many opens of a way show where it goes.
const lockOn = 3

// TestRealReaders has real programs read through a mount over a model of a file server,
// and compares the record of their opens with what was expected and fetched.
func TestRealReaders(t *testing.T) {
	t.Parallel()
	playReadings(t, playerReadings, toolReadings, scriptReadings)
}

// playReadings shares one source among all readings.
func playReadings(t *testing.T, lists ...[]reading) {
	t.Helper()
	made := makeFiles(t)
	source, _ := slowNAS(t, made.root, "--rtt", "1ms", "--seed", "1")
	t.Run("programs", func(t *testing.T) { // ends before the source does
		for _, list := range lists {
			for _, r := range list {
				t.Run(strings.ReplaceAll(r.name, " ", "-"), func(t *testing.T) {
					t.Parallel()
					r.play(t, source, made)
				})
			}
		}
	})
}

func (r reading) play(t *testing.T, source string, made *madeFiles) {
	if _, err := exec.LookPath(r.needs); err != nil {
		t.Skipf("needs %s (package %s)", r.needs, r.pkg)
	}
	made.make(t, r.files)
	record := filepath.Join(t.TempDir(), "opens.tsv")
	m := mountOver(t, source, "--cache-size", "512MiB", "--record", record)
	r.run(t, m)
	eventually(t, "nothing is being fetched any more", func() bool { return m.status().SourceReads == 0 })
	c := m.status()
	m.unmount()
	opens := readRecord(t, record)
	if *recordings != "" {
		r.keep(t, opens)
	}
	r.check(t, c, opens, made.root)
}

// run executes the command in the mount and fails with what it said.
func (r reading) run(t *testing.T, m *mount) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-ec", r.command)
	cmd.Dir = m.path
	// What the distribution has installed, not what stands in for it elsewhere.
	cmd.Env = append(os.Environ(), "PATH=/usr/bin:"+os.Getenv("PATH"), "OUT="+t.TempDir(), "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", r.command, err, out)
	}
}

// check compares what was opened with what was expected and fetched.
func (r reading) check(t *testing.T, c counters, opens []recordedOpen, root string) {
	t.Helper()
	seen, fromCache := map[string]int64{}, map[string]bool{}
	last, count := map[string]string{}, map[string]int{}
	counted, expected := 0, 0
	var total, all int64
	var missed []string
	for _, o := range opens {
		if o.hint {
			continue
		}
		total++
		if o.expected {
			all++
		}
		if seen[o.path] == 0 {
			seen[o.path] = fileSize(t, filepath.Join(root, o.path))
		}
		if o.served == "ready" || o.served == "inflight" {
			fromCache[o.path] = true
		}
		way := o.reader
		if r.ways == 1 {
			way = ""
		}
		if last[way] == o.path {
			continue // opened again: tells nothing about the order
		}
		last[way] = o.path
		if count[way]++; count[way] <= lockOn {
			continue
		}
		counted++
		if o.expected {
			expected++
		} else if len(missed) < 10 {
			missed = append(missed, o.path)
		}
	}
	var read, used int64
	for path, size := range seen {
		read += size
		if fromCache[path] {
			used += size
		}
	}
	unread := float64(c.BytesFetched-used) / float64(read)
	t.Logf("| %s | %d | %d | %.1f %% | %.1f %% |", r.name, total, len(count), 100*float64(expected)/float64(max(1, counted)), 100*unread)
	if c.Opens != total || c.OpensExpected != all {
		t.Errorf("%d opens were recorded, %d of them expected; the counters say %+v", total, all, c)
	}
	limit := r.unread
	if limit == 0 {
		limit = 0.05
	}
	if unread > limit {
		t.Errorf("%.1f %% of %d bytes were fetched and not read, want at most %.0f %%", 100*unread, read, 100*limit)
	}
	if r.shuffled || r.weak {
		return
	}
	if counted < 30 {
		t.Errorf("%d opens tell too little", counted)
	}
	if float64(expected) < 0.95*float64(counted) {
		t.Errorf("%d of %d opens were expected, want 95 %%; missed: %q", expected, counted, missed)
	}
	if served := c.OpensReady + c.OpensInflight; float64(served) < 0.9*float64(c.Opens) {
		t.Errorf("%d of %d opens found their file in the cache or on its way", served, c.Opens)
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	var s unix.Stat_t
	must(t, unix.Stat(path, &s))
	return s.Size
}

// keptFiles is how many files of a recording are kept in the repository, with all
// opens of each; of a weak one all are.
const keptFiles = 80

// keep writes the opens as a trace that prefetch's tests replay: readers are numbered,
// and comments tell what made it.
func (r reading) keep(t *testing.T, opens []recordedOpen) {
	t.Helper()
	version, err := exec.Command("/bin/sh", "-c", "PATH=/usr/bin:$PATH; "+r.version).CombinedOutput()
	must(t, err)
	var text strings.Builder
	fmt.Fprintf(&text, "# %s: %s\n", r.name, splitLines(version)[0])
	for _, line := range splitLines([]byte(r.command)) {
		fmt.Fprintf(&text, "# command: %s\n", line)
	}
	for _, set := range r.files {
		fmt.Fprintf(&text, "# files: %s %d %d\n", set.pattern, set.first, set.count)
	}
	if r.ways > 0 {
		fmt.Fprintf(&text, "# ways: %d\n", r.ways)
	}
	if r.shuffled {
		fmt.Fprintln(&text, "# shuffled")
	}
	if r.weak {
		fmt.Fprintln(&text, "# weak")
	}
	if r.asGiven {
		fmt.Fprintln(&text, "# as given")
	}
	numbers, last := map[string]int{}, map[string]string{}
	files, hints := 0, 0
	for _, o := range opens {
		kind := "open"
		switch {
		case o.hint:
			kind = "hint"
			if hints++; hints > 2*keptFiles { // workers open ahead of each other
				continue
			}
		case last[o.reader] != o.path:
			files++
		}
		if files > keptFiles && !r.weak && !r.asGiven {
			break
		}
		if !o.hint {
			last[o.reader] = o.path
		}
		if numbers[o.reader] == 0 {
			numbers[o.reader] = len(numbers) + 1
		}
		fmt.Fprintf(&text, "%s\tr%d\t%s\n", kind, numbers[o.reader], o.path)
	}
	must(t, os.MkdirAll(*recordings, 0o755))
	writeFile(t, filepath.Join(*recordings, strings.ReplaceAll(r.name, " ", "-")+".tsv"), []byte(text.String()))
}

// fileSet is files of one name in one folder, from a first number on.
type fileSet struct {
	pattern      string
	first, count int
	picture      string // ffmpeg's options for their format; "": bytes that mean nothing
	size         int    // of files that are no pictures, in bytes
	// scrambled files are made in another order, in which tmpfs lists them: as
	// most filesystems list folders in the order of a hash.
	scrambled bool
}

// madeFiles are the files that readings share, made when the first one asks.
type madeFiles struct {
	root string
	mu   sync.Mutex
	have map[string]bool
}

func makeFiles(t *testing.T) *madeFiles {
	return &madeFiles{root: memory(t), have: map[string]bool{}}
}

func (f *madeFiles) make(t *testing.T, sets []fileSet) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, set := range sets {
		if f.have[set.pattern] {
			continue
		}
		at := filepath.Join(f.root, set.pattern)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		if set.picture == "" {
			bytes := content(set.pattern, set.size)
			order := make([]int, set.count)
			for i := range order {
				order[i] = i
			}
			if set.scrambled {
				order = rand.New(rand.NewPCG(1, 1)).Perm(set.count)
			}
			for _, i := range order {
				writeFile(t, fmt.Sprintf(at, set.first+i), bytes)
			}
		} else {
			script := fmt.Sprintf(`exec ffmpeg -v error -f lavfi -i testsrc2=size=320x180 -frames:v %d %s -start_number %d "$1"`, set.count, set.picture, set.first)
			if _, err := exec.LookPath("ffmpeg"); err != nil {
				t.Skip("needs ffmpeg (package ffmpeg) to make pictures")
			}
			if out, err := exec.Command("/bin/sh", "-ec", script, "sh", at).CombinedOutput(); err != nil {
				t.Fatalf("make %s: %v\n%s", set.pattern, err, out)
			}
		}
		f.have[set.pattern] = true
	}
}
