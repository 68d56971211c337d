package main

import (
	"bytes"
	"strings"
	"testing"

	"reelahead/fusefs"
	"reelahead/prefetch"
)

func TestStatusTable(t *testing.T) {
	var out bytes.Buffer
	if err := printStatus(&out, fusefs.Status{
		Source: "/nas/show", Mountpoint: "/show", Passthrough: true,
		Opens: 10, OpensReady: 7, OpensInflight: 2, OpensCold: 1, OpensExpected: 8,
		BytesRead: 3 << 30, BytesSource: 5 << 20, BytesFetched: 4 << 20, BytesFetchedUnread: 1 << 20,
		CacheBytes: 1 << 30, CacheBytesPeak: 2 << 30, CacheLimit: 4 << 30, SourceErrors: 3,
		Streams: []prefetch.StreamStatus{
			{Dir: "reel1", Pattern: "shot.%04d.exr", Step: -2, Playhead: "shot.0100.exr", Rate: 24, Ahead: 5, Window: 12},
			{Pattern: "a.%d.dpx", Step: 1, Playhead: "a.9.dpx", Paused: true},
		},
	}); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"/nas/show", "by the kernel", "10: 7 ready, 2 in flight, 1 cold; 8 were expected", "3.0 GiB", "1.0 GiB of 4.0 GiB, at most 2.0 GiB", "3 errors",
		"reel1/shot.%04d.exr step -2 at shot.0100.exr, 24.0 files/s, 5 of 12 ahead", "a.%d.dpx step +1 at a.9.dpx, paused",
	} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("the table lacks %q:\n%s", words, &out)
		}
	}
	out.Reset()
	if err := printStatus(&out, fusefs.Status{}); err != nil || !strings.Contains(out.String(), "by the daemon") {
		t.Errorf("without passthrough: %v\n%s", err, &out)
	}
}

func TestStatusErrors(t *testing.T) {
	run := func(args ...string) (string, error) {
		cmd := newRootCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(args)
		err := cmd.Execute()
		return out.String(), err
	}
	other := t.TempDir()
	for _, path := range []string{other, other + "/missing"} {
		if _, err := run("status", path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "not a reelahead mount") {
			t.Errorf("status %s: %v", path, err)
		}
	}
	_, err := run("status", "a", "b")
	wantUsage(t, "status a b", err, "at most one")
	_, err = run("unmount")
	wantUsage(t, "unmount", err, "MOUNTPOINT")
	if _, err := run("unmount", other); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("unmount of another directory: %v", err)
	}
	if out, err := run("status", "--json"); err != nil || !strings.HasPrefix(out, "[") {
		t.Errorf("status --json lists %q, %v", out, err)
	}
}
