package slownas

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// server makes every request of the kernel wait for its time in the model and
// hands it to the filesystem it wraps. Reads and writes are delayed by the
// handle they use, since that is the stream whose bandwidth they take.
type server struct {
	fuse.RawFileSystem
	delayer *delayer
}

// delayer joins the model to the clock.
type delayer struct {
	model *model
	alarm *alarm
}

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

func (s *server) roundTrip(cancel <-chan struct{}, header *fuse.InHeader) fuse.Status {
	return s.delayer.wait(cancel, header.Pid, nil, 0)
}

func (s *server) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if status := s.roundTrip(cancel, header); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Lookup(cancel, header, name, out)
}

func (s *server) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.GetAttr(cancel, in, out)
}

func (s *server) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.SetAttr(cancel, in, out)
}

func (s *server) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Mknod(cancel, in, name, out)
}

func (s *server) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Mkdir(cancel, in, name, out)
}

func (s *server) Unlink(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	if status := s.roundTrip(cancel, header); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Unlink(cancel, header, name)
}

func (s *server) Rmdir(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	if status := s.roundTrip(cancel, header); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Rmdir(cancel, header, name)
}

func (s *server) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Rename(cancel, in, oldName, newName)
}

func (s *server) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Link(cancel, in, name, out)
}

func (s *server) Symlink(cancel <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	if status := s.roundTrip(cancel, header); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Symlink(cancel, header, target, name, out)
}

func (s *server) Readlink(cancel <-chan struct{}, header *fuse.InHeader) ([]byte, fuse.Status) {
	if status := s.roundTrip(cancel, header); !status.Ok() {
		return nil, status
	}
	return s.RawFileSystem.Readlink(cancel, header)
}

func (s *server) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Create(cancel, in, name, out)
}

func (s *server) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Open(cancel, in, out)
}

func (s *server) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Fsync(cancel, in)
}

func (s *server) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.Fallocate(cancel, in)
}

func (s *server) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.ReadDir(cancel, in, out)
}

func (s *server) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	if status := s.roundTrip(cancel, &in.InHeader); !status.Ok() {
		return status
	}
	return s.RawFileSystem.ReadDirPlus(cancel, in, out)
}

func (s *server) StatFs(cancel <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	if status := s.roundTrip(cancel, header); !status.Ok() {
		return status
	}
	return s.RawFileSystem.StatFs(cancel, header, out)
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
