package slownas

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"
)

// model computes when requests complete. Times are durations since the mount;
// the caller passes the clock in. It never waits itself.
//
// All of it is decided when a request arrives: with the times at which the
// slots fall free known in advance, the start of a queued request is known too,
// and no queue is needed.
type model struct {
	roundTrip time.Duration
	jitter    time.Duration
	bandwidth int64 // bytes a second, all streams together
	perStream int64 // bytes a second, one stream
	stall     stall

	mu sync.Mutex
	// The fields below are guarded by mu.
	random *rand.Rand
	total  link
	slots  slotHeap // server times at which the slots fall free, earliest first
}

func newModel(config Config) *model {
	return &model{
		roundTrip: config.RoundTrip,
		jitter:    config.Jitter,
		bandwidth: config.Bandwidth,
		perStream: config.StreamBandwidth,
		stall:     config.Stall.stall(),
		random:    rand.New(rand.NewPCG(config.Seed, 0)),
		slots:     make(slotHeap, config.Slots),
	}
}

// link is something that carries one byte after the other. free is the server
// time at which it has carried everything given to it so far.
type link struct{ free time.Duration }

// carry returns when n bytes that are ready at the given time have passed.
func (l *link) carry(ready time.Duration, n int, bytesPerSecond int64) time.Duration {
	l.free = max(l.free, ready) + time.Duration(float64(n)/float64(bytesPerSecond)*float64(time.Second))
	return l.free
}

// complete returns when a request that arrives now is answered. stream is the
// link of the handle whose n bytes it carries, nil for a request without data.
func (m *model) complete(now time.Duration, stream *link, n int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()

	start := max(m.stall.serverTime(now), m.slots[0])
	ready := start + m.roundTrip
	if m.jitter > 0 {
		ready += time.Duration(m.random.Int64N(int64(m.jitter) + 1))
	}
	done := ready
	if stream != nil && n > 0 {
		done = max(stream.carry(ready, n, m.perStream), m.total.carry(ready, n, m.bandwidth))
	}
	m.slots[0] = done
	heap.Fix(&m.slots, 0)
	return m.stall.clockTime(done)
}

// stall is a server that stands still for the first length of every period
// after the first one. Requests are computed in server time, which does not
// advance while it stands still.
type stall struct{ length, period time.Duration }

// serverTime converts a time since the mount to server time.
func (s stall) serverTime(clock time.Duration) time.Duration {
	if s.length == 0 || clock < s.period {
		return clock
	}
	periods, within := clock/s.period, clock%s.period
	return clock - (periods-1)*s.length - min(within, s.length)
}

// clockTime is the inverse of serverTime. A server time at which the server
// stands still is converted to the end of the stall.
func (s stall) clockTime(server time.Duration) time.Duration {
	if s.length == 0 || server < s.period {
		return server
	}
	return server + s.length + (server-s.period)/(s.period-s.length)*s.length
}

// slotHeap implements heap.Interface.
type slotHeap []time.Duration

func (h slotHeap) Len() int           { return len(h) }
func (h slotHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h slotHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h slotHeap) Push(any)           { panic("slownas: the number of slots is fixed") }
func (h slotHeap) Pop() any           { panic("slownas: the number of slots is fixed") }
