package bench

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// mill makes the frames of a run ahead of their writing, so that making them
// takes no time from what is measured. They are made in order. When a recording
// drops some, the contents made for them go into the frames after them, which
// get their stamp and header only when they are taken.
type mill struct {
	config *WriteConfig
	number func(k int) int // of the frame written k-th
	frames int

	free  chan []byte   // buffers
	ready chan madeOne  // in order
	ended chan struct{} // closed when nothing touches the buffers any more
}

type madeOne struct {
	stamp stamp
	data  []byte
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
		number := m.number(k)
		made := madeOne{newStamp(m.config.Seed, number, m.config.Size), buffer[:m.config.Size]}
		fillFrame(made.data, m.layout(number), made.stamp)
		m.ready <- made // has room for all buffers
	}
}

// layout is that of a frame. Validate has made sure that there is one.
func (m *mill) layout(number int) layout {
	l, err := newLayout(m.config.format(), m.config.Size, number)
	if err != nil {
		panic(fmt.Sprintf("bench: no layout for frame %d: %v", number, err))
	}
	return l
}

// get returns frame k. It is called with rising k, by one thread at a time. The
// data is nil when ctx has ended.
func (m *mill) get(ctx context.Context, k int) []byte {
	select {
	case <-ctx.Done():
		return nil
	case made := <-m.ready:
		if number := m.number(k); made.stamp.number != uint64(number) {
			l := m.layout(number)
			made.stamp.number = uint64(number)
			copy(made.data, l.header)
			made.stamp.marshal(made.data[l.stamp:])
		}
		return made.data
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
