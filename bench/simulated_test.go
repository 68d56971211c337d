package bench

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A run ends after its duration, to the frame.
func TestPlayDuration(t *testing.T) {
	dir := makeFrames(t, 10, 100)
	for _, test := range []struct {
		rate     Rate
		duration time.Duration
		want     int
	}{
		{Rate{24, 1}, 10 * time.Second, 240},
		{Rate{24000, 1001}, 10 * time.Second, 240}, // 239.76 have begun
		{Rate{60000, 1001}, time.Minute, 3597},
		{Rate{24, 1}, ms, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			config := PlayConfig{Paths: []string{dir}, Rate: test.rate, Prebuffer: 5, Queue: 8, Duration: test.duration}
			report := simulatePlay(t, config, func(int) frameSource { return modelSource{func(now time.Duration) time.Duration { return now + ms }} })
			if report.FramesDue != test.want || report.FramesOnTime != test.want {
				t.Errorf("%v at %s fps: %d frames due, want %d", test.duration, test.rate, report.FramesDue, test.want)
			}
			if at := report.rows[0][report.FramesDue-1].Frame.Number; at != (test.want-1)%10+1 {
				t.Errorf("the last frame is number %d", at)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // unpaced
		config := PlayConfig{Paths: []string{dir}, Prebuffer: 1, Queue: 1, Duration: 10 * time.Second, Clients: 2, Stagger: time.Second}
		report := simulatePlay(t, config, func(int) frameSource {
			return modelSource{func(now time.Duration) time.Duration { return now + 100*ms }}
		})
		if report.FramesDue != 200 || report.Seconds != 11 || report.PerClient[1].StartMS != 1000 || report.PerClient[1].Seconds != 10 {
			t.Errorf("%d frames in %v s, client 1 from %v ms for %v s", report.FramesDue, report.Seconds, report.PerClient[1].StartMS, report.PerClient[1].Seconds)
		}
	})
}

// The threads of a client make up for a source that is slow to answer each.
func TestPlayThreadsHideLatency(t *testing.T) {
	dir := makeFrames(t, 300, 100)
	for _, wait := range []bool{false, true} {
		for threads := 1; threads <= 6; threads++ {
			synctest.Test(t, func(t *testing.T) {
				rate := Rate{25, 1}
				config := PlayConfig{Paths: []string{dir}, Threads: threads, Rate: rate, Prebuffer: 6, Queue: 12, Wait: wait}
				// 150 ms a frame: 3.75 intervals.
				report := simulatePlay(t, config, func(int) frameSource {
					return modelSource{func(now time.Duration) time.Duration { return now + 150*ms }}
				})
				if smooth := report.FramesDropped == 0; smooth != (threads >= 4) {
					t.Errorf("%d threads, wait %v: %d frames dropped", threads, wait, report.FramesDropped)
				}
				if report.FramesDue != 300 {
					t.Errorf("%d threads, wait %v: %d frames due", threads, wait, report.FramesDue)
				}
				if wait && report.FramesSkipped > 0 {
					t.Errorf("%d threads: %d skipped although the clock waits", threads, report.FramesSkipped)
				}
				checkOrderOfRows(t, report)
				checkQueue(t, report)
			})
		}
	}
}

// Frames that overtake each other are shown in order all the same, and the clock
// waits for the slowest.
func TestPlayThreadsOfAnUnevenSource(t *testing.T) {
	dir := makeFrames(t, 300, 100)
	dropped := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			rate := Rate{24000, 1001}
			config := PlayConfig{Paths: []string{dir}, Threads: 1 + int(seed%5), Rate: rate, Prebuffer: 6, Queue: 8, Wait: seed%2 == 0}
			report := simulatePlay(t, config, func(int) frameSource {
				return modelSource{func(now time.Duration) time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return now + time.Duration(random.ExpFloat64()*float64(config.Threads)*float64(35*ms))
				}}
			})
			if report.FramesDue != 300 {
				t.Errorf("seed %d: %d frames due", seed, report.FramesDue)
			}
			dropped += report.FramesDropped
			checkOrderOfRows(t, report)
			if !config.Wait {
				checkQueue(t, report)
				return
			}
			rows := report.rows[0]
			for k, row := range rows[:len(rows)-1] {
				if row.Result == OutcomeLate && rows[k+1].Due < row.Done+rate.Time(k+1)-rate.Time(k) {
					t.Errorf("seed %d: frame %d is due at %v, and the one in front of it came at %v", seed, k+1, rows[k+1].Due, row.Done)
				}
			}
		})
	}
	if dropped == 0 {
		t.Error("no source was too slow: the test tests nothing")
	}
}

// checkQueue checks that no read began while the queue was full of frames that
// were being read, or had been read and were not yet shown.
func checkQueue(t *testing.T, report *Report) {
	t.Helper()
	for _, rows := range report.rows {
		for _, row := range rows {
			if row.Result == OutcomeSkipped {
				continue
			}
			queued := 0
			for _, other := range rows[:row.K] {
				held := other.Result == OutcomeOnTime && other.Due > row.Began
				if other.Result != OutcomeSkipped && (other.Done > row.Began || held) {
					queued++
				}
			}
			if limit := max(report.Queue, report.Prebuffer); queued >= limit {
				t.Errorf("frame %d is read with %d frames in a queue of %d", row.K, queued, limit)
				return
			}
		}
	}
}

// checkOrderOfRows checks that a client's rows are all frames in order, and that
// none was due before the one in front of it.
func checkOrderOfRows(t *testing.T, report *Report) {
	t.Helper()
	for _, rows := range report.rows {
		for k, row := range rows {
			if row.K != k || k > 0 && row.Due < rows[k-1].Due {
				t.Errorf("row %d is frame %d, due at %v after one due at %v", k, row.K, row.Due, rows[max(k-1, 0)].Due)
				return
			}
			if late := row.Due > 0 && row.Done > row.Due; !report.Unpaced && row.Result == OutcomeOnTime && late && report.OnMiss == "skip" {
				t.Errorf("frame %d is on time, %v after it was due", row.K, row.Done-row.Due)
			}
		}
	}
}

// Delays of the player itself are measured, and said when they are too long.
func TestPlayMeasuresItself(t *testing.T) {
	dir := makeFrames(t, 100, 100)
	for _, test := range []struct {
		late time.Duration // each wait
		over bool
	}{{0, false}, {3 * ms, false}, {5 * ms, true}} {
		synctest.Test(t, func(t *testing.T) {
			config := PlayConfig{Paths: []string{dir}, Rate: Rate{25, 1}, Prebuffer: 1, Queue: 2}
			config.source = func(int) frameSource { return modelSource{func(now time.Duration) time.Duration { return now + ms }} }
			config.nap = func(d time.Duration) { time.Sleep(d + test.late) }
			report, err := Play(context.Background(), config)
			if err != nil {
				t.Fatal(err)
			}
			got := report.Scheduling
			if got.LimitMS != 4 || got.Waits < 90 || (got.OverLimit > 0) != test.over {
				t.Errorf("late by %v: %+v", test.late, got)
			}
			if want := milliseconds(test.late); got.Error.P50 < want || got.Error.P50 > want+0.01 {
				t.Errorf("late by %v: measured %v ms", test.late, got.Error.P50)
			}
			var text strings.Builder
			if err := report.WriteSummary(&text); err != nil {
				t.Fatal(err)
			}
			if says := strings.Contains(text.String(), "more than a tenth of a frame (4.00 ms)"); says != test.over {
				t.Errorf("late by %v:\n%s", test.late, text.String())
			}
		})
	}
}

// A run that is to end does not wait for a read that hangs, and names it.
func TestPlayInterruptedWhileAReadHangs(t *testing.T) {
	dir := makeFrames(t, 100, 100)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		const hangs = 10 * time.Minute
		config := PlayConfig{Paths: []string{dir}, Rate: Rate{25, 1}, Prebuffer: 5, Queue: 8}
		config.nap = time.Sleep
		config.source = func(int) frameSource { return modelSource{stalling(ms, time.Second, hangs)} }
		time.AfterFunc(3*time.Second, cancel)
		var ask func() []ClientState
		config.OnStart = func(states func() []ClientState) { ask = states }
		began := time.Now()
		report, err := Play(ctx, config)
		if err != nil || !report.Interrupted || time.Since(began) > 3*time.Second+stopGrace {
			t.Fatalf("%+v, %v after %v", report, err, time.Since(began))
		}
		if len(report.Unfinished) != 1 || report.FramesDue < 25 || report.Unfinished[0].Frame != report.FramesDue+1 {
			t.Errorf("%d frames due, unfinished: %+v", report.FramesDue, report.Unfinished)
		}
		before := ask()[0]
		time.Sleep(hangs) // what ends later changes nothing
		if after := ask()[0]; after.OnTime != before.OnTime || after.Late != before.Late || after.Bytes != before.Bytes {
			t.Errorf("%+v has become %+v", before, after)
		}
	})
}

// ^C in each phase brings a report of what was played.
func TestPlayInterruptedInEveryPhase(t *testing.T) {
	dir := makeFrames(t, 100, 100)
	for name, test := range map[string]struct {
		change func(*PlayConfig)
		after  time.Duration
		due    int // at most
	}{
		"before the start": {func(c *PlayConfig) { c.StartAt = time.Now().Add(time.Minute) }, time.Second, 0},
		"staggered":        {func(c *PlayConfig) { c.Clients, c.Stagger = 2, time.Minute }, time.Second, 100},
		"pre-buffer":       {func(c *PlayConfig) { c.Prebuffer = 90 }, 100 * ms, 11},
		"aligned":          {func(c *PlayConfig) { c.Aligned, c.Clients = true, 2 }, 2 * time.Second, 100},
		"playing":          {func(*PlayConfig) {}, 2 * time.Second, 60},
		"waiting":          {func(c *PlayConfig) { c.Wait = true }, 2 * time.Second, 60},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			config := PlayConfig{Paths: []string{dir}, Rate: Rate{25, 1}, Prebuffer: 5, Queue: 8}
			config.nap = time.Sleep
			config.source = func(client int) frameSource {
				return modelSource{func(now time.Duration) time.Duration { return now + 10*ms + time.Duration(client)*200*ms }}
			}
			test.change(&config)
			began := time.Now()
			time.AfterFunc(test.after, cancel)
			report, err := Play(ctx, config)
			if err != nil || !report.Interrupted || report.FramesDue > test.due || time.Since(began) > test.after+time.Second {
				t.Errorf("%s: %+v, %v after %v", name, report, err, time.Since(began))
			}
			checkOrderOfRows(t, report)
		})
	}
}

// What the clients are doing can be asked for while they play.
func TestPlayStates(t *testing.T) {
	dir := makeFrames(t, 100, 100)
	synctest.Test(t, func(t *testing.T) {
		config := PlayConfig{Paths: []string{dir}, Clients: 2, Stagger: 3 * time.Second, Rate: Rate{25, 1}, Prebuffer: 5, Queue: 8}
		var ask func() []ClientState
		config.OnStart = func(states func() []ClientState) { ask = states }
		during := make(chan []ClientState, 1)
		time.AfterFunc(2*time.Second+ms, func() { during <- ask() })
		simulatePlay(t, config, func(int) frameSource { return modelSource{func(now time.Duration) time.Duration { return now + 2*ms }} })
		// 49 frames have been shown, and the queue is full or one short of it.
		states := <-during
		first, second := states[0], states[1]
		if !first.Playing || first.Ended || first.Frames != 100 || first.OnTime < 56 || first.OnTime > 58 || first.Buffered < 7 || first.Buffered > 8 || first.Bytes != int64(first.OnTime)*100 {
			t.Errorf("%+v", first)
		}
		if second.Playing || second.OnTime != 0 || second.Client != 1 {
			t.Errorf("%+v", second)
		}
		for _, state := range ask() {
			if !state.Ended || state.Playing || state.OnTime != 100 {
				t.Errorf("at the end: %+v", state)
			}
		}
	})
}
