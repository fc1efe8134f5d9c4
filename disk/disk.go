// Package disk is what a store asks of a file system: a directory with
// directories of files in it.
//
//	[Dir], [Open]   a directory of the operating system
//	[Memory]        a tree in memory, gone with the program
//	[Sub]           a directory of another tree
//	[CreateTemp]    a file under a name that no other writer has, until it is complete
//	[DamageError]   which bytes of which file cannot be used
//
// Package disktest has a tree that fails and crashes on request, to test what is
// written through an [FS].
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

var (
	// ErrIrregular reports a name that is not a regular file where one was to be
	// opened.
	ErrIrregular = errors.New("not a regular file")

	// ErrLocked reports a lock that somebody else has.
	ErrLocked = errors.New("locked")

	// ErrLost reports a lock that was held, and that another process may have by
	// now: its file was removed or replaced, or says that somebody else has it.
	ErrLost = errors.New("lost to another process")

	// ErrNoDirSync reports a file system that cannot sync directories, as some network file systems
	// cannot. See [SyncDir].
	ErrNoDirSync = errors.New("the file system cannot sync directories")
)

// An FS is a tree of files. Names are slash-separated paths below its top, which
// is ".". It may be used from several goroutines.
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

	// Rename gives a file another name in one step. If a file has that name, it is
	// replaced.
	Rename(from, to string) error

	// Publish gives a file or a directory another name in one step and replaces
	// nothing: it fails with an error wrapping fs.ErrExist if the name is taken.
	Publish(from, to string) error

	// Remove removes a file or an empty directory.
	Remove(name string) error

	// Mkdir makes a directory. It fails with an error wrapping fs.ErrExist if the
	// name is taken.
	Mkdir(name string) error

	// ReadDir returns what is in a directory, in order of the names.
	ReadDir(dir string) ([]fs.DirEntry, error)

	// SyncDir makes the names in a directory durable. It returns an error wrapping ErrNoDirSync if the
	// file system cannot sync directories: the names are in place but not durable.
	SyncDir(dir string) error

	// Lock takes the lock that a file stands for, which is made if it is missing
	// and stays. It does not wait for whoever has the lock: it fails with an error
	// wrapping ErrLocked. What a program has locked when it ends is free.
	Lock(name string) (Lock, error)

	// Locked reports whether somebody has that lock. It changes nothing.
	Locked(name string) (bool, error)

	// Close lets go of the tree. Open files stay open.
	Close() error
}

// A File is an open file of an [FS]. ReadAt and WriteAt keep the contracts of
// [io.ReaderAt] and [io.WriterAt]. WriteAt past the end makes the file longer.
//
// The errors of WriteAt, Sync and Close do not name the file, which may have been given
// another name since it was created: whoever writes it knows which.
//
// A File may have a method WriteBack(offset, size int64), which begins to bring
// bytes to the device and does not wait, so that a later Sync has less to do; and one
// SyncLocal(local func()) error, if more is asked of Sync than that the bytes survive a crash of
// this machine, as of files that other machines have as well: see [SyncLocal].
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error          // Makes the bytes durable, length included.
	Size() (int64, error) // In bytes.
	Close() error

	// Named reports whether name stands for this file. It does no longer once the
	// file was removed, or another one was given the name.
	Named(name string) (bool, error)
}

// SyncLocal is f.Sync, but calls local as soon as the bytes survive a crash of this machine, if
// that is before they are all that Sync promises.
func SyncLocal(f File, local func()) error {
	if f, ok := f.(interface{ SyncLocal(local func()) error }); ok {
		return f.SyncLocal(local)
	}
	return f.Sync()
}

// SyncDir calls fsys.SyncDir and returns nil for [ErrNoDirSync]: the names are in place, and become durable
// when the file system writes them.
func SyncDir(fsys FS, dir string) error {
	if err := fsys.SyncDir(dir); !errors.Is(err, ErrNoDirSync) {
		return err
	}
	return nil
}

// Replicated reports whether a Sync of the files of fsys waits for other machines, and why the one that is under way
// waits; nil if that is not known. An FS says so by a method Replicated() (bool, error).
func Replicated(fsys FS) (replicated bool, why error) {
	if fsys, ok := fsys.(interface{ Replicated() (bool, error) }); ok {
		return fsys.Replicated()
	}
	return false, nil
}

// Reopen opens a file of the operating system once more, for a library that works on an [*os.File].
// It returns nil if f is another kind of file, such as one in memory. It fails with an error
// wrapping [ErrLost] if the name that f was created or opened under stands for another file.
func Reopen(f File) (*os.File, error) {
	if f, ok := f.(interface{ reopen() (*os.File, error) }); ok {
		return f.reopen()
	}
	return nil, nil
}

// A Lock is a lock that was taken.
type Lock interface {
	// Held reports whether the lock still keeps others out: it was not given up,
	// and its name stands for the file that was locked.
	Held() (bool, error)

	// Sign replaces what the file holds by text, which may say who has the lock.
	Sign(text string) error

	// Close gives the lock up.
	Close() error
}
