package prefetch

import (
	"sync"

	"reelahead/cache"
)

// descriptors are several of one state of a file, opened as they are needed:
// servers and clients that bound what one open file is given (a stripe's thread, a
// session's slot, a quota) give several that much each.
type descriptors [maxDescriptors]struct {
	mu sync.Mutex
	fd int // 0: not needed yet
}

const maxDescriptors = 8

// get returns the descriptor for the nth part of the file, or -1. It fails with
// errChanged if the name leads to another state of the file by now.
func (d *descriptors) get(e *Engine, name string, state cache.Attr, nth int64) (int, error) {
	held := &d[nth%maxDescriptors]
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.fd == 0 {
		fd, attr, err := e.openSource(name)
		if err == nil && !attr.SameContent(state) {
			e.source.Release(fd)
			err = errChanged
		}
		if err != nil {
			return -1, err
		}
		held.fd = fd
	}
	return held.fd, nil
}

// release closes all. Nobody may use any, or be in get.
func (d *descriptors) release(source *Source) {
	for i := range d {
		if held := &d[i]; held.fd != 0 {
			source.Release(held.fd)
			held.fd = 0
		}
	}
}
