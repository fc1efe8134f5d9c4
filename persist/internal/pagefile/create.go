package pagefile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/stet-ecs/stet/disk"
)

// Options configure [CreateWith]. The zero value works.
type Options struct {
	// BeforePublish, if set, is called when the new file is complete, durable and verified, but
	// still has its temporary name. If BeforePublish returns an error or panics, the file is
	// removed.
	BeforePublish func() error

	// NoReplace makes CreateWith fail if the final name is taken. The error wraps fs.ErrExist.
	NoReplace bool

	// Bolt lets bbolt itself write the pages. This needs a file of the operating system and 64-bit
	// addresses; otherwise Bolt has no effect. The content is the same, but the bytes differ.
	Bolt bool
}

// Create writes a page file and renames it to name once it is durable and verified. The function
// fill adds the pages. See [CreateWith].
func Create(dir disk.FS, name string, fill func(*Writer) error) (Info, error) {
	return CreateWith(dir, name, Options{}, fill)
}

// CreateWith is [Create] with options. The name is a slash-separated path inside dir. Its directory
// must exist. CreateWith atomically replaces an existing file, unless [Options.NoReplace] is set.
// Several goroutines or processes may write the same name at the same time: the file that is
// renamed last stays.
//
// CreateWith removes unfinished files of the same name whose writers have ended: see
// [disk.RemoveTemps]. With [Options.NoReplace] it removes none.
//
// On an error or a panic, the unfinished file is removed and an existing file keeps the name. The
// only exception is a failed sync of the directory after the rename. That error says that the new
// file has the name, but may lose it in a power failure.
//
// CreateWith holds at most 2 MiB of values, or one value if that is longer, and 4 bytes per block
// of 64 KiB. With [Options.Bolt] it holds the values twice.
func CreateWith(dir disk.FS, name string, opts Options, fill func(*Writer) error) (Info, error) {
	// The steps are: write, read back, sync, BeforePublish, rename, sync the directory. A failure
	// before the rename leaves everything unchanged.
	temp, err := disk.CreateTemp(dir, name)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // Drop the path, which is the temporary name.
		}
		return Info{}, fmt.Errorf("create %s: %w", name, err)
	}
	// Removes the file even if fill or BeforePublish panics. A published file stays.
	defer temp.Discard()
	if !opts.NoReplace {
		_ = temp.RemoveOthers() // Leftover files only waste space, so the error is ignored.
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

// complete fills the new file, reads it back, makes it durable and closes it. name is its final
// name.
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
	// The file is valid, but its contents are not what was written.
	if want := t.info(); info != want {
		return Info{}, fmt.Errorf("%w: %s is %+v, want %+v", disk.ErrCorrupt, name, info, want)
	}
	if err := f.Sync(); err != nil {
		return Info{}, fmt.Errorf("sync %s: %w", name, err)
	}
	return info, nil
}
