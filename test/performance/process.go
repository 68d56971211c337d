package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what a process has used so far.
type usage struct {
	user, system time.Duration
	written      int64 // bytes by write(2) and the like: a FUSE server's answers are
}

func (u usage) total() time.Duration { return u.user + u.system }

func (u usage) since(before usage) usage {
	return usage{u.user - before.user, u.system - before.system, u.written - before.written}
}

func (u usage) String() string {
	return fmt.Sprintf("%.2f s (%.2f user, %.2f system)", u.total().Seconds(), u.user.Seconds(), u.system.Seconds())
}

// tick is the unit of the times in /proc/PID/stat: USER_HZ is 100 wherever Go
// runs.
const tick = 10 * time.Millisecond

// usageOf reads what a process has used, with all its threads, also those that
// have ended.
func usageOf(pid int) (u usage, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	// The name in brackets may hold anything; utime is field 14, the 12th behind it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return u, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return u, err
	}
	u.user, u.system = time.Duration(user)*tick, time.Duration(system)*tick
	u.written, err = procField(fmt.Sprintf("/proc/%d/io", pid), "wchar")
	return u, err
}

// procField reads a number after a name and a colon; kB are made bytes.
func procField(path, name string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		field, value, _ := strings.Cut(line, ":")
		if field != name {
			continue
		}
		number, kilobytes := strings.CutSuffix(strings.TrimSpace(value), " kB")
		n, err := strconv.ParseInt(number, 10, 64)
		if kilobytes {
			n <<= 10
		}
		return n, err
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}

// usages are those of all that takes part in a run.
type usages struct{ model, daemon, player usage }

func (l live) usage() (u usages, err error) {
	if l.model != nil {
		if u.model, err = usageOf(l.model.PID()); err != nil {
			return u, err
		}
	}
	if l.mount != nil {
		if u.daemon, err = usageOf(l.mount.PID()); err != nil {
			return u, err
		}
	}
	u.player, err = usageOf(os.Getpid())
	return u, err
}

const (
	memoryPeriod = 100 * time.Millisecond
	// arenaEvery is how many samples pass between two of the memory files: to ask
	// for thousands of them costs some milliseconds.
	arenaEvery = 10
)

// memorySample is the memory of one daemon, in bytes.
type memorySample struct {
	private int64 // anonymous memory and mapped files
	shared  int64 // memory files, mapped or not
	limit   int64 // of the cache
}

// beyond is what is used beyond the cache's limit.
func (m memorySample) beyond() int64 { return m.private + m.shared - m.limit }

// memoryWatch samples the memory of all daemons while they live.
type memoryWatch struct {
	mu      sync.Mutex
	samples int
	worst   memorySample // with the most beyond the limit
	private int64        // the most of any daemon
}

func newMemoryWatch() *memoryWatch { return &memoryWatch{worst: memorySample{limit: 1 << 62}} }

// follow samples a process until it ends.
func (w *memoryWatch) follow(pid int, limit int64) {
	go func() {
		var arena int64
		for i := 0; ; i++ {
			if i%arenaEvery == 0 {
				bytes, err := memoryFiles(pid)
				if err != nil {
					return
				}
				arena = bytes
			}
			sample, err := sampleMemory(pid, arena)
			if err != nil {
				return
			}
			sample.limit = limit
			w.add(sample)
			time.Sleep(memoryPeriod)
		}
	}()
}

func (w *memoryWatch) add(sample memorySample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples++
	w.private = max(w.private, sample.private)
	if sample.beyond() > w.worst.beyond() {
		w.worst = sample
	}
}

func (w *memoryWatch) peak() (worst memorySample, private int64, samples int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.worst, w.private, w.samples
}

// sampleMemory adds up what a process has mapped. Its memory files count as
// mapped or as held, whichever is more.
func sampleMemory(pid int, arena int64) (memorySample, error) {
	var sample memorySample
	path := fmt.Sprintf("/proc/%d/status", pid)
	anonymous, err := procField(path, "RssAnon")
	if err != nil {
		return sample, err // it has ended
	}
	files, err := procField(path, "RssFile")
	if err != nil {
		return sample, err
	}
	shared, err := procField(path, "RssShmem")
	return memorySample{private: anonymous + files, shared: max(shared, arena)}, err
}

// memoryFiles is what the unnamed files that a process holds on tmpfs occupy:
// those that it has not mapped, or mapped and not touched, are in no RSS. Other
// files are not looked at, for they may be on a slow mount.
func memoryFiles(pid int) (bytes int64, err error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		path := dir + "/" + entry.Name()
		target, err := os.Readlink(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // closed in the meantime
		}
		if err != nil {
			return 0, err
		}
		if !strings.HasSuffix(target, " (deleted)") || !strings.HasPrefix(target, "/#") && !strings.HasPrefix(target, "/memfd:") {
			continue
		}
		var stat unix.Stat_t
		if unix.Stat(path, &stat) == nil {
			bytes += stat.Blocks * 512
		}
	}
	return bytes, nil
}
