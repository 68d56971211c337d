package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user who owns nothing.
const nobody = 65534

// asNobody runs a shell command as another user.
func asNobody(command string, args ...string) (string, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", command, "sh"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// shared lets every user into a directory and makes one in it for all.
func shared(t *testing.T, in string) string {
	t.Helper()
	must(t, os.Chmod(in, 0o755))
	dir := filepath.Join(in, "show")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Chmod(dir, 0o777))
	return dir
}

// TestOtherUsers lets another user in, who may do what the files' modes say, on
// ready frames too.
func TestOtherUsers(t *testing.T) {
	t.Parallel()
	source := memory(t)
	dir := shared(t, source)
	seq := makeSequence(t, source, "show", siteFrames, frameSize)
	must(t, os.Chmod(seq.backing(4), 0o600))
	m := mountAt(t, source, memory(t), "--cache-size", "64MiB", "--allow-other")
	next := seq.leadTo(m)
	if said, err := asNobody(`cmp "$1" "$2"`, m.at(seq.name(next)), seq.backing(next)); err != nil {
		t.Errorf("reading a ready frame: %v, %q", err, said)
	}
	if said, err := asNobody(`cat "$1" >/dev/null`, m.at(seq.name(4))); err == nil || !strings.Contains(said, "ermission denied") {
		t.Errorf("reading what only its owner may read: %v, %q", err, said)
	}
	sameBytes(t, readFile(t, m.at(seq.name(4))), seq.frames[4], "its owner reads it")
	if said, err := asNobody(`echo x >>"$1"`, m.at(seq.name(5))); err == nil {
		t.Errorf("writing what only its owner may write: %q", said)
	}
	if said, err := asNobody(`umask 027; echo x >"$1/made"; mkdir "$1/dir"; ln -s x "$1/soft"`, m.at("show")); err != nil {
		t.Fatalf("making files: %v, %q", err, said)
	}
	for name, mode := range map[string]uint32{"made": unix.S_IFREG | 0o640, "dir": unix.S_IFDIR | 0o750, "soft": unix.S_IFLNK | 0o777} {
		var stat unix.Stat_t
		must(t, unix.Lstat(filepath.Join(dir, name), &stat))
		if stat.Uid != nobody || stat.Gid != nobody || stat.Mode != mode {
			t.Errorf("%s belongs to %d:%d with mode %o, want %d:%d and %o", name, stat.Uid, stat.Gid, stat.Mode, nobody, nobody, mode)
		}
	}
	m.unmount()
}

func TestOtherUsersStayOut(t *testing.T) {
	t.Parallel()
	source := memory(t)
	shared(t, source)
	writeFile(t, filepath.Join(source, "show", "file"), []byte("x"))
	m := mountAt(t, source, memory(t))
	if said, err := asNobody(`cat "$1"`, m.at("show/file")); err == nil || !strings.Contains(said, "ermission denied") {
		t.Errorf("another user reads a mount that is not for others: %v, %q", err, said)
	}
	m.unmount()
}
