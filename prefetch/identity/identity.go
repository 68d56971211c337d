// Package identity does things as another user: the source of a mount for
// several users is asked with the ids of the one who asks, so that it is the
// source which decides what it shows to whom.
//
// Only file access is concerned (setfsuid(2), setfsgid(2)) and only one thread
// for the time of one call: what the call does in other goroutines is done as
// this process.
package identity

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Identity is a user as a filesystem sees one.
type Identity struct {
	UID, GID uint32
	Groups   []uint32 // supplementary
}

// Own is the identity of this process.
func Own() (Identity, error) {
	groups, err := unix.Getgroups()
	own := Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	for _, group := range groups {
		own.Groups = append(own.Groups, uint32(group))
	}
	return own, err
}

// OfThread is the identity of a thread that asks with the given ids. The groups
// of one that is gone, or not to be seen from here (of another process
// namespace), are not known: it gets none.
func OfThread(uid, gid, thread uint32) Identity {
	return Identity{UID: uid, GID: gid, Groups: groupsOf(thread)}
}

func groupsOf(thread uint32) (groups []uint32) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return nil
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		list, ok := strings.CutPrefix(lines.Text(), "Groups:")
		if !ok {
			continue
		}
		for field := range strings.FieldsSeq(list) {
			if group, err := strconv.ParseUint(field, 10, 32); err == nil {
				groups = append(groups, uint32(group))
			}
		}
	}
	return groups
}

// Key is the same for equal identities and differs for others.
func (i Identity) Key() string {
	key := make([]byte, 0, 64)
	key = strconv.AppendUint(key, uint64(i.UID), 10)
	key = strconv.AppendUint(append(key, ':'), uint64(i.GID), 10)
	for _, group := range i.Groups {
		key = strconv.AppendUint(append(key, ' '), uint64(group), 10)
	}
	return string(key)
}

// Do runs call as i, then goes on as own, the identity of this process, which
// must be allowed to change to others (root).
func (i Identity) Do(own Identity, call func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		if err := own.assume(); err != nil {
			// Nothing may ever run on this thread as somebody else.
			panic(err)
		}
	}()
	if err := i.assume(); err != nil {
		return err
	}
	return call()
}

// assume changes the ids of the calling thread; the wrappers of package syscall
// would change those of all. The kernel takes or gives back the privileges of
// root over files with them.
func (i Identity) assume() error {
	var groups unsafe.Pointer
	if len(i.Groups) > 0 {
		groups = unsafe.Pointer(&i.Groups[0])
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(i.Groups)), uintptr(groups), 0); errno != 0 {
		return fmt.Errorf("take the groups of user %d: %w", i.UID, errno)
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(i.GID), 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(i.UID), 0, 0)
	// Both report no error but the ids from before: ask with an invalid id.
	const none = ^uintptr(0)
	uid, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, none, 0, 0)
	gid, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, none, 0, 0)
	if uint32(uid) != i.UID || uint32(gid) != i.GID {
		return fmt.Errorf("become user %d and group %d: %w", i.UID, i.GID, unix.EPERM)
	}
	return nil
}
