package prefetch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

const (
	// pressureTrigger asks the kernel for a word when tasks have waited for memory
	// for a tenth of two seconds (in microseconds; the form is that of
	// Documentation/accounting/psi.rst, where two seconds is the least that
	// unprivileged programs may ask for).
	pressureTrigger = "some 200000 2000000"
	// calmAfter is how long there must be no such word before memory is taken again.
	calmAfter = 10 * time.Second
	// leastCache is what a mount keeps under pressure, at most: a few frames.
	leastCache = 64 << 20
)

// watchPressure gives memory back while the system, or this program's control
// group, is short of it, before the kernel kills somebody, and takes it again
// later. Where the kernel tells no pressure it does nothing.
func (e *Engine) watchPressure() {
	file, err := openPressure()
	if err != nil {
		e.config.Log.Debug().Err(err).Msg("memory pressure is not watched")
		return
	}
	defer file.Close()
	poll := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLPRI}}
	last := time.Now()
	for {
		select {
		case <-e.stop:
			return
		default:
		}
		n, err := unix.Poll(poll, int(tick.Milliseconds()))
		switch {
		case err != nil && err != unix.EINTR, n > 0 && poll[0].Revents&unix.POLLERR != 0:
			return // the control group is gone
		case n > 0:
			last = time.Now()
			e.yieldMemory()
		case time.Since(last) > calmAfter:
			last = time.Now()
			e.regainMemory()
		}
	}
}

// openPressure opens the nearest pressure file that takes the trigger: that of the
// control group (version 2), else the system's.
func openPressure() (*os.File, error) {
	paths := []string{"/proc/pressure/memory"}
	if own, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		for line := range strings.Lines(string(own)) {
			if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && group != "/" {
				paths = append([]string{filepath.Join("/sys/fs/cgroup", group, "memory.pressure")}, paths...)
			}
		}
	}
	var last error
	for _, path := range paths {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			if _, err = file.Write(append([]byte(pressureTrigger), 0)); err == nil {
				return file, nil
			}
			file.Close()
		}
		last = err
	}
	return nil, fmt.Errorf("watch memory pressure: %w", last)
}

// yieldMemory lowers the bound by a quarter and gives back what lies beyond it:
// memory that is free, then frames that were read. Frames ahead of readers stay;
// their windows follow the bound.
func (e *Engine) yieldMemory() {
	before := e.ledger.Limit()
	limit := max(min(leastCache, e.config.CacheSize), before/4*3)
	e.ledger.SetLimit(limit)
	e.store.Reclaim(0)
	freed := e.arena.Trim()
	if limit < before {
		e.config.Log.Warn().Str("freed", humanize.IBytes(uint64(freed))).Str("limit", humanize.IBytes(uint64(limit))).
			Msg("memory is short: the cache is smaller for now")
	}
}

// regainMemory raises the bound by an eighth of what the mount was given, up to
// that.
func (e *Engine) regainMemory() {
	if limit := e.ledger.Limit(); limit < e.config.CacheSize {
		e.ledger.SetLimit(min(e.config.CacheSize, limit+e.config.CacheSize/8))
	}
}
