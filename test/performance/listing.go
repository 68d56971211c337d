package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"reelahead/bench"
)

// listings are what browsers and file choosers do with a folder: once cold, then
// again. The source's own names are believed for 3 s, as on an NFS mount;
// reelahead is mounted with a validity that the second listing falls into.
func listings(ctx context.Context, b *bencher) (rows []row, err error) {
	s := setting{
		streams: 1, frames: b.scaled(10_000, 1000), size: bench.MinFrameSize + 4096, cache: 1 << 30,
		nas:   serverOf(5*time.Millisecond, 1_200_000_000, 300_000_000),
		mount: []string{"--validity", "10m"},
	}
	err = b.onStage(ctx, s, func(stage *bench.Stage) error {
		for _, listing := range []struct{ name, command string }{
			{"ls -l", `ls -l "$0"`},
			{"find", `find "$0"`},
			{"stat", `stat -c %s "$0"/*`},
		} {
			s.name = "9-" + strings.ReplaceAll(listing.name, " ", "")
			side := func(ahead bool) func(context.Context) (listed, error) {
				return func(ctx context.Context) (listed, error) { return b.list(ctx, stage, s, listing.command, ahead) }
			}
			sides, err := alternate(ctx, b.rounds(1), side(false), side(true))
			if err != nil {
				return fmt.Errorf("%s: %w", listing.name, err)
			}
			cold := func(l listed) float64 { return l.cold.Seconds() }
			again := func(l listed) float64 { return l.again.Seconds() }
			rows = append(rows,
				newRow(listing.name+", cold", "source", seconds, each(sides[0], cold), each(sides[1], cold)).ratioAtMost(1.1),
				newRow(listing.name+", again", "source", seconds, each(sides[0], again), each(sides[1], again)).ratioAtMost(0.1))
		}
		return nil
	})
	return rows, err
}

// listed is how long a listing took.
type listed struct{ cold, again time.Duration }

// list runs a shell command on the directory, twice.
func (b *bencher) list(ctx context.Context, stage *bench.Stage, s setting, command string, ahead bool) (times listed, err error) {
	l, err := b.start(ctx, stage, s, ahead)
	if err != nil {
		return times, err
	}
	dir := stage.Streams(l.dir, 1)[0]
	defer b.startProfile(s.name, l)()
	for _, took := range []*time.Duration{&times.cold, &times.again} {
		began := time.Now()
		if err := exec.CommandContext(ctx, "sh", "-c", command, dir).Run(); err != nil {
			return times, err
		}
		*took = time.Since(began)
	}
	return times, nil
}
