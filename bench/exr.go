package bench

import (
	"encoding/binary"
	"fmt"
	"math"
)

// OpenEXR files begin with attributes of name, type, size and value, and a table
// of the positions of the lines. The stamp follows, and at the end of the file
// the lines: a head, and the blue, green and red of all pixels as half floats.
const (
	exrMagic      = "\x76\x2f\x31\x01"
	exrVersion    = 2 // no flags: one part of scan lines
	exrPixelBytes = 6
	// exrWidthStep makes the bytes of a line a multiple of 8.
	exrWidthStep = 4
)

// exrLayout is that of a picture of about 16:9 that leaves less than a line of
// the file unused.
func exrLayout(size int64) (layout, error) {
	attributes := len(exrAttributes(0, 0))
	room := size - int64(attributes) - stampSize - 8
	pixels := float64(max(room, 0)) / exrPixelBytes
	width := max(int64(math.Sqrt(pixels*16/9))/exrWidthStep*exrWidthStep, exrWidthStep)
	lineBytes := width * exrPixelBytes
	stride := lineBytes + lineHeadSize
	height := room / (stride + 8) // 8: its entry in the table
	if height < 1 {
		return layout{}, fmt.Errorf("an OpenEXR of %d bytes holds no picture: use at least %d bytes", size, int64(attributes)+stampSize+8+stride+8)
	}
	header := exrAttributes(int(width), int(height))
	l := layout{stamp: int64(len(header)) + 8*height}
	behind := l.stamp + stampSize
	l.lines = lineHeads{
		first:  behind + (size-behind-height*stride)&^7,
		stride: stride, count: height, bytes: uint32(lineBytes),
	}
	for line := range height {
		header = binary.LittleEndian.AppendUint64(header, uint64(l.lines.first+line*stride))
	}
	l.header = header
	return l, nil
}

// exrAttributes is everything in front of the table of positions.
func exrAttributes(width, height int) []byte {
	u32 := binary.LittleEndian.AppendUint32
	header := u32([]byte(exrMagic), exrVersion)
	attribute := func(name, kind string, value []byte) {
		header = append(header, name+"\x00"+kind+"\x00"...)
		header = append(u32(header, uint32(len(value))), value...)
	}
	var channels []byte
	for _, name := range [...]string{"B", "G", "R"} {
		channels = append(channels, name+"\x00"...)
		channels = u32(channels, 1) // half
		channels = u32(channels, 0) // not perceptually linear
		channels = u32(u32(channels, 1), 1)
	}
	window := u32(u32(u32(u32(nil, 0), 0), uint32(width-1)), uint32(height-1))
	one := u32(nil, math.Float32bits(1))
	attribute("channels", "chlist", append(channels, 0))
	attribute("compression", "compression", []byte{0}) // none
	attribute("dataWindow", "box2i", window)
	attribute("displayWindow", "box2i", window)
	attribute("lineOrder", "lineOrder", []byte{0}) // top to bottom
	attribute("pixelAspectRatio", "float", one)
	attribute("screenWindowCenter", "v2f", make([]byte, 8))
	attribute("screenWindowWidth", "float", one)
	attribute("software", "string", []byte("reelahead bench"))
	return append(header, 0)
}
