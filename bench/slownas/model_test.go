package slownas

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func testConfig() Config {
	return Config{RoundTrip: 10 * ms, Bandwidth: 400_000_000, StreamBandwidth: 100_000_000, Slots: 64, Seed: 1, ReadAhead: 128 << 10}
}

func TestRequestsTakeOneRoundTrip(t *testing.T) {
	m := newModel(testConfig())
	for _, now := range []time.Duration{0, 3 * ms, 500 * ms} {
		if got, want := m.complete(now, nil, 0), now+10*ms; got != want {
			t.Errorf("a request at %v completes at %v, want %v", now, got, want)
		}
	}
}

func TestOneStreamIsCapped(t *testing.T) {
	m := newModel(testConfig())
	var stream link
	// 10 requests of 1 MB at once share the round trip, then follow each other
	// at 100 MB/s.
	for i := range 10 {
		want := 10*ms + time.Duration(i+1)*10*ms
		if got := m.complete(0, &stream, 1_000_000); got != want {
			t.Errorf("request %d completes at %v, want %v", i, got, want)
		}
	}
	// A reader that waits for each request pays the round trip each time.
	var waiting link
	now := time.Second
	for range 10 {
		now = m.complete(now, &waiting, 1_000_000)
	}
	if want := time.Second + 10*20*ms; now != want {
		t.Errorf("10 requests one by one complete at %v, want %v", now, want)
	}
}

func TestAllStreamsShareTheBandwidth(t *testing.T) {
	m := newModel(testConfig())
	streams := make([]link, 8)
	var last time.Duration
	for range 8 { // 8 streams of 8 MB each: 64 MB at 400 MB/s
		for i := range streams {
			last = max(last, m.complete(0, &streams[i], 1_000_000))
		}
	}
	if want := 10*ms + 160*ms; last != want {
		t.Errorf("the last of 64 MB arrives at %v, want %v", last, want)
	}
}

func TestAStreamThatWaitsDoesNotHoldTheOthers(t *testing.T) {
	m := newModel(testConfig())
	var slow, other link
	for range 20 {
		m.complete(0, &slow, 1_000_000) // 200 ms of its own link, 50 of all
	}
	if got, most := m.complete(0, &other, 1_000_000), 10*ms+60*ms; got > most {
		t.Errorf("another stream's request completes at %v, want at most %v", got, most)
	}
}

func TestRequestsWaitForASlot(t *testing.T) {
	config := testConfig()
	config.Slots = 4
	m := newModel(config)
	for i := range 12 {
		if got, want := m.complete(0, nil, 0), time.Duration(i/4+1)*10*ms; got != want {
			t.Errorf("request %d of 12 with 4 slots completes at %v, want %v", i, got, want)
		}
	}
}

func TestJitterIsAddedAndRepeatable(t *testing.T) {
	config := testConfig()
	config.Jitter = 2 * ms
	a, b := newModel(config), newModel(config)
	seen := map[time.Duration]bool{}
	for i := range 100 {
		now := time.Duration(i) * time.Second
		took := a.complete(now, nil, 0) - now
		if took < 10*ms || took > 12*ms {
			t.Errorf("a round trip of %v, want 10 to 12 ms", took)
		}
		if other := b.complete(now, nil, 0) - now; other != took {
			t.Errorf("the same seed gives %v and %v", took, other)
		}
		seen[took] = true
	}
	if len(seen) < 50 {
		t.Errorf("only %d different round trips of 100", len(seen))
	}
}

func TestStall(t *testing.T) {
	config := testConfig()
	config.Stall = Stall{Length: 500 * ms, Period: 2 * time.Second}
	for _, test := range []struct{ now, want time.Duration }{
		{0, 10 * ms},
		{1980 * ms, 1990 * ms},
		{1995 * ms, 2505 * ms}, // on its way when the stall begins
		{2000 * ms, 2510 * ms},
		{2300 * ms, 2510 * ms},
		{2500 * ms, 2510 * ms},
		{3000 * ms, 3010 * ms},
		{3995 * ms, 4505 * ms},
		{4200 * ms, 4510 * ms},
		{8100 * ms, 8510 * ms},
	} {
		if got := newModel(config).complete(test.now, nil, 0); got != test.want {
			t.Errorf("a request at %v completes at %v, want %v", test.now, got, test.want)
		}
	}
}

func TestStallConversionsAreInverse(t *testing.T) {
	s := stall{length: 500 * ms, period: 2 * time.Second}
	previous := time.Duration(-1)
	for clock := time.Duration(0); clock < 20*time.Second; clock += 7 * ms {
		server := s.serverTime(clock)
		if server < previous {
			t.Fatalf("server time goes back at %v", clock)
		}
		previous = server
		if stalled := clock >= s.period && clock%s.period < s.length; !stalled && s.clockTime(server) != clock {
			t.Errorf("clockTime(serverTime(%v)) = %v", clock, s.clockTime(server))
		}
	}
}

func TestValidate(t *testing.T) {
	if err := testConfig().Validate(); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
	for name, change := range map[string]func(*Config){
		"negative round trip":  func(c *Config) { c.RoundTrip = -1 },
		"negative jitter":      func(c *Config) { c.Jitter = -1 },
		"no bandwidth":         func(c *Config) { c.Bandwidth = 0 },
		"no stream bandwidth":  func(c *Config) { c.StreamBandwidth = 0 },
		"no slots":             func(c *Config) { c.Slots = 0 },
		"negative read-ahead":  func(c *Config) { c.ReadAhead = -1 },
		"endless stall":        func(c *Config) { c.Stall = Stall{time.Second, time.Second} },
		"stall without period": func(c *Config) { c.Stall = Stall{Length: time.Second} },
	} {
		config := testConfig()
		change(&config)
		if config.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestAlarmRingsInOrderAndOnTime(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	begin := a.now()
	late := a.after(begin + 40*ms)
	early := a.after(begin + 10*ms) // set after a later one
	past := a.after(begin - time.Second)
	for _, ring := range []<-chan struct{}{past, early, late} {
		select {
		case <-ring:
		case <-time.After(10 * time.Second):
			t.Fatal("an alarm did not ring")
		}
	}
	if took := a.now() - begin; took < 40*ms {
		t.Errorf("the alarm for 40 ms rang after %v", took)
	}
}
