package bench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Machine is what a report says of the computer that played.
type Machine struct {
	Host       string `json:"host"`
	System     string `json:"system"` // as in "Debian GNU/Linux 12 (bookworm)"
	Kernel     string `json:"kernel"`
	Processor  string `json:"processor"`
	Processors int    `json:"processors"` // that this program may use
	Memory     int64  `json:"memory"`     // bytes
}

// MountFacts is what a report says of a mount that was played from.
type MountFacts struct {
	Path       string `json:"path"`       // what was played
	Mountpoint string `json:"mountpoint"` // of the mount it lies on
	Source     string `json:"source"`
	Type       string `json:"type"`
	Options    string `json:"options"`        // of the mount and of its filesystem
	ReadAhead  int    `json:"read_ahead_kib"` // of the kernel; -1: not known
}

// thisMachine describes the machine; what can't be found out stays empty.
func thisMachine() Machine {
	m := Machine{Processors: runtime.NumCPU()}
	m.Host, _ = os.Hostname()
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	m.System = strings.Trim(fieldOf("/etc/os-release", "PRETTY_NAME", "="), `"`)
	m.Processor = fieldOf("/proc/cpuinfo", "model name", ":")
	var memory unix.Sysinfo_t
	if unix.Sysinfo(&memory) == nil {
		m.Memory = int64(memory.Totalram) * int64(memory.Unit)
	}
	return m
}

// fieldOf is the value of the first line of a file that begins with a name.
func fieldOf(path, name, separator string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, found := strings.Cut(lines.Text(), separator); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// mountFacts describes the mount that a directory lies on, as far as the kernel
// tells.
func mountFacts(dir string) MountFacts {
	facts := MountFacts{Path: dir, ReadAhead: -1}
	mount, err := mountOf(dir)
	if err != nil {
		return facts
	}
	facts.Mountpoint, facts.Source, facts.Type = mount.Mountpoint, mount.Source, mount.FSType
	facts.Options = joinOptions(mount)
	device := fmt.Sprintf("%d:%d", mount.Major, mount.Minor)
	if text, err := os.ReadFile(filepath.Join("/sys/class/bdi", device, "read_ahead_kb")); err == nil {
		if _, err := fmt.Sscan(string(text), &facts.ReadAhead); err != nil {
			facts.ReadAhead = -1
		}
	}
	return facts
}

// joinOptions are the options of a mount and those of its filesystem, each once.
func joinOptions(mount *mountinfo.Info) string {
	var options []string
	seen := map[string]bool{}
	for option := range strings.SplitSeq(mount.Options+","+mount.VFSOptions, ",") {
		if option != "" && !seen[option] {
			seen[option] = true
			options = append(options, option)
		}
	}
	return strings.Join(options, ",")
}

// mountsOf describes the mounts of what the clients play, each directory once.
func mountsOf(clients []*client) []MountFacts {
	mounts := []MountFacts{}
	seen := map[string]bool{}
	for _, c := range clients {
		if dir := c.sequence.Pattern.Dir; !seen[dir] {
			seen[dir] = true
			mounts = append(mounts, mountFacts(dir))
		}
	}
	return mounts
}
