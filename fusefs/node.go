package fusefs

import (
	"time"

	"golang.org/x/sys/unix"

	"reelahead/cache"
)

// inodeKey is the source's identity of a file.
type inodeKey struct{ dev, ino uint64 }

type nameKey struct {
	parent *node
	name   string
}

// mode is how the open handles of a node are served.
type mode uint8

const (
	modeClosed mode = iota // no handle is open: the next open decides
	modeMemory             // passthrough to a frame's memory
	modeSource             // passthrough to the source's file
	modeDaemon             // this process answers reads and writes
)

// node is an inode as the kernel knows it. A source file has one current node;
// older ones live on while handles are open on them. All fields are guarded by
// fileSystem.mu.
type node struct {
	id      uint64
	key     inodeKey
	lookups uint64
	parent  *node // nil: the root
	name    string

	// unnamed: the file has lost the name under which it was last seen, or never
	// had one (O_TMPFILE). It is reached by its open handles only.
	unnamed bool
	// told is what the kernel was last told of the file and may still believe.
	told cache.Attr
	// replaced: the name was given to a newer node; nothing is opened here any
	// more.
	replaced bool

	listing listing
	xattrs  map[xattrKey]xattrAnswer
	changes uint64 // through the mount: an answer from before one is not remembered

	mode    mode
	backing int32
	frame   *cache.Frame // what modeMemory serves; one reference
	handles map[*handle]struct{}
	written bool // a writer opened it while readers are served from frames
}

// handle is an open file. Its fields do not change after the open but for fd.
// It ends when the kernel has released it and no call uses it any more: one
// whose caller was killed may still wait for the source.
type handle struct {
	users  int // the kernel counts as one. Guarded by fileSystem.mu
	id     uint64
	node   *node
	fd     int // of the source; -1 where a frame serves. Guarded by fileSystem.mu until set
	lease  frameLease
	writer bool
}

const rootID = 1

// firstID leaves room for the root and the control files.
const firstID = 16

func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	return n.parent.child(n.name)
}

func (n *node) child(name string) string {
	if dir := n.path(); dir != "" {
		return dir + "/" + name
	}
	return name
}

// pathOf returns the path of a node, relative to the source.
func (fs *fileSystem) pathOf(id uint64) (*node, string, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.nodes[id]
	if n == nil {
		return nil, "", unix.ESTALE
	}
	return n, n.path(), nil
}

func (fs *fileSystem) isUnnamed(n *node) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return n.unnamed
}

// childPath returns the path of a name in a directory node.
func (fs *fileSystem) childPath(parent uint64, name string) (*node, string, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.nodes[parent]
	switch {
	case isControl(parent):
		return nil, "", unix.EPERM // its names are what they are
	case n == nil:
		return nil, "", unix.ESTALE
	}
	return n, n.child(name), nil
}

// enter returns the node for what a lookup found, counted as looked up once. A
// file without a name is entered as "".
func (fs *fileSystem) enter(parent *node, name string, attr cache.Attr) *node {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	key := inodeKey{attr.Dev, attr.Ino}
	n := fs.current[key]
	if n != nil && n.mode == modeMemory && !n.frame.Attr().SameContent(attr) {
		fs.replaceLocked(n)
		n = nil
	}
	if n == nil {
		fs.lastID++
		n = &node{id: fs.lastID, key: key, handles: make(map[*handle]struct{})}
		fs.nodes[n.id] = n
		fs.current[key] = n
	}
	if name == "" {
		n.parent, n.unnamed = parent, true
	} else {
		fs.placeLocked(n, parent, name)
	}
	n.lookups++
	n.tellLocked(attr)
	return n
}

// placeLocked records the name under which a node was last seen.
func (fs *fileSystem) placeLocked(n, parent *node, name string) {
	if n.parent == parent && n.name == name && !n.unnamed {
		return
	}
	fs.unplaceLocked(n)
	n.parent, n.name, n.unnamed = parent, name, false
	fs.names[nameKey{parent, name}] = n
}

func (fs *fileSystem) unplaceLocked(n *node) {
	if key := (nameKey{n.parent, n.name}); fs.names[key] == n {
		delete(fs.names, key)
	}
}

// replaceLocked gives a file's name away: the next lookup makes a new node.
func (fs *fileSystem) replaceLocked(n *node) {
	n.replaced = true
	if fs.current[n.key] == n {
		delete(fs.current, n.key)
	}
}

// Forget is the kernel's word that it dropped references to a node.
func (fs *fileSystem) Forget(id, lookups uint64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.nodes[id]
	if n == nil || n.parent == nil {
		return
	}
	n.lookups -= min(n.lookups, lookups)
	fs.dropLocked(n)
}

// dropLocked forgets a node that neither the kernel nor a handle knows any more.
func (fs *fileSystem) dropLocked(n *node) {
	if n.lookups > 0 || len(n.handles) > 0 || n.parent == nil {
		return
	}
	delete(fs.nodes, n.id)
	fs.unplaceLocked(n)
	if fs.current[n.key] == n {
		delete(fs.current, n.key)
	}
}

// remaining returns how much of the validity an answer from known has left.
func (fs *fileSystem) remaining(known time.Time) time.Duration {
	return max(0, fs.options.Engine.Validity-time.Since(known))
}
