package pagefile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/stet-ecs/stet/disk"
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

	// NoReplace makes CreateWith fail, with an error wrapping fs.ErrExist, if a file has
	// the name when it is to be given.
	NoReplace bool

	// Bolt lets bbolt itself write the pages if the file is one of the operating system and
	// addresses have 64 bits. The content is the same, the bytes are not.
	Bolt bool
}

// Create writes a file of the pages that fill puts, and gives it the name once
// it is durable and verified. See [CreateWith].
func Create(dir disk.FS, name string, fill func(*Writer) error) (Info, error) {
	return CreateWith(dir, name, Options{}, fill)
}

// CreateWith is [Create] with options. The name is a slash-separated path
// inside dir; its directory must exist. A file that has the name is replaced in one step,
// unless [Options.NoReplace] forbids it.
//
// On any error, and if fill or BeforePublish panics, the unfinished file is
// removed and whatever has the name keeps it. The one exception is a failed
// sync of the directory after the rename: the error then says that
// the new file has the name, but might lose it in a power failure.
//
// It holds at most 2 MiB of values (or one value, if that is longer), and 4 bytes
// for each block of 64 KiB. With [Options.Bolt] it holds the values twice.
func CreateWith(dir disk.FS, name string, opts Options, fill func(*Writer) error) (Info, error) {
	temp := name + TempSuffix
	// The steps are: remove what a crash left, write, read back, sync, BeforePublish, rename, sync
	// the directory. Up to the rename a failure leaves everything as it was.
	if err := dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Info{}, fmt.Errorf("pagefile: removing a stale file: %w", err)
	}
	f, err := dir.Create(temp)
	if err != nil {
		return Info{}, fmt.Errorf("pagefile: creating %s: %w", temp, err)
	}
	published := false
	defer func() { // Also if fill or BeforePublish panics.
		if !published {
			dir.Remove(temp)
		}
	}()
	info, err := complete(dir, name, f, opts, fill)
	if err != nil {
		return Info{}, err
	}
	if opts.BeforePublish != nil {
		if err := opts.BeforePublish(); err != nil {
			return Info{}, err
		}
	}
	publish := dir.Rename
	if opts.NoReplace {
		publish = dir.Publish
	}
	if err := publish(temp, name); err != nil {
		return Info{}, fmt.Errorf("pagefile: %w", err)
	}
	published = true
	if err := dir.SyncDir(path.Dir(name)); err != nil {
		return info, fmt.Errorf("pagefile: %s has its name, which is not durable: %w", name, err)
	}
	return info, nil
}

// complete fills the new file f, which is to be called name, reads it back, makes it
// durable and closes it.
func complete(dir disk.FS, name string, f disk.File, opts Options, fill func(*Writer) error) (info Info, err error) {
	defer func() {
		if closeErr := f.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("pagefile: close %s: %w", name, closeErr)
		}
	}()
	tree, err := newTree(f, name, opts)
	if err != nil {
		return Info{}, err
	}
	w := &Writer{tree: tree}
	defer w.close()
	if err := fill(w); err != nil {
		return Info{}, err
	}
	t, err := w.finish()
	if err != nil {
		return Info{}, err
	}
	if info, err = tree.verify(dir, name+TempSuffix); err != nil {
		return Info{}, fmt.Errorf("reading back: %w", err)
	}
	if want := t.info(); info != want { // Sound, but not the file that was written here.
		return Info{}, fmt.Errorf("%w: %s is %+v, want %+v", ErrCorrupt, name, info, want)
	}
	if err := f.Sync(); err != nil {
		return Info{}, fmt.Errorf("pagefile: sync %s: %w", name, err)
	}
	return info, nil
}
