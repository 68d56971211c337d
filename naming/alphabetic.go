package naming

// Alphabetic returns the successor (direction 1) or predecessor (-1) of name
// counted in letters, as split(1) writes them: xaz, xba. ok is false where the
// listing does not prove it: at least three names in a row, name among them,
// each one letter on from the one before. Two could be words.
func (l *Listing) Alphabetic(name string, direction int) (next string, ok bool) {
	if next, ok = l.alphabetic(name, len(name), direction); ok {
		return next, true
	}
	if extension := Extension(name); extension != "" {
		return l.alphabetic(name, len(name)-len(extension)-1, direction)
	}
	return "", false
}

func (l *Listing) alphabetic(name string, end, direction int) (next string, ok bool) {
	const proof = 3
	next, ok = stepLetters(name, end, direction)
	if !ok || !l.Contains(next) {
		return "", false
	}
	inRow := 2
	for _, way := range [...]int{direction, -direction} {
		at := name
		if way == direction {
			at = next
		}
		for inRow < proof {
			at, ok = stepLetters(at, end, way)
			if !ok || !l.Contains(at) {
				break
			}
			inRow++
		}
	}
	return next, inRow >= proof
}

// stepLetters counts the letters before end one on or back, in base 26. Fewer
// than two letters are a label (L, R), not a counter.
func stepLetters(name string, end, direction int) (string, bool) {
	start := end
	for start > 0 && isLetter(name[start-1]) && name[start-1]&0x20 == name[end-1]&0x20 {
		start--
	}
	if end-start < 2 {
		return "", false
	}
	stepped := []byte(name)
	first, last := byte('a'), byte('z')
	if name[start] < 'a' {
		first, last = 'A', 'Z'
	}
	if direction < 0 {
		first, last = last, first
	}
	for i := end - 1; i >= start; i-- {
		if stepped[i] != last {
			stepped[i] += byte(direction)
			return string(stepped), true
		}
		stepped[i] = first
	}
	return "", false
}
