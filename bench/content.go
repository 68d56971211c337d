package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// A frame consists of the header of its format (format.go), a stamp that says
// which frame it is, and content computed from the stamp: unique for each frame
// and each position, so that neither compression nor deduplication flatters a
// storage, and checkable byte by byte without a copy.

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
	// content says which of the sequence's contents it has: that of its own
	// number, unless a recording has dropped frames.
	content uint64
}

func newStamp(seed uint64, number int, size int64) stamp {
	return stamp{seed: seed, number: uint64(number), size: uint64(size), content: uint64(number)}
}

func (s stamp) marshal(dst []byte) {
	clear(dst[:stampSize])
	copy(dst, stampMagic)
	for i, field := range [...]uint64{s.seed, s.number, s.size, s.content} {
		binary.LittleEndian.PutUint64(dst[len(stampMagic)+8*i:], field)
	}
}

func unmarshalStamp(src []byte) (stamp, bool) {
	if len(src) < stampSize || !bytes.HasPrefix(src, []byte(stampMagic)) {
		return stamp{}, false
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(src[len(stampMagic)+8*i:]) }
	s := stamp{seed: field(0), number: field(1), size: field(2), content: field(3)}
	var whole [stampSize]byte // with what is not used yet, all of it zero
	s.marshal(whole[:])
	return s, bytes.Equal(whole[:], src[:stampSize])
}

// key is where the content of the frame starts in the sequence of splitmix64.
func (s stamp) key() uint64 { return mix(s.seed ^ mix(s.content)) }

// goldenGamma and mix are splitmix64 (Steele, Lea, Flood 2014), which makes
// several GB/s and can start anywhere.
const goldenGamma = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// contentKey returns the key of the content that begins n bytes further on; n is a
// multiple of 8.
func contentKey(key uint64, n int64) uint64 { return key + uint64(n/8)*goldenGamma }

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

// fillShare is the least content that is worth a goroutine of its own, in bytes;
// a multiple of 8.
const fillShare = 1 << 20

// fillFrame makes the whole frame in dst, with all processors.
func fillFrame(dst []byte, l layout, s stamp) {
	at := copy(dst, l.header)
	clear(dst[at:l.stamp])
	s.marshal(dst[l.stamp:])
	content, key := dst[l.stamp+stampSize:], s.key()
	share := max(alignUp(int64(len(content)/runtime.NumCPU())), fillShare)
	var filling sync.WaitGroup
	for from := share; from < int64(len(content)); from += share {
		filling.Go(func() {
			fillContent(content[from:min(from+share, int64(len(content)))], contentKey(key, from))
		})
	}
	fillContent(content[:min(share, int64(len(content)))], key)
	filling.Wait()
	for line := range l.lines.count {
		l.lines.put(dst[l.lines.first+line*l.lines.stride:], line)
	}
}

// Verify checks that data is, byte for byte, the frame that Write made with the
// given number.
func Verify(data []byte, number int) error {
	l, err := newLayout(formatOfData(data), int64(len(data)), number)
	if err != nil {
		return ErrNoStamp
	}
	s, err := checkStamp(data, l, number, int64(len(data)))
	if err != nil {
		return err
	}
	if differs := firstDifference(l.header, data); differs >= 0 {
		return fmt.Errorf("%w at byte %d", ErrContents, differs)
	}
	behind := l.stamp + stampSize
	from := behind
	for line := range l.lines.count {
		at := l.lines.first + line*l.lines.stride
		if err := verifyContent(data, from, at, behind, s); err != nil {
			return err
		}
		var head [lineHeadSize]byte
		l.lines.put(head[:], line)
		if differs := firstDifference(head[:], data[at:]); differs >= 0 {
			return fmt.Errorf("%w at byte %d", ErrContents, at+int64(differs))
		}
		from = at + lineHeadSize
	}
	return verifyContent(data, from, int64(len(data)), behind, s)
}

// checkStamp returns the stamp in data, which may be the beginning of a frame
// only, and an error if it is not that of the frame.
func checkStamp(data []byte, l layout, number int, size int64) (stamp, error) {
	s, ok := unmarshalStamp(data[min(l.stamp, int64(len(data))):])
	switch {
	case !ok:
		return s, ErrNoStamp
	case s.number != uint64(number):
		return s, fmt.Errorf("%w: frame %d in place of %d", ErrStamp, s.number, number)
	case s.size != uint64(size):
		return s, fmt.Errorf("%w: of %d bytes in a file of %d", ErrStamp, s.size, size)
	}
	return s, nil
}

// verifyContent checks a span of data; content begins at behind.
func verifyContent(data []byte, from, to, behind int64, s stamp) error {
	if differs := contentDiffers(data[from:to], contentKey(s.key(), from-behind)); differs >= 0 {
		return fmt.Errorf("%w at byte %d", ErrContents, from+int64(differs))
	}
	return nil
}
