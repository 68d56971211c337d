package main

import (
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1":        1,
		"4096":     4096,
		"1k":       1 << 10,
		"512MiB":   512 << 20,
		"512M":     512 << 20,
		"4G":       4 << 30,
		"4g":       4 << 30,
		"1.5GB":    1_500_000_000,
		"1.5G":     3 << 29,
		" 64 MiB ": 64 << 20,
		"2T":       2 << 40,
		"0":        0,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "many", "-1", "4X", "1e400G", "MiB", "99999999999T"} {
		if got, err := parseSize(text); err == nil || !strings.Contains(err.Error(), "512MiB") {
			t.Errorf("parseSize(%q) = %d, %v, want an error with an example", text, got, err)
		}
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]int64{
		"800MB/s":   800_000_000,
		"1.2GiB/s":  1_288_490_188,
		"100M":      100 << 20,
		" 10kB/s ":  10_000,
		"1000000/s": 1_000_000,
	} {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("parseRate(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/s", "fast", "10MB/h"} {
		if got, err := parseRate(text); err == nil || !strings.Contains(err.Error(), "800MB/s") {
			t.Errorf("parseRate(%q) = %d, %v, want an error with an example", text, got, err)
		}
	}
}

// TestSizeFlag: what a flag prints as its default is what it reads.
func TestSizeFlag(t *testing.T) {
	for _, text := range []string{"512MiB", "16G", "1.5 GiB"} {
		var first, second sizeFlag
		if err := first.Set(text); err != nil {
			t.Fatal(err)
		}
		if err := second.Set(first.String()); err != nil || first != second {
			t.Errorf("%q prints as %q, which reads as %d, %v, want %d", text, &first, second, err, first)
		}
	}
	var rate rateFlag
	if err := rate.Set("800MB/s"); err != nil || rate.String() != "800 MB/s" {
		t.Errorf("800MB/s prints as %q, %v", &rate, err)
	}
}
