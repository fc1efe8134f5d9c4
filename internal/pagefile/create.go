package pagefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/stet-ecs/stet/internal/disk"
)

// TempSuffix is what the name of a file ends in while it is written. A crash
// can leave such a file; the next [Create] of the same name replaces it.
const TempSuffix = ".tmp"

// Options change what [CreateWith] does. The zero value is useful.
type Options struct {
	// BeforePublish, if set, is called when the new file is complete, durable
	// and verified, and does not have its name yet. If it returns an error, or
	// panics, the file is removed and never gets the name.
	BeforePublish func() error
}

// Create writes a file of the pages that fill puts, and gives it the name once
// it is durable and verified. See [CreateWith].
func Create(dir disk.FS, name string, fill func(*Writer) error) (Info, error) {
	return CreateWith(dir, name, Options{}, fill)
}

// CreateWith is [Create] with options. The name is a slash-separated path
// inside dir; its directory must exist. A file that has the name is replaced in one step.
//
// On any error, and if fill or BeforePublish panics, the unfinished file is
// removed and whatever has the name keeps it. The one exception is a failed
// sync of the directory after the rename: the error then says that
// the new file has the name, but might lose it in a power failure.
//
// It holds at most 4 MiB of values (or one value, if that is longer) twice, and
// 4 bytes for each block of 64 KiB.
func CreateWith(dir disk.FS, name string, opts Options, fill func(*Writer) error) (Info, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return Info{}, fmt.Errorf("pagefile: %s: bbolt writes big-endian files on this machine: %w", name, errors.ErrUnsupported)
	}
	temp := name + TempSuffix
	if err := dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Info{}, fmt.Errorf("pagefile: removing a stale file: %w", err)
	}
	w, err := newWriter(dir, temp)
	if err != nil {
		return Info{}, fmt.Errorf("pagefile: creating %s: %w", temp, err)
	}
	published := false
	defer func() {
		w.close()
		if !published {
			dir.Remove(temp)
		}
	}()
	info, err := complete(dir, temp, w, fill)
	if err != nil {
		return Info{}, err
	}
	if opts.BeforePublish != nil {
		if err := opts.BeforePublish(); err != nil {
			return Info{}, err
		}
	}
	if err := dir.Rename(temp, name); err != nil {
		return Info{}, fmt.Errorf("pagefile: %w", err)
	}
	published = true
	if err := dir.SyncDir(path.Dir(name)); err != nil {
		return info, fmt.Errorf("pagefile: %s has its name, which is not durable: %w", name, err)
	}
	return info, nil
}

// complete fills the file called name, seals it and verifies it.
func complete(dir disk.FS, name string, w *Writer, fill func(*Writer) error) (Info, error) {
	// Opened before the first page is written, so that no error of writing back, which
	// the system reports to the files open at that time, can be missed.
	f, err := dir.OpenWrite(name)
	if err != nil {
		return Info{}, fmt.Errorf("pagefile: %w", err)
	}
	defer f.Close()
	t, err := fillFile(f, name, w, fill)
	if err != nil {
		return Info{}, err
	}
	if err := seal(f, t); err != nil {
		return Info{}, fmt.Errorf("pagefile: %s: %w", name, err)
	}
	return readBack(dir, name, t)
}

// fillFile writes everything but the trailer, syncs it, reads it back and
// returns the trailer. The disk works all the while.
func fillFile(f disk.File, name string, w *Writer, fill func(*Writer) error) (t *trailer, err error) {
	w.flush = newFlusher(f)
	defer func() {
		if syncErr := w.flush.wait(); err == nil && syncErr != nil {
			err = fmt.Errorf("pagefile: %s: %w", name, syncErr)
		}
	}()
	if err := fill(w); err != nil {
		return nil, err
	}
	length, err := w.finish()
	if err != nil {
		return nil, err
	}
	if err := w.deliver(f, length); err != nil {
		return nil, fmt.Errorf("pagefile: %w", err)
	}
	w.flush.kick()
	t = &trailer{length: length, pages: w.content.pages, table: make([]uint32, blockCount(length))}
	return t, compare(f, name, t, w.content)
}

// compare reads a file that has no trailer yet as any reader would, and fails
// unless it finds what was put. The bytes that it compares are also those that the
// table of t is made of: one reading serves both, and no others can get a good
// checksum.
func compare(file disk.File, name string, t *trailer, want content) error {
	f := newFile(file, name, t, t.length)
	var err error
	if f.bucket, err = f.findBucket(f.raw); err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	var mu sync.Mutex
	var got content
	err = f.sum(func(k Key, value []byte) error {
		sum := sumPage(k, value)
		mu.Lock()
		defer mu.Unlock()
		got.add(sum)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	if got != want {
		return fmt.Errorf("%w: %s holds %d pages with checksum %x, %d with %x were put",
			ErrCorrupt, name, got.pages, got.sum, want.pages, want.sum)
	}
	return nil
}

// seal appends the trailer and makes it durable.
func seal(f disk.File, t *trailer) error {
	if _, err := f.WriteAt(t.encode(), t.length); err != nil {
		return err
	}
	return f.Sync()
}

// readBack opens the finished file and returns what it says of itself, which
// must be what t says.
func readBack(dir disk.FS, name string, t *trailer) (Info, error) {
	f, err := Open(dir, name)
	if err != nil {
		return Info{}, fmt.Errorf("reading back: %w", err)
	}
	defer f.Close()
	if got, want := f.Info(), t.info(); got != want {
		return Info{}, fmt.Errorf("%w: %s is %+v, want %+v", ErrCorrupt, name, got, want)
	}
	return f.Info(), nil
}
