package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reelahead/naming"
	"reelahead/prefetch"
)

// defaultPredictCount is enough names to see step, padding and a carry.
const defaultPredictCount = 8

func newPredictCommand() *cobra.Command {
	var trace, root string
	var count int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "predict [--count N] FILE | --trace FILE|- --root DIR [--count N] [--json]",
		Short: "Say what would be fetched after an open of a file, and why",
		Long: `Say what would be fetched after an open of FILE, and why: the numbers found in
its name, which of them varies by the names beside it, and the names that come
next. FILE itself need not exist, its directory must.

With --trace, read events, one a line, fields separated by tabs:

    open READER PATH      READER opens PATH
    hint READER PATH      READER announces that it will open PATH

and print for each open what that reader is expected to open next. PATH is
relative to --root, a real directory; its files may be empty. It is the same
predictor that a mount uses. A hint after an open from READER's list begins a new
list, which replaces what is left of it. What follows on a line is ignored, as are empty
lines and those that begin with #, so what "reelahead mount --record" wrote is a
trace. In READER and PATH, \011 is a tab, \012 a newline, \015 a carriage
return and \134 a backslash.

Exit status: 0 predicted or explained, 1 a directory or the trace cannot be
read, 64 wrong command line.`,
		Example: `  reelahead predict /mnt/nas/shot_010/plate.1001.exr
  reelahead predict --trace opens.tsv --root /mnt/nas/shot_010 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case count < 1:
				return usageError("--count %d: at least one name must be asked for", count)
			case trace != "" && len(args) > 0:
				return usageError("--trace takes its files from the trace: leave out %q", args[0])
			case trace != "" && root == "":
				return usageError("--trace needs --root, the directory that its paths are relative to")
			case trace == "" && (root != "" || asJSON):
				return usageError("--root and --json go with --trace")
			case trace == "" && len(args) != 1:
				return usageError("predict explains one file: give exactly one FILE, or --trace (see %q)", "reelahead predict --help")
			}
			if trace != "" {
				return predictTrace(cmd, trace, root, count, asJSON)
			}
			return predictFile(cmd.OutOrStdout(), args[0], count)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&count, "count", defaultPredictCount, "how many names to predict at most")
	flags.StringVar(&trace, "trace", "", "read open and hint events from this file, - for standard input")
	flags.StringVar(&root, "root", "", "directory that the paths of the trace are relative to")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object a line for each open of the trace")
	return cmd
}

// directoryNames reads the listings that the predictor asks for, each once.
type directoryNames struct {
	root  string
	known map[string]*naming.Listing
}

func newDirectoryNames(root string) (*directoryNames, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", root)
	}
	return &directoryNames{root: root, known: make(map[string]*naming.Listing)}, nil
}

// Listing implements prefetch.Directories. A directory that cannot be read is
// as good as none.
func (d *directoryNames) Listing(dir string) *naming.Listing {
	listing, ok := d.known[dir]
	if !ok {
		listing, _ = d.read(dir)
		d.known[dir] = listing
	}
	return listing
}

func (d *directoryNames) read(dir string) (*naming.Listing, error) {
	directory, err := os.Open(filepath.Join(d.root, dir))
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	names, err := directory.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read the names in %s: %w", directory.Name(), err)
	}
	return naming.NewListing(names), nil
}

func predictTrace(cmd *cobra.Command, trace, root string, count int, asJSON bool) error {
	dirs, err := newDirectoryNames(root)
	if err != nil {
		return fmt.Errorf("--root: %w", err)
	}
	input, name := cmd.InOrStdin(), "standard input"
	if trace != "-" {
		file, err := os.Open(trace)
		if err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
		defer file.Close()
		input, name = file, trace
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	replay := traceReplay{dirs: dirs, predictor: prefetch.NewPredictor(), readers: make(map[string]prefetch.Reader), lists: make(map[prefetch.Reader]*traceList), count: count}
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		replay.print = func(p tracePrediction) error { return encoder.Encode(p) }
	} else {
		replay.print = func(p tracePrediction) error {
			_, err := fmt.Fprintf(out, "%s opens %s, next: %s\n", p.Reader, p.Open, listOrNone(p.Next))
			return err
		}
	}
	err = replay.run(input, name)
	return errors.Join(err, out.Flush())
}

// tracePrediction is the line of output for one open.
type tracePrediction struct {
	Reader string   `json:"reader"`
	Open   string   `json:"open"`
	Next   []string `json:"next"`
}

// traceReplay feeds a trace to a predictor.
type traceReplay struct {
	dirs      *directoryNames
	predictor *prefetch.Predictor
	readers   map[string]prefetch.Reader
	lists     map[prefetch.Reader]*traceList // by who announced them
	count     int
	print     func(tracePrediction) error
}

// traceList is the last list that a reader of a trace announced.
type traceList struct {
	number uint64
	opened bool // somebody has opened from it
}

// maxTraceLine is a path as long as the kernel takes, and the fields before it.
const maxTraceLine = 64 << 10

func (t *traceReplay) run(input io.Reader, name string) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, maxTraceLine)
	number := 0
	for lines.Scan() {
		number++
		if err := t.event(lines.Text()); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s, line %d: %w", name, number+1, err)
	}
	return nil
}

func (t *traceReplay) event(line string) error {
	event, ok, err := prefetch.ParseTraceLine(line)
	if err != nil || !ok {
		return err
	}
	file := path.Clean(event.Path)
	if !filepath.IsLocal(file) || file == "." {
		return fmt.Errorf("path %q is not inside --root", event.Path)
	}
	reader, known := t.readers[event.Reader]
	if !known {
		reader = prefetch.Reader(len(t.readers) + 1)
		t.readers[event.Reader] = reader
	}
	if event.Kind == "hint" {
		return t.hint(reader, file)
	}
	prediction := t.predictor.Open(reader, file, t.dirs, t.count)
	if prediction.Announced {
		state, _ := t.predictor.Stream(prediction.Stream)
		t.lists[state.Reader].opened = true
	}
	next := t.predictor.ReaderNext(reader, prediction, t.dirs, t.count)
	return t.print(tracePrediction{event.Reader, event.Path, append([]string{}, next...)})
}

// hint adds a file to the list of a reader. A list that was opened from is
// complete: the next hint begins another, as an epoch does.
func (t *traceReplay) hint(reader prefetch.Reader, file string) error {
	list := t.lists[reader]
	if list == nil {
		list = &traceList{}
		t.lists[reader] = list
	}
	if list.opened {
		*list = traceList{number: list.number + 1}
	}
	_, err := t.predictor.Hint(reader, list.number, []string{file})
	return err
}

func listOrNone(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, " ")
}

// predictFile explains what an open of file would lead to.
func predictFile(out io.Writer, file string, count int) error {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	dir, name := filepath.Split(absolute)
	if name == "" {
		return usageError("%q names no file", file)
	}
	dirs, err := newDirectoryNames("/")
	if err != nil {
		return err
	}
	below := strings.Trim(dir, "/")
	listing, err := dirs.read(below)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the directory of %s does not exist: %w", file, err)
		}
		return err
	}
	dirs.known[below] = listing
	prediction := prefetch.NewPredictor().Open(1, path.Join(below, name), dirs, count)
	next := make([]string, len(prediction.Next))
	for i, found := range prediction.Next {
		next[i] = relativeTo(below, found)
	}
	e := explanation{out: bufio.NewWriter(out), name: name, listing: listing, next: next}
	e.write()
	return e.out.Flush()
}

// relativeTo shortens a path to what a reader in dir would type.
func relativeTo(dir, file string) string {
	short, err := filepath.Rel("/"+dir, "/"+file)
	if err != nil {
		return "/" + file
	}
	return short
}
