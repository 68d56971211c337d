package prefetch

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reelahead/cache"
)

// changes are the ways in which a file becomes another one at the source.
var changes = map[string]func(r *rig, name string){
	"rewritten in place": func(r *rig, name string) {
		file, err := os.OpenFile(r.path(name), os.O_WRONLY, 0)
		r.must(err)
		_, err = file.WriteAt(content(name, 1, 1000), 0)
		r.must(err)
		r.must(file.Close())
	},
	"replaced, same size and mtime": func(r *rig, name string) {
		before, err := os.Stat(r.path(name))
		r.must(err)
		r.write("new", content(name, 1, int(before.Size())))
		r.must(os.Chtimes(r.path("new"), before.ModTime(), before.ModTime()))
		r.must(os.Rename(r.path("new"), r.path(name)))
	},
	"mtime set back": func(r *rig, name string) {
		before, err := os.Stat(r.path(name))
		r.must(err)
		r.write(name, content(name, 1, int(before.Size())))
		r.must(os.Chtimes(r.path(name), before.ModTime(), before.ModTime()))
	},
	"grown":     func(r *rig, name string) { r.write(name, content(name, 1, 200*kib)) },
	"truncated": func(r *rig, name string) { r.must(os.Truncate(r.path(name), 10)) },
	"emptied":   func(r *rig, name string) { r.must(os.Truncate(r.path(name), 0)) },
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestChangedFileIsNeverServedWithoutValidity(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Validity: 0, Ahead: 3, BehindPercent: 50})
			names := r.frames("f%04d.exr", 1, 8, 64*kib)
			r.play(1, names[:3]...)
			r.becomesReady(names[3])
			change(r, names[3])
			r.open(1, names[3]) // checks the content
			if r.stale(names[3]) {
				t.Error("the old content is in the cache still")
			}
			r.open(1, names[2]) // what did not change
		})
	}
}

// stale tells whether a frame is kept that is not what the source has.
func (r *rig) stale(name string) bool {
	frame := r.store.Lookup(name)
	if frame == nil {
		return false
	}
	defer frame.Release()
	attr, err := r.source.Stat(name)
	return frame.Ready() && (err != nil || !attr.SameContent(frame.Attr()))
}

func TestChangedFileIsNotServedAfterTheValidity(t *testing.T) {
	const validity = 100 * time.Millisecond
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Validity: validity, Ahead: 3, BehindPercent: 50})
			names := r.frames("f%04d.exr", 1, 8, 64*kib)
			r.play(1, names[:3]...)
			r.becomesReady(names[3])
			change(r, names[3])
			time.Sleep(validity + 10*time.Millisecond)
			r.open(1, names[3])
			r.eventually("the old content is dropped", func() bool { return !r.stale(names[3]) })
		})
	}
}

func TestWithinTheValidityNobodyIsAsked(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 3, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 8, 64*kib)
	r.play(1, names[:3]...)
	r.becomesReady(names[3])
	changes["rewritten in place"](r, names[3])
	if from, got := r.read(1, names[3]); from != fromCache || !bytes.Equal(got, content(names[3], 0, 64*kib)) {
		t.Errorf("from %s, %d bytes; want the frame as it was fetched", from, len(got))
	}
}

func TestRemovedFileIsNotServed(t *testing.T) {
	r := newRig(t, Config{Validity: 0, Ahead: 3, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 8, 64*kib)
	r.play(1, names[:3]...)
	r.becomesReady(names[3], names[4])
	r.must(os.Remove(r.path(names[3])))
	r.must(os.Rename(r.path(names[5]), r.path(names[4])))
	if from, got := r.read(1, names[3]); from != fromSource {
		t.Errorf("%d bytes from %s of a file that is gone", len(got), from)
	}
	r.open(1, names[4])
}

func TestFileThatChangesWhileItIsFetchedIsNotKept(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Validity: time.Hour, Ahead: 3, BehindPercent: 50})
			names := r.frames("f%04d.exr", 1, 8, 64*kib)
			gate := r.hold(names[2])
			r.play(1, names[:2]...)
			<-gate.arrived
			change(r, names[2]) // its attributes were taken, its bytes were not
			close(gate.release)
			r.quiet()
			if r.stale(names[2]) {
				t.Error("a mixture is in the cache")
			}
			r.open(1, names[2])
		})
	}
}

// Bytes that landed before an open may be older than a change that came before
// it.
func TestOpenOfAFrameOnItsWayIsChecked(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 1, MaxBandwidth: 4 * mib, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 3, 4*mib)
	r.open(1, names[0])
	r.eventually("its first chunk has landed", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		f := r.fetches[names[1]]
		return f != nil && f.landed > 0
	})
	changes["rewritten in place"](r, names[1])
	if r.ready(names[1]) {
		t.Skip("this machine is too busy to come before the end of a fetch")
	}
	lease, _ := r.Open(1, names[1], 0, nil)
	if lease == nil {
		return // seen to have changed
	}
	defer r.Close(lease)
	if lease.Checked == nil {
		t.Fatal("served without asking the source")
	}
	<-lease.Checked
	if data, err := lease.Frame.Read(0, 1000, nil); err == nil && bytes.Equal(data, content(names[1], 0, 4*mib)[:1000]) {
		t.Error("bytes from before the change")
	}
}

func TestChangeThroughTheMountDropsAtOnce(t *testing.T) {
	cases := map[string]func(r *rig, name string, attr cache.Attr){
		"by name":             func(r *rig, name string, _ cache.Attr) { r.Changed(name, 0, 0) },
		"under another name":  func(r *rig, _ string, attr cache.Attr) { r.Changed("link", attr.Dev, attr.Ino) },
		"its directory moves": func(r *rig, _ string, _ cache.Attr) { r.TreeChanged("d") },
	}
	for what, tell := range cases {
		for _, on := range []string{"ready", "being opened"} {
			t.Run(what+", "+on, func(t *testing.T) {
				r := newRig(t, Config{Validity: time.Hour, Ahead: 2, BehindPercent: 50})
				names := r.frames("d/f%04d.exr", 1, 6, 64*kib)
				attr, err := r.source.Stat(names[2])
				r.must(err)
				gate := r.hold(names[2])
				r.play(1, names[:2]...)
				<-gate.arrived
				if on == "ready" {
					close(gate.release)
					r.becomesReady(names[2])
				}
				changes["rewritten in place"](r, names[2])
				tell(r, names[2], attr)
				if on == "ready" {
					if r.stale(names[2]) {
						t.Error("in the cache still")
					}
				} else {
					close(gate.release)
				}
				if got, known := r.Known(names[2]); known && got.Ctime == attr.Ctime {
					if what != "under another name" { // of that one nothing is said
						t.Error("attributes from before the change")
					}
				}
				r.open(1, names[2])
				r.quiet()
				if r.stale(names[2]) {
					t.Error("the old content came into the cache")
				}
			})
		}
	}
}

func TestFilesBeingWrittenAreNotKept(t *testing.T) {
	for _, from := range []int{1, 2} { // Writing is asked at the open and at the end
		r := newRig(t, Config{Validity: time.Hour, Ahead: 4, BehindPercent: 50})
		names := r.frames("f%04d.exr", 1, 8, 64*kib)
		written := r.inode(names[2])
		asked := 0
		r.Writing = func(_, ino uint64) bool {
			if ino != written {
				return false
			}
			asked++
			return asked >= from
		}
		r.play(1, names[:2]...)
		r.becomesReady(names[3])
		r.quiet()
		if r.ready(names[2]) {
			t.Errorf("a file that is written since question %d is in the cache", from)
		}
		if asked < from {
			t.Errorf("asked %d times whether it is being written", asked)
		}
	}
}

func TestFreshFilesAreNotKept(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 2, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 2, 64*kib)
	r.write("f0003.exr", content("f0003.exr", 0, 64*kib))
	fresh, err := r.source.Stat("f0003.exr")
	r.must(err)
	if r.unfit(fresh) == nil {
		t.Error("a file that was written just now is fit to be fetched")
	}
	r.rest()
	if r.unfit(fresh) != nil {
		t.Error("a file at rest is not fit to be fetched")
	}
	r.play(1, append(names, "f0003.exr")...)
}

func TestUnfitFilesAreNotFetchedAndHoldNobodyUp(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, Ahead: 10, CacheSize: 16 * mib, BehindPercent: 50})
	names := r.frames("f%04d.exr", 1, 9, 64*kib)
	unfit := map[string]func(path string) error{
		"f0003.exr": func(path string) error { return unix.Mkfifo(path, 0o666) },
		"f0004.exr": func(path string) error { return os.WriteFile(path, nil, 0o666) },
		"f0005.exr": func(path string) error { return os.WriteFile(path, make([]byte, 8*mib+1), 0o666) },
		"f0006.exr": func(path string) error { return os.Symlink("f0001.exr", path) },
		"f0007.exr": func(path string) error { return os.Mkdir(path, 0o777) },
		"f0008.exr": func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o666, 0) },
	}
	for name, put := range unfit {
		r.must(os.Remove(r.path(name)))
		r.must(put(r.path(name)))
	}
	r.rest()
	r.play(1, names[:2]...)
	r.becomesReady("f0009.exr")
	r.quiet()
	if got := r.readyNames(names); !slices.Equal(got, []string{"f0002.exr", "f0009.exr"}) {
		t.Errorf("in the cache: %q, want the two regular files", got)
	}
	for name := range unfit {
		if lease, _ := r.Open(1, name, 0, nil); lease != nil {
			t.Errorf("%s is served from the cache", name)
			r.Close(lease)
		}
	}
	if used, _ := r.ledger.Used(); used-r.arena.FreeBytes() != 2*64*kib {
		t.Errorf("%d bytes in use for two frames of 64 KiB", used-r.arena.FreeBytes())
	}
}
