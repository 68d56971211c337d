package bench

import (
	"fmt"
	"strings"
)

// FrameHeader is what every profile reserves in front of the picture, in bytes.
const FrameHeader = 64 << 10

// Profile is a frame size that users of frametest know by name.
type Profile struct {
	Name string
	Size int64 // bytes of a frame, FrameHeader included

	// The picture that a DPX of this size holds.
	Width, Height, Depth int // pixels, pixels, bits a channel
}

// Profiles are the known frame sizes, smallest first. That of sd is rounded up
// to whole pages.
var Profiles = []Profile{
	{"sd", 1_449_984, 720, 480, 10},
	{"hd", 8_359_936, 1920, 1080, 10},
	{"2k", 12_812_288, 2048, 1556, 10},
	{"4k", 51_052_544, 4096, 3112, 10},
	{"8k", 99_598_336, 7680, 4320, 8},
}

// ProfileByName finds a profile; its error lists the names there are.
func ProfileByName(name string) (Profile, error) {
	var names []string
	for _, profile := range Profiles {
		if strings.EqualFold(profile.Name, name) {
			return profile, nil
		}
		names = append(names, profile.Name)
	}
	return Profile{}, fmt.Errorf("profile %q is not known: use one of %s", name, strings.Join(names, ", "))
}
