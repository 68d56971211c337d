package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// faults is the file by which a model of a server is told what goes wrong.
type faults struct {
	t    *testing.T
	path string
}

// faultyNAS mounts a model of a server that can be told to fail.
func faultyNAS(t *testing.T, backing string, flags ...string) (source string, f *faults) {
	t.Helper()
	f = &faults{t, filepath.Join(t.TempDir(), "faults")}
	source, _ = slowNAS(t, backing, append([]string{"--rtt", "1ms", "--bandwidth", "400MB/s", "--stream-bandwidth", "200MB/s", "--faults", f.path}, flags...)...)
	t.Cleanup(f.none) // before the server is ended
	return source, f
}

// are replaces what goes wrong.
func (f *faults) are(lines ...string) {
	f.t.Helper()
	replaceFile(f.t, f.path, []byte(strings.Join(lines, "\n")+"\n"))
}

func (f *faults) none() { f.are() }

// resources are what a process holds.
type resources struct{ threads, descriptors int }

func (m *mount) resources() (r resources) {
	m.t.Helper()
	base := fmt.Sprintf("/proc/%d", m.cmd.Process.Pid)
	for what, count := range map[string]*int{"task": &r.threads, "fd": &r.descriptors} {
		entries, err := os.ReadDir(filepath.Join(base, what))
		must(m.t, err)
		*count = len(entries)
	}
	return r
}

// answers expects "reelahead status" to answer as long as the source doesn't.
func (m *mount) answers() {
	m.t.Helper()
	began := time.Now()
	code, said := run(m.t, "status", m.path, "--json")
	var c counters
	if err := json.Unmarshal([]byte(said), &c); code != 0 || err != nil {
		m.t.Errorf("status while the source is stalled: %d, %q", code, said)
	}
	if took := time.Since(began); took > patience/6 {
		m.t.Errorf("status took %s while the source was stalled", took)
	}
}

// TestKillFreesEveryCaller kills applications in every call that has to ask a
// source which has stopped answering. Once it answers again what they have left
// under way is finished, and nothing is left over.
func TestKillFreesEveryCaller(t *testing.T) {
	t.Parallel()
	for _, passthrough := range []string{"auto", "off"} {
		t.Run("passthrough "+passthrough, func(t *testing.T) {
			backing := memory(t)
			source, faults := faultyNAS(t, backing)
			m := mountOver(t, source, "--cache-size", "64MiB", "--validity", "0", "--passthrough", passthrough)
			for _, name := range []string{"stat", "open", "read", "write", "unlink", "rename", "chmod", "truncate", "link", "readxattr", "list/entry"} {
				path := filepath.Join(backing, "dir", name)
				must(t, os.MkdirAll(filepath.Dir(path), 0o755))
				writeFile(t, path, []byte("content"))
			}
			must(t, os.Symlink("target", filepath.Join(backing, "dir/readlink")))
			seq := makeSequence(t, backing, "show", siteFrames, frameSize)
			seq.play(m, 0, 3)
			readFile(t, m.at("dir/stat"))
			before := m.resources()

			for _, call := range calls {
				t.Run(call.name, func(t *testing.T) {
					cmd, said := client(t, "call", call.name, m.at("dir"))
					hold, err := cmd.StdinPipe()
					must(t, err)
					must(t, cmd.Start())
					t.Cleanup(func() { _ = cmd.Process.Kill() })
					eventually(t, "the application is prepared", func() bool { return strings.Contains(said.String(), "prepared") })
					faults.are("stall " + call.stalled + " *")
					_, err = hold.Write([]byte("go\n"))
					must(t, err)
					killFrees(t, cmd)
					m.answers()
					faults.none()
				})
			}
			// What they have begun is done by now or will be.
			for _, name := range []string{"create", "mkdir", "symlink", "mknod", "linked", "renamed"} {
				eventually(t, name+" is made, and seen", func() bool {
					_, err := os.Lstat(m.at("dir/" + name))
					return err == nil
				})
			}
			eventually(t, "unlink is gone, and seen to be", func() bool {
				_, err := os.Lstat(m.at("dir/unlink"))
				return errors.Is(err, unix.ENOENT)
			})
			seq.play(m, 3, siteFrames)
			eventually(t, fmt.Sprintf("nothing is left over: %+v before", before), func() bool {
				return m.resources().descriptors <= before.descriptors+seqDescriptors
			})
			m.unmount()
		})
	}
}

// seqDescriptors is how many more descriptors a mount may hold after playing a
// sequence: frames and directories.
const seqDescriptors = 24

// TestStalledCallersAreBounded lets more threads than the mount has room for wait
// for a stalled source, and kills them all.
func TestStalledCallersAreBounded(t *testing.T) {
	t.Parallel()
	backing := memory(t)
	source, faults := faultyNAS(t, backing)
	m := mountOver(t, source, "--cache-size", "64MiB", "--validity", "60s")
	seq := makeSequence(t, backing, "show", siteFrames, frameSize)
	next := seq.leadTo(m)
	faults.are("stall any *")
	const threads = 1500
	cmd, said := client(t, "crowd", m.path, fmt.Sprint(threads))
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, "all ask", func() bool { return strings.Contains(said.String(), "all ask") })
	time.Sleep(time.Second)
	m.answers()
	if got := m.resources().threads; got > 1000 {
		t.Errorf("%d callers hold %d threads of the mount", threads, got)
	}
	// What needs no answer of the source goes on.
	seq.play(m, next, next+1)
	killFrees(t, cmd)
	faults.none()
	seq.play(m, next, siteFrames)
	writeFile(t, m.at("after"), []byte("it works"))
	m.unmount()
}

// TestUnmountOfStalled ends mounts whose source does not answer.
func TestUnmountOfStalled(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"command", "signal"} {
		t.Run(how, func(t *testing.T) {
			backing := memory(t)
			source, faults := faultyNAS(t, backing)
			m := mountOver(t, source, "--cache-size", "64MiB", "--validity", "0")
			seq := makeSequence(t, backing, "show", siteFrames, frameSize)
			seq.play(m, 0, 3)
			faults.are("stall any *")
			gone := make(chan error, 1)
			if how == "signal" {
				cmd, _ := waitsFor(t, m.at(seq.name(7)))
				m.signal(syscall.SIGTERM)
				go func() { gone <- cmd.Wait() }()
			} else {
				began := time.Now()
				if code, said := run(t, "unmount", m.path); code != 0 {
					t.Errorf("unmount: %d, %q", code, said)
				}
				if took := time.Since(began); took > patience/6 {
					t.Errorf("unmount took %s", took)
				}
				gone <- nil
			}
			eventually(t, "the mount has ended", func() bool {
				return !isMounted(m.path) && strings.Contains(m.log.String(), `"message":"unmounted"`)
			})
			select {
			case <-gone:
			case <-time.After(patience):
				t.Error("its reader hangs")
			}
			// A FUSE source does not let go of a killed process's direct reads.
			faults.none()
			m.exit()
		})
	}
}
