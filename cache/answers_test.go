package cache

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func newAnswers(t *testing.T) *Answers[int] {
	t.Helper()
	answers, err := NewAnswers[int](1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(answers.Close)
	return answers
}

func TestAnswersAreRemembered(t *testing.T) {
	answers := newAnswers(t)
	known := time.Now()
	answers.Put("a", 1, 100, known, answers.Epoch())
	answers.Put("b", 2, 100, known.Add(time.Second), answers.Epoch())
	answers.Wait()
	if value, at, ok := answers.Get("a"); !ok || value != 1 || !at.Equal(known) {
		t.Errorf("a: %d at %v, %v", value, at, ok)
	}
	if value, at, ok := answers.Get("b"); !ok || value != 2 || !at.Equal(known.Add(time.Second)) {
		t.Errorf("b: %d at %v, %v", value, at, ok)
	}
	if value, at, ok := answers.Get("c"); ok || value != 0 || !at.IsZero() {
		t.Errorf("c: %d at %v, although nobody asked", value, at)
	}
	answers.Put("a", 3, 100, known, answers.Epoch())
	answers.Wait()
	if value, _, ok := answers.Get("a"); !ok || value != 3 {
		t.Errorf("a, asked again: %d, %v, want 3", value, ok)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	answers := newAnswers(t)
	for i := range 1000 {
		answers.Put(fmt.Sprint(i), i, 10<<10, time.Now(), answers.Epoch())
		answers.Wait()
	}
	found := 0
	for i := range 1000 {
		if value, _, ok := answers.Get(fmt.Sprint(i)); ok {
			found++
			if value != i {
				t.Errorf("%d: answer %d", i, value)
			}
		}
	}
	if found == 0 || found > 102 {
		t.Errorf("%d answers of 10 KiB in 1 MiB", found)
	}
}

func TestChangeVoidsAnswers(t *testing.T) {
	changes := []struct {
		name   string
		change func(*Answers[int])
		others bool // answers for other paths are still good
	}{
		{"Changed", func(a *Answers[int]) { a.Changed("d/f") }, true},
		{"TreeChanged", func(a *Answers[int]) { a.TreeChanged() }, false},
	}
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			answers := newAnswers(t)
			before := answers.Epoch()
			answers.Put("d/f", 1, 1, time.Now(), before)
			answers.Put("d/g", 1, 1, time.Now(), before)
			answers.Wait()
			c.change(answers)
			if value, _, ok := answers.Get("d/f"); ok {
				t.Errorf("answer %d from before the change", value)
			}
			if _, _, ok := answers.Get("d/g"); ok != c.others {
				t.Errorf("another path's answer is known: %v, want %v", ok, c.others)
			}

			answers.Put("d/f", 2, 1, time.Now(), before) // asked before, answered after
			answers.Wait()
			if value, _, ok := answers.Get("d/f"); ok {
				t.Errorf("answer %d to a question from before the change", value)
			}
			answers.Put("d/f", 3, 1, time.Now(), answers.Epoch())
			answers.Wait()
			if value, _, ok := answers.Get("d/f"); !ok || value != 3 {
				t.Errorf("answer %d, %v to a question from after the change, want 3", value, ok)
			}
		})
	}
}

func TestChangeVoidsAnswersUnderWay(t *testing.T) {
	for name, change := range map[string]func(*Answers[int], string){
		"Changed":     (*Answers[int]).Changed,
		"TreeChanged": func(a *Answers[int], _ string) { a.TreeChanged() },
	} {
		answers := newAnswers(t)
		for i := range 2000 {
			path := fmt.Sprint(i % 3)
			answers.Put(path, i, 1, time.Now(), answers.Epoch()) // found by Get at some time
			change(answers, path)
			for range 20 {
				if value, _, ok := answers.Get(path); ok {
					t.Fatalf("%s: answer %d from before the change", name, value)
				}
			}
		}
	}
}

// A source that changes all the time is asked by many. Right after a change, no
// answer is older than it.
func TestNoAnswerIsOlderThanAChange(t *testing.T) {
	answers := newAnswers(t)
	const paths = 3
	var source [paths]atomic.Int64
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				path := i % paths
				epoch := answers.Epoch()
				value := source[path].Load()
				answers.Put(fmt.Sprint(path), int(value), 1, time.Now(), epoch)
				runtime.Gosched() // a single processor has more to do
			}
		})
	}
	for path := range paths {
		writers.Go(func() {
			for i := range 500 {
				version := int(source[path].Add(1))
				if i%100 == 99 {
					answers.TreeChanged()
				} else {
					answers.Changed(fmt.Sprint(path))
				}
				if value, _, ok := answers.Get(fmt.Sprint(path)); ok && value < version {
					t.Errorf("path %d: answer %d after change %d", path, value, version)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func TestAnswersAfterClose(t *testing.T) {
	answers := newAnswers(t)
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for i := range 500 {
				answers.Put("a", i, 1, time.Now(), answers.Epoch())
				answers.Wait()
				answers.Changed("a")
			}
		})
	}
	answers.Close()
	users.Wait()
	answers.Put("a", 1, 1, time.Now(), answers.Epoch())
	if value, _, ok := answers.Get("a"); ok {
		t.Errorf("answer %d after Close", value)
	}
}
