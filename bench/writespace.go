package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// ErrNoSpace says that the frames would not fit.
var ErrNoSpace = errors.New("not enough space")

// checkSpace returns ErrNoSpace if the frames don't fit. What is overwritten
// makes room. A filesystem that does not say how large it is fits everything.
func (c WriteConfig) checkSpace(numbers []int) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(c.Pattern.Dir, &stat); err != nil {
		return fmt.Errorf("find the free space of %s: %w", c.Pattern.Dir, err)
	}
	if stat.Blocks == 0 {
		return nil
	}
	unit := stat.Frsize
	if unit == 0 {
		unit = stat.Bsize
	}
	free, needed := int64(stat.Bavail)*unit, int64(len(numbers))*c.Size
	if needed <= free {
		return nil
	}
	names, err := readNames(c.Pattern.Dir)
	if err != nil {
		return err
	}
	toWrite := map[int]bool{}
	for _, number := range numbers {
		toWrite[number] = true
	}
	for _, name := range names {
		if number, ok := c.Pattern.Number(name); ok && toWrite[number] {
			if info, err := os.Lstat(c.Pattern.Path(number)); err == nil {
				needed -= info.Size()
			}
		}
	}
	if needed > free {
		return fmt.Errorf("%w in %s: %d frames need %s more, %s are free: write fewer or smaller frames", ErrNoSpace,
			c.Pattern.Dir, len(numbers), humanize.Bytes(uint64(needed)), humanize.Bytes(uint64(free)))
	}
	return nil
}

// checkAtOnce is how many files are looked at at once to resume: each costs some
// round trips.
const checkAtOnce = 16

// missing returns the numbers of the frames that are not there as they should be,
// in the order given.
func (c WriteConfig) missing(ctx context.Context, numbers []int) ([]int, error) {
	good := make([]bool, len(numbers))
	var checking errgroup.Group
	checking.SetLimit(checkAtOnce)
	for i, number := range numbers {
		checking.Go(func() error {
			good[i] = ctx.Err() == nil && c.isWritten(number)
			return nil
		})
	}
	_ = checking.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var missing []int
	for i, number := range numbers {
		if !good[i] {
			missing = append(missing, number)
		}
	}
	return missing, nil
}

// tailSize is how much of the end of a frame is compared when a run is resumed:
// what a crash has not let reach the disk is missing at the end.
const tailSize = 4096

// isWritten says whether a frame is there with its size, its stamp and its end,
// whatever the seed it was made with.
func (c WriteConfig) isWritten(number int) bool {
	l, err := newLayout(c.format(), c.Size, number)
	if err != nil {
		return false
	}
	file, err := os.Open(c.Pattern.Path(number))
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() != c.Size {
		return false
	}
	head := make([]byte, l.stamp+stampSize)
	if _, err := file.ReadAt(head, 0); err != nil {
		return false
	}
	s, err := checkStamp(head, l, number, c.Size)
	if err != nil || firstDifference(l.header, head) >= 0 {
		return false
	}
	behind := l.stamp + stampSize
	from := max(c.Size-tailSize, behind)
	if l.lines.count > 0 { // the last line only
		from = max(from, l.lines.first+(l.lines.count-1)*l.lines.stride+lineHeadSize)
	}
	from = behind + (from-behind+7)&^7
	tail := make([]byte, max(c.Size-from, 0))
	if _, err := file.ReadAt(tail, from); err != nil {
		return false
	}
	return contentDiffers(tail, contentKey(s.key(), from-behind)) < 0
}
