package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// defaultMount are the flags as they are when none is given.
func defaultMount() mountFlags {
	return mountFlags{ahead: "auto", behind: 50, maxInflight: "auto", validity: 3 * time.Second, passthrough: "auto", prefetch: "on", logLevel: "info", logFormat: "console"}
}

func TestMountOptionsOfMount8(t *testing.T) {
	cmd := newMountCommand()
	flags := mountFlags{options: []string{
		"rw,nosuid,_netdev,x-systemd.automount,cache-size=64M,allow_other,ahead=12",
		"validity=500ms,ro,nonempty,max_bandwidth=100MB/s,passthrough=off,log-level=debug,,fsname=nas,subtype=x",
	}}
	if err := flags.applyOptions(cmd); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cache-size": "64 MiB", "allow-other": "true", "ahead": "12", "validity": "500ms", "read-only": "true",
		"allow-non-empty": "true", "max-bandwidth": "100 MB/s", "passthrough": "off", "log-level": "debug", "prefetch": "on",
	} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestBadMountOptions(t *testing.T) {
	for option, words := range map[string]string{
		"frobnicate":       `"frobnicate"`,
		"frobnicate=1":     `"frobnicate=1"`,
		"options=ro":       `"options=ro"`,
		"cache-size":       "needs a value",
		"cache-size=":      "cache-size=",
		"cache-size=many":  "512MiB",
		"behind=half":      "behind",
		"read-only=often":  "read-only",
		"validity=forever": "validity",
	} {
		flags := mountFlags{options: []string{option}}
		err := flags.applyOptions(newMountCommand())
		wantUsage(t, option, err, words)
	}
}

// wantUsage expects an error with the exit status of a wrong command line.
func wantUsage(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	var exit *exitError
	if !errors.As(err, &exit) || exit.status != exitUsage {
		t.Errorf("%s: %v, want an error with status %d", what, err, exitUsage)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %q does not say %q", what, err, word)
		}
	}
}

func TestMountFlagsAgainstEachOther(t *testing.T) {
	for name, in := range map[string]struct {
		set   func(*mountFlags)
		words []string
	}{
		"cache larger than the memory": {func(m *mountFlags) { m.cacheSize = 1 << 60 }, []string{"--cache-size", "memory"}},
		"ahead is no number":           {func(m *mountFlags) { m.ahead = "far" }, []string{"--ahead", `"far"`}},
		"ahead of 0":                   {func(m *mountFlags) { m.ahead = "0" }, []string{"--ahead", "from 1"}},
		"ahead with a unit":            {func(m *mountFlags) { m.ahead = "4frames" }, []string{"--ahead"}},
		"reads at once":                {func(m *mountFlags) { m.maxInflight = "-3" }, []string{"--max-inflight"}},
		"behind":                       {func(m *mountFlags) { m.behind = 101 }, []string{"--behind", "101", "percentage"}},
		"validity":                     {func(m *mountFlags) { m.validity = -time.Second }, []string{"--validity", "negative"}},
		"passthrough":                  {func(m *mountFlags) { m.passthrough = "on" }, []string{"--passthrough", "auto, off"}},
		"prefetch":                     {func(m *mountFlags) { m.prefetch = "no" }, []string{"--prefetch", "on, off"}},
		"no prefetch, but ahead":       {func(m *mountFlags) { m.prefetch, m.ahead = "off", "8" }, []string{"--prefetch", "--ahead", "contradict"}},
	} {
		flags := defaultMount()
		in.set(&flags)
		_, err := flags.mountOptions("/source", "/mountpoint")
		wantUsage(t, name, err, in.words...)
	}
}

func TestMountFlagsReachTheMount(t *testing.T) {
	flags := defaultMount()
	flags.cacheSize, flags.ahead, flags.maxInflight, flags.maxBandwidth = 8<<20, "7", "9", 1000
	flags.readOnly, flags.allowOther, flags.passthrough = true, true, "off"
	options, err := flags.mountOptions("/source", "/mountpoint")
	if err != nil {
		t.Fatal(err)
	}
	engine := options.Engine
	if options.Source != "/source" || options.Mountpoint != "/mountpoint" || !options.ReadOnly || !options.AllowOther || options.Passthrough ||
		engine.CacheSize != 8<<20 || engine.Ahead != 7 || engine.MaxInflight != 9 || engine.MaxBandwidth != 1000 || engine.BehindPercent != 50 ||
		engine.Validity != 3*time.Second || engine.Disabled {
		t.Errorf("%+v", options)
	}
	flags = defaultMount()
	options, err = flags.mountOptions("/source", "/mountpoint")
	if err != nil {
		t.Fatal(err)
	}
	available, total, err := memory()
	if err != nil || available <= 0 || available > total {
		t.Fatalf("memory: %d of %d, %v", available, total, err)
	}
	if size := options.Engine.CacheSize; size <= 0 || size > total {
		t.Errorf("a cache of %d bytes by default, in %d", size, total)
	}
}

func TestMountHelperArguments(t *testing.T) {
	isCommand := func(name string) bool { return name == "mount" || name == "status" }
	for _, in := range []struct{ args, want string }{
		{"/usr/sbin/mount.fuse.reelahead /nas /show -o rw,cache-size=8G", "mount --daemon /nas /show -o rw,cache-size=8G"},
		{"mount.reelahead nas show", "mount --daemon nas show"},
		{"reelahead /nas /show -o rw", "mount --daemon /nas /show -o rw"},
		{"reelahead /nas /show -n -s -v -o rw", "mount --daemon /nas /show -o rw"},
		{"reelahead mount /nas /show", ""},
		{"reelahead status /show", ""},
		{"reelahead --help me", ""},
		{"reelahead mont /show", ""},
		{"reelahead /nas", ""},
	} {
		got := asMountHelper(strings.Fields(in.args), isCommand)
		if !slices.Equal(got, strings.Fields(in.want)) {
			t.Errorf("%q is understood as %q, want %q", in.args, got, in.want)
		}
	}
}
