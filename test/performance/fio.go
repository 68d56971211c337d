package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reelahead/bench"
)

// fioAgainstSource reads and writes what reelahead can't help: it must not hurt.
func fioAgainstSource(ctx context.Context, b *bencher) (rows []row, err error) {
	if _, err := exec.LookPath("fio"); err != nil {
		return nil, fmt.Errorf("fio is missing: install the package fio: %w", err)
	}
	s := setting{streams: 1, frames: 1, size: int64(b.scaled(4<<30, 1<<30)), cache: 1 << 30}
	for _, source := range []struct {
		what, parent string
		model        bool
	}{
		{"local disk", os.TempDir(), false},
		{"model, 2 ms", "", true},
	} {
		s.parent, s.nas = source.parent, nil
		if source.model {
			s.nas = serverOf(2*time.Millisecond, unlimited, unlimited)
		}
		err := b.onStage(ctx, s, func(stage *bench.Stage) error {
			for _, job := range b.fioJobs() {
				s.name = strings.ReplaceAll("8-"+source.what+"-"+job.what, " ", "-")
				side := func(ahead bool) func(context.Context) (float64, error) {
					return func(ctx context.Context) (float64, error) { return b.fio(ctx, stage, s, job, ahead) }
				}
				sides, err := alternate(ctx, b.rounds(3), side(false), side(true))
				if err != nil {
					return fmt.Errorf("%s: %w", job.what, err)
				}
				rows = append(rows, newRow(source.what+", "+job.what, "source", bytesPerSecond, sides[0], sides[1]).ratioAtLeast(0.95))
			}
			return nil
		})
		if err != nil {
			return rows, fmt.Errorf("%s: %w", source.what, err)
		}
	}
	return rows, nil
}

// fioJob is one job of fio(1).
type fioJob struct {
	what   string
	writes bool
	flags  []string
}

func (b *bencher) fioJobs() []fioJob {
	// Each job reads a quarter of the file, no byte twice: it would be warm.
	random := []string{"--rw=randread", "--numjobs=4", "--size=25%", "--offset_increment=25%", "--group_reporting", fmt.Sprintf("--runtime=%d", b.scaled(10, 3))}
	return []fioJob{
		{"random 4 KiB", false, append(slices.Clone(random), "--bs=4k")},
		{"random 1 MiB", false, append(slices.Clone(random), "--bs=1m")},
		{"sequential write", true, []string{"--rw=write", "--bs=1m", "--end_fsync=1", fmt.Sprintf("--size=%dM", b.scaled(2048, 512))}},
	}
}

// fio runs a job cold and returns bytes a second.
func (b *bencher) fio(ctx context.Context, stage *bench.Stage, s setting, job fioJob, ahead bool) (rate float64, err error) {
	l, err := b.start(ctx, stage, s, ahead)
	if err != nil {
		return 0, err
	}
	dir := stage.Streams(l.dir, 1)[0]
	path := filepath.Join(dir, "written")
	if job.writes {
		defer func() { err = errors.Join(err, os.Remove(path)) }()
	} else {
		sequence, err := bench.OpenSequence(dir)
		if err != nil {
			return 0, err
		}
		path = sequence.Frames[0].Path
	}
	flags := append([]string{"--name=job", "--filename=" + path, "--ioengine=psync", "--output-format=json"}, job.flags...)
	defer b.startProfile(s.name, l)()
	command := exec.CommandContext(ctx, "fio", flags...)
	command.Dir = os.TempDir()
	out, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("fio: %w\n%s", err, out)
	}
	var report struct {
		Jobs []struct {
			Read, Write struct {
				Rate float64 `json:"bw_bytes"`
			}
		}
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Jobs) != 1 {
		return 0, fmt.Errorf("fio's report is not understood (%v)", err)
	}
	return report.Jobs[0].Read.Rate + report.Jobs[0].Write.Rate, nil
}
