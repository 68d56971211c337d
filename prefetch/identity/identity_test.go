package identity

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func own(t *testing.T) Identity {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may become somebody else")
	}
	own, err := Own()
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// TestFilesAreMadeAndRefusedAsOthers makes files as several users at once and
// opens what only one of them may.
func TestFilesAreMadeAndRefusedAsOthers(t *testing.T) {
	own := own(t)
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		_ = os.Chmod(d, 0o755)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	forGroup := filepath.Join(dir, "group")
	if err := os.WriteFile(forGroup, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(forGroup, 0, 7777); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	for n := range uint32(16) {
		done.Add(1)
		go func() {
			defer done.Done()
			who := Identity{UID: 1000 + n, GID: 2000 + n}
			if n%2 == 0 {
				who.Groups = []uint32{5, 7777}
			}
			path := filepath.Join(dir, who.Key())
			err := who.Do(own, func() error {
				fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY, 0o600)
				if err != nil {
					return err
				}
				unix.Close(fd)
				runtime.Gosched()
				fd, err = unix.Open(forGroup, unix.O_RDONLY, 0)
				if err == nil {
					unix.Close(fd)
				}
				if allowed := n%2 == 0; allowed != (err == nil) || !allowed && !errors.Is(err, unix.EACCES) {
					t.Errorf("user %d opens a group's file: %v", who.UID, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			var stat unix.Stat_t
			if err := unix.Stat(path, &stat); err != nil || stat.Uid != who.UID || stat.Gid != who.GID {
				t.Errorf("made as %d:%d, belongs to %d:%d, %v", who.UID, who.GID, stat.Uid, stat.Gid, err)
			}
			// What belongs to nobody else than root can be opened again.
			if _, err := os.ReadFile("/proc/self/environ"); err != nil {
				t.Errorf("the ids were not given back: %v", err)
			}
		}()
	}
	done.Wait()
}

func TestOfThread(t *testing.T) {
	own, err := Own()
	if err != nil {
		t.Fatal(err)
	}
	got := OfThread(own.UID, own.GID, uint32(unix.Gettid()))
	slices.Sort(own.Groups)
	slices.Sort(got.Groups)
	if got.Key() != own.Key() {
		t.Errorf("this thread is %q, want %q", got.Key(), own.Key())
	}
	if gone := OfThread(1, 2, 0); gone.Key() != "1:2" {
		t.Errorf("a thread that is not known is %q", gone.Key())
	}
}
