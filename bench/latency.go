package bench

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of the histograms, in microseconds: three digits between a microsecond
// and an hour, as long as a hard mount may hang.
const (
	histogramMax    = int64(time.Hour / time.Microsecond)
	histogramDigits = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, histogramMax, histogramDigits)
}

func record(histogram *hdrhistogram.Histogram, d time.Duration) {
	// Can't fail within the bounds.
	_ = histogram.RecordValue(min(max(d.Microseconds(), 1), histogramMax))
}

// latencies are the distributions of the parts of reading a frame, in
// microseconds.
type latencies struct {
	open, first, read, close, frame *hdrhistogram.Histogram
}

func newLatencies() latencies {
	return latencies{newHistogram(), newHistogram(), newHistogram(), newHistogram(), newHistogram()}
}

func (l latencies) record(row Row) {
	record(l.open, row.Open)
	record(l.first, row.First)
	record(l.read, row.Read)
	record(l.close, row.Close)
	record(l.frame, row.Open+row.Read)
}

// merge adds the latencies of others.
func (l latencies) merge(others latencies) {
	l.open.Merge(others.open)
	l.first.Merge(others.first)
	l.read.Merge(others.read)
	l.close.Merge(others.close)
	l.frame.Merge(others.frame)
}

// LatencyReport holds the distribution of each part of reading a frame. Open
// includes fstat; First is from the start of the open until the first bytes were
// there, which is all of them where one read(2) takes the whole frame; Frame is
// from the start of the open to the last byte.
type LatencyReport struct {
	Open  Percentiles `json:"open"`
	First Percentiles `json:"first_byte"`
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

func (l latencies) report() LatencyReport {
	return LatencyReport{percentiles(l.open), percentiles(l.first), percentiles(l.read), percentiles(l.close), percentiles(l.frame)}
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	at := func(percentile float64) float64 {
		return milliseconds(time.Duration(h.ValueAtPercentile(percentile)) * time.Microsecond)
	}
	return Percentiles{at(50), at(95), at(99), at(99.9), milliseconds(time.Duration(h.Max()) * time.Microsecond)}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Histograms are the whole distributions behind a LatencyReport: HDR histograms
// of microseconds in the format of the HdrHistogram libraries (V2, compressed,
// base64), which any of them can read and add up.
type Histograms struct {
	Open  string `json:"open"`
	First string `json:"first_byte"`
	Read  string `json:"read"`
	Close string `json:"close"`
	Frame string `json:"frame"`
}

func (l latencies) encode() Histograms {
	return Histograms{encode(l.open), encode(l.first), encode(l.read), encode(l.close), encode(l.frame)}
}

// encode can't fail: only histograms that a library did not make can't be
// encoded.
func encode(h *hdrhistogram.Histogram) string {
	encoded, err := h.EncodeV2()
	if err != nil {
		panic(fmt.Sprintf("bench: encode a histogram: %v", err))
	}
	return string(encoded)
}

// decode is the inverse of encode.
func (h Histograms) decode() (l latencies, err error) {
	for _, part := range []struct {
		name, text string
		to         **hdrhistogram.Histogram
	}{
		{"open", h.Open, &l.open}, {"first_byte", h.First, &l.first}, {"read", h.Read, &l.read},
		{"close", h.Close, &l.close}, {"frame", h.Frame, &l.frame},
	} {
		if *part.to, err = hdrhistogram.Decode([]byte(part.text)); err != nil {
			return l, fmt.Errorf("histogram %s: %w", part.name, err)
		}
	}
	return l, nil
}
