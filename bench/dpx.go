package bench

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DPX files (SMPTE 268M) begin with three headers of fixed layout. The picture
// follows at FrameHeader, or right behind the stamp in small files.
const (
	dpxMagic      = "SDPX"
	dpxHeaderSize = 2048
	dpxUndefined  = 0xffffffff
)

// picture is what a DPX holds: uncompressed RGB.
type picture struct {
	width, height int
	depth         int // bits a channel: 8, or 10 in 32-bit words
	offset        int // of the first pixel in the file, in bytes
}

// pictureFor finds the picture of a DPX of the given size: that of the profile
// with this size, else 10-bit RGB of about 16:9 that leaves less than two lines
// unused.
func pictureFor(size int64) (picture, error) {
	for _, profile := range Profiles {
		if profile.Size == size {
			return picture{profile.Width, profile.Height, profile.Depth, FrameHeader}, nil
		}
	}
	offset := int64(FrameHeader)
	if size < 1<<20 {
		offset = dpxHeaderSize + stampSize
	}
	pixels := (size - offset) / 4
	if pixels < 1 {
		return picture{}, fmt.Errorf("a DPX of %d bytes holds no picture: use at least %d bytes", size, dpxHeaderSize+stampSize+4)
	}
	width := int(max(math.Sqrt(float64(pixels)*16/9), 1))
	return picture{width, int(pixels) / width, 10, int(offset)}, nil
}

// dpxHeader returns the header of a DPX file of the given size and frame number.
func dpxHeader(p picture, size int64, number int) []byte {
	header := make([]byte, dpxHeaderSize)
	u32 := func(at int, value uint32) { binary.BigEndian.PutUint32(header[at:], value) }
	u16 := func(at int, value uint16) { binary.BigEndian.PutUint16(header[at:], value) }

	// File information.
	copy(header, dpxMagic)
	u32(4, uint32(p.offset))
	copy(header[8:], "V2.0")
	u32(16, uint32(size))
	u32(20, 1)         // ditto: same as the previous frame's header
	u32(24, 1664)      // length of the generic header
	u32(28, 384)       // length of the industry header
	u32(32, stampSize) // length of the user data: the stamp
	copy(header[160:], "reelahead bench")
	u32(660, dpxUndefined) // not encrypted

	// Image information: one element of RGB.
	u16(770, 1)
	u32(772, uint32(p.width))
	u32(776, uint32(p.height))
	u32(784, dpxUndefined)
	u32(788, dpxUndefined)
	u32(792, dpxUndefined)
	u32(796, dpxUndefined)
	header[800] = 50 // descriptor: R, G, B
	header[801] = 2  // transfer: linear
	header[802] = 2  // colorimetric: linear
	header[803] = byte(p.depth)
	if p.depth == 10 {
		u16(804, 1) // packing: three channels in a 32-bit word, filled (method A)
	}
	u32(808, uint32(p.offset))
	u32(812, dpxUndefined) // no padding at the end of lines
	u32(816, dpxUndefined) // nor of the image

	// Film information: the position in the sequence.
	u32(1712, uint32(number))
	return header
}
