package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/dustin/go-humanize"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// dropAtOnce is how many files are opened at once: an open on a slow mount takes
// some round trips.
const dropAtOnce = 16

// DropCaches makes the next reading of the frames at path start cold, as far as
// that is possible without privileges: the kernel forgets their pages. What
// stays warm is returned in words, since a comparison must say it.
//
// The caches of servers and of disks are out of reach; so is that of a reelahead
// mount, whose files are not even opened, for that would fill it.
func DropCaches(path string) (stays []string, err error) {
	sequence, err := OpenSequence(path)
	if err != nil {
		return nil, err
	}
	return sequence.dropCaches(context.Background())
}

// dropCaches is DropCaches for a sequence. It stops when ctx ends.
func (s *Sequence) dropCaches(ctx context.Context) (stays []string, err error) {
	mount, err := mountOf(s.Pattern.Dir)
	if err != nil {
		return nil, err
	}
	switch {
	case mount.FSType == "fuse.reelahead":
		return []string{fmt.Sprintf("%s: what reelahead itself holds stays; mount it anew for a cold run", mount.Mountpoint)}, nil
	case mount.FSType == "tmpfs" || mount.FSType == "ramfs":
		return []string{fmt.Sprintf("%s: files on %s are memory and never cold", mount.Mountpoint, mount.FSType)}, nil
	}
	var resident atomic.Uint64
	var dropping errgroup.Group
	dropping.SetLimit(dropAtOnce)
	for _, frame := range s.Frames {
		if ctx.Err() != nil {
			break
		}
		dropping.Go(func() error {
			pages, err := dropFile(frame.Path)
			if err != nil && !errors.Is(err, unix.ENOENT) { // the player will name what is missing
				return fmt.Errorf("drop the pages of %s: %w", frame.Path, err)
			}
			resident.Add(pages)
			return nil
		})
	}
	if err := dropping.Wait(); err != nil {
		return nil, err
	}
	if pages := resident.Load(); pages > 0 {
		stays = append(stays, fmt.Sprintf("%s: %s of the frames could not be dropped from the page cache",
			mount.Mountpoint, humanize.IBytes(pages*uint64(unix.Getpagesize()))))
	}
	if strings.HasPrefix(mount.FSType, "nfs") || mount.FSType == "cifs" || mount.FSType == "smb3" {
		stays = append(stays, fmt.Sprintf("%s: the server's own cache stays", mount.Mountpoint))
	}
	return stays, nil
}

// dropFile drops a file's pages and returns how many stay.
func dropFile(path string) (resident uint64, err error) {
	fd, err := openRetry(path, unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	// Only clean pages can be dropped.
	if err := unix.Fdatasync(fd); err != nil && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EINVAL) {
		return 0, err
	}
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, err
	}
	var stat unix.Cachestat_t
	// Kernels before 6.5 can't tell what stayed.
	if err := unix.Cachestat(uint(fd), &unix.CachestatRange{}, &stat, 0); err == nil {
		resident = stat.Cache
	}
	return resident, nil
}

// mountOf finds the mount that a path is on.
func mountOf(path string) (*mountinfo.Info, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(path))
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	var found *mountinfo.Info
	for _, mount := range mounts {
		// Of mounts on top of each other the last is seen.
		if found == nil || len(mount.Mountpoint) >= len(found.Mountpoint) {
			found = mount
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s is on no mount in the mount table", path)
	}
	return found, nil
}
