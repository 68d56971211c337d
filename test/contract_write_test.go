package test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// eachState runs a check on a frame that is ready, on one that is likely to be
// on its way, and on a file that nobody fetches.
func (s *site) eachState(t *testing.T, dir string, check func(t *testing.T, name string, content []byte)) {
	t.Run("ready", func(t *testing.T) {
		seq := makeSequence(t, s.backing, dir+"-ready", siteFrames, frameSize)
		next := seq.leadTo(s.mount)
		check(t, seq.name(next), seq.frames[next])
	})
	t.Run("on its way", func(t *testing.T) {
		seq := makeSequence(t, s.backing, dir+"-inflight", siteFrames, frameSize)
		seq.play(s.mount, 0, 2)
		check(t, seq.name(2), seq.frames[2])
	})
	t.Run("cold", func(t *testing.T) {
		must(t, os.Mkdir(filepath.Join(s.backing, dir), 0o755))
		want := content(dir, frameSize)
		writeFile(t, filepath.Join(s.backing, dir, "notes.txt"), want)
		check(t, dir+"/notes.txt", want)
	})
}

// everywhere compares a file as the mount and as the source have it.
func (s *site) everywhere(t *testing.T, name string, want []byte) {
	t.Helper()
	sameBytes(t, readFile(t, s.at(name)), want, name+" through the mount")
	sameBytes(t, readFile(t, filepath.Join(s.backing, name)), want, name+" at the source")
	info, err := os.Stat(s.at(name))
	must(t, err)
	if info.Size() != int64(len(want)) {
		t.Errorf("%s: stat says %d bytes, want %d", name, info.Size(), len(want))
	}
}

func checkWrite(t *testing.T, s *site) {
	s.eachState(t, "written", func(t *testing.T, name string, old []byte) {
		want := slices.Clone(old)
		patch := content("patch", 70_000)
		copy(want[123_456:], patch)
		file := openFile(t, s.at(name), os.O_RDWR)
		_, err := file.WriteAt(patch, 123_456)
		must(t, err)
		got := make([]byte, len(want))
		_, err = file.ReadAt(got, 0)
		must(t, err)
		sameBytes(t, got, want, "through the handle that wrote")
		s.everywhere(t, name, want) // before the writer has closed
		must(t, file.Sync())
		must(t, file.Close())
		s.everywhere(t, name, want)
	})
}

func checkAppend(t *testing.T, s *site) {
	s.eachState(t, "appended", func(t *testing.T, name string, old []byte) {
		more := content("more", 5_000)
		file := openFile(t, s.at(name), os.O_WRONLY|os.O_APPEND)
		_, err := file.Write(more)
		must(t, err)
		must(t, file.Close())
		s.everywhere(t, name, append(slices.Clone(old), more...))
	})
}

func checkTruncate(t *testing.T, s *site) {
	s.eachState(t, "truncated", func(t *testing.T, name string, old []byte) {
		must(t, os.Truncate(s.at(name), 1_000_001))
		s.everywhere(t, name, old[:1_000_001])
		file := openFile(t, s.at(name), os.O_RDWR)
		must(t, file.Truncate(4_097))
		s.everywhere(t, name, old[:4_097])
		must(t, file.Truncate(9_000)) // what is added reads as zeros
		must(t, file.Close())
		s.everywhere(t, name, append(slices.Clone(old[:4_097]), make([]byte, 9_000-4_097)...))
		writeFile(t, s.at(name), []byte("short")) // O_TRUNC
		s.everywhere(t, name, []byte("short"))
	})
}

func checkCreate(t *testing.T, s *site) {
	must(t, os.Mkdir(s.at("created"), 0o755))
	want := content("created", frameSize)
	writeFile(t, s.at("created/new.0001.exr"), want)
	s.everywhere(t, "created/new.0001.exr", want)
	if _, err := os.OpenFile(s.at("created/new.0001.exr"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); !errors.Is(err, fs.ErrExist) {
		t.Errorf("O_EXCL on an existing file: %v", err)
	}
	file := openFile(t, s.at("created/both.bin"), os.O_RDWR|os.O_CREATE)
	_, err := file.Write(want)
	must(t, err)
	got := make([]byte, len(want))
	_, err = file.ReadAt(got, 0)
	must(t, err)
	sameBytes(t, got, want, "what was written through the same handle")
	must(t, file.Close())
	s.everywhere(t, "created/both.bin", want)
}

// checkReplace puts new files in the place of old ones through the mount while
// readers hold the old ones open.
func checkReplace(t *testing.T, s *site) {
	s.eachState(t, "replaced", func(t *testing.T, name string, old []byte) {
		reader := openFile(t, s.at(name), os.O_RDONLY)
		want := content("replacement", len(old)+5)
		replaceFile(t, s.at(name), want)
		s.everywhere(t, name, want)
		sameBytes(t, readInPieces(t, reader, 64<<10), old, "through the handle from before")
		if _, err := os.Stat(s.at(name + ".new")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the old name is still there: %v", err)
		}
	})
}

func checkDelete(t *testing.T, s *site) {
	s.eachState(t, "deleted", func(t *testing.T, name string, old []byte) {
		reader := openFile(t, s.at(name), os.O_RDONLY)
		must(t, os.Remove(s.at(name)))
		for _, path := range []string{s.at(name), filepath.Join(s.backing, name)} {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("stat of the deleted %s: %v", path, err)
			}
		}
		info, err := reader.Stat()
		if err != nil {
			t.Fatalf("fstat of a deleted file: %v", err)
		}
		if info.Size() != int64(len(old)) {
			t.Errorf("fstat says %d bytes, want %d", info.Size(), len(old))
		}
		sameBytes(t, readInPieces(t, reader, 64<<10), old, "through the handle from before")

		// The name, and perhaps the inode's number, belong to another file now.
		want := content("successor", 3_000)
		writeFile(t, s.at(name), want)
		s.everywhere(t, name, want)
	})
}

// checkSnapshot writes into a ready frame that is open and mapped: its readers
// keep what they have, everybody else sees the new bytes at once.
func checkSnapshot(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "snapshot", siteFrames, frameSize)
	next := seq.leadTo(s.mount)
	name, old := seq.name(next), seq.frames[next]
	before := s.status()
	reader := openFile(t, s.at(name), os.O_RDONLY)
	if after := s.status(); after.OpensReady != before.OpensReady+1 {
		t.Fatalf("the frame was not ready: %+v before, %+v after", before, after)
	}
	mapping := mapFile(t, s.at(name), len(old), unix.MAP_SHARED)
	sameBytes(t, mapping[:4096], old[:4096], "mapping")
	want := content("overwritten", len(old))
	writer := openFile(t, s.at(name), os.O_RDWR)
	_, err := writer.WriteAt(want, 0)
	must(t, err)
	s.everywhere(t, name, want)
	if s.passthrough {
		sameBytes(t, readInPieces(t, reader, 64<<10), old, "through the handle from before")
		sameBytes(t, mapping, old, "mapping from before")
	}
	must(t, writer.Close())
	s.everywhere(t, name, want)
}

// checkMappedWrite writes through a shared mapping.
func checkMappedWrite(t *testing.T, s *site) {
	s.eachState(t, "mapwritten", func(t *testing.T, name string, old []byte) {
		want := slices.Clone(old)
		patch := content("patch", 9_000)
		copy(want[70_000:], patch)
		file := openFile(t, s.at(name), os.O_RDWR)
		mapping, err := unix.Mmap(int(file.Fd()), 0, len(old), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatalf("map for writing: %v", err)
		}
		sameBytes(t, mapping, old, "the mapping before")
		copy(mapping[70_000:], patch)
		must(t, unix.Msync(mapping, unix.MS_SYNC))
		must(t, unix.Munmap(mapping))
		must(t, file.Close())
		s.everywhere(t, name, want)
	})
}

// checkCopy copies a ready frame by the calls that cp(1) and file managers use.
func checkCopy(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "copied", siteFrames, frameSize)
	next := seq.leadTo(s.mount)
	copies := map[string]func(from, to int) (int, error){
		"copy_file_range": func(from, to int) (int, error) { return unix.CopyFileRange(from, nil, to, nil, frameSize, 0) },
		"sendfile":        func(from, to int) (int, error) { return unix.Sendfile(to, from, nil, frameSize) },
	}
	for how, copyOnce := range copies {
		from := openFile(t, s.at(seq.name(next)), os.O_RDONLY)
		to := openFile(t, s.at("copied/by "+how), os.O_WRONLY|os.O_CREATE)
		for done := 0; done < frameSize; {
			n, err := copyOnce(int(from.Fd()), int(to.Fd()))
			if err != nil || n == 0 {
				t.Fatalf("%s after %d bytes: %d, %v", how, done, n, err)
			}
			done += n
		}
		must(t, to.Close())
		s.everywhere(t, "copied/by "+how, seq.frames[next])
	}
}

// checkRenameFlags exchanges two frames, and refuses to replace one.
func checkRenameFlags(t *testing.T, s *site) {
	seq := makeSequence(t, s.backing, "exchanged", siteFrames, frameSize, frameSize+1)
	next := seq.leadTo(s.mount)
	a, b := seq.name(next), seq.name(next+1)
	must(t, unix.Renameat2(unix.AT_FDCWD, s.at(a), unix.AT_FDCWD, s.at(b), unix.RENAME_EXCHANGE))
	s.everywhere(t, a, seq.frames[next+1])
	s.everywhere(t, b, seq.frames[next])
	if err := unix.Renameat2(unix.AT_FDCWD, s.at(a), unix.AT_FDCWD, s.at(b), unix.RENAME_NOREPLACE); !errors.Is(err, unix.EEXIST) {
		t.Errorf("rename that must not replace: %v", err)
	}
	s.everywhere(t, b, seq.frames[next])
}
