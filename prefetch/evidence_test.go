package prefetch

import (
	"fmt"
	"testing"
	"time"

	"reelahead/naming"
)

// TestListingsAreBounded keeps more names than there is room for: the directory
// that was not used for longest goes, one that fits nowhere is not kept.
func TestListingsAreBounded(t *testing.T) {
	l := newListings()
	names := naming.NewListing([]string{"a.1", "a.2"})
	start := time.Now()
	for i := range 5 {
		entry := l.entry(fmt.Sprint(i))
		entry.used = start.Add(time.Duration(i) * time.Second)
		if i == 0 {
			entry.used = start.Add(time.Hour)
		}
		l.keep(entry, names, listingsBytes/4)
	}
	for i, want := range []bool{true, false, true, true, true} {
		if known := l.of[fmt.Sprint(i)].names != nil; known != want {
			t.Errorf("directory %d: known is %v", i, known)
		}
	}
	l.keep(l.entry("huge"), names, listingsBytes+1)
	if l.entry("huge").names != nil {
		t.Error("a listing larger than the memory for all is kept")
	}
	l.keep(l.entry("0"), names, 7)
	if want := int64(3*(listingsBytes/4) + 7); l.bytes != want {
		t.Errorf("%d bytes counted, want %d", l.bytes, want)
	}
	l.treeChanged()
	if l.bytes != 0 || l.of["0"].names != nil {
		t.Error("names are known of a tree that has changed")
	}
	l.tidy(start.Add(time.Hour))
	if len(l.of) != 0 {
		t.Errorf("%d records of directories nobody asks for", len(l.of))
	}
}

// TestListingFollowsTheDirectory reads a folder to which files are added.
func TestListingFollowsTheDirectory(t *testing.T) {
	r := newRig(t, Config{Validity: 0, BehindPercent: 50})
	names := r.frames("shot/f%04d.exr", 1, 6, 4*kib)
	r.play(1, names[:5]...)
	r.quiet()
	more := r.frames("shot/f%04d.exr", 7, 12, 4*kib)
	r.eventually("the new names are known", func() bool {
		r.open(1, names[5])
		r.mu.Lock()
		defer r.mu.Unlock()
		l := r.Listing("shot")
		return l != nil && l.Contains("f0012.exr")
	})
	r.becomesReady(more[0])
}
