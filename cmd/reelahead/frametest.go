package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"reelahead/bench"
)

// The options that people type for frametest. Most are short names of our own
// flags; these are the ones that mean something of their own:
//
//	-w SIZE    write frames of a profile or of so many KiB, from number 0 on
//	-r [SIZE]  read; without -f as fast as the frames come
//	-z SIZE    size of a frame; it goes before that of -w and -r
//
// Their meaning is that of frametest: a bare number is in KiB. It is tframetest
// that counts bytes.
type frametestFlags struct {
	write, size frametestSize
	read        bool
}

func (f *frametestFlags) registerSize(cmd *cobra.Command) {
	cmd.Flags().VarPF(&f.size, "frametest-size", "z", "size of a frame as frametest takes it: a profile, KiB, or with a unit").Hidden = true
}

func (f *frametestFlags) registerWrite(cmd *cobra.Command) {
	f.registerSize(cmd)
	cmd.Flags().VarPF(&f.write, "frametest-write", "w", "write frames of this size").Hidden = true
}

func (f *frametestFlags) registerRead(cmd *cobra.Command) {
	f.registerSize(cmd)
	cmd.Flags().BoolVarP(&f.read, "frametest-read", "r", false, "read")
	cmd.Flags().Lookup("frametest-read").Hidden = true
}

// apply moves a size that was given with -w or -z to where --size and --profile
// are.
func (f *frametestFlags) apply(cmd *cobra.Command, frame *frameSizeFlags) error {
	size := cmp.Or(f.size, f.write)
	if size == 0 {
		return nil
	}
	for _, name := range []string{"size", "profile"} {
		if cmd.Flags().Changed(name) {
			return usageError("-w and -z contradict --%s: leave one out", name)
		}
	}
	return cmd.Flags().Set("size", strconv.FormatInt(int64(size), 10))
}

// readArgs takes the size off the arguments of "-r 2k PATH", and makes the run
// unpaced unless a rate was asked for.
func (f *frametestFlags) readArgs(cmd *cobra.Command, args []string, play *playFlags) []string {
	if !f.read {
		return args
	}
	if !cmd.Flags().Changed("fps") {
		play.unpaced = true
	}
	if len(args) > 1 {
		_, err := os.Lstat(args[0])
		var size frametestSize
		if errors.Is(err, fs.ErrNotExist) && size.Set(args[0]) == nil {
			if f.size == 0 {
				f.size = size
			}
			args = args[1:]
		}
	}
	return args
}

// frametestSize is a frame size in bytes as frametest reads it.
type frametestSize int64

// maxFrametestSize is what a bare number may come to, in bytes: beyond it bytes
// were meant.
const maxFrametestSize = 4 << 30

func (s *frametestSize) Set(text string) error {
	if profile, err := bench.ProfileByName(text); err == nil {
		*s = frametestSize(profile.Size)
		return nil
	}
	if kib, err := strconv.ParseInt(text, 10, 64); err == nil {
		switch {
		case kib < 1:
			return fmt.Errorf("a frame of %s KiB is none", text)
		case kib > maxFrametestSize>>10:
			return fmt.Errorf("a bare number is in KiB, as with frametest, and %s KiB is too much for a frame: for bytes use --size %s", text, text)
		}
		*s = frametestSize(kib << 10)
		return nil
	}
	bytes, err := parseSize(text)
	*s = frametestSize(bytes)
	return err
}

func (s *frametestSize) String() string {
	if *s == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*s))
}

func (s *frametestSize) Type() string { return "SIZE" }
