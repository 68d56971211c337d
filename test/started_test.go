package test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// background makes sure that a mount whose process is not the test's child ends
// with the test.
func background(t *testing.T, path string) {
	t.Helper()
	t.Cleanup(func() {
		for isMounted(path) {
			t.Errorf("%s was still mounted", path)
			if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
				return
			}
		}
	})
}

// endBackground unmounts and waits until the process is gone.
func endBackground(t *testing.T, m *mount) {
	t.Helper()
	pid := m.status().PID
	if status, said := run(t, "unmount", m.path); status != 0 {
		t.Errorf("unmount: status %d, %q", status, said)
	}
	eventually(t, "the process in the background ends", func() bool {
		return errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	})
}

// TestDaemon starts in the background: the mount answers as soon as the command
// returns, and nothing holds the caller's pipes.
func TestDaemon(t *testing.T) {
	t.Parallel()
	source, path := memory(t), t.TempDir()
	seq := makeSequence(t, source, "show", 4, 1000)
	background(t, path)
	if status, said := run(t, "mount", source, path, "--daemon", "--cache-size", "64MiB"); status != 0 || said != "" {
		t.Fatalf("mount --daemon: status %d, %q", status, said)
	}
	m := &mount{&server{t: t, path: path}, source}
	seq.play(m, 0, 4)
	endBackground(t, m)
}

// TestMountOptions gives flags in the notations of mount(8) and fstab.
func TestMountOptions(t *testing.T) {
	t.Parallel()
	source := memory(t)
	m := mountOver(t, source, "-o", "cache-size=64M,allow_other,_netdev,x-systemd.automount,validity=0s,noatime", "-o", "ro")
	if got := m.status().CacheLimit; got != 64<<20 {
		t.Errorf("cache of %d bytes, want %d", got, 64<<20)
	}
	writeFile(t, filepath.Join(source, "file"), []byte("x"))
	sameBytes(t, readFile(t, m.at("file")), []byte("x"), "file")
	if err := os.WriteFile(m.at("file"), nil, 0o644); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing to a read-only mount: %v", err)
	}
	m.unmount()
}

// TestMountHelper mounts by mount(8), which finds the program by the type in
// the directories that it trusts. One of them is the program's own here, in a
// mount namespace of the test's.
func TestMountHelper(t *testing.T) {
	t.Parallel()
	const trusted = "/usr/local/sbin"
	for _, needed := range []string{"/usr/sbin/mount.fuse3", "/usr/bin/unshare", trusted} {
		if _, err := os.Stat(needed); err != nil {
			t.Skipf("needs mount.fuse3 and unshare (packages fuse3, util-linux): %v", err)
		}
	}
	source, path := memory(t), t.TempDir()
	seq := makeSequence(t, source, "show", 1, 1000)
	inNamespace := func(script string, args ...string) (string, error) {
		args = append([]string{"-m", "/bin/sh", "-ec", "mount --bind " + filepath.Dir(program) + " " + trusted + "\n" + script, "sh"}, args...)
		out, err := exec.Command("unshare", args...).CombinedOutput()
		return string(out), err
	}
	said, err := inNamespace(`
mount -t fuse.reelahead "$1" "$2" -o cache-size=64M,nodev
trap 'reelahead unmount --lazy "$2"' EXIT
grep " fuse.reelahead $1 " /proc/self/mountinfo >/dev/null
reelahead status "$2" --json >"$1/status"
cmp "$1/$3" "$2/$3"
`, source, path, seq.name(0))
	if err != nil {
		t.Fatalf("mount -t fuse.reelahead: %v, %q", err, said)
	}
	var c counters
	must(t, json.Unmarshal(readFile(t, filepath.Join(source, "status")), &c))
	if c.CacheLimit != 64<<20 || c.Source != source || c.Mountpoint != path {
		t.Errorf("status: %+v", c)
	}
	eventually(t, "the process in the background ends", func() bool { return errors.Is(unix.Kill(c.PID, 0), unix.ESRCH) })

	missing := filepath.Join(source, "missing")
	if said, err := inNamespace(`mount -t fuse.reelahead "$1" "$2"`, missing, path); err == nil || !strings.Contains(said, missing) {
		t.Errorf("mount of nothing: %v, %q", err, said)
	}
}

// TestOverItself mounts over the source: every path stays as it is.
func TestOverItself(t *testing.T) {
	t.Parallel()
	for _, passthrough := range []string{"auto", "off"} {
		t.Run("passthrough "+passthrough, func(t *testing.T) {
			source := memory(t)
			seq := makeSequence(t, source, "show", 8, frameSize)
			m := mountAt(t, source, source, "--cache-size", "64MiB", "--validity", "50ms", "--passthrough", passthrough)
			next := seq.leadTo(m)
			before := m.status()
			seq.play(m, next, next+1)
			if after := m.status(); after.OpensReady != before.OpensReady+1 {
				t.Errorf("the frame was not ready: %+v", after)
			}
			// What is written here is at the source when the mount is gone.
			changed := content("changed", 100_000)
			writeFile(t, m.at(seq.name(next)), changed)
			sameBytes(t, readFile(t, m.at(seq.name(next))), changed, "written over a ready frame")
			writeFile(t, m.at("show/new.txt"), []byte("new"))
			must(t, os.Mkdir(m.at("made"), 0o755))
			must(t, os.Rename(m.at("show/new.txt"), m.at("made/moved.txt")))
			must(t, os.Remove(m.at(seq.name(0))))
			time.Sleep(51 * time.Millisecond)
			m.unmount()

			sameBytes(t, readFile(t, seq.backing(next)), changed, "at the source")
			sameBytes(t, readFile(t, filepath.Join(source, "made/moved.txt")), []byte("new"), "moved")
			sameBytes(t, readFile(t, seq.backing(1)), seq.frames[1], "untouched")
			if _, err := os.Stat(seq.backing(0)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the removed frame: %v", err)
			}
		})
	}
}
