package bench

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Report is the result of Play; its JSON fields are part of the interface.
// FramesDue = FramesOnTime + FramesDropped + FramesFailed, and FramesDropped =
// FramesLate + FramesSkipped. Times are in milliseconds since the run began to
// read.
type Report struct {
	FramesDue     int `json:"frames_due"`
	FramesOnTime  int `json:"frames_on_time"`
	FramesLate    int `json:"frames_late"`
	FramesSkipped int `json:"frames_skipped"`
	FramesDropped int `json:"frames_dropped"`
	FramesFailed  int `json:"frames_failed"`
	LongestRun    int `json:"longest_run"` // of frames on time, of any client

	FPSTarget   float64  `json:"fps_target"` // 0 when unpaced
	FPS         string   `json:"fps"`        // as a rational number
	Unpaced     bool     `json:"unpaced"`
	OnMiss      string   `json:"on_miss"`
	Clients     int      `json:"clients"`
	Threads     int      `json:"threads"` // of each client
	Prebuffer   int      `json:"prebuffer"`
	Queue       int      `json:"queue"`
	Aligned     bool     `json:"aligned"`
	StaggerMS   float64  `json:"stagger_ms"`
	Reader      string   `json:"reader"`
	Direct      bool     `json:"direct"`
	Block       int64    `json:"block"`
	Verified    bool     `json:"verified"`
	Cold        bool     `json:"cold"`       // caches were dropped before
	StaysWarm   []string `json:"stays_warm"` // what that did not reach
	Interrupted bool     `json:"interrupted"`

	Machine Machine      `json:"machine"`
	Mounts  []MountFacts `json:"mounts"` // of the directories played, each once

	StartedAt    time.Time `json:"started_at"` // the run began to read
	Bytes        int64     `json:"bytes"`      // of frames that were wholly read
	Seconds      float64   `json:"seconds"`
	Throughput   float64   `json:"throughput_bytes_per_s"`
	FirstFrameMS float64   `json:"first_frame_ms"` // of the client that waited longest
	Stalls       int       `json:"stalls"`         // of the clock, with on_miss wait
	StallMS      float64   `json:"stall_ms"`

	Latency    LatencyReport    `json:"latency_ms"`
	Histograms Histograms       `json:"histograms"`
	Scheduling SchedulingReport `json:"scheduling"`
	PerClient  []ClientReport   `json:"per_client"`
	Drops      []Drop           `json:"drops"`    // the first maxListed
	Failures   []Failure        `json:"failures"` // the first maxListed
	// Unfinished are frames whose reading hung when the run was interrupted. They
	// count as nothing.
	Unfinished []Unfinished `json:"unfinished"`

	rows    [][]Row // per client, by K
	latency latencies
}

// ClientReport is the part of one client.
type ClientReport struct {
	Client        int           `json:"client"`
	Path          string        `json:"path"`
	FramesDue     int           `json:"frames_due"`
	FramesOnTime  int           `json:"frames_on_time"`
	FramesLate    int           `json:"frames_late"`
	FramesSkipped int           `json:"frames_skipped"`
	FramesDropped int           `json:"frames_dropped"`
	FramesFailed  int           `json:"frames_failed"`
	Bytes         int64         `json:"bytes"`
	StartMS       float64       `json:"start_ms"` // when it began to read
	Seconds       float64       `json:"seconds"`
	FirstFrameMS  float64       `json:"first_frame_ms"` // after StartMS
	LongestRun    int           `json:"longest_run"`    // of frames on time
	Stalls        int           `json:"stalls"`
	StallMS       float64       `json:"stall_ms"`
	Latency       LatencyReport `json:"latency_ms"`
	Buffer        BufferReport  `json:"buffer"`
}

// Drop is a frame that was not there when it was due.
type Drop struct {
	Client int     `json:"client"`
	K      int     `json:"k"` // position in the order played
	Frame  int     `json:"frame"`
	Path   string  `json:"path"`
	Result Outcome `json:"result"`
	DueMS  float64 `json:"due_ms"`
	LateMS float64 `json:"late_ms"` // 0 if it was skipped
}

// Failure is a frame that could not be read whole.
type Failure struct {
	Client int    `json:"client"`
	Frame  int    `json:"frame"`
	Path   string `json:"path"`
	Error  string `json:"error"`
}

// Unfinished is a frame that was being read when the report was made.
type Unfinished struct {
	Client  int     `json:"client"`
	Frame   int     `json:"frame"`
	Path    string  `json:"path"`
	BeganMS float64 `json:"began_ms"`
}

// maxListed bounds each list of frames in a report: a dead server fails every
// one.
const maxListed = 1000

func newReport(config PlayConfig, clients []*client, clock *timekeeper, interrupted bool) *Report {
	r := &Report{
		FPSTarget: config.Rate.Float(), Unpaced: config.Rate == Rate{}, OnMiss: "skip",
		Clients: len(clients), Threads: max(config.Threads, 1), Prebuffer: config.Prebuffer, Queue: config.Queue,
		Aligned: config.Aligned, StaggerMS: milliseconds(config.Stagger),
		Reader: config.Reader.String(), Direct: config.Direct, Block: config.Block, Verified: config.Verify, Cold: config.Cold,
		Interrupted: interrupted, StaysWarm: []string{}, Drops: []Drop{}, Failures: []Failure{}, Unfinished: []Unfinished{},
		StartedAt: clock.began, latency: newLatencies(),
	}
	if config.Wait {
		r.OnMiss = "wait"
	}
	if !r.Unpaced {
		r.FPS = config.Rate.String()
	}
	for _, c := range clients {
		for _, row := range c.end() {
			r.Unfinished = append(r.Unfinished, Unfinished{c.number, row.Frame.Number, row.Frame.Path, milliseconds(row.Began)})
		}
		slices.SortFunc(c.account.rows, func(a, b Row) int { return cmp.Compare(a.K, b.K) })
		part := c.report()
		r.add(part)
		r.PerClient = append(r.PerClient, part)
		r.rows = append(r.rows, c.account.rows)
		r.list(c.number, c.account.rows)
		r.Seconds = max(r.Seconds, c.account.finished.Seconds())
		r.latency.merge(c.account.latency)
	}
	r.Latency, r.Histograms = r.latency.report(), r.latency.encode()
	r.Scheduling = clock.report(r.rows)
	if r.Seconds > 0 {
		r.Throughput = float64(r.Bytes) / r.Seconds
	}
	return r
}

// Rows are the frames of each client in the order played, those that were due
// until the run ended.
func (r *Report) Rows() [][]Row { return r.rows }

// add sums the counts of a client up.
func (r *Report) add(part ClientReport) {
	r.FramesDue += part.FramesDue
	r.FramesOnTime += part.FramesOnTime
	r.FramesLate += part.FramesLate
	r.FramesSkipped += part.FramesSkipped
	r.FramesDropped += part.FramesDropped
	r.FramesFailed += part.FramesFailed
	r.LongestRun = max(r.LongestRun, part.LongestRun)
	r.Bytes += part.Bytes
	r.FirstFrameMS = max(r.FirstFrameMS, part.FirstFrameMS)
	r.Stalls += part.Stalls
	r.StallMS += part.StallMS
}

// list names the frames of a client that were dropped or have failed.
func (r *Report) list(client int, rows []Row) {
	for _, row := range rows {
		switch {
		case row.Err != nil && len(r.Failures) < maxListed:
			r.Failures = append(r.Failures, Failure{client, row.Frame.Number, row.Frame.Path, row.Err.Error()})
		case row.dropped() && len(r.Drops) < maxListed:
			drop := Drop{client, row.K, row.Frame.Number, row.Frame.Path, row.Result, milliseconds(row.Due), 0}
			if row.Result == OutcomeLate {
				drop.LateMS = milliseconds(row.Done - row.Due)
			}
			r.Drops = append(r.Drops, drop)
		}
	}
}

func (c *client) report() ClientReport {
	p, a := &c.playhead, c.account
	part := ClientReport{
		Client: c.number, Path: c.sequence.Pattern.String(),
		FramesOnTime: p.onTime, FramesLate: p.late, FramesSkipped: p.skipped,
		FramesDropped: p.late + p.skipped, FramesFailed: p.failed,
		Bytes: a.bytes, StartMS: milliseconds(c.began), Seconds: max(a.finished-c.began, 0).Seconds(),
		FirstFrameMS: milliseconds(max(a.firstFrame-c.began, 0)),
		StallMS:      milliseconds(p.stalled), Latency: a.latency.report(),
		Buffer: newBufferReport(a.rows, p.rate),
	}
	part.FramesDue = part.FramesOnTime + part.FramesDropped + part.FramesFailed
	if p.wait {
		part.Stalls = p.late
	}
	run := 0
	for _, row := range a.rows {
		if run++; row.Result != OutcomeOnTime {
			run = 0
		}
		part.LongestRun = max(part.LongestRun, run)
	}
	return part
}

// Exit statuses of a played report.
const (
	StatusSmooth  = 0
	StatusDropped = 1
	StatusFailed  = 2
)

// Status is the exit status that stands for the report: failures before drops.
func (r *Report) Status() int {
	switch {
	case r.FramesFailed > 0:
		return StatusFailed
	case r.FramesDropped > 0:
		return StatusDropped
	}
	return StatusSmooth
}

// rate describes the pace in words.
func (r *Report) rate() string {
	if r.Unpaced {
		return "unpaced"
	}
	return fmt.Sprintf("%s fps", r.FPS)
}
