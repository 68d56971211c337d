package bench

import (
	"testing"
	"time"
)

func TestHistogramsSurviveTheReport(t *testing.T) {
	l := newLatencies()
	for i := range 1000 {
		l.record(Row{Open: time.Duration(i) * time.Microsecond, First: ms, Read: time.Duration(i) * ms, Close: time.Hour, Result: OutcomeOnTime})
	}
	decoded, err := l.encode().decode()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := decoded.report(), l.report(); got != want || got.Read.P50 == 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	twice := newLatencies()
	twice.merge(decoded)
	twice.merge(l)
	if got := twice.read.TotalCount(); got != 2000 {
		t.Errorf("%d values of two histograms of 1000", got)
	}
	broken := l.encode()
	broken.Close = "HISTbroken"
	if _, err := broken.decode(); err == nil {
		t.Error("a broken histogram is accepted")
	}
}
