// Package disk is what the store asks of a file system: a directory with
// directories of files in it. [Dir] is the operating system's; package disktest
// has one in memory that fails and crashes on request.
package disk

import (
	"errors"
	"io"
	"io/fs"
)

// ErrIrregular reports a name that is not a regular file where one was to be
// opened.
var ErrIrregular = errors.New("not a regular file")

// An FS is a tree of files. Names are slash-separated paths below its top, which
// is ".".
//
// What an FS promises about crashes is what POSIX promises: bytes survive once
// [File.Sync] has returned nil, and names in a directory (new, renamed or
// removed) once SyncDir of it has. A missing file is reported as an error wrapping
// [fs.ErrNotExist].
type FS interface {
	// Create makes a new file for reading and writing. It fails with an error
	// wrapping fs.ErrExist if the name is taken.
	Create(name string) (File, error)

	// Open opens a file for reading only. It fails with an error wrapping
	// ErrIrregular, and does not wait, if the name is a pipe or the like.
	Open(name string) (File, error)

	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)

	// Rename gives a file another name in one step.
	Rename(from, to string) error

	// Remove removes a name.
	Remove(name string) error

	// Mkdir makes a directory. It fails with an error wrapping fs.ErrExist if the
	// name is taken.
	Mkdir(name string) error

	// ReadDir returns what is in a directory, in order of the names.
	ReadDir(dir string) ([]fs.DirEntry, error)

	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error

	// Close lets go of the tree. Open files stay open.
	Close() error
}

// A File is an open file of an [FS]. ReadAt and WriteAt keep the contracts of
// [io.ReaderAt] and [io.WriterAt]. WriteAt past the end makes the file longer.
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error          // Makes the bytes durable, length included.
	Size() (int64, error) // In bytes.
	Close() error
}

// FileInfo is one line of a directory.
type FileInfo struct {
	Name string
	Size int64 // In bytes.
}

// ReadFile returns what the named file holds.
func ReadFile(fs FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, 0, size))
}
