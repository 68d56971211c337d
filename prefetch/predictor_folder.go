package prefetch

// nextFolder returns where a sequence that ended at a place goes on in another
// folder.
func nextFolder(dirs Directories, at place, w walk, locked bool) (to place, missing []string, ok bool) {
	return place{}, nil, false
}
