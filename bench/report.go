package bench

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is the result of Play; its JSON fields are part of the interface.
// FramesDue = FramesOnTime + FramesDropped + FramesFailed, and FramesDropped =
// FramesLate + FramesSkipped.
type Report struct {
	FramesDue     int `json:"frames_due"`
	FramesOnTime  int `json:"frames_on_time"`
	FramesLate    int `json:"frames_late"`
	FramesSkipped int `json:"frames_skipped"`
	FramesDropped int `json:"frames_dropped"`
	FramesFailed  int `json:"frames_failed"`

	FPSTarget   float64 `json:"fps_target"` // 0 when unpaced
	FPS         string  `json:"fps"`        // as a rational number
	Unpaced     bool    `json:"unpaced"`
	OnMiss      string  `json:"on_miss"`
	Clients     int     `json:"clients"`
	Prebuffer   int     `json:"prebuffer"`
	Queue       int     `json:"queue"`
	Direct      bool    `json:"direct"`
	Block       int64   `json:"block"`
	Verified    bool    `json:"verified"`
	Interrupted bool    `json:"interrupted"`

	Bytes        int64   `json:"bytes"` // of frames that were wholly read
	Seconds      float64 `json:"seconds"`
	Throughput   float64 `json:"throughput_bytes_per_s"`
	FirstFrameMS float64 `json:"first_frame_ms"` // of the client that waited longest
	Stalls       int     `json:"stalls"`         // of the clock, with on_miss wait
	StallMS      float64 `json:"stall_ms"`

	Latency   LatencyReport  `json:"latency_ms"`
	PerClient []ClientReport `json:"per_client"`
	Failures  []Failure      `json:"failures"` // the first maxFailures

	rows    [][]Row  // per client
	account *account // of all clients, without rows
}

// LatencyReport holds the distribution of each part of reading a frame. Open
// includes fstat; Frame is from open to the last byte.
type LatencyReport struct {
	Open  Percentiles `json:"open"`
	Read  Percentiles `json:"read"`
	Close Percentiles `json:"close"`
	Frame Percentiles `json:"frame"`
}

// Percentiles of a latency in milliseconds.
type Percentiles struct {
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
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
	Seconds       float64       `json:"seconds"`
	FirstFrameMS  float64       `json:"first_frame_ms"`
	LongestRun    int           `json:"longest_run"` // of frames on time
	Stalls        int           `json:"stalls"`
	StallMS       float64       `json:"stall_ms"`
	Latency       LatencyReport `json:"latency_ms"`
}

// Failure is a frame that could not be read whole.
type Failure struct {
	Client int    `json:"client"`
	Frame  int    `json:"frame"`
	Path   string `json:"path"`
	Error  string `json:"error"`
}

// maxFailures bounds the list of failures in a report: a dead server fails
// every frame.
const maxFailures = 1000

func newReport(config PlayConfig, clients []*client, interrupted bool) *Report {
	r := &Report{
		FPSTarget: config.Rate.Float(), Unpaced: config.Rate == Rate{}, OnMiss: "skip",
		Clients: len(clients), Prebuffer: config.Prebuffer, Queue: config.Queue,
		Direct: config.Direct, Block: config.Block, Verified: config.Verify, Interrupted: interrupted,
		Failures: []Failure{}, account: newAccount(0),
	}
	if config.Wait {
		r.OnMiss = "wait"
	}
	if !r.Unpaced {
		r.FPS = config.Rate.String()
	}
	for _, c := range clients {
		part := c.report()
		r.FramesDue += part.FramesDue
		r.FramesOnTime += part.FramesOnTime
		r.FramesLate += part.FramesLate
		r.FramesSkipped += part.FramesSkipped
		r.FramesDropped += part.FramesDropped
		r.FramesFailed += part.FramesFailed
		r.Bytes += part.Bytes
		r.Seconds = max(r.Seconds, part.Seconds)
		r.FirstFrameMS = max(r.FirstFrameMS, part.FirstFrameMS)
		r.Stalls += part.Stalls
		r.StallMS += part.StallMS
		r.PerClient = append(r.PerClient, part)
		r.rows = append(r.rows, c.account.rows)
		r.addFailures(c.number, c.account.rows)
		r.account.merge(c.account)
	}
	r.Latency = r.account.latency()
	if r.Seconds > 0 {
		r.Throughput = float64(r.Bytes) / r.Seconds
	}
	return r
}

func (r *Report) addFailures(client int, rows []Row) {
	for _, row := range rows {
		if row.Err != nil && len(r.Failures) < maxFailures {
			r.Failures = append(r.Failures, Failure{client, row.Frame.Number, row.Frame.Path, row.Err.Error()})
		}
	}
}

func (c *client) report() ClientReport {
	p := &c.playhead
	part := ClientReport{
		Client: c.number, Path: c.sequence.Pattern.String(),
		FramesOnTime: p.onTime, FramesLate: p.late, FramesSkipped: p.skipped,
		FramesDropped: p.late + p.skipped, FramesFailed: p.failed,
		Bytes: c.account.bytes, Seconds: c.account.finished.Seconds(),
		FirstFrameMS: milliseconds(c.account.firstFrame),
		StallMS:      milliseconds(p.stalled), Latency: c.account.latency(),
	}
	part.FramesDue = part.FramesOnTime + part.FramesDropped + part.FramesFailed
	if p.wait {
		part.Stalls = p.late
	}
	run := 0
	for _, row := range c.account.rows {
		if run++; row.Result != outcomeOnTime {
			run = 0
		}
		part.LongestRun = max(part.LongestRun, run)
	}
	return part
}

func (a *account) latency() LatencyReport {
	return LatencyReport{percentiles(a.open), percentiles(a.read), percentiles(a.close), percentiles(a.frame)}
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	at := func(percentile float64) float64 {
		return milliseconds(time.Duration(h.ValueAtPercentile(percentile)) * time.Microsecond)
	}
	return Percentiles{at(50), at(95), at(99), at(99.9), milliseconds(time.Duration(h.Max()) * time.Microsecond)}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

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
