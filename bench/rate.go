package bench

import (
	"fmt"
	"math/big"
	"math/bits"
	"strings"
	"time"
)

// Rate is a rational number of frames a second. The zero value is no rate.
type Rate struct{ Num, Den int64 }

// ntscRates are the decimals that people write for a multiple of 24 or 30
// frames every 1.001 seconds.
var ntscRates = map[string]Rate{
	"23.976": {24000, 1001}, "23.98": {24000, 1001}, "29.97": {30000, 1001},
	"47.952": {48000, 1001}, "47.95": {48000, 1001}, "59.94": {60000, 1001},
	"119.88": {120000, 1001},
}

// Bounds of a rate: beyond them something other than frames is meant, and the
// arithmetic of Time stays exact within.
const (
	maxRate        = 10_000
	maxDenominator = 1_000_000
)

// ParseRate reads "24", "23.976", "24000/1001" or "12.5".
func ParseRate(text string) (Rate, error) {
	text = strings.TrimSpace(text)
	if rate, ok := ntscRates[text]; ok {
		return rate, nil
	}
	value, ok := new(big.Rat).SetString(text)
	switch {
	case !ok || strings.ContainsAny(text, "eExXpP_"):
		return Rate{}, fmt.Errorf("fps %q is not understood: use for example 24, 23.976 or 24000/1001", text)
	case value.Sign() <= 0 || value.Cmp(big.NewRat(maxRate, 1)) > 0:
		return Rate{}, fmt.Errorf("fps %q: must be more than 0 and at most %d", text, maxRate)
	case !value.Denom().IsInt64() || value.Denom().Int64() > maxDenominator:
		return Rate{}, fmt.Errorf("fps %q: too many digits", text)
	}
	return Rate{value.Num().Int64(), value.Denom().Int64()}, nil
}

// Time returns how long n frames take, n at least 0.
func (r Rate) Time(n int) time.Duration {
	high, low := bits.Mul64(uint64(n), uint64(r.Den)*uint64(time.Second))
	quotient, _ := bits.Div64(high, low, uint64(r.Num))
	return time.Duration(quotient)
}

// Frames returns how many frame intervals have begun within d, rounded up: the
// smallest n with Time(n) >= d.
func (r Rate) Frames(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(d), uint64(r.Num))
	quotient, _ := bits.Div64(high, low, uint64(r.Den)*uint64(time.Second))
	n := int(quotient)
	for r.Time(n) < d {
		n++
	}
	return n
}

// Float returns the rate as a number for reports.
func (r Rate) Float() float64 {
	if r.Den == 0 {
		return 0
	}
	return float64(r.Num) / float64(r.Den)
}

// String returns the rate as ParseRate reads it.
func (r Rate) String() string {
	if r.Den == 1 {
		return fmt.Sprint(r.Num)
	}
	return fmt.Sprintf("%d/%d", r.Num, r.Den)
}
