package main

import (
	"bufio"
	"fmt"
	"strings"

	"reelahead/naming"
	"reelahead/prefetch"
)

// explanation tells in words what the predictor saw in one name and its
// directory.
type explanation struct {
	out     *bufio.Writer
	name    string
	listing *naming.Listing
	next    []string
}

func (e explanation) say(format string, args ...any) { fmt.Fprintf(e.out, format+"\n", args...) }

func (e explanation) write() {
	e.say("%s", e.name)
	if !e.listing.Contains(e.name) {
		e.say("  does not exist; the names beside it tell the same as if it did")
	}
	if convention, ok := prefetch.ConventionOf(e.name); ok {
		e.say("  named by convention: %s (%s)", convention.Title, convention.Source)
	}
	sequence, inSequence := e.listing.Sequence(e.name)
	e.runs(sequence, inSequence)
	switch {
	case inSequence && sequence.Len() > 1:
		e.sequence(sequence)
	case inSequence:
		e.say("sequence: none, no other name is padded like it")
	default:
		e.say("sequence: none, no other of the %d names in the directory differs in numbers only", e.listing.Len())
	}
	if len(e.next) == 0 {
		e.say("next: nothing, nothing would be fetched")
		return
	}
	e.say("next: %s", strings.Join(e.next, " "))
}

// runs says of each run of digits what it is and whether it varies.
func (e explanation) runs(sequence naming.Sequence, inSequence bool) {
	runs := naming.Runs(e.name)
	if len(runs) == 0 {
		e.say("  no digits in the name")
	}
	for _, run := range runs {
		if run.Kind != naming.Number {
			e.say("  %s is a %s: never counts", e.name[run.Start:run.End], run.Kind)
		} else if !inSequence {
			e.say("  %s is a number", e.name[run.Start:run.End])
		}
	}
	if !inSequence {
		return
	}
	for n, counter := range sequence.Numbers(e.name) {
		kind := "number"
		if counter.Base == 16 {
			kind = "hexadecimal number: names beside it count on through a to f"
		}
		e.say("  %s is a %s: %s", e.name[counter.Start:counter.End], kind, e.variation(sequence, n))
	}
}

// variation says which neighbours show that number n varies.
func (e explanation) variation(sequence naming.Sequence, n int) string {
	var beside []string
	for _, direction := range [...]int{-1, 1} {
		if name, ok := sequence.Along(e.name, n, direction); ok {
			beside = append(beside, name)
		}
	}
	if len(beside) == 0 {
		return "the same in every name that has the other numbers of this one"
	}
	return "varies, by " + strings.Join(beside, " and ")
}

// sequence says what the file is a member of: patterns, ends, gaps.
func (e explanation) sequence(sequence naming.Sequence) {
	fast := e.fastest(sequence)
	pattern := sequence.Pattern(e.name, fast)
	first, last := sequence.Name(0), sequence.Name(sequence.Len()-1)
	e.say("sequence: %s (%s), %d files from %s to %s", pattern.Printf(), pattern.Hashes(), sequence.Len(), first, last)
	position, exact := sequence.Position(e.name)
	if exact {
		e.say("position: %d of %d, step 1 until the reader shows another", position+1, sequence.Len())
	}
	if missing := e.missing(sequence, fast); missing != "" {
		e.say("does not exist: %s", missing)
	}
}

// fastest returns the number in which the nearest neighbour differs.
func (e explanation) fastest(sequence naming.Sequence) int {
	position, exact := sequence.Position(e.name)
	for _, i := range [...]int{position + 1, position - 1, position} {
		if i < 0 || i >= sequence.Len() || exact && i == position {
			continue
		}
		if differing := sequence.Differing(e.name, sequence.Name(i)); len(differing) > 0 {
			return differing[len(differing)-1]
		}
	}
	return len(sequence.Numbers(e.name)) - 1
}

// missing names the arithmetic successor if the directory does not hold it,
// since that is what a guess without the listing would have tried.
func (e explanation) missing(sequence naming.Sequence, fast int) string {
	successors := naming.Advance(e.name, sequence.Numbers(e.name)[fast], 1)
	for _, name := range successors {
		if e.listing.Contains(name) {
			return ""
		}
	}
	return strings.Join(successors, " ")
}
