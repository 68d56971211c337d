package slownas

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/prefetch/identity"
)

// maxRequest is the most that one read or write carries, in bytes: the rsize
// and wsize that Linux NFS clients agree on with most servers.
const maxRequest = 1 << 20

// Config describes a server and how its clients mount it.
type Config struct {
	RoundTrip       time.Duration // of every request
	Jitter          time.Duration // added to the round trip, evenly between 0 and this
	Bandwidth       int64         // bytes a second, all streams together
	StreamBandwidth int64         // bytes a second, one open file handle
	Slots           int           // requests in flight; more wait
	Stall           Stall         // zero: never
	Seed            uint64        // of the jitter

	// ReadAhead is what the kernel reads ahead of a buffered reader, in bytes.
	// A Linux NFS mount has 128 KiB since Linux 5.4.
	ReadAhead int64
	// AttrTimeout is how long the kernel answers for names and attributes
	// without a request: acregmin and acdirmin of an NFS mount.
	AttrTimeout time.Duration
	// KeepCache lets the kernel keep a file's pages from one open to the next, as
	// a server does that reads its own disks. Changes that don't come by the mount
	// are not seen then.
	KeepCache bool
	// AllowOther lets other users than the one who mounts in. Run by root the
	// model does what each of them asks as that user, as a file server does.
	AllowOther bool
	// RootSquash makes root nobody, as most exports do.
	RootSquash bool
	// Faults names a file that holds what goes wrong now; see the type faults.
	Faults string
}

// Stall makes the server answer nothing for Length at the start of every
// Period, the first time one Period after the mount.
type Stall struct{ Length, Period time.Duration }

func (s Stall) stall() stall { return stall{s.Length, s.Period} }

// Validate returns an error that says which parameter is wrong and what it may
// be.
func (c Config) Validate() error {
	switch {
	case c.RoundTrip < 0 || c.Jitter < 0 || c.AttrTimeout < 0:
		return fmt.Errorf("round trip, jitter and attribute timeout can't be negative")
	case c.Bandwidth <= 0 || c.StreamBandwidth <= 0:
		return fmt.Errorf("bandwidth and stream bandwidth must be more than 0")
	case c.Slots < 1 || c.Slots > 4096:
		return fmt.Errorf("slots must be between 1 and 4096, not %d", c.Slots)
	case c.ReadAhead < 0:
		return fmt.Errorf("read-ahead can't be negative")
	case c.Stall.Length < 0 || c.Stall.Length > 0 && c.Stall.Length >= c.Stall.Period:
		return fmt.Errorf("a stall of %v must be shorter than its period of %v", c.Stall.Length, c.Stall.Period)
	}
	if c.Faults != "" {
		text, err := os.ReadFile(c.Faults)
		if err == nil {
			_, err = parseFaults(string(text))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("faults of %s: %w", c.Faults, err)
		}
	}
	return nil
}

// Mount is a mounted model.
type Mount struct {
	server *fuse.Server
	alarm  *alarm
	path   string
}

// New mounts a model of a server that exports the directory backing. The
// process that serves it must not read from it.
func New(backing, mountPoint string, config Config) (*Mount, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	backing, err := directory(backing)
	if err != nil {
		return nil, err
	}
	mountPoint, err = directory(mountPoint)
	if err != nil {
		return nil, err
	}
	if within(backing, mountPoint) || within(mountPoint, backing) {
		return nil, fmt.Errorf("%s and %s lie within each other: the model would serve itself", backing, mountPoint)
	}
	root, err := fs.NewLoopbackRoot(backing)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", backing, err)
	}
	alarm, err := newAlarm()
	if err != nil {
		return nil, err
	}
	own, err := identity.Own()
	if err != nil {
		return nil, fmt.Errorf("find out who I am: %w", err)
	}
	delayer := &delayer{model: newModel(config), alarm: alarm, faults: faults{file: config.Faults}}
	options := mountOptions(backing, config)
	files := fs.NewNodeFS(&node{LoopbackNode: root.(*fs.LoopbackNode), delayer: delayer, keepCache: config.KeepCache}, options)

	// The modes that the kernel sends have its caller's umask applied already.
	unix.Umask(0)
	kernel, err := fuse.NewServer(&server{RawFileSystem: files, delayer: delayer, own: own, squash: config.RootSquash}, mountPoint, &options.MountOptions)
	if err != nil {
		alarm.close()
		return nil, fmt.Errorf("mount on %s: %w", mountPoint, err)
	}
	go kernel.Serve()
	m := &Mount{server: kernel, alarm: alarm, path: mountPoint}
	err = kernel.WaitMount()
	if err == nil {
		err = setReadAhead(mountPoint, config.ReadAhead)
	}
	if err != nil {
		_ = m.Unmount()
		return nil, err
	}
	return m, nil
}

// directory returns the absolute path of a directory, without symbolic links.
func directory(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", path)
	}
	return path, nil
}

// within says whether path is dir or lies below it.
func within(path, dir string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(relative)
}

func mountOptions(backing string, config Config) *fs.Options {
	options := &fs.Options{EntryTimeout: &config.AttrTimeout, AttrTimeout: &config.AttrTimeout}
	options.MountOptions = fuse.MountOptions{
		FsName:       backing,
		Name:         "slownas",
		MaxWrite:     maxRequest,
		MaxReadAhead: maxRequest,
		// The slots of the model are the bound; the kernel's must lie above it.
		MaxBackground: 2 * config.Slots,
		// Replies are written from a mapping, which costs one copy; a pipe
		// would not hold 1 MiB and its header.
		DisableSplice: true,
		DirectMount:   true,
		EnableLocks:   true,
		// A READDIRPLUS would look up each name by itself, a round trip each.
		DisableReadDirPlus: true,
		// An O_DIRECT read of several MiB goes out as parallel requests, as an
		// NFS client sends it.
		ExtraCapabilities: fuse.CAP_ASYNC_DIO,
		// The first would ask for the attributes at every read(2), where an NFS
		// client compares them at open. With the second the kernel would take the
		// mount for a stacked one and refuse its files as backing files, which those
		// of NFS and SMB mounts can be.
		DisabledCapabilities: fuse.CAP_AUTO_INVAL_DATA | fuse.CAP_PASSTHROUGH,
		Logger:               log.New(os.Stderr, "slownas: ", 0),
		AllowOther:           config.AllowOther,
	}
	if config.AllowOther && os.Geteuid() != 0 {
		options.Options = []string{"default_permissions"}
	}
	return options
}

// setReadAhead sets what the kernel reads ahead on the mount. Without
// permission for it the kernel's default of 128 KiB stays.
func setReadAhead(mountPoint string, bytes int64) error {
	// STATX_DONT_SYNC keeps the kernel from asking this very process.
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, mountPoint, unix.AT_STATX_DONT_SYNC, 0, &stat); err != nil {
		return fmt.Errorf("find the device of %s: %w", mountPoint, err)
	}
	path := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", stat.Dev_major, stat.Dev_minor)
	err := os.WriteFile(path, []byte(strconv.FormatInt(bytes>>10, 10)), 0)
	if err != nil && bytes != 128<<10 {
		return fmt.Errorf("set the read-ahead of the mount: %w", err)
	}
	return nil
}

// Wait returns when the filesystem has been unmounted.
func (m *Mount) Wait() {
	m.server.Wait()
	m.alarm.close()
}

// Unmount unmounts the filesystem. It fails with EBUSY while files on it are
// open or a process has its working directory there.
func (m *Mount) Unmount() error {
	if err := m.server.Unmount(); err != nil {
		// fusermount's words come with line breaks.
		return errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}

// Abort takes the filesystem out of the tree although it is in use. Who uses it
// gets errors once the process that serves it ends.
func (m *Mount) Abort() error {
	err := unix.Unmount(m.path, unix.MNT_DETACH)
	if errors.Is(err, unix.EPERM) {
		err = exec.Command("fusermount3", "-u", "-z", m.path).Run()
	}
	if err != nil {
		return fmt.Errorf("detach %s: %w", m.path, err)
	}
	return nil
}
