package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// A frame consists of an optional header that makes it a picture (DPX), a stamp
// that says which frame it is, and content computed from the stamp: unique for
// each frame and each position, so that neither compression nor deduplication
// flatters a storage, and checkable byte by byte without a copy.

const (
	stampMagic = "reelahead bench frame 1\x00"
	stampSize  = 64
	// MinFrameSize is the smallest frame that Write makes, in bytes.
	MinFrameSize = stampSize
)

// Errors of Verify; wrapped with what was expected and found.
var (
	ErrNoStamp  = errors.New("no stamp of bench write")
	ErrStamp    = errors.New("stamp of another frame")
	ErrContents = errors.New("contents differ")
)

// stamp identifies a frame. It is stored little-endian after stampMagic.
type stamp struct {
	seed   uint64 // of the sequence
	number uint64 // of the frame
	size   uint64 // of the file in bytes
}

func (s stamp) marshal(dst []byte) {
	clear(dst[:stampSize])
	copy(dst, stampMagic)
	for i, field := range [...]uint64{s.seed, s.number, s.size} {
		binary.LittleEndian.PutUint64(dst[len(stampMagic)+8*i:], field)
	}
}

func unmarshalStamp(src []byte) (stamp, bool) {
	if len(src) < stampSize || !bytes.HasPrefix(src, []byte(stampMagic)) {
		return stamp{}, false
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(src[len(stampMagic)+8*i:]) }
	return stamp{seed: field(0), number: field(1), size: field(2)}, true
}

// key is where the content of the frame starts in the sequence of splitmix64.
func (s stamp) key() uint64 { return mix(s.seed ^ mix(s.number)) }

// goldenGamma and mix are splitmix64 (Steele, Lea, Flood 2014), which makes
// several GB/s and can start anywhere.
const goldenGamma = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fillContent writes the content for key from its beginning to dst.
func fillContent(dst []byte, key uint64) {
	for len(dst) >= 8 {
		key += goldenGamma
		binary.LittleEndian.PutUint64(dst, mix(key))
		dst = dst[8:]
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], mix(key+goldenGamma))
	copy(dst, last[:])
}

// contentDiffers returns the position of the first byte of src that is not the
// content for key, or -1.
func contentDiffers(src []byte, key uint64) int {
	whole := len(src) &^ 7
	for i := 0; i < whole; i += 8 {
		key += goldenGamma
		if binary.LittleEndian.Uint64(src[i:]) != mix(key) {
			var want [8]byte
			binary.LittleEndian.PutUint64(want[:], mix(key))
			return i + firstDifference(src[i:i+8], want[:])
		}
	}
	var want [8]byte
	binary.LittleEndian.PutUint64(want[:], mix(key+goldenGamma))
	if at := firstDifference(src[whole:], want[:len(src)-whole]); at >= 0 {
		return whole + at
	}
	return -1
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// fillFrame makes the whole frame in dst.
func fillFrame(dst, header []byte, s stamp) {
	at := copy(dst, header)
	s.marshal(dst[at:])
	fillContent(dst[at+stampSize:], s.key())
}

// Verify checks that data is, byte for byte, the frame that Write made with the
// given number.
func Verify(data []byte, number int) error {
	var header []byte
	if bytes.HasPrefix(data, []byte(dpxMagic)) {
		p, err := pictureFor(int64(len(data)))
		if err != nil {
			return ErrNoStamp
		}
		header = dpxHeader(p, int64(len(data)), number)
	}
	at := len(header)
	s, ok := unmarshalStamp(data[min(at, len(data)):])
	switch {
	case !ok:
		return ErrNoStamp
	case s.number != uint64(number):
		return fmt.Errorf("%w: frame %d in place of %d", ErrStamp, s.number, number)
	case s.size != uint64(len(data)):
		return fmt.Errorf("%w: of %d bytes in a file of %d", ErrStamp, s.size, len(data))
	}
	if differs := firstDifference(header, data); differs >= 0 {
		return fmt.Errorf("%w at byte %d", ErrContents, differs)
	}
	if differs := contentDiffers(data[at+stampSize:], s.key()); differs >= 0 {
		return fmt.Errorf("%w at byte %d", ErrContents, at+stampSize+differs)
	}
	return nil
}
