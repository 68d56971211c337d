package prefetch

import "reelahead/cache"

// Piece is bytes in frames' memory that one read is answered with. Release it
// when they are not used any more.
type Piece struct {
	slices [2][]byte
	frames [2]*cache.Frame
	count  int
}

func pieceOf(frame *cache.Frame, bytes []byte) (p Piece) {
	p.add(frame.Acquire(), bytes)
	return p
}

// add appends bytes of a frame, whose reference the piece takes over.
func (p *Piece) add(frame *cache.Frame, bytes []byte) {
	p.slices[p.count], p.frames[p.count] = bytes, frame
	p.count++
}

// Slices returns the bytes in order, in one or two parts.
func (p *Piece) Slices() [][]byte { return p.slices[:p.count] }

// Len returns how many bytes there are.
func (p *Piece) Len() int { return len(p.slices[0]) + len(p.slices[1]) }

// Release gives the memory back.
func (p *Piece) Release() {
	for _, frame := range p.frames[:p.count] {
		frame.Release()
	}
	p.count = 0
}
