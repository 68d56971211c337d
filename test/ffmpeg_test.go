package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFFmpeg decodes a DPX sequence from the source and through the mount: the
// pictures must be the same.
func TestFFmpeg(t *testing.T) {
	t.Parallel()
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("needs ffmpeg (package ffmpeg)")
	}
	const frames = "48"
	backing := memory(t)
	dir := filepath.Join(backing, "show")
	must(t, os.Mkdir(dir, 0o755))
	if status, said := run(t, "bench", "write", dir, "--name", "shot.%04d.dpx", "--frames", frames, "--size", "1MiB", "--seed", "1"); status != 0 {
		t.Fatalf("write frames: status %d, %q", status, said)
	}
	first, err := filepath.Glob(filepath.Join(dir, "shot.*.dpx"))
	must(t, err)
	if len(first) != 48 {
		t.Fatalf("%d frames were written", len(first))
	}
	number := filepath.Base(first[0])[len("shot.") : len("shot.")+4]
	hashes := func(dir string) string {
		out, err := exec.Command(ffmpeg, "-v", "error", "-start_number", number, "-i", filepath.Join(dir, "shot.%04d.dpx"), "-f", "framehash", "-").Output()
		if err != nil {
			t.Fatalf("ffmpeg from %s: %v", dir, err)
		}
		return string(out)
	}
	want := hashes(dir)
	if lines := splitLines([]byte(want)); len(lines) < 48 {
		t.Fatalf("ffmpeg found %d frames:\n%s", len(lines), want)
	}
	for _, passthrough := range []string{"auto", "off"} {
		source, _ := slowNAS(t, backing, "--rtt", "2ms", "--bandwidth", "100MB/s", "--stream-bandwidth", "20MB/s")
		m := mountOver(t, source, "--cache-size", "64MiB", "--passthrough", passthrough)
		if got := hashes(m.at("show")); got != want {
			t.Errorf("passthrough %s: ffmpeg sees other pictures:\n%s\nwant\n%s", passthrough, got, want)
		}
		c := m.status()
		t.Logf("passthrough %s: %d opens, %d ready, %d on their way, %d cold", passthrough, c.Opens, c.OpensReady, c.OpensInflight, c.OpensCold)
		if c.OpensReady+c.OpensInflight < c.Opens/2 {
			t.Errorf("passthrough %s: most opens were answered by the source: %+v", passthrough, c)
		}
		m.unmount()
	}
}
