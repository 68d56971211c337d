package bench

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// mill makes the frames of a run ahead of their writing, so that making them
// takes no time from what is measured. Frames come in the order of k; those that
// are not wanted any more are left out.
type mill struct {
	config *WriteConfig
	number func(k int) int // of the frame written k-th
	frames int

	wanted atomic.Int64  // no frame before this k will be asked for
	free   chan []byte   // buffers
	ready  chan madeOne  // in order of k
	ended  chan struct{} // closed when nothing touches the buffers any more
}

type madeOne struct {
	k    int
	data []byte
}

// spareFrames are made while all threads write.
const spareFrames = 2

// newMill starts making frames. Closed it must be when ctx has ended or all
// frames have been got.
func newMill(ctx context.Context, config *WriteConfig, frames int, number func(k int) int) (*mill, error) {
	buffers := config.threads() + spareFrames
	m := &mill{
		config: config, number: number, frames: frames,
		free: make(chan []byte, buffers), ready: make(chan madeOne, buffers), ended: make(chan struct{}),
	}
	for range min(buffers, frames) {
		// Mapped memory is aligned for O_DIRECT.
		buffer, err := unix.Mmap(-1, 0, int(alignUp(config.Size)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			m.unmap()
			return nil, fmt.Errorf("get a buffer of %d bytes: %w", config.Size, err)
		}
		m.free <- buffer
	}
	go m.run(ctx)
	return m, nil
}

func (m *mill) run(ctx context.Context) {
	defer close(m.ended)
	for k := 0; k < m.frames; k++ {
		var buffer []byte
		select {
		case <-ctx.Done():
			return
		case buffer = <-m.free:
		}
		if k = max(k, int(m.wanted.Load())); k >= m.frames {
			m.free <- buffer
			return
		}
		number := m.number(k)
		data := buffer[:m.config.Size]
		// Validate has made sure that there is a layout.
		l, err := newLayout(m.config.format(), m.config.Size, number)
		if err != nil {
			panic(fmt.Sprintf("bench: no layout for frame %d: %v", number, err))
		}
		fillFrame(data, l, stamp{m.config.Seed, uint64(number), uint64(m.config.Size)})
		m.ready <- madeOne{k, data} // has room for all buffers
	}
}

// get returns frame k. It is called with rising k, by one thread at a time. The
// data is nil when ctx has ended.
func (m *mill) get(ctx context.Context, k int) []byte {
	m.wanted.Store(int64(k))
	for {
		select {
		case <-ctx.Done():
			return nil
		case made := <-m.ready:
			if made.k == k {
				return made.data
			}
			m.put(made.data)
		}
	}
}

// put takes a frame back that has been written.
func (m *mill) put(data []byte) { m.free <- data[:cap(data)] }

// close gives the buffers back. All frames must have been put back.
func (m *mill) close() {
	<-m.ended
	close(m.ready)
	for made := range m.ready {
		m.put(made.data)
	}
	m.unmap()
}

func (m *mill) unmap() {
	close(m.free)
	for buffer := range m.free {
		_ = unix.Munmap(buffer)
	}
}
