package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Row is what became of one frame. Times are since the start of the run.
type Row struct {
	K      int // position in the order played
	Frame  Frame
	Due    time.Duration // 0: the clock had not started
	Began  time.Duration
	Done   time.Duration // wholly read
	Open   time.Duration
	Read   time.Duration
	Close  time.Duration
	Bytes  int64
	Result outcome
	Err    error
}

// account collects the rows of one client and their latencies.
type account struct {
	rows                     []Row
	open, read, close, frame *hdrhistogram.Histogram
	bytes                    int64
	firstFrame               time.Duration // 0: none
	finished                 time.Duration // when the last frame had been read
}

// Bounds of the histograms, in microseconds: three digits between a microsecond
// and an hour, as long as a hard mount may hang.
const (
	histogramMax    = int64(time.Hour / time.Microsecond)
	histogramDigits = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, histogramMax, histogramDigits)
}

// newAccount makes room for all rows, so that none is moved while frames are
// timed.
func newAccount(frames int) *account {
	return &account{
		rows: make([]Row, 0, frames),
		open: newHistogram(), read: newHistogram(), close: newHistogram(), frame: newHistogram(),
	}
}

func (a *account) add(row Row) {
	a.rows = append(a.rows, row)
	if row.Result == outcomeSkipped {
		return
	}
	a.finished = row.Done
	if row.Result == outcomeFailed {
		return
	}
	if a.firstFrame == 0 {
		a.firstFrame = row.Done
	}
	a.bytes += row.Bytes
	record(a.open, row.Open)
	record(a.read, row.Read)
	record(a.close, row.Close)
	record(a.frame, row.Open+row.Read)
}

func record(histogram *hdrhistogram.Histogram, d time.Duration) {
	// Can't fail within the bounds.
	_ = histogram.RecordValue(min(max(d.Microseconds(), 1), histogramMax))
}

// merge adds the latencies of another account.
func (a *account) merge(other *account) {
	a.open.Merge(other.open)
	a.read.Merge(other.read)
	a.close.Merge(other.close)
	a.frame.Merge(other.frame)
}
