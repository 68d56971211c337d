package prefetch

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"reelahead/cache"
)

// readLarge reads [offset, end) of a lease in pieces, as the mount does: what the
// lease does not give comes from the source, and is counted.
func (r *rig) readLarge(lease *Lease, data []byte, offset, end, piece int64) (fromSource int64) {
	r.t.Helper()
	for ; offset < end; offset += piece {
		stop := min(offset+piece, end)
		p, err := lease.Read(offset, stop-offset, nil)
		if err != nil {
			fromSource += stop - offset
			continue
		}
		if got := bytes.Join(p.Slices(), nil); !bytes.Equal(got, data[offset:stop]) {
			r.t.Fatalf("wrong bytes at %d", offset)
		}
		p.Release()
	}
	return fromSource
}

// remote makes the rig's engine believe that its source is a network client.
func (r *rig) remote() { r.source.remote = true }

func (r *rig) large(name string, generation int) []byte {
	data := content(name, generation, 41*mib+12345)
	r.write(name, data)
	r.rest()
	return data
}

func (r *rig) openLarge(name string) *Lease {
	r.t.Helper()
	lease, _ := r.Open(1, name, 41*mib, nil)
	if lease == nil {
		r.t.Fatal("a large file of a remote source is not watched")
	}
	return lease
}

func TestLargeFileIsReadAheadInBlocks(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 64 * mib, BehindPercent: 50})
	r.remote()
	data := r.large("shard.tar", 0)
	size := int64(len(data))
	for _, piece := range []int64{115 * 1000, mib, 3*mib + 7} {
		lease := r.openLarge("shard.tar")
		before := r.Counters().BytesSource
		if direct := r.readLarge(lease, data, 0, size, piece); direct > 4*piece {
			t.Errorf("in pieces of %d: %d bytes were left to the source", piece, direct)
		}
		p, err := lease.Read(size, 10, nil)
		if err != nil || p.Len() != 0 {
			t.Errorf("at the end: %d bytes, %v", p.Len(), err)
		}
		p.Release()
		r.quiet()
		r.Close(lease)
		if read := r.Counters().BytesSource - before; read > size+headSize { // its head again
			t.Errorf("in pieces of %d: %d bytes read of the source for %d", piece, read, size)
		}
	}
}

func TestRandomReadsOfLargeFileFetchNothing(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 64 * mib, BehindPercent: 50})
	r.remote()
	data := r.large("movie.mxf", 0)
	lease := r.openLarge("movie.mxf")
	defer r.Close(lease)
	for _, at := range []int64{30, 3, 21, 9, 38, 15, 27} {
		r.readLarge(lease, data, at*mib, at*mib+64*kib, 64*kib)
	}
	r.quiet()
	if read := r.Counters().BytesFetched; read > headSize {
		t.Errorf("%d bytes fetched for random reads", read)
	}
	// And in order from there, after a seek.
	if direct := r.readLarge(lease, data, 20*mib, 40*mib, mib); direct > 4*mib {
		t.Errorf("after a seek %d bytes were left to the source", direct)
	}
}

func TestReadersOfOneLargeFileShareItsBlocks(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 64 * mib, BehindPercent: 50})
	r.remote()
	data := r.large("movie.mxf", 0)
	a, b := r.openLarge("movie.mxf"), r.openLarge("movie.mxf")
	before := r.Counters().BytesFetched
	for at := int64(0); at < 40*mib; at += mib {
		r.readLarge(a, data, at, at+mib, mib)
		r.readLarge(b, data, at, at+mib, mib)
	}
	r.Close(a)
	r.Close(b)
	r.quiet()
	if read := r.Counters().BytesFetched - before; read > 50*mib {
		t.Errorf("%d bytes fetched for two readers of 40 MiB side by side", read)
	}
}

func TestLargeFileThatIsWrittenIsLeftToTheSource(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 64 * mib, BehindPercent: 50})
	r.remote()
	data := r.large("movie.mxf", 0)
	lease := r.openLarge("movie.mxf")
	defer r.Close(lease)
	r.readLarge(lease, data, 0, 10*mib, mib)
	attr := lease.Frame.Attr()
	r.Changed("movie.mxf", attr.Dev, attr.Ino)
	if _, err := lease.Read(10*mib, mib, nil); err == nil {
		t.Error("read ahead in a file that is being written")
	}
}

func TestHeadOfTheNextLargeFileIsReady(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 64 * mib, BehindPercent: 50})
	r.remote()
	var contents [][]byte
	names := []string{"shard-000.tar", "shard-001.tar", "shard-002.tar"}
	for _, name := range names {
		contents = append(contents, r.large(name, 0))
	}
	for i, name := range names {
		lease := r.openLarge(name)
		direct := r.readLarge(lease, contents[i], 0, int64(len(contents[i])), mib)
		if i == 2 && direct > 0 {
			t.Errorf("%d bytes of an expected shard were left to the source", direct)
		}
		if i == 2 && lease.Frame.End() != blockSize {
			t.Errorf("a head of %d bytes", lease.Frame.End())
		}
		r.quiet()
		r.Close(lease)
	}
}

func TestGivingUpInALargeFile(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 64 * mib, BehindPercent: 50, MaxBandwidth: 1e6})
	r.remote()
	data := r.large("movie.mxf", 0)
	lease := r.openLarge("movie.mxf")
	defer r.Close(lease)
	r.readLarge(lease, data, 0, 3*100, 100)
	giveUp := make(chan struct{})
	close(giveUp)
	lease.reader.note(2*mib, 2*mib)
	if _, err := lease.Read(2*mib, mib, giveUp); err != cache.ErrInterrupted {
		t.Errorf("a reader that gave up: %v", err)
	}
}

// TestFileThatNobodyExpected: of the first file of a sequence only the head is
// fetched for who looks no further, and what follows for who reads on.
func TestFileThatNobodyExpected(t *testing.T) {
	const size = 12*mib + 345
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 256 * mib, BehindPercent: 50})
	data := content("shot.0001.dpx", 0, size)
	r.write("shot.0001.dpx", data)
	r.rest()
	if lease, _ := r.Open(1, "shot.0001.dpx", size, nil); lease != nil {
		t.Fatal("fetched though a local disk does as well by itself")
	}
	r.remote()
	r.write("render.db", data)
	r.rest()
	if lease, _ := r.Open(1, "render.db", size, nil); lease != nil {
		t.Fatal("a file without a number is taken for a frame")
	}
	read := func(reader Reader, end, piece int64) (fetched int64) {
		before := r.Counters().BytesFetched
		lease, expected := r.Open(reader, "shot.0001.dpx", size, nil)
		if lease == nil || expected {
			t.Fatal("not watched, or expected")
		}
		if direct := r.readLarge(lease, data, 0, end, piece); direct > 0 {
			t.Errorf("in pieces of %d: %d bytes were left to the source", piece, direct)
		}
		r.quiet()
		r.Close(lease)
		return r.Counters().BytesFetched - before
	}
	if fetched := read(2, 4*kib, 4*kib); fetched > headSize {
		t.Errorf("%d bytes fetched for who reads a header", fetched)
	}
	for i, piece := range []int64{wholeRead, 700 * 1000, mib} {
		if fetched := read(Reader(3+i), size, piece); fetched > size+headSize {
			t.Errorf("in pieces of %d: %d bytes fetched for %d", piece, fetched, size)
		}
	}
}

func TestDescriptorsOfOneStateOfAFile(t *testing.T) {
	r := newRig(t, Config{Validity: time.Hour, CacheSize: 64 * mib})
	r.write("f.dpx", content("f.dpx", 0, mib))
	r.rest()
	attr, err := r.Stat("f.dpx")
	if err != nil {
		t.Fatal(err)
	}
	var d descriptors
	get := func(nth int64) int {
		t.Helper()
		fd, err := d.get(r.Engine, "f.dpx", attr, nth)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	if get(0) == get(1) || get(1) != get(1+maxDescriptors) {
		t.Error("descriptors are not taken in turn")
	}
	r.write("f.dpx", content("f.dpx", 1, mib))
	r.rest()
	if _, err := d.get(r.Engine, "f.dpx", attr, 2); !errors.Is(err, errChanged) {
		t.Errorf("of a file that was replaced: %v", err)
	}
	get(0) // of the state before still
	d.release(r.source)
	for i := range d {
		if d[i].fd != 0 {
			t.Errorf("descriptor %d is not closed", i)
		}
	}
}
