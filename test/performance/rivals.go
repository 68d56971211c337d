package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reelahead/bench"
)

// rivals plays the same frames through what others offer for the same purpose:
// rclone's mount with its full cache and read-ahead over the same source, and
// Samba's vfs_preopen, which warms files in the server. A userspace client stands
// in for the kernel's, on each side alike.
func rivals(ctx context.Context, b *bencher) (rows []row, err error) {
	for command, name := range map[string]string{"rclone": "rclone", "smbd": "samba"} {
		if _, err := exec.LookPath(command); err != nil {
			return nil, fmt.Errorf("%s is missing: install the package %s: %w", command, name, err)
		}
	}
	film := bench.Rate{Num: 24, Den: 1}
	overModel := setting{
		name: "14-rclone", streams: 1, frames: b.scaled(240, 96), size: size2K, cache: 2 << 30,
		nas: serverOf(10*time.Millisecond, 1_200_000_000, 300_000_000),
	}
	overSamba := setting{
		name: "14-samba", streams: 1, frames: b.scaled(480, 192), size: 1_449_984, cache: 1 << 30,
		nas: serverOf(10*time.Millisecond, 1_200_000_000, 300_000_000),
	}
	// The model is the disk of the machine with smbd here: what preopen has warmed
	// stays in its page cache.
	overSamba.nas.KeepCache = true
	for _, c := range []struct {
		setting
		what   string
		rivals []rival
		base   rival // the source of reelahead's mount
	}{
		{overModel, "2K over the model", []rival{{"source itself", b.theModel}, {"rclone, full cache", b.rcloneOverModel}}, rival{"", b.theModel}},
		{overSamba, "SD over smbd over the model", []rival{{"SMB mount", b.smbMount("")}, {"SMB mount with preopen", b.smbMount(preopen)}}, rival{"", b.smbMount("")}},
	} {
		err := b.onStage(ctx, c.setting, func(stage *bench.Stage) error {
			for _, pace := range []bench.Rate{film, {}} {
				s := c.setting
				s.play.Rate = pace
				more, err := b.playRivals(ctx, stage, s, c.what, c.base, c.rivals)
				if err != nil {
					return err
				}
				rows = append(rows, more...)
			}
			return nil
		})
		if err != nil {
			return rows, fmt.Errorf("%s: %w", c.what, err)
		}
	}
	return rows, nil
}

// rival starts a mount on a cleared stage and returns where its frames are.
type rival struct {
	name  string
	start func(context.Context, *bench.Stage, setting) (dir string, err error)
}

// playRivals plays each rival and reelahead over base in turns and makes a row
// for each rival.
func (b *bencher) playRivals(ctx context.Context, stage *bench.Stage, s setting, what string, base rival, rivals []rival) (rows []row, err error) {
	over := rival{"reelahead", func(ctx context.Context, stage *bench.Stage, s setting) (string, error) {
		dir, err := base.start(ctx, stage, s)
		if err == nil {
			_, err = b.mountOver(ctx, stage, dir, s)
		}
		return stage.Ahead(), err
	}}
	var sides []func(context.Context) (*bench.Report, error)
	for _, r := range append([]rival{over}, rivals...) {
		sides = append(sides, func(ctx context.Context) (*bench.Report, error) {
			if err := stage.Clear(); err != nil {
				return nil, err
			}
			dir, err := r.start(ctx, stage, s)
			if err != nil {
				return nil, err
			}
			config := s.play
			config.Paths, config.Size, config.Prebuffer, config.Queue = stage.Streams(dir, s.streams), s.size, 5, 8
			report, err := bench.Play(ctx, config)
			if err == nil && report.Interrupted {
				err = context.Cause(ctx)
			}
			return report, err
		})
	}
	reports, err := alternate(ctx, b.rounds(3), sides...)
	if err != nil {
		return nil, err
	}
	rate := func(r *bench.Report) float64 { return r.Throughput }
	dropped := func(r *bench.Report) float64 { return float64(r.FramesDropped + r.FramesFailed) }
	for i, r := range rivals {
		if s.play.Rate == (bench.Rate{}) {
			rows = append(rows, newRow(what+", unpaced", r.name, bytesPerSecond, each(reports[i+1], rate), each(reports[0], rate)).ratioAtLeast(1))
			continue
		}
		row := newRow(what+", 24 fps", r.name, frames, each(reports[i+1], dropped), each(reports[0], dropped)).
			noted("of %d due", reports[0][0].FramesDue)
		rows = append(rows, row.judge("fewer, or none", row.Reelahead < row.Reference || row.Reelahead == 0))
	}
	return rows, nil
}

func (b *bencher) theModel(ctx context.Context, stage *bench.Stage, s setting) (string, error) {
	_, err := stage.StartModel(ctx, *s.nas)
	return stage.NAS(), err
}

// rcloneFlags are for reading ahead as far as rclone can: parts of a file, since
// it knows nothing of the next one. Its cache lies where the frames do.
var rcloneFlags = []string{
	"--config", os.DevNull, "--attr-timeout", "3s", "--dir-cache-time", "10m", "--contimeout", "2s",
	"--low-level-retries", "2", "--log-level", "ERROR",
}

func (b *bencher) rcloneOverModel(ctx context.Context, stage *bench.Stage, s setting) (string, error) {
	source, err := b.theModel(ctx, stage, s)
	if err != nil {
		return "", err
	}
	cache, err := stage.Dir("rclone-cache")
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(cache); err != nil {
		return "", err
	}
	return rcloneMount(ctx, stage, source, "--cache-dir", cache, "--vfs-cache-mode", "full",
		"--vfs-cache-max-size", strconv.FormatInt(s.cache, 10), "--vfs-read-ahead", "256M", "--buffer-size", "64M", "--vfs-read-chunk-size", "16M")
}

func rcloneMount(ctx context.Context, stage *bench.Stage, remote string, flags ...string) (string, error) {
	mount, err := stage.Dir("rclone")
	if err != nil {
		return "", err
	}
	command := append([]string{"rclone", "mount", remote, mount}, rcloneFlags...)
	_, err = stage.Start(ctx, "rclone mount", mount, append(command, flags...)...)
	return mount, err
}

// preopen makes vfs_preopen(8) do what it can: read whole frames, ten ahead, four
// at once. Its defaults are one byte and one helper.
const preopen = `  vfs objects = preopen
  preopen:names = /*.dpx/
  preopen:num_bytes = 1449984
  preopen:queuelen = 10
  preopen:helpers = 4
`

// smbMount serves the model with smbd on a port of its own and mounts the share.
func (b *bencher) smbMount(share string) func(context.Context, *bench.Stage, setting) (string, error) {
	return func(ctx context.Context, stage *bench.Stage, s setting) (string, error) {
		export, err := b.theModel(ctx, stage, s)
		if err != nil {
			return "", err
		}
		state, err := stage.Dir("samba")
		if err != nil {
			return "", err
		}
		port, err := freePort()
		if err != nil {
			return "", err
		}
		config := filepath.Join(state, "smb.conf")
		text := strings.NewReplacer("@PORT@", port, "@STATE@", state, "@EXPORT@", export, "@SHARE@", share).Replace(sambaConfig)
		if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
			return "", err
		}
		address := net.JoinHostPort("127.0.0.1", port)
		ready := func() (bool, error) { return answers(address), nil }
		// It leads a process group already and would fail to make another.
		if _, err := stage.StartDaemon(ctx, "smbd", ready, "smbd", "-s", config, "-F", "--no-process-group", "--debug-stdout"); err != nil {
			return "", err
		}
		remote := fmt.Sprintf(":smb,host=127.0.0.1,port=%s,user=guest:data", port)
		return rcloneMount(ctx, stage, remote, "--vfs-cache-mode", "off")
	}
}

const sambaConfig = `[global]
  server role = standalone server
  map to guest = Bad User
  guest account = root
  smb ports = @PORT@
  interfaces = lo
  bind interfaces only = yes
  disable netbios = yes
  server min protocol = SMB2_10
  pid directory = @STATE@
  lock directory = @STATE@
  state directory = @STATE@
  cache directory = @STATE@
  private dir = @STATE@
  ncalrpc dir = @STATE@
  log file = @STATE@/log
  load printers = no
  printcap name = /dev/null
  disable spoolss = yes
[data]
  path = @EXPORT@
  guest ok = yes
  guest only = yes
  read only = yes
@SHARE@`

// freePort finds a port that nobody listens on now.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}

func answers(address string) bool {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	return connection.Close() == nil
}
