package test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// waitsFor starts an application that reads a file and returns when it has
// begun.
func waitsFor(t *testing.T, path string) (*exec.Cmd, *syncBuffer) {
	t.Helper()
	cmd, said := client(t, "read", path)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, "the reader has begun", func() bool { return strings.Contains(said.String(), "reading") })
	return cmd, said
}

// killFrees kills an application that waits and expects it to be gone long
// before the source would have answered.
func killFrees(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	time.Sleep(300 * time.Millisecond) // into the wait
	gone := make(chan error, 1)
	must(t, cmd.Process.Signal(syscall.SIGKILL))
	go func() { gone <- cmd.Wait() }()
	select {
	case <-gone:
		if state := cmd.ProcessState.Sys().(syscall.WaitStatus); !state.Signaled() {
			t.Error("the reader had ended before it was killed")
		}
	case <-time.After(patience / 2):
		t.Error("a killed reader hangs")
	}
}

// TestKillFreesReader kills applications that wait for a server which gives
// next to nothing: one in the middle of a frame on its way.
func TestKillFreesReader(t *testing.T) {
	t.Parallel()
	for _, passthrough := range []string{"auto", "off"} {
		t.Run("passthrough "+passthrough, func(t *testing.T) {
			backing := memory(t)
			// A frame takes two minutes.
			source, nas := slowNAS(t, backing, "--rtt", "1ms", "--bandwidth", "40MB/s", "--stream-bandwidth", "64KB/s")
			m := mountOver(t, source, "--cache-size", "64MiB", "--passthrough", passthrough)
			seq := makeSequence(t, backing, "show", 8, 100, 100, 100, 8<<20)
			seq.play(m, 0, 3)
			cmd, _ := waitsFor(t, m.at(seq.name(3)))
			before := m.status()
			if before.OpensInflight+before.OpensReady < 1 {
				t.Errorf("nothing is on its way: %+v", before)
			}
			killFrees(t, cmd)
			// The mount answers still.
			sameBytes(t, readFile(t, m.at(seq.name(0))), seq.frames[0], "a frame read before")
			nas.signal(syscall.SIGKILL) // ends what waits for it
		})
	}
}

// TestKillFreesReaderOfStalledServer kills an application that waits for a
// frame on its way from a server that has stopped answering.
func TestKillFreesReaderOfStalledServer(t *testing.T) {
	t.Parallel()
	backing := memory(t)
	source, nas := slowNAS(t, backing, "--rtt", "1ms", "--bandwidth", "40MB/s", "--stream-bandwidth", "1MB/s")
	m := mountOver(t, source, "--cache-size", "64MiB", "--validity", "60s")
	seq := makeSequence(t, backing, "show", 8, 100, 100, 100, 8<<20)
	seq.play(m, 0, 3)
	openFile(t, m.at(seq.name(3)), os.O_RDONLY) // it is on its way now
	nas.signal(syscall.SIGSTOP)
	cmd, _ := waitsFor(t, m.at(seq.name(3)))
	killFrees(t, cmd)
	m.status() // the mount answers still
	nas.signal(syscall.SIGKILL)
}

// TestTimerSignals plays in an application that is interrupted all the time:
// no read may fail or come short for it.
func TestTimerSignals(t *testing.T) {
	t.Parallel()
	for _, passthrough := range []string{"auto", "off"} {
		t.Run("passthrough "+passthrough, func(t *testing.T) {
			backing := memory(t)
			source, _ := slowNAS(t, backing, "--rtt", "10ms", "--bandwidth", "20MB/s", "--stream-bandwidth", "10MB/s")
			m := mountOver(t, source, "--cache-size", "64MiB", "--passthrough", passthrough)
			seq := makeSequence(t, backing, "show", 8, frameSize)
			cmd, said := client(t, "tick", m.at(seq.dir), seq.writeSums())
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %s", err, said)
			}
			if c := m.status(); c.OpensInflight == 0 {
				t.Errorf("no open met a frame on its way: %+v", c)
			}
			m.unmount()
		})
	}
}
