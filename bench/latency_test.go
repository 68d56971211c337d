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

func TestSchedulingOfSeveralRuns(t *testing.T) {
	var total SchedulingReport
	for _, late := range []time.Duration{ms, 3 * ms} {
		clock := newTimekeeper(Rate{100, 1}, time.Sleep)
		for range 50 {
			clock.note(0, late)
		}
		rows := [][]Row{{{Result: OutcomeLate, Began: 0, Done: 5 * ms, Due: 4 * ms}, {Result: OutcomeLate, Began: time.Second, Due: time.Second, Done: time.Second}}}
		total.merge(clock.report(rows))
	}
	if total.Waits != 100 || total.OverLimit != 50 || total.DropsNear != 1 || total.LimitMS != 1 {
		t.Errorf("%+v", total)
	}
	if total.Error.P50 > 1.01 || total.Error.P95 < 2.99 || total.Error.P95 > 3.01 {
		t.Errorf("errors of %+v ms", total.Error)
	}
}
