// Package naming reads file names the way sequences are really named, and
// answers which names come next.
//
// A name is cut into runs of digits and the text between them ([Runs]). Most
// runs can count; some never do, whatever stands beside them: the digits of a
// version, of a picture's resolution, of the total in "00003-of-00016", of a
// file format, of a UUID or a hash. Those are part of the text.
//
// A [Listing] is one directory's names as evidence. Names with the same text
// around the same number of runs form a group; inside a group, names written
// with the same padding form a [Sequence], in natural order: by number, from
// the left. So the number nearest the extension runs fastest, the next one
// takes the carry, gaps and ends are those of the directory, and nothing that
// does not exist is ever a member. A run of hexadecimal digits becomes one
// number only where the listing proves it: 0009 beside 000a, 00ff beside 0100.
//
// Without a listing there is only arithmetic ([Advance]): a guess to probe.
//
// The package is pure: no files, no clock, no goroutines. A Listing never
// changes after [NewListing] and may be shared freely.
package naming
