package bench

import (
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"24": {24, 1}, " 25 ": {25, 1}, "23.976": {24000, 1001}, "24000/1001": {24000, 1001},
		"29.97": {30000, 1001}, "59.94": {60000, 1001}, "12.5": {25, 2}, "0.5": {1, 2}, "48/2": {24, 1},
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-24", "1/0", "0/1", "24fps", "1e3", "inf", "NaN", "24/", "/1001", "100000", "1/10000000", "0x18"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q) = %v, want an error", text, got)
		}
	}
}

func TestRateTimeIsExact(t *testing.T) {
	ntsc := Rate{24000, 1001}
	if got, want := ntsc.Time(24000*3600), 1001*3600*time.Second; got != want {
		t.Errorf("24000×3600 frames take %v, want %v", got, want)
	}
	for _, rate := range []Rate{{24, 1}, ntsc, {60000, 1001}, {1, 2}, {9999, 7}} {
		for _, n := range []int{0, 1, 2, 23, 24, 1000, 1_000_000} {
			if got := rate.Frames(rate.Time(n)); got != n {
				t.Errorf("%v: Frames(Time(%d)) = %d", rate, n, got)
			}
			if got := rate.Frames(rate.Time(n) + 1); got != n+1 {
				t.Errorf("%v: Frames(Time(%d)+1ns) = %d", rate, n, got)
			}
		}
	}
}
