package bench

import "time"

// Row is what became of one frame. Times are since the start of the run.
type Row struct {
	K      int // position in the order played
	Frame  Frame
	Due    time.Duration // 0: the clock had not started
	Began  time.Duration // its open was called; of a skipped frame: it was given up
	Done   time.Duration // wholly read; 0 for a skipped frame
	Open   time.Duration // open and fstat
	First  time.Duration // from the start of the open until the first bytes were there
	Read   time.Duration // from the end of the open to the last byte
	Close  time.Duration
	Own    time.Duration // how much later than it had meant to the player began
	Bytes  int64
	Result Outcome
	Err    error
}

// dropped says whether the frame could have been shown and was not.
func (r Row) dropped() bool { return r.Result == OutcomeLate || r.Result == OutcomeSkipped }

// account collects the rows of one client and their latencies. It is guarded by
// its client.
type account struct {
	rows       []Row
	latency    latencies
	bytes      int64
	firstFrame time.Duration // 0: none
	finished   time.Duration // when the last frame had been read
}

// newAccount makes room for all rows, so that none is moved while frames are
// timed.
func newAccount(frames int) *account {
	return &account{rows: make([]Row, 0, frames), latency: newLatencies()}
}

func (a *account) add(row Row) {
	a.rows = append(a.rows, row)
	if row.Result == OutcomeSkipped {
		return
	}
	a.finished = max(a.finished, row.Done)
	if row.Result == OutcomeFailed {
		return
	}
	if a.firstFrame == 0 {
		a.firstFrame = row.Done
	}
	a.bytes += row.Bytes
	a.latency.record(row)
}
