package bench

import (
	"errors"
	"testing"
)

func TestParsePattern(t *testing.T) {
	for path, want := range map[string]Pattern{
		"/mnt/a/shot.%04d.exr": {"/mnt/a", "shot.", ".exr", 4},
		"/mnt/a/shot.####.exr": {"/mnt/a", "shot.", ".exr", 4},
		"shot%d.dpx":           {".", "shot", ".dpx", 1},
		"a/#":                  {"a", "", "", 1},
		"a/v002_%06d":          {"a", "v002_", "", 6},
		"a%d/shot.%04d.exr":    {"a%d", "shot.", ".exr", 4},
	} {
		if got, err := ParsePattern(path); err != nil || got != want {
			t.Errorf("ParsePattern(%q) = %+v, %v; want %+v", path, got, err, want)
		}
	}
	for _, path := range []string{"a/shot.%4d.exr", "a/shot.%04d.%d.exr", "a/##_##", "a/%04x.exr", "a/%s%04d.exr", "a/%099d"} {
		if got, err := ParsePattern(path); err == nil {
			t.Errorf("ParsePattern(%q) = %+v, want an error", path, got)
		}
	}
	if _, err := ParsePattern("a/shot"); !errors.Is(err, ErrNoNumber) {
		t.Errorf("a path without a number: %v, want ErrNoNumber", err)
	}
}

func TestPatternNumber(t *testing.T) {
	padded := Pattern{Prefix: "shot.", Suffix: ".exr", Width: 4}
	plain := Pattern{Prefix: "shot.", Suffix: ".exr", Width: 1}
	for _, test := range []struct {
		pattern Pattern
		name    string
		number  int
		ok      bool
	}{
		{padded, "shot.0001.exr", 1, true},
		{padded, "shot.10000.exr", 10000, true},
		{padded, "shot.1.exr", 0, false},
		{padded, "shot.00001.exr", 0, false},
		{padded, "shot.-001.exr", 0, false},
		{padded, "shot.+001.exr", 0, false},
		{padded, "shot..exr", 0, false},
		{padded, "shot.0001.dpx", 0, false},
		{padded, "shot.exr", 0, false},
		{plain, "shot.9.exr", 9, true},
		{plain, "shot.10.exr", 10, true},
		{plain, "shot.0.exr", 0, true},
		{plain, "shot.09.exr", 0, false},
	} {
		number, ok := test.pattern.Number(test.name)
		if number != test.number || ok != test.ok {
			t.Errorf("%v: Number(%q) = %d, %v; want %d, %v", test.pattern, test.name, number, ok, test.number, test.ok)
		}
	}
}
