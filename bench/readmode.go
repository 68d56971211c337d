package bench

import (
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// ReadMode is how the bytes of a frame are read.
type ReadMode string

const (
	// ReadWhole takes one read(2) for the frame, or one for each block. It is
	// the zero value.
	ReadWhole ReadMode = ""
	// ReadMapped maps the file and copies from the mapping.
	ReadMapped ReadMode = "mmap"
	// ReadEXR reads as programs with OpenEXR do: the header, the table of
	// offsets, then the body with pread(2) in the order in which a pool of
	// decoders asks for it. It does so with any file.
	ReadEXR ReadMode = "exr"
)

// ParseReadMode reads "whole", "mmap" or "exr".
func ParseReadMode(text string) (ReadMode, error) {
	switch mode := ReadMode(text); mode {
	case "whole":
		return ReadWhole, nil
	case ReadMapped, ReadEXR:
		return mode, nil
	}
	return ReadWhole, fmt.Errorf("reader %q is not known: use whole, mmap or exr", text)
}

// String returns the mode as ParseReadMode reads it.
func (m ReadMode) String() string {
	if m == ReadWhole {
		return "whole"
	}
	return string(m)
}

// validate returns an error that says what contradicts the mode.
func (m ReadMode) validate(direct bool, block int64) error {
	switch {
	case block < 0:
		return fmt.Errorf("the block size can't be negative")
	case direct && block%directAlign != 0:
		return fmt.Errorf("direct reads take multiples of %d bytes, not blocks of %d", directAlign, block)
	case m == ReadMapped && direct:
		return fmt.Errorf("a mapping goes through the page cache: mmap and direct reads exclude each other")
	case m == ReadMapped && block > 0:
		return fmt.Errorf("a mapping is read by pages: it takes no block size")
	}
	return nil
}

// readMapped copies the file from a mapping of it. A fault while it does, as of
// a file that is being truncated or a disk that can't be read, is an error.
func (r *frameReader) readMapped(fd int, size int64) (n int64, first time.Time, err error) {
	mapping, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, first, fmt.Errorf("mmap: %w", err)
	}
	defer func() { _ = unix.Munmap(mapping) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			if _, isFault := fault.(interface{ Addr() uintptr }); !isFault {
				panic(fault)
			}
			err = fmt.Errorf("%w: a page of the mapping can't be read", ErrShort)
		}
	}()
	n = int64(copy(r.buffer, mapping[:min(size, directAlign)]))
	first = time.Now()
	n += int64(copy(r.buffer[n:], mapping[n:size]))
	return n, first, nil
}

// What a reader with OpenEXR asks for, in bytes: its header in pieces of 4 KiB,
// of which most frames need one; the table of offsets, 8 for each line of a 4K
// frame and rounded up; 16 lines of a 4K frame with three half channels, the
// block of ZIP compression.
const (
	exrHeader = 4 << 10
	exrTable  = 32 << 10
	exrBlock  = 384 << 10
	// exrDecoders is how many decoders share the blocks of the body, each from
	// its own place on.
	exrDecoders = 4
)

// readScattered reads the file in the order of scattered.
func (r *frameReader) readScattered(fd int, size int64) (n int64, first time.Time, err error) {
	block := r.block
	if block == 0 {
		block = exrBlock
	}
	for from, to := range scattered(size, block) {
		end := to
		if r.direct {
			end = alignUp(to)
		}
		for at := from; at < to; {
			got, err := unix.Pread(fd, r.buffer[at:end], at)
			switch {
			case err == unix.EINTR:
				continue
			case err != nil:
				return n, first, fmt.Errorf("read at byte %d: %w", at, err)
			case got == 0:
				return n, first, endsEarly(at, size)
			}
			if first.IsZero() {
				first = time.Now()
			}
			at += int64(got)
		}
		n += to - from
	}
	return n, first, nil
}

// scattered yields the spans of a file in the order in which a reader with
// OpenEXR asks for them. Together they are the file.
func scattered(size, block int64) iter.Seq2[int64, int64] {
	return func(yield func(from, to int64) bool) {
		at := int64(0)
		for _, part := range [...]int64{exrHeader, exrTable} {
			end := min(at+part, size)
			if at < end && !yield(at, end) {
				return
			}
			at = end
		}
		blocks := (size - at + block - 1) / block
		share := (blocks + exrDecoders - 1) / exrDecoders
		for i := range share {
			for decoder := range int64(exrDecoders) {
				n := decoder*share + i
				from := at + n*block
				if n < blocks && n < (decoder+1)*share && !yield(from, min(from+block, size)) {
					return
				}
			}
		}
	}
}
