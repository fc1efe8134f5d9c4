package pagefile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/stet-ecs/stet/disk"
)

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
// unless [Options.NoReplace] forbids it. If several write the same name, each writes a file of its
// own, and the last one that is complete stays.
//
// It removes the unfinished files of the same name whose writers have ended: see
// [disk.RemoveTemps]. With [Options.NoReplace] it removes none.
//
// On any error, and if fill or BeforePublish panics, the unfinished file is
// removed and whatever has the name keeps it. The one exception is a failed
// sync of the directory after the rename: the error then says that
// the new file has the name, but might lose it in a power failure.
//
// It holds at most 2 MiB of values (or one value, if that is longer), and 4 bytes
// for each block of 64 KiB. With [Options.Bolt] it holds the values twice.
func CreateWith(dir disk.FS, name string, opts Options, fill func(*Writer) error) (Info, error) {
	// The steps are: write, read back, sync, BeforePublish, rename, sync the directory. Up to the
	// rename a failure leaves everything as it was.
	temp, err := disk.CreateTemp(dir, name)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // It names the temporary file.
		}
		return Info{}, fmt.Errorf("create %s: %w", name, err)
	}
	defer temp.Discard() // Also if fill or BeforePublish panics. A published file stays.
	if !opts.NoReplace {
		_ = temp.RemoveOthers() // They only take space.
	}
	info, err := complete(dir, name, temp, opts, fill)
	if err != nil {
		return Info{}, err
	}
	if opts.BeforePublish != nil {
		if err := opts.BeforePublish(); err != nil {
			return Info{}, err
		}
	}
	publish := temp.Rename
	if opts.NoReplace {
		publish = temp.Publish
	}
	if err := publish(); err != nil {
		return Info{}, err
	}
	if err := disk.SyncDir(dir, path.Dir(name)); err != nil {
		return info, fmt.Errorf("%s has its name, which is not durable: %w", name, err)
	}
	return info, nil
}

// complete fills the new file, which is to be called name, reads it back, makes it
// durable and closes it.
func complete(dir disk.FS, name string, temp *disk.Temp, opts Options, fill func(*Writer) error) (info Info, err error) {
	f := temp.File
	defer func() {
		if closeErr := f.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close %s: %w", name, closeErr)
		}
	}()
	tree, err := newTree(temp, name, opts)
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
	if info, err = tree.verify(dir, temp.Name()); err != nil {
		return Info{}, fmt.Errorf("reading back: %w", err)
	}
	if want := t.info(); info != want { // Sound, but not the file that was written here.
		return Info{}, fmt.Errorf("%w: %s is %+v, want %+v", ErrCorrupt, name, info, want)
	}
	if err := f.Sync(); err != nil {
		return Info{}, fmt.Errorf("sync %s: %w", name, err)
	}
	return info, nil
}
