package bench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
)

// Format is what a frame is to other programs.
type Format string

const (
	// FormatRaw is no picture: a stamp and content.
	FormatRaw Format = "tst"
	// FormatDPX is SMPTE 268M: uncompressed RGB.
	FormatDPX Format = "dpx"
	// FormatEXR is OpenEXR: uncompressed scan lines of half floats, RGB.
	FormatEXR Format = "exr"
)

// ParseFormat reads "tst", "dpx" or "exr".
func ParseFormat(text string) (Format, error) {
	switch format := Format(strings.ToLower(text)); format {
	case FormatRaw, FormatDPX, FormatEXR:
		return format, nil
	}
	return "", fmt.Errorf("format %q is not known: use tst, dpx or exr", text)
}

// FormatOf is the format that a file name says.
func FormatOf(name string) Format {
	format, err := ParseFormat(strings.TrimPrefix(filepath.Ext(name), "."))
	if err != nil {
		return FormatRaw
	}
	return format
}

// layout says what of a frame is fixed by its format; all else is content. A
// frame is its header, bytes up to the stamp, the stamp, and content to the end,
// in which each line begins with a head of its own.
type layout struct {
	header []byte
	stamp  int64 // position of the stamp
	lines  lineHeads
}

// lineHeads are the heads of the lines of an OpenEXR: number and bytes.
type lineHeads struct {
	first, stride int64 // positions, multiples of 8 behind the stamp
	count         int64
	bytes         uint32 // of a line
}

const lineHeadSize = 8

func (l lineHeads) put(dst []byte, line int64) {
	binary.LittleEndian.PutUint32(dst, uint32(line))
	binary.LittleEndian.PutUint32(dst[4:], l.bytes)
}

// newLayout is that of a frame of the given format, size and number.
func newLayout(format Format, size int64, number int) (layout, error) {
	switch format {
	case FormatDPX:
		p, err := pictureFor(size)
		if err != nil {
			return layout{}, err
		}
		return layout{header: dpxHeader(p, size, number), stamp: dpxHeaderSize}, nil
	case FormatEXR:
		return exrLayout(size)
	}
	if size < MinFrameSize {
		return layout{}, fmt.Errorf("a frame needs at least %d bytes for its stamp, not %d", MinFrameSize, size)
	}
	return layout{}, nil
}

// formatOfData is the format of a frame by what it begins with.
func formatOfData(data []byte) Format {
	switch {
	case bytes.HasPrefix(data, []byte(dpxMagic)):
		return FormatDPX
	case bytes.HasPrefix(data, []byte(exrMagic)):
		return FormatEXR
	}
	return FormatRaw
}
