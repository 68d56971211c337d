package prefetch

import (
	"slices"
	"strings"

	"reelahead/naming"
)

// Conventions that no rule about numbers can know, each with its source.

// isCameraFolder recognises the folders of digital cameras: three digits from
// 100 on and five letters, digits or underscores (100CANON, 101_PANA,
// 102MEDIA). When a folder is full the next one takes over, and the file
// number may start again at 0001. Source: JEITA CP-3461 (DCF), 3.2.2.
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
// Source: AppleSingle/AppleDouble Formats for Foreign Files (Apple, 1990).
func isSideFile(name string) bool { return strings.HasPrefix(name, "._") }

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
