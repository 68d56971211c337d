package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"reelahead/bench"
)

// roleVariable makes this program something else than the player.
const (
	roleVariable = "REELAHEAD_PERFORMANCE_ROLE"
	roleLoopback = "loopback"
)

// serveLoopback mounts go-fuse's own loopback, which reads by passthrough and
// does nothing else: the least that a filesystem written with it costs. Names
// and attributes are believed for as long as reelahead believes them.
func serveLoopback(source, mountPoint string) error {
	root, err := fs.NewLoopbackRoot(source)
	if err != nil {
		return err
	}
	validity := 3 * time.Second
	server, err := fs.Mount(mountPoint, root, &fs.Options{
		EntryTimeout: &validity, AttrTimeout: &validity, NegativeTimeout: &validity,
		MountOptions: fuse.MountOptions{FsName: source, Name: roleLoopback, DirectMount: true},
	})
	if err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	if server.KernelSettings().Flags64()&fuse.CAP_PASSTHROUGH == 0 {
		return errors.Join(errors.New("the kernel has no passthrough"), server.Unmount())
	}
	<-ended
	return server.Unmount()
}

// smallFiles times open, fstat, a read of 4 KiB and close of files that are
// ready, by turns on tmpfs, through go-fuse's loopback and through reelahead.
func smallFiles(ctx context.Context, b *bencher) (rows []row, err error) {
	s := setting{name: "3", streams: 1, frames: 500, size: 16 << 10, cache: 1 << 30}
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		l, err := b.start(ctx, stage, s, true)
		if err != nil {
			return err
		}
		loopback := stage.NAS() // no model is mounted there
		// The child has this role, the player not.
		if _, err := stage.Start(ctx, "loopback", loopback, "env", roleVariable+"="+roleLoopback, b.self, stage.Frames(), loopback); err != nil {
			return err
		}
		mount := stage.Streams(l.dir, 1)[0]
		if err := b.warm(ctx, l, mount); err != nil {
			return err
		}
		before, err := l.status()
		if err != nil {
			return err
		}
		passes := b.scaled(20, 5)
		touch := func(dir string) func(context.Context) (float64, error) {
			return func(ctx context.Context) (float64, error) { return touchAll(ctx, dir, passes) }
		}
		sides, err := alternate(ctx, b.rounds(9),
			touch(stage.Streams(stage.Frames(), 1)[0]), touch(stage.Streams(loopback, 1)[0]),
			func(ctx context.Context) (float64, error) {
				defer b.startProfile(s.name, l)()
				return touchAll(ctx, mount, passes)
			})
		if err != nil {
			return err
		}
		after, err := l.status()
		if err != nil {
			return err
		}
		opens := after.Opens - before.Opens
		rows = []row{newRow("a file of 16 KiB, time", "loopback", seconds, sides[1], sides[2]).ratioAtMost(1).
			noted("tmpfs itself %s; %d of %d opens ready", seconds.text(median(sides[0])), after.OpensReady-before.OpensReady, opens)}
		return nil
	})
	return rows, err
}

// touchAll touches all files of a directory in order and returns seconds a file.
func touchAll(ctx context.Context, dir string, passes int) (float64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var paths []string
	for _, entry := range entries {
		paths = append(paths, filepath.Join(dir, entry.Name()))
	}
	head := make([]byte, 4<<10)
	began := time.Now()
	for range passes {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		for _, path := range paths {
			if err := touch(path, head); err != nil {
				return 0, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return time.Since(began).Seconds() / float64(passes*len(paths)), nil
}

func touch(path string, head []byte) error {
	fd, err := openFile(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	n, err := unix.Read(fd, head)
	if err == nil && n != len(head) {
		err = fmt.Errorf("%d bytes in place of %d", n, len(head))
	}
	return err
}
