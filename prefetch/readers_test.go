package prefetch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recording is what a real program opened through a mount, as the tests of real
// readers (test/readers_test.go) wrote it down.
type recording struct {
	files    []string // of the folders that it read from
	events   []TraceEvent
	ways     int  // ways of its own that it started through files
	shuffled bool // its order cannot be foreseen
	weak     bool // it could be, and mostly is not
}

// weakReaders are the recordings that are predicted badly: at least so many of
// their opens, and at most so many names in vain.
var weakReaders = map[string]struct{ foreseen, wasted int }{
	"Python-pool-of-4": {210, 14}, // each takes the next file that none has taken
}

func readRecording(t *testing.T, path string) recording {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	readers := map[string]bool{}
	asGiven := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		var pattern string
		var first, count int
		if _, err := fmt.Sscanf(line, "# files: %s %d %d", &pattern, &first, &count); err == nil {
			r.files = append(r.files, frames(pattern, first, first+count-1, 1)...)
		}
		_, _ = fmt.Sscanf(line, "# ways: %d", &r.ways)
		r.shuffled = r.shuffled || line == "# shuffled"
		r.weak = r.weak || line == "# weak"
		asGiven = asGiven || line == "# as given"
		event, ok, err := ParseTraceLine(line)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if ok {
			r.events = append(r.events, event)
			readers[event.Reader] = true
		}
	}
	if r.ways == 0 {
		r.ways = len(readers)
	}
	if asGiven { // what it opened is the order of the directory
		r.files = nil
		for _, event := range r.events {
			r.files = append(r.files, event.Path)
		}
	}
	return r
}

// TestRecordedReaders replays what real programs opened: after the first three
// opens of a way at least 95 % must have been predicted.
func TestRecordedReaders(t *testing.T) {
	paths, err := filepath.Glob("testdata/readers/*.tsv")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d recordings: %v", len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".tsv")
		t.Run(name, func(t *testing.T) {
			r := readRecording(t, path)
			s := r.replay(t)
			t.Logf("%d opens on %d ways: %d predicted; %d names predicted, %d in vain", s.opens, r.ways, s.foreseen, s.predicted, s.wasted)
			if r.weak {
				if known, ok := weakReaders[name]; !ok || s.foreseen < known.foreseen || s.wasted > known.wasted {
					t.Errorf("%d opens predicted and %d names in vain, %+v were known", s.foreseen, s.wasted, known)
				}
				return
			}
			sure := s.opens - 3*r.ways
			if r.shuffled {
				// The predictor must see that there is no order, and be silent.
				if most := s.opens/10 + 4*r.ways; s.wasted > most {
					t.Errorf("%d names predicted in vain in %d opens, want at most %d", s.wasted, s.opens, most)
				}
				return
			}
			if sure < 25 {
				t.Fatalf("%d opens tell too little", s.opens)
			}
			if missed := s.opens - s.foreseen; missed > 3*r.ways+sure/20 {
				t.Errorf("%d of %d opens were not predicted", missed, s.opens)
			}
		})
	}
}

// replay tells a predictor of the recorded events and counts as replay does.
func (r recording) replay(t *testing.T) score {
	p, dirs := NewPredictor(), newTree(r.files...)
	var s score
	numbers := map[string]Reader{}
	last := map[string]string{}
	windows := map[StreamID][]string{}
	predicted, lastOpen := map[string]int{}, map[string]int{}
	for i, e := range r.events {
		if numbers[e.Reader] == 0 {
			numbers[e.Reader] = Reader(len(numbers) + 1)
		}
		reader := numbers[e.Reader]
		if e.Kind == "hint" {
			id, err := p.Hint(reader, 1, []string{e.Path})
			if err != nil {
				t.Fatal(err)
			}
			windows[id] = p.Peek(id, dirs, maxAheadAnnounced).Next
			continue
		}
		lastOpen[e.Path] = i
		if last[e.Reader] != e.Path {
			s.opens++
			for _, names := range windows {
				if slices.Contains(names, e.Path) {
					s.foreseen++
					break
				}
			}
		}
		last[e.Reader] = e.Path
		prediction := p.Open(reader, e.Path, dirs, reach)
		windows[prediction.Stream] = prediction.Next
		for _, name := range prediction.Next[:min(len(prediction.Next), credit)] {
			predicted[name] = i
		}
	}
	for name, at := range predicted {
		s.predicted++
		if lastOpen[name] < at {
			s.wasted++
		}
	}
	return s
}
