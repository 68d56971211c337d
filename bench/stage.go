package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"reelahead/bench/slownas"
)

// Stage is the directory in which a measurement takes place: frames, the mount
// points of a model of a server and of reelahead, and the processes that serve
// them. It is not safe for concurrent use.
type Stage struct {
	dir        string
	executable string
	servers    []*Server // in the order they were started
}

// Frames is the directory of what the model serves.
func (s *Stage) Frames() string { return filepath.Join(s.dir, "frames") }

// NAS is where StartModel mounts.
func (s *Stage) NAS() string { return filepath.Join(s.dir, "nas") }

// Ahead is where StartMount mounts.
func (s *Stage) Ahead() string { return filepath.Join(s.dir, "ahead") }

// NewStage makes a stage with room for the given number of bytes of frames: in
// parent, or where that is empty in memory, if that leaves enough for everything
// else, or else in the directory for temporary files. executable is reelahead,
// which serves the mounts.
func NewStage(executable, parent string, bytes, otherMemory int64) (*Stage, error) {
	switch {
	case parent != "":
	case hasSpace("/dev/shm", bytes) && availableMemory() > bytes+otherMemory:
		parent = "/dev/shm"
	default:
		parent = os.TempDir()
	}
	if _, err := os.Stat(parent); err != nil {
		return nil, err
	}
	if !hasSpace(parent, bytes) {
		return nil, fmt.Errorf("%s of frames don't fit into %s: use fewer streams, fewer seconds or a smaller profile", decimal(bytes), parent)
	}
	dir, err := os.MkdirTemp(parent, "reelahead-bench-")
	if err != nil {
		return nil, err
	}
	s := &Stage{dir: dir, executable: executable}
	// The mount table shows absolute paths without symbolic links.
	if s.dir, err = filepath.Abs(dir); err == nil {
		s.dir, err = filepath.EvalSymlinks(s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for _, sub := range []string{s.Frames(), s.NAS(), s.Ahead()} {
		if err := os.Mkdir(sub, 0o755); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return s, nil
}

// Start starts a command that mounts mountPoint, as StartServer does; it is
// stopped by Clear.
func (s *Stage) Start(ctx context.Context, name, mountPoint string, command ...string) (*Server, error) {
	started, err := StartServer(ctx, name, mountPoint, command...)
	if err == nil {
		s.servers = append(s.servers, started)
	}
	return started, err
}

// StartDaemon starts a command that mounts nothing and returns when ready says
// that it serves.
func (s *Stage) StartDaemon(ctx context.Context, name string, ready func() (bool, error), command ...string) (*Server, error) {
	started, err := startServer(ctx, name, "", ready, command)
	if err == nil {
		s.servers = append(s.servers, started)
	}
	return started, err
}

// Dir makes a further directory of the stage, which Strike removes, and returns
// its path.
func (s *Stage) Dir(name string) (string, error) {
	dir := filepath.Join(s.dir, name)
	return dir, os.MkdirAll(dir, 0o755)
}

// StartModel mounts a model of a server over Frames.
func (s *Stage) StartModel(ctx context.Context, nas slownas.Config) (*Server, error) {
	return s.Start(ctx, "slownas", s.NAS(), s.executable, "bench", "slownas", s.Frames(), s.NAS(),
		"--rtt", nas.RoundTrip.String(), "--jitter", nas.Jitter.String(),
		"--bandwidth", strconv.FormatInt(nas.Bandwidth, 10), "--stream-bandwidth", strconv.FormatInt(nas.StreamBandwidth, 10),
		"--slots", strconv.Itoa(nas.Slots), "--read-ahead", strconv.FormatInt(nas.ReadAhead, 10),
		"--attr-timeout", nas.AttrTimeout.String(), "--keep-cache="+strconv.FormatBool(nas.KeepCache), "--seed", strconv.FormatUint(nas.Seed, 10))
}

// StartMount mounts reelahead over a source, with flags of its mount command.
func (s *Stage) StartMount(ctx context.Context, source string, flags ...string) (*Server, error) {
	command := append([]string{s.executable, "mount", source, s.Ahead()}, flags...)
	return s.Start(ctx, "reelahead mount", s.Ahead(), command...)
}

// MakeStreams writes the frames of a number of streams into Frames, each in a
// directory of its own: distinct, so that no stream is served with what another
// one read. onFrame is called after each frame.
func (s *Stage) MakeStreams(ctx context.Context, streams, frames int, size int64, onFrame func()) error {
	for i, dir := range s.Streams(s.Frames(), streams) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		_, err := Write(ctx, WriteConfig{
			Pattern: Pattern{Dir: dir, Prefix: "shot.", Suffix: ".dpx", Width: 4},
			Start:   1, Frames: frames, Size: size, Seed: uint64(i),
			OnFrame: func(int64) { onFrame() },
		})
		if err != nil {
			return fmt.Errorf("make frames: %w", err)
		}
	}
	return nil
}

// Streams are the directories of the streams under a directory of the stage.
func (s *Stage) Streams(under string, n int) []string {
	var dirs []string
	for i := range n {
		dirs = append(dirs, filepath.Join(under, "stream"+strconv.Itoa(i+1)))
	}
	return dirs
}

// Clear stops the servers, the last one first.
func (s *Stage) Clear() error {
	var errs []error
	for len(s.servers) > 0 {
		last := len(s.servers) - 1
		errs = append(errs, s.servers[last].Stop())
		s.servers = s.servers[:last]
	}
	return errors.Join(errs...)
}

// Strike clears the stage and removes it. While something is mounted in it
// nothing is removed: that would go through to what is mounted.
func (s *Stage) Strike() error {
	err := s.Clear()
	mounts, mountErr := mountinfo.GetMounts(mountinfo.PrefixFilter(s.dir))
	if mountErr != nil || len(mounts) > 0 {
		return errors.Join(err, mountErr, fmt.Errorf("%s stays, since something is mounted in it", s.dir))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// hasSpace says whether a directory's filesystem has room for bytes and a tenth
// more.
func hasSpace(dir string, bytes int64) bool {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return false
	}
	return int64(stat.Bavail)*stat.Bsize > bytes+bytes/10
}

// availableMemory is what the kernel could give to processes without swapping,
// in bytes; 0 if it doesn't say.
func availableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}
