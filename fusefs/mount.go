package fusefs

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"reelahead/cache"
	"reelahead/prefetch"
)

// FilesystemType is what the mount table shows.
const FilesystemType = "fuse.reelahead"

// Options say what is mounted where and how.
type Options struct {
	Source        string // directory to show
	Mountpoint    string // where; may be Source itself
	ReadOnly      bool
	AllowOther    bool   // other users may use the mount, by the files' mode bits
	AllowNonEmpty bool   // the mount may hide files
	Passthrough   bool   // let the kernel read by itself where it can
	Record        string // file to write all opens for reading to; "": none
	Engine        prefetch.Config
}

// Errors that a caller may want to tell apart. All come wrapped with the path
// and what to do.
var (
	ErrDeadMount      = errors.New("a FUSE filesystem whose process is gone is mounted there")
	ErrAlreadyMounted = errors.New("reelahead is mounted there already")
	ErrNotEmpty       = errors.New("directory is not empty")
)

// Mount is a mounted filesystem.
type Mount struct {
	fs         *fileSystem
	server     *fuse.Server
	engine     *prefetch.Engine
	source     *prefetch.Source
	connection int // the kernel's number of this mount, 0 if unknown
	served     chan struct{}
}

// shutdownPatience is how long an unmount waits for the source to answer what
// is under way.
const shutdownPatience = 5 * time.Second

// New checks the options and mounts. The mount answers when New returns.
func New(options Options) (*Mount, error) {
	if err := check(&options); err != nil {
		return nil, err
	}
	raiseFileLimit()
	// Modes come from the callers, which have applied their own masks.
	unix.Umask(0)
	// The source is opened before it may be covered by the mount.
	source, err := prefetch.OpenSource(options.Source, options.Engine.Validity)
	if err != nil {
		return nil, err
	}
	engine, err := prefetch.NewEngine(source, options.Engine)
	if err != nil {
		source.Close(0)
		return nil, err
	}
	m := &Mount{fs: newFileSystem(options, engine, source), engine: engine, source: source, served: make(chan struct{})}
	if options.Record != "" {
		// Opened before the mount may cover it, so that writing never comes here.
		m.fs.record, err = startRecord(options.Record, m.fs.started, options.Engine.Log)
	}
	if err == nil {
		err = m.mount()
	}
	if err != nil {
		m.fs.record.close()
		engine.Shutdown(0)
		source.Close(0)
		return nil, err
	}
	return m, nil
}

func (m *Mount) mount() error {
	o := m.fs.options
	fuseOptions := &fuse.MountOptions{
		AllowOther:    o.AllowOther,
		FsName:        o.Source,
		Name:          "reelahead",
		MaxWrite:      1 << 20,
		MaxReadAhead:  1 << 20,
		MaxBackground: 128,
		// Read results come from mapped memory by writev; splicing a reply of
		// 1 MiB does not fit a pipe of the default largest size.
		DisableSplice:      true,
		DisableReadDirPlus: true,
		EnableAcl:          false,
		DirectMount:        os.Geteuid() == 0,
		DirectMountFlags:   unix.MS_NOSUID | unix.MS_NODEV,
		ExtraCapabilities:  fuse.CAP_DIRECT_IO_ALLOW_MMAP,
		Logger:             log.New(logWriter{m.fs}, "", 0),
	}
	if o.AllowOther {
		fuseOptions.Options = append(fuseOptions.Options, "default_permissions")
	}
	if o.ReadOnly {
		fuseOptions.DirectMountFlags |= unix.MS_RDONLY
		if !fuseOptions.DirectMount {
			fuseOptions.Options = append(fuseOptions.Options, "ro")
		}
	}
	server, err := fuse.NewServer(m.fs, o.Mountpoint, fuseOptions)
	if err != nil {
		return explainMountError(err, o)
	}
	m.server = server
	go func() {
		server.Serve()
		close(m.served)
	}()
	m.findConnection()
	return nil
}

// logWriter takes what go-fuse has to say into the log.
type logWriter struct{ fs *fileSystem }

func (w logWriter) Write(line []byte) (int, error) {
	w.fs.log.Warn().Str("from", "go-fuse").Msg(strings.TrimSpace(string(line)))
	return len(line), nil
}

func explainMountError(err error, o Options) error {
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return fmt.Errorf("mount on %s: %w: run as root, or install fusermount3 (package fuse3)", o.Mountpoint, err)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("mount on %s: fusermount3 was not found: install it (package fuse3) or run as root", o.Mountpoint)
	case o.AllowOther && os.Geteuid() != 0:
		return fmt.Errorf("mount on %s: %w: --allow-other needs the line user_allow_other in /etc/fuse.conf", o.Mountpoint, err)
	}
	return fmt.Errorf("mount on %s: %w", o.Mountpoint, err)
}

// findConnection finds the kernel's number of the mount, by which a hanging one
// can be aborted, and raises the read-ahead that the page cache
// uses where this process answers reads.
func (m *Mount) findConnection() {
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(m.fs.options.Mountpoint))
	if err != nil || len(mounts) == 0 {
		return
	}
	top := mounts[len(mounts)-1]
	m.connection = top.Minor
	readAhead := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", top.Major, top.Minor)
	if !m.fs.passthrough {
		// Best effort: only root may, and slower reads are no reason to fail.
		_ = os.WriteFile(readAhead, []byte("1024"), 0)
	}
}

// Passthrough tells whether the kernel reads ready frames by itself.
func (m *Mount) Passthrough() bool { return m.fs.passthrough }

// Done is closed when the filesystem is unmounted, by whomever.
func (m *Mount) Done() <-chan struct{} { return m.served }

// Unmount takes the mount off. If files are open in it, it is taken off the
// tree at once and served until they are closed or patience ends; then what is
// left is aborted: its users get ENOTCONN. It returns when nothing is served
// any more.
func (m *Mount) Unmount(patience time.Duration) error {
	err := unmountPath(m.fs.options.Mountpoint, 0)
	if errors.Is(err, unix.EBUSY) {
		m.fs.log.Warn().Dur("patience", patience).Msg("files are open in the mount: waiting for them to be closed")
		err = unmountPath(m.fs.options.Mountpoint, unix.MNT_DETACH)
	}
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: not mounted any more
		return fmt.Errorf("unmount %s: %w", m.fs.options.Mountpoint, err)
	}
	select {
	case <-m.served:
		return nil
	case <-time.After(patience):
		if !m.Abort() {
			return nil
		}
	}
	<-m.served
	return nil
}

// Abort ends the connection with the kernel at once: whoever waits for a reply
// gets an error. It reports whether the kernel took it; if not, the end of this
// process has the same effect.
func (m *Mount) Abort() bool {
	aborted := m.abortConnection()
	m.fs.abort.Do(func() { close(m.fs.aborted) })
	_ = unmountPath(m.fs.options.Mountpoint, unix.MNT_DETACH)
	// Replies that wait for the source are ended too.
	_ = m.engine.Shutdown(0)
	return aborted
}

// abortConnection writes to the kernel's control file of the mount. The
// filesystem that holds it need not be mounted anywhere (in containers it is
// not): an own instance, attached to no path, shows the same.
func (m *Mount) abortConnection() bool {
	if m.connection == 0 {
		return false
	}
	context, err := unix.Fsopen("fusectl", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(context)
	if unix.FsconfigCreate(context) != nil {
		return false
	}
	root, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(root)
	file, err := unix.Openat(root, fmt.Sprintf("%d/abort", m.connection), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(file)
	_, err = unix.Write(file, []byte("1"))
	return err == nil
}

// Close frees everything after the mount is gone. It reports what could not be
// freed.
func (m *Mount) Close() error {
	m.fs.releaseAll()
	m.fs.record.close()
	err := m.engine.Shutdown(shutdownPatience)
	if !m.source.Close(shutdownPatience) && err == nil {
		err = fmt.Errorf("the source has not closed all files within %s", shutdownPatience)
	}
	return err
}

// Status returns the mount's totals.
func (m *Mount) Status() Status { return m.fs.status() }

func unmountPath(mountpoint string, flags int) error {
	if os.Geteuid() == 0 {
		return unix.Unmount(mountpoint, flags)
	}
	arguments := []string{"-u"}
	if flags&unix.MNT_DETACH != 0 {
		arguments = append(arguments, "-z")
	}
	output, err := exec.Command("fusermount3", append(arguments, "--", mountpoint)...).CombinedOutput()
	switch {
	case err == nil:
		return nil
	case strings.Contains(string(output), "busy"):
		return unix.EBUSY
	}
	return fmt.Errorf("fusermount3: %w: %s", err, strings.TrimSpace(string(output)))
}

// Unmount takes off the reelahead mount at mountpoint, as umount(8) does: a busy
// one is refused unless lazy. It works on a mount whose process is gone too.
func Unmount(mountpoint string, lazy bool) error {
	path, err := filepath.Abs(mountpoint)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(path))
	if err != nil {
		return fmt.Errorf("read the mount table: %w", err)
	}
	if len(mounts) == 0 || mounts[len(mounts)-1].FSType != FilesystemType {
		return fmt.Errorf("%s is not a reelahead mount (see: reelahead status)", mountpoint)
	}
	flags := 0
	if lazy {
		flags = unix.MNT_DETACH
	}
	err = unmountPath(path, flags)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%s is in use: close its files (fuser -vm %s shows who has some open) or use --lazy", mountpoint, mountpoint)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", mountpoint, err)
	}
	return nil
}

// raiseFileLimit lets frames have descriptors: each one in memory holds one.
func raiseFileLimit() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Cur < limit.Max {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	}
}

// check makes the paths absolute and refuses what cannot work, before anything
// is mounted.
func check(o *Options) error {
	source, err := checkSource(o.Source)
	if err != nil {
		return err
	}
	mountpoint, err := checkMountpoint(o.Mountpoint)
	if err != nil {
		return err
	}
	o.Source, o.Mountpoint = source, mountpoint
	if mountpoint != source {
		if strings.HasPrefix(mountpoint, strings.TrimSuffix(source, "/")+"/") {
			return fmt.Errorf("mountpoint %s lies inside the source %s, so the mount would show itself: choose a directory outside, or mount over the source itself", mountpoint, source)
		}
		if err := checkEmpty(mountpoint); err != nil && !o.AllowNonEmpty {
			return err
		}
	}
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("/dev/fuse does not exist: load the kernel module (modprobe fuse), or in a container pass the device (--device /dev/fuse)")
	case err != nil && os.Geteuid() == 0:
		return fmt.Errorf("%w: the kernel has no FUSE, or the container forbids it", err)
	case err != nil:
		return fmt.Errorf("%w: this user may not use FUSE; the administrator can allow it (chmod 666 /dev/fuse)", err)
	}
	device.Close()
	if o.Engine.CacheSize < cache.ChunkSize {
		return fmt.Errorf("cache size of %d bytes is too small: a few frames must fit", o.Engine.CacheSize)
	}
	return nil
}

func checkSource(path string) (string, error) {
	return checkDirectory("source", path, "is the share mounted?")
}

// checkDirectory returns the real path of a directory that must be there;
// remedy says what to do where it is not.
func checkDirectory(what, path, remedy string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(absolute)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s %s does not exist: %s", what, path, remedy)
	case errors.Is(err, unix.ENOTCONN):
		return "", fmt.Errorf("%s %s: %w", what, path, deadMount(path))
	case err != nil:
		return "", fmt.Errorf("%s %s: %w", what, path, err)
	case !info.IsDir():
		return "", fmt.Errorf("%s %s is not a directory", what, path)
	}
	return filepath.EvalSymlinks(absolute)
}

func checkMountpoint(path string) (string, error) {
	absolute, err := checkDirectory("mountpoint", path, fmt.Sprintf("make it first (mkdir -p %s)", path))
	if err != nil {
		return "", err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(absolute))
	if err != nil {
		return "", fmt.Errorf("read the mount table: %w", err)
	}
	if len(mounts) > 0 && mounts[len(mounts)-1].FSType == FilesystemType {
		return "", fmt.Errorf("mountpoint %s: %w: end it first (reelahead unmount %s)", path, ErrAlreadyMounted, path)
	}
	return absolute, nil
}

func deadMount(path string) error {
	return fmt.Errorf("%w: clear it first (reelahead unmount %s, or fusermount3 -u %s)", ErrDeadMount, path, path)
}

func checkEmpty(mountpoint string) error {
	directory, err := os.Open(mountpoint)
	if err != nil {
		return fmt.Errorf("mountpoint %s: %w", mountpoint, err)
	}
	defer directory.Close()
	switch _, err := directory.Readdirnames(1); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("mountpoint %s: %w", mountpoint, err)
	}
	return fmt.Errorf("mountpoint %s: %w, and the mount would hide its files: choose an empty one, mount over the source itself, or say --allow-non-empty", mountpoint, ErrNotEmpty)
}
