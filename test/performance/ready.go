package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"reelahead/bench"
)

// readyRead is one way to read a ready frame, and what is asked of it.
type readyRead struct {
	what   string
	block  int64 // bytes a read(2); 0: the whole frame
	mapped bool
	target float64
}

func readyLarge(ctx context.Context, b *bencher) ([]row, error) {
	s := setting{name: "1", streams: 1, frames: b.scaled(20, 8), size: 51_052_544, cache: 4 << 30}
	rows, err := b.ready(ctx, s, []readyRead{
		{what: "whole", target: 1.2},
		{what: "1 MiB pieces", block: 1 << 20, target: 1.45},
	})
	if err != nil {
		return rows, err
	}
	// As for who is not root, for whom the kernel does not read by itself.
	s.name, s.mount = "1-off", []string{"--passthrough", "off"}
	off, err := b.ready(ctx, s, []readyRead{
		{what: "whole, without passthrough", target: 0.5},
		{what: "mmap, without passthrough", mapped: true, target: 0.5},
		{what: "4 KiB pieces, without passthrough", block: 4 << 10, target: 0.5},
	})
	return append(rows, off...), err
}

func readyMedium(ctx context.Context, b *bencher) ([]row, error) {
	return b.ready(ctx, setting{name: "2", streams: 1, frames: b.scaled(60, 24), size: 12_812_288, cache: 4 << 30}, []readyRead{
		{what: "whole", target: 1.15},
		{what: "mmap", mapped: true, target: 1},
		{what: "4 KiB pieces", block: 4 << 10, target: 0.7},
	})
}

// ready compares reading frames that are all in the cache with reading the same
// frames from the tmpfs that they come from.
func (b *bencher) ready(ctx context.Context, s setting, reads []readyRead) (rows []row, err error) {
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		l, err := b.start(ctx, stage, s, true)
		if err != nil {
			return err
		}
		source, mount := stage.Streams(stage.Frames(), 1)[0], stage.Streams(l.dir, 1)[0]
		if err := b.warm(ctx, l, mount); err != nil {
			return err
		}
		before, err := l.status()
		if err != nil {
			return err
		}
		for _, read := range reads {
			sides, err := alternate(ctx, b.rounds(5),
				func(ctx context.Context) (float64, error) { return read.throughput(ctx, source) },
				func(ctx context.Context) (float64, error) {
					defer b.startProfile(s.name+"-"+strings.NewReplacer(" ", "-", ",", "").Replace(read.what), l)()
					return read.throughput(ctx, mount)
				})
			if err != nil {
				return err
			}
			rows = append(rows, newRow(read.what, "tmpfs", bytesPerSecond, sides[0], sides[1]).ratioAtLeast(read.target))
		}
		after, err := l.status()
		if cold := after.Opens - before.Opens - (after.OpensReady - before.OpensReady); cold > 0 && len(rows) > 0 {
			rows[0] = rows[0].noted("%d of %d opens met a frame that was not ready", cold, after.Opens-before.Opens)
		}
		return err
	})
	return rows, err
}

// warm reads all frames of a directory until each open finds its frame ready.
func (b *bencher) warm(ctx context.Context, l live, dir string) error {
	const passes = 4
	var last int64
	for range passes {
		before, err := l.status()
		if err != nil {
			return err
		}
		if _, err := (readyRead{}).throughput(ctx, dir); err != nil {
			return err
		}
		after, err := l.status()
		if err != nil {
			return err
		}
		last = after.Opens - before.Opens - (after.OpensReady - before.OpensReady)
		if last == 0 {
			return nil
		}
	}
	return fmt.Errorf("%d frames are still not ready after %d passes", last, passes)
}

// readyPasses is how often the frames are read in a run: once is over too soon
// to be timed well.
const readyPasses = 3

// throughput reads the frames of a directory in order and returns bytes a
// second.
func (r readyRead) throughput(ctx context.Context, dir string) (float64, error) {
	if r.mapped {
		return mapFrames(ctx, dir)
	}
	report, err := bench.Play(ctx, bench.PlayConfig{
		Paths: []string{dir}, Block: r.block, Order: bench.Order{Loop: readyPasses}, Prebuffer: 1, Queue: 1,
	})
	switch {
	case err != nil:
		return 0, err
	case report.Interrupted:
		return 0, context.Cause(ctx)
	case report.FramesFailed > 0:
		return 0, fmt.Errorf("%d frames failed: %s", report.FramesFailed, report.Failures[0].Error)
	}
	return report.Throughput, nil
}

// mapFrames reads frames through mappings, as players that decode in place do.
// The bytes are copied, so that all of them are touched.
func mapFrames(ctx context.Context, dir string) (float64, error) {
	sequence, err := bench.OpenSequence(dir)
	if err != nil {
		return 0, err
	}
	buffer := make([]byte, sequence.MaxSize)
	clear(buffer)
	var bytes int
	began := time.Now()
	for range readyPasses {
		for _, frame := range sequence.Frames {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			n, err := copyMapped(buffer, frame.Path)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", frame.Path, err)
			}
			bytes += n
		}
	}
	return float64(bytes) / time.Since(began).Seconds(), nil
}

func copyMapped(buffer []byte, path string) (int, error) {
	fd, err := openFile(path)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return 0, err
	}
	mapping, err := unix.Mmap(fd, 0, int(stat.Size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("mmap: %w", err)
	}
	n := copy(buffer, mapping)
	return n, unix.Munmap(mapping)
}

// openFile is open(2), repeated when the signal with which the Go runtime
// preempts threads has interrupted it.
func openFile(path string) (fd int, err error) {
	for {
		if fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != unix.EINTR {
			return fd, err
		}
	}
}
