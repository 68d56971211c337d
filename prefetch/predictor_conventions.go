package prefetch

import (
	"fmt"
	"slices"
	"strings"

	"reelahead/naming"
)

// Convention is an agreement about names that no rule about numbers can know.
type Convention struct {
	Title  string // what is so named
	Source string // where the agreement is written down
	// matches tells whether a name follows it.
	matches func(name string) bool
	// chapter returns the name of the part of a recording that is `by` parts
	// after that of name, "" if there is no such name.
	chapter func(name string, by int) string
	// successor returns the name that follows where no listing is known.
	successor func(name string) string
}

// conventions is all that the predictor knows by heart.
var conventions = []Convention{
	{
		Title:   "digital camera folder, its number going on when it is full",
		Source:  "JEITA CP-3461 (DCF), 3.2.2",
		matches: isCameraFolder,
	},
	{
		Title:   "companion that macOS writes beside a file",
		Source:  "AppleSingle/AppleDouble Formats for Foreign Files (Apple, 1990)",
		matches: isSideFile,
	},
	{
		Title:   "chapters of a GoPro recording: the chapter's number stands before the recording's",
		Source:  "GoPro Camera File Naming Convention, GoPro support",
		matches: func(name string) bool { return goProChapter(name, 0) != "" },
		chapter: goProChapter,
	},
	{
		Title:     "PostgreSQL write-ahead log: timeline, log and segment, the segments 00 to FF",
		Source:    "XLogFileName, src/include/access/xlog_internal.h, with segments of 16 MB",
		matches:   isWriteAheadLog,
		successor: nextWriteAheadLog,
	},
}

// ConventionOf returns the convention that a name follows, if there is one.
func ConventionOf(name string) (Convention, bool) {
	i := slices.IndexFunc(conventions, func(c Convention) bool { return c.matches(name) })
	if i < 0 {
		return Convention{}, false
	}
	return conventions[i], true
}

// isCameraFolder recognises the folders of digital cameras: three digits from
// 100 on and five letters, digits or underscores (100CANON, 101_PANA,
// 102MEDIA). When a folder is full the next one takes over, and the file
// number may start again at 0001.
func isCameraFolder(name string) bool {
	if len(name) != len("100CANON") || name[0] < '1' || name[0] > '9' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		digit := c >= '0' && c <= '9'
		if i < 3 && !digit || !digit && c != '_' && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// isSideFile recognises the companions that macOS writes beside every file on
// a foreign filesystem. They are tiny, and read in no order of their own.
func isSideFile(name string) bool { return strings.HasPrefix(name, "._") }

// goProChapter returns the name of another chapter of the same recording.
func goProChapter(name string, by int) string {
	const stem = len("GX010048")
	if len(name) < stem || name[0] != 'G' || !isNumber(name[4:stem]) || len(name) > stem && name[stem] != '.' {
		return ""
	}
	recording, chapter := name[4:], 0
	switch {
	case name[:4] == "GOPR":
	case isNumber(name[2:4]) && strings.IndexByte("PHXLS", name[1]) >= 0:
		chapter = int(name[2]-'0')*10 + int(name[3]-'0')
	default:
		return ""
	}
	chapter += by
	first := 1
	if name[1] == 'P' || name[1] == 'O' {
		first = 0
	}
	switch {
	case chapter < first || chapter > 99:
		return ""
	case chapter == 0:
		return "GOPR" + recording
	case name[1] == 'O':
		return fmt.Sprintf("GP%02d%s", chapter, recording)
	}
	return fmt.Sprintf("%s%02d%s", name[:2], chapter, recording)
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// walName is how long the name of a write-ahead log segment is.
const walName = len("000000010000000A000000FF")

func isWriteAheadLog(name string) bool {
	return len(name) == walName && strings.Trim(name, "0123456789ABCDEF") == "" &&
		strings.HasPrefix(name[16:], "000000")
}

// nextWriteAheadLog returns the segment that is written after that of name: the
// last of a log is FF.
func nextWriteAheadLog(name string) string {
	digits := name[:16] + name[22:]
	last := naming.Counter{Run: naming.Run{Start: 8, End: len(digits)}, Base: 16}
	upper := naming.Advance(digits, last, 1)[0]
	return strings.ToUpper(upper[:16] + "000000" + upper[16:])
}

// checkpointWords stand before the number of a training run's checkpoint in
// any file; progressWords do in files that hold weights. Source: the defaults
// of TensorFlow (model.ckpt-1000), Hugging Face Trainer (checkpoint-500) and
// PyTorch Lightning (epoch=3-step=1000.ckpt).
var (
	checkpointWords  = []string{"ckpt", "checkpoint"}
	progressWords    = []string{"step", "epoch", "iter"}
	weightExtensions = []string{"pt", "pth", "ckpt", "safetensors"}
)

// isCheckpoint reports whether going from name to next would be going from one
// checkpoint to the next.
func isCheckpoint(name, next string) bool {
	same := 0
	for same < len(name) && same < len(next) && name[same] == next[same] {
		same++
	}
	before := strings.ToLower(strings.TrimRight(strings.TrimRight(name[:same], "0123456789"), "-_.= "))
	endsIn := func(word string) bool { return strings.HasSuffix(before, word) }
	weights := slices.Contains(weightExtensions, strings.ToLower(naming.Extension(next)))
	return slices.ContainsFunc(checkpointWords, endsIn) || weights && slices.ContainsFunc(progressWords, endsIn)
}
