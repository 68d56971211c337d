package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// WriteConfig says which frames Write makes.
type WriteConfig struct {
	Pattern Pattern
	Start   int    // number of the first frame
	Frames  int    // how many
	Size    int64  // bytes a frame
	Seed    uint64 // of the contents: another seed makes other contents
	// OnFrame is called after each frame, if set.
	OnFrame func(bytes int64)
}

// WriteReport is what Write did.
type WriteReport struct {
	Frames  int     `json:"frames"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// Validate returns an error that says what is wrong with the configuration.
func (c WriteConfig) Validate() error {
	switch {
	case c.Frames < 1:
		return fmt.Errorf("the number of frames must be at least 1, not %d", c.Frames)
	case c.Start < 0:
		return fmt.Errorf("the first frame can't be %d: numbers start at 0", c.Start)
	case c.Size < MinFrameSize:
		return fmt.Errorf("a frame needs at least %d bytes for its stamp, not %d", MinFrameSize, c.Size)
	}
	if c.dpx() {
		_, err := pictureFor(c.Size)
		return err
	}
	return nil
}

func (c WriteConfig) dpx() bool {
	return strings.EqualFold(filepath.Ext(c.Pattern.Suffix), ".dpx")
}

// Write makes frames until all are made or ctx ends. A frame that could not be
// written whole is removed; those before it stay.
func Write(ctx context.Context, config WriteConfig) (WriteReport, error) {
	var report WriteReport
	if err := config.Validate(); err != nil {
		return report, err
	}
	if info, err := os.Stat(config.Pattern.Dir); errors.Is(err, os.ErrNotExist) {
		return report, fmt.Errorf("%s does not exist: create it first", config.Pattern.Dir)
	} else if err != nil {
		return report, err
	} else if !info.IsDir() {
		return report, fmt.Errorf("%s is not a directory", config.Pattern.Dir)
	}
	began := time.Now()
	buffer := make([]byte, config.Size)
	for number := config.Start; number < config.Start+config.Frames; number++ {
		if err := ctx.Err(); err != nil {
			return report, context.Cause(ctx)
		}
		var header []byte
		if config.dpx() {
			p, err := pictureFor(config.Size)
			if err != nil {
				return report, err
			}
			header = dpxHeader(p, config.Size, number)
		}
		fillFrame(buffer, header, stamp{config.Seed, uint64(number), uint64(config.Size)})
		if err := writeFrame(config.Pattern.Path(number), buffer); err != nil {
			return report, fmt.Errorf("frame %d of %d: %w", number-config.Start+1, config.Frames, err)
		}
		report.Frames++
		report.Bytes += config.Size
		report.Seconds = time.Since(began).Seconds()
		if config.OnFrame != nil {
			config.OnFrame(config.Size)
		}
	}
	return report, nil
}

func writeFrame(path string, data []byte) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(path)
		}
	}()
	_, err = file.Write(data)
	return err
}
