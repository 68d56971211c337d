package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// These tests drive the whole player, threads, timers, gates and all, against
// storages whose behaviour is known exactly, in the simulated time of synctest:
// what it counts must be what follows from the model, on any machine.

// modelSource is a storage that needs a known time for each frame.
type modelSource struct {
	// ends says when a frame whose reading begins now has been read.
	ends func(now time.Duration) time.Duration
}

func (s modelSource) read(row *Row, runBegan time.Time) {
	now := time.Since(runBegan)
	time.Sleep(s.ends(now) - now)
	row.Done = time.Since(runBegan)
	row.First, row.Read = row.Done-now, row.Done-now
	row.Bytes = 100
}

func (modelSource) release() {}

// stalling takes a time for each frame and stands still from one time on for
// another.
func stalling(took, from, length time.Duration) func(time.Duration) time.Duration {
	return func(now time.Duration) time.Duration {
		end := now + took
		switch {
		case end <= from || now >= from+length:
			return end
		case now >= from: // it has to wait for the end before it begins
			return from + length + took
		}
		return end + length
	}
}

// simulatePlay plays against a model. It must be called in a synctest bubble.
func simulatePlay(t *testing.T, config PlayConfig, source func(client int) frameSource) *Report {
	t.Helper()
	config.source, config.nap = source, time.Sleep
	report, err := Play(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// A stall drops the frames that can't be there in time, whatever a player does,
// and at most one more: the one that the player gives up to have a margin.
func TestPlayStallDropsWhatTheModelSays(t *testing.T) {
	dir := makeFrames(t, 600, 100)
	random := rand.New(rand.NewPCG(1, 2))
	dropped, hidden := 0, 0
	for _, rate := range []Rate{{24000, 1001}, {30, 1}, {60000, 1001}} {
		for _, queue := range []int{1, 2, 8} {
			for _, prebuffer := range []int{1, 12} {
				for _, length := range []time.Duration{40 * ms, 300 * ms, 1500 * ms} {
					interval := rate.Time(1)
					took := interval/10 + time.Duration(random.Int64N(int64(interval/2)))
					from := rate.Time(100) + time.Duration(random.Int64N(int64(interval)))
					name := fmt.Sprintf("%s fps, queue %d, pre-buffer %d, %v a frame, a stall of %v at %v", rate, queue, prebuffer, took, length, from)
					synctest.Test(t, func(t *testing.T) {
						config := PlayConfig{Paths: []string{dir}, Rate: rate, Prebuffer: prebuffer, Queue: queue, Duration: rate.Time(200)}
						report := simulatePlay(t, config, func(int) frameSource { return modelSource{stalling(took, from, length)} })
						least := stallDrops(rate, queue, prebuffer, took, from, length)
						if got := report.FramesDropped; got < least || got > least+1 {
							t.Errorf("%s: %d frames dropped, the model says %d", name, got, least)
						}
						if report.FramesDropped == 0 {
							hidden++
						}
						dropped += report.FramesDropped
						checkDropsLieIn(t, name, report, from, from+length+took+2*interval+rate.Time(1))
					})
				}
			}
		}
	}
	if dropped == 0 || hidden == 0 {
		t.Errorf("%d drops, %d stalls hidden: the test tests nothing", dropped, hidden)
	}
}

// stallDrops is how many frames no player can have in time: with a full queue
// frame k is read from the moment that frame k-queue is shown on.
func stallDrops(rate Rate, queue, prebuffer int, took, from, length time.Duration) int {
	start := time.Duration(prebuffer) * took // the pre-buffer is read, one frame after the other
	due := func(k int) time.Duration { return start + rate.Time(k) }
	first := queue // the first frame that the stall hits
	for due(first-queue)+took <= from {
		first++
	}
	end := stalling(took, from, length)(due(first - queue))
	drops := 0
	if due(first) < end {
		drops++
	}
	for k := first + 1; due(k) < end+took; k++ {
		drops++
	}
	return drops
}

func checkDropsLieIn(t *testing.T, name string, report *Report, from, to time.Duration) {
	t.Helper()
	for _, drop := range report.Drops {
		if due := time.Duration(drop.DueMS * float64(ms)); due < from || due > to {
			t.Errorf("%s: a drop at %v, which is not between %v and %v", name, due, from, to)
		}
	}
}

// A source that is slower than the clock shows what its bandwidth can carry, to
// the frame, and a faster one shows everything.
func TestPlayBandwidthDropsWhatTheModelSays(t *testing.T) {
	dir := makeFrames(t, 600, 100)
	for _, rate := range []Rate{{24, 1}, {24000, 1001}, {60000, 1001}} {
		// A shorter queue has no place for the margin that a player takes when it
		// has fallen behind, and shows fewer frames than the source carries.
		for _, queue := range []int{3, 8, 16} {
			for _, prebuffer := range []int{1, 5, 12} {
				for _, share := range []float64{1.5, 1.01, 0.98, 0.9, 0.5, 0.3} {
					took := time.Duration(float64(rate.Time(1)) / share)
					name := fmt.Sprintf("%s fps, queue %d, pre-buffer %d, %v of the bandwidth", rate, queue, prebuffer, share)
					synctest.Test(t, func(t *testing.T) {
						const frames = 400
						config := PlayConfig{Paths: []string{dir}, Rate: rate, Frames: frames, Prebuffer: prebuffer, Queue: queue}
						report := simulatePlay(t, config, func(int) frameSource {
							return modelSource{func(now time.Duration) time.Duration { return now + took }}
						})
						// The pre-buffer; then, from the moment when the queue has
						// room again, one frame each took until the last is due.
						reading := rate.Time(frames - 1 - max(prebuffer-queue, 0))
						carried := min(prebuffer+int(reading/took), frames)
						if share > 1 {
							carried = frames
						}
						if got := report.FramesOnTime; got > carried || got < carried-1 {
							t.Errorf("%s: %d frames on time, the model says %d", name, got, carried)
						}
					})
				}
			}
		}
	}
}

// sharedLink is a storage that carries one frame after the other for all.
type sharedLink struct {
	took time.Duration
	mu   sync.Mutex
	free time.Duration
}

func (l *sharedLink) ends(now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = max(l.free, now) + l.took
	return l.free
}

// Many clients on one link: just over what they need, none is dropped; just
// under, all of it goes into frames, and what is missing is dropped.
func TestPlayManyClientsOnALink(t *testing.T) {
	dir := makeFrames(t, 600, 100)
	const clients, frames = 12, 300
	for _, threads := range []int{1, 3} {
		for _, aligned := range []bool{false, true} {
			for _, share := range []float64{1.03, 0.95, 0.6} {
				rate := Rate{30, 1}
				name := fmt.Sprintf("%d threads, aligned %v, %v of the bandwidth", threads, aligned, share)
				synctest.Test(t, func(t *testing.T) {
					link := &sharedLink{took: time.Duration(float64(rate.Time(1)) / share / clients)}
					config := PlayConfig{
						Paths: []string{dir}, Clients: clients, Threads: threads, Aligned: aligned,
						Rate: rate, Prebuffer: 5, Queue: 8, Frames: frames,
					}
					report := simulatePlay(t, config, func(int) frameSource { return modelSource{link.ends} })
					read := report.FramesOnTime + report.FramesLate
					if share > 1 && report.FramesDropped > 0 {
						t.Errorf("%s: %d dropped", name, report.FramesDropped)
					}
					if share < 1 {
						// Up to as many frames as are on their way at once are
						// too late to begin with at the end.
						carried := int(report.rows[0][frames-1].Due / link.took)
						if read > carried+clients || read < carried-clients*threads {
							t.Errorf("%s: %d frames were read, the link carried %d", name, read, carried)
						}
						if report.FramesLate > clients*threads {
							t.Errorf("%s: %d frames came late", name, report.FramesLate)
						}
					}
					if aligned {
						for _, rows := range report.rows {
							if rows[0].Due != report.rows[0][0].Due {
								t.Errorf("%s: the clocks start at %v and %v", name, rows[0].Due, report.rows[0][0].Due)
							}
						}
					}
				})
			}
		}
	}
}
