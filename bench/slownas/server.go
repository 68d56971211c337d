package slownas

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/prefetch/identity"
)

// server makes every request of the kernel wait for its time in the model and
// hands it to the filesystem it wraps. Reads and writes are delayed by the
// handle they use, since that is the stream whose bandwidth they take.
type server struct {
	fuse.RawFileSystem
	delayer *delayer
	own     identity.Identity
	squash  bool
}

// delayer joins the model to the clock and to its faults.
type delayer struct {
	model  *model
	alarm  *alarm
	faults faults
}

// squashedUser is who root is for a server that does not trust its clients'.
const squashedUser = 65534

// signalPoll is how often a request of an interrupted caller looks whether the
// caller has been killed: the kernel tells of the first signal only.
const signalPoll = 100 * time.Millisecond

// wait returns when the model has answered a request for n bytes, or EINTR as
// soon as the thread it is for has been killed. Other signals don't end it, as
// on a hard NFS mount.
func (d *delayer) wait(cancel <-chan struct{}, thread uint32, stream *link, n int) fuse.Status {
	answered := d.alarm.after(d.model.complete(d.alarm.now(), stream, n))
	select {
	case <-answered:
		return fuse.OK
	case <-cancel:
	}
	poll := time.NewTicker(signalPoll)
	defer poll.Stop()
	for !killed(thread) {
		select {
		case <-answered:
			return fuse.OK
		case <-poll.C:
		}
	}
	return fuse.EINTR
}

// killed says whether a thread has a fatal signal pending, which the kernel
// turns into SIGKILL for each thread of the process, or is gone.
func killed(thread uint32) bool {
	if thread == 0 {
		return false // a thread of another process namespace, of which nothing is known
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		pending, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err == nil && pending&sigkillBit != 0 {
			return true
		}
	}
	return false
}

// sigkillBit is SIGKILL in the masks of /proc/PID/status.
const sigkillBit = 1 << (unix.SIGKILL - 1)

// ask makes a request of the kernel's wait for its time and does it as the user
// it comes from: it is the server that decides who may do what.
func (s *server) ask(cancel <-chan struct{}, header *fuse.InHeader, operation, name string, do func() fuse.Status) fuse.Status {
	if _, errno := s.delayer.meet(cancel, header.Pid, operation, name, 0); errno != 0 {
		return fuse.Status(errno)
	}
	if status := s.delayer.wait(cancel, header.Pid, nil, 0); !status.Ok() {
		return status
	}
	return s.as(header, do)
}

func (s *server) as(header *fuse.InHeader, do func() fuse.Status) fuse.Status {
	who := identity.Identity{UID: header.Uid, GID: header.Gid}
	switch {
	case s.own.UID != 0 || who.UID == s.own.UID && who.GID == s.own.GID && !s.squash:
		return do()
	case who.UID == 0 && s.squash:
		who = identity.Identity{UID: squashedUser, GID: squashedUser}
	default:
		who = identity.OfThread(header.Uid, header.Gid, header.Pid)
	}
	var status fuse.Status
	if err := who.Do(s.own, func() error {
		status = do()
		return nil
	}); err != nil {
		return fuse.EACCES
	}
	return status
}

func (s *server) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return s.ask(cancel, header, "lookup", name, func() fuse.Status { return s.RawFileSystem.Lookup(cancel, header, name, out) })
}

func (s *server) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "getattr", "", func() fuse.Status { return s.RawFileSystem.GetAttr(cancel, in, out) })
}

func (s *server) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "setattr", "", func() fuse.Status { return s.RawFileSystem.SetAttr(cancel, in, out) })
}

func (s *server) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "mknod", name, func() fuse.Status { return s.RawFileSystem.Mknod(cancel, in, name, out) })
}

func (s *server) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "mkdir", name, func() fuse.Status { return s.RawFileSystem.Mkdir(cancel, in, name, out) })
}

func (s *server) Unlink(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return s.ask(cancel, header, "unlink", name, func() fuse.Status { return s.RawFileSystem.Unlink(cancel, header, name) })
}

func (s *server) Rmdir(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return s.ask(cancel, header, "rmdir", name, func() fuse.Status { return s.RawFileSystem.Rmdir(cancel, header, name) })
}

func (s *server) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	return s.ask(cancel, &in.InHeader, "rename", oldName, func() fuse.Status { return s.RawFileSystem.Rename(cancel, in, oldName, newName) })
}

func (s *server) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "link", name, func() fuse.Status { return s.RawFileSystem.Link(cancel, in, name, out) })
}

func (s *server) Symlink(cancel <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return s.ask(cancel, header, "symlink", name, func() fuse.Status { return s.RawFileSystem.Symlink(cancel, header, target, name, out) })
}

func (s *server) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "create", name, func() fuse.Status { return s.RawFileSystem.Create(cancel, in, name, out) })
}

func (s *server) Tmpfile(cancel <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "create", "", func() fuse.Status { return s.RawFileSystem.Tmpfile(cancel, in, out) })
}

func (s *server) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "open", "", func() fuse.Status { return s.RawFileSystem.Open(cancel, in, out) })
}

func (s *server) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "opendir", "", func() fuse.Status { return s.RawFileSystem.OpenDir(cancel, in, out) })
}

func (s *server) Access(cancel <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	return s.ask(cancel, &in.InHeader, "access", "", func() fuse.Status { return s.RawFileSystem.Access(cancel, in) })
}

func (s *server) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, data []byte) fuse.Status {
	return s.ask(cancel, &in.InHeader, "setxattr", name, func() fuse.Status { return s.RawFileSystem.SetXAttr(cancel, in, name, data) })
}

func (s *server) RemoveXAttr(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return s.ask(cancel, header, "removexattr", name, func() fuse.Status { return s.RawFileSystem.RemoveXAttr(cancel, header, name) })
}

func (s *server) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return s.ask(cancel, &in.InHeader, "fsync", "", func() fuse.Status { return s.RawFileSystem.Fsync(cancel, in) })
}

func (s *server) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	return s.ask(cancel, &in.InHeader, "fallocate", "", func() fuse.Status { return s.RawFileSystem.Fallocate(cancel, in) })
}

func (s *server) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return s.ask(cancel, &in.InHeader, "readdir", "", func() fuse.Status { return s.RawFileSystem.ReadDir(cancel, in, out) })
}

func (s *server) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return s.ask(cancel, &in.InHeader, "readdir", "", func() fuse.Status { return s.RawFileSystem.ReadDirPlus(cancel, in, out) })
}

func (s *server) StatFs(cancel <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	return s.ask(cancel, header, "statfs", "", func() fuse.Status { return s.RawFileSystem.StatFs(cancel, header, out) })
}

func (s *server) GetLk(cancel <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	return s.ask(cancel, &in.InHeader, "lock", "", func() fuse.Status { return s.RawFileSystem.GetLk(cancel, in, out) })
}

func (s *server) SetLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return s.ask(cancel, &in.InHeader, "lock", "", func() fuse.Status { return s.RawFileSystem.SetLk(cancel, in) })
}

func (s *server) SetLkw(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return s.ask(cancel, &in.InHeader, "lock", "", func() fuse.Status { return s.RawFileSystem.SetLkw(cancel, in) })
}

func (s *server) Readlink(cancel <-chan struct{}, header *fuse.InHeader) (target []byte, status fuse.Status) {
	status = s.ask(cancel, header, "readlink", "", func() (status fuse.Status) {
		target, status = s.RawFileSystem.Readlink(cancel, header)
		return status
	})
	return target, status
}

// GetXAttr is asked for capabilities at every write; servers know none.
func (s *server) GetXAttr(cancel <-chan struct{}, header *fuse.InHeader, name string, dest []byte) (n uint32, status fuse.Status) {
	if strings.HasPrefix(name, "security.") {
		return 0, fuse.Status(unix.ENODATA)
	}
	status = s.ask(cancel, header, "getxattr", name, func() (status fuse.Status) {
		n, status = s.RawFileSystem.GetXAttr(cancel, header, name, dest)
		return status
	})
	return n, status
}

func (s *server) ListXAttr(cancel <-chan struct{}, header *fuse.InHeader, dest []byte) (n uint32, status fuse.Status) {
	status = s.ask(cancel, header, "listxattr", "", func() (status fuse.Status) {
		n, status = s.RawFileSystem.ListXAttr(cancel, header, dest)
		return status
	})
	return n, status
}

// Flush costs nothing: written data has been sent by the time it is called.
// ENOSYS makes the kernel stop asking.
func (s *server) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.ENOSYS }

// Statx is answered with ENOSYS so that the kernel uses GetAttr: both would
// cost the same, and the wrapped Statx follows symbolic links.
func (s *server) Statx(<-chan struct{}, *fuse.StatxIn, *fuse.StatxOut) fuse.Status {
	return fuse.ENOSYS
}

// CopyFileRange is left to the kernel, which reads and writes: a server-side
// copy is not part of the model.
func (s *server) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}
