package cache

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

var errBroken = errors.New("the source broke")

func newFrame(t *testing.T, arena *Arena, path string, size int64) *Frame {
	t.Helper()
	frame, err := NewFrame(arena, path, Attr{Size: size, Dev: 1, Ino: 1})
	if err != nil {
		t.Fatalf("frame %s of %d bytes: %v", path, size, err)
	}
	return frame
}

// readyFrame makes a frame whose bytes tell where they belong.
func readyFrame(t *testing.T, arena *Arena, path string, size int64) *Frame {
	t.Helper()
	frame := newFrame(t, arena, path, size)
	for i := range frame.Chunks() {
		land(frame, i)
	}
	frame.Publish(time.Now())
	return frame
}

func land(frame *Frame, chunk int) {
	_, into := frame.Chunk(chunk)
	for i := range into {
		into[i] = byte('a' + chunk)
	}
	frame.Land(chunk)
}

func TestChunksCoverTheFrame(t *testing.T) {
	arena, _ := newArena(t, 64<<20)
	for _, size := range []int64{1, ChunkSize - 1, ChunkSize, ChunkSize + 1, 3*ChunkSize + 5} {
		frame := newFrame(t, arena, "f", size)
		next := int64(0)
		for i := range frame.Chunks() {
			offset, into := frame.Chunk(i)
			if offset != next || len(into) == 0 {
				t.Errorf("size %d: chunk %d of %d bytes at %d, want it at %d", size, i, len(into), offset, next)
			}
			next += int64(len(into))
		}
		if next != size {
			t.Errorf("size %d: chunks cover %d bytes", size, next)
		}
		frame.Release()
	}
}

func TestReadReturnsTheWholeRange(t *testing.T) {
	arena, _ := newArena(t, 16<<20)
	const size = 2*ChunkSize + 1000
	frame := readyFrame(t, arena, "f", size)
	defer frame.Release()
	content := expected(frame)
	cases := []struct{ offset, length, want int64 }{
		{0, size, size},
		{0, 1, 1},
		{ChunkSize - 10, 20, 20},
		{ChunkSize / 2, 2 * ChunkSize, 3*ChunkSize/2 + 1000}, // short only at the end
		{size - 1, 4096, 1},
		{size, 4096, 0},
		{size + 10, 4096, 0},
		{-1, 10, 0},
		{5, 0, 0},
	}
	for _, c := range cases {
		got, err := frame.Read(c.offset, c.length, nil)
		if err != nil || int64(len(got)) != c.want {
			t.Errorf("read %d at %d: %d bytes, %v; want %d", c.length, c.offset, len(got), err, c.want)
		} else if c.want > 0 && !bytes.Equal(got, content[c.offset:c.offset+c.want]) {
			t.Errorf("read %d at %d: other bytes", c.length, c.offset)
		}
	}
}

// expected is what land leaves in a whole frame.
func expected(frame *Frame) []byte {
	var content []byte
	for i := range frame.Chunks() {
		content = append(content, bytes.Repeat([]byte{byte('a' + i)}, ChunkSize)...)
	}
	return content[:frame.Size()]
}

// reading is what a read in the background came to.
type reading struct {
	data []byte
	err  error
}

func readInBackground(frame *Frame, offset, length int64, giveUp <-chan struct{}) <-chan reading {
	result := make(chan reading, 1)
	go func() {
		data, err := frame.Read(offset, length, giveUp)
		result <- reading{data, err}
	}()
	return result
}

func TestReadWaitsForItsChunks(t *testing.T) {
	arena, _ := newArena(t, 16<<20)
	frame := newFrame(t, arena, "f", 4*ChunkSize)
	defer frame.Release()
	if frame.Wanted() != -1 {
		t.Errorf("wanted %d before anybody reads, want -1", frame.Wanted())
	}
	land(frame, 1)
	result := readInBackground(frame, ChunkSize, 2*ChunkSize, nil) // chunks 1 and 2
	eventually(t, "chunk 2 is wanted", func() bool { return frame.Wanted() == 2 })
	land(frame, 3)
	eventually(t, "chunk 2 is wanted still", func() bool { return frame.Wanted() == 2 })
	select {
	case early := <-result:
		t.Fatalf("%d bytes, %v before all had landed", len(early.data), early.err)
	default:
	}
	land(frame, 2)
	if got := <-result; got.err != nil || !bytes.Equal(got.data, append(bytes.Repeat([]byte("b"), ChunkSize), bytes.Repeat([]byte("c"), ChunkSize)...)) {
		t.Errorf("%d bytes, %v; want chunks 1 and 2", len(got.data), got.err)
	}
	if frame.Ready() {
		t.Error("ready with a chunk missing")
	}
}

func TestWantedIsTheLowestChunkWaitedFor(t *testing.T) {
	arena, _ := newArena(t, 16<<20)
	frame := newFrame(t, arena, "f", 8*ChunkSize)
	defer frame.Release()
	late := readInBackground(frame, 6*ChunkSize, 1, nil)
	eventually(t, "chunk 6 is wanted", func() bool { return frame.Wanted() == 6 })
	early := readInBackground(frame, 2*ChunkSize, 1, nil)
	eventually(t, "chunk 2 is wanted", func() bool { return frame.Wanted() == 2 })
	land(frame, 2)
	<-early
	eventually(t, "chunk 6 is wanted again", func() bool { return frame.Wanted() == 6 })
	land(frame, 6)
	<-late
	if frame.Wanted() != -1 {
		t.Errorf("wanted %d with nobody waiting, want -1", frame.Wanted())
	}
}

func TestFailureBeatsLandedBytes(t *testing.T) {
	arena, _ := newArena(t, 16<<20)
	frame := newFrame(t, arena, "f", 2*ChunkSize)
	defer frame.Release()
	land(frame, 0)
	waiting := readInBackground(frame, ChunkSize, 10, nil)
	eventually(t, "chunk 1 is wanted", func() bool { return frame.Wanted() == 1 })
	frame.Fail(errBroken)
	frame.Fail(errors.New("another failure"))
	if got := <-waiting; !errors.Is(got.err, errBroken) || got.data != nil {
		t.Errorf("a reader that waits: %d bytes, %v; want %v", len(got.data), got.err, errBroken)
	}
	if data, err := frame.Read(0, 10, nil); !errors.Is(err, errBroken) || data != nil {
		t.Errorf("bytes that had landed: %d bytes, %v; want %v", len(data), err, errBroken)
	}
	if !errors.Is(frame.Failure(), errBroken) {
		t.Errorf("failure %v, want the first", frame.Failure())
	}
}

func TestReadyFrameCannotFail(t *testing.T) {
	arena, _ := newArena(t, 16<<20)
	frame := readyFrame(t, arena, "f", 10)
	defer frame.Release()
	frame.Fail(errBroken)
	if data, err := frame.Read(0, 10, nil); err != nil || len(data) != 10 {
		t.Errorf("%d bytes, %v; want all: readers hold it", len(data), err)
	}
}

func TestReaderGivesUp(t *testing.T) {
	arena, _ := newArena(t, 16<<20)
	frame := newFrame(t, arena, "f", 2*ChunkSize)
	defer frame.Release()
	giveUp := make(chan struct{})
	impatient, patient := readInBackground(frame, 0, 10, giveUp), readInBackground(frame, 0, 10, nil)
	eventually(t, "both wait", func() bool {
		frame.mu.Lock()
		defer frame.mu.Unlock()
		return frame.waiting == 2
	})
	close(giveUp)
	if got := <-impatient; !errors.Is(got.err, ErrInterrupted) || got.data != nil {
		t.Errorf("%d bytes, %v; want ErrInterrupted", len(got.data), got.err)
	}
	land(frame, 0)
	if got := <-patient; got.err != nil || len(got.data) != 10 {
		t.Errorf("the other reader: %d bytes, %v", len(got.data), got.err)
	}
}

func TestConfirmMovesForwardOnly(t *testing.T) {
	arena, _ := newArena(t, 1<<20)
	frame := readyFrame(t, arena, "f", 10)
	defer frame.Release()
	known := frame.Attr().Known
	frame.Confirm(known.Add(-time.Second))
	if got := frame.Attr().Known; !got.Equal(known) {
		t.Errorf("an older word moved it to %v, from %v", got, known)
	}
	frame.Confirm(known.Add(time.Second))
	if got := frame.Attr().Known; !got.Equal(known.Add(time.Second)) {
		t.Errorf("a newer word moved it to %v, from %v", got, known)
	}
}

func TestFrameMisusePanics(t *testing.T) {
	arena, _ := newArena(t, 16<<20)
	gone := readyFrame(t, arena, "gone", 10)
	gone.Release()
	mustPanic(t, "release after the last", gone.Release)

	gone = readyFrame(t, arena, "gone", 10)
	gone.Release()
	mustPanic(t, "acquire after the last release", func() { gone.Acquire() })

	partial := newFrame(t, arena, "partial", 2*ChunkSize)
	defer partial.Release()
	land(partial, 0)
	mustPanic(t, "a chunk lands twice", func() { partial.Land(0) })
	mustPanic(t, "lend an incomplete frame", func() { partial.Lend() })
	mustPanic(t, "publish an incomplete frame", func() { partial.Publish(time.Now()) })
	partial.Fail(errBroken)
	partial.Land(1)
	mustPanic(t, "publish a failed frame", func() { partial.Publish(time.Now()) })
}

func TestTryAcquireOfAFrameThatIsGone(t *testing.T) {
	arena, _ := newArena(t, 1<<20)
	frame := readyFrame(t, arena, "f", 10)
	if !frame.tryAcquire() {
		t.Error("a live frame refused a reference")
	}
	frame.Release()
	frame.Release()
	if frame.tryAcquire() {
		t.Error("a frame that is gone gave a reference")
	}
	if free := arena.FreeBytes(); free != page {
		t.Errorf("%d bytes free after the last release, want %d", free, page)
	}
}

func TestMarkOpenedTellsTheFirst(t *testing.T) {
	arena, _ := newArena(t, 1<<20)
	frame := readyFrame(t, arena, "f", 10)
	defer frame.Release()
	if frame.Opened() || !frame.MarkOpened() || frame.MarkOpened() || !frame.Opened() {
		t.Error("want true for the first open, false for the next")
	}
}

func TestReadersWhileChunksLand(t *testing.T) {
	arena, _ := newArena(t, 64<<20)
	const chunks = 24
	frame := newFrame(t, arena, "f", chunks*ChunkSize-7)
	defer frame.Release()
	content := expected(frame)
	var workers sync.WaitGroup
	for seed := range uint64(6) {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 3))
			for range 40 {
				offset := random.Int64N(frame.Size())
				length := 1 + random.Int64N(ChunkSize)
				want := content[offset:min(offset+length, frame.Size())]
				got, err := frame.Read(offset, length, nil)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("read %d at %d: %d bytes, %v", length, offset, len(got), err)
				}
			}
		})
	}
	for _, chunk := range rand.New(rand.NewPCG(9, 9)).Perm(chunks) {
		workers.Go(func() { land(frame, chunk) })
	}
	workers.Wait()
	frame.Publish(time.Now())
	if !frame.Ready() {
		t.Error("not ready")
	}
}
