// Package disk is the file system interface of a store: a directory tree of files.
//
//	[Dir], [Open]   a directory of the operating system
//	[Memory]        a tree in memory, lost when the program ends
//	[Sub]           a directory of another tree
//	[CreateTemp]    a file under a unique name, until it is complete
//	[DamageError]   which bytes of which file cannot be used
//
// Package disktest has a tree that fails and crashes on request, for tests of code that writes
// through an [FS].
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

var (
	// ErrIrregular reports a name that is not a regular file, although a regular file was expected.
	ErrIrregular = errors.New("not a regular file")

	// ErrLocked reports a lock that another owner holds.
	ErrLocked = errors.New("locked")

	// ErrLost reports a lock that this process held and that another process may hold now. The lock
	// file was removed or replaced, or names another owner.
	ErrLost = errors.New("lost to another process")

	// ErrNoDirSync reports a file system that cannot sync directories, such as some network file
	// systems. See [SyncDir].
	ErrNoDirSync = errors.New("the file system cannot sync directories")
)

// An FS is a tree of files. Names are slash-separated paths below its root, which is ".". An FS may
// be used from several goroutines.
//
// An FS gives the same guarantees after a crash as POSIX. Bytes survive once [File.Sync] has
// returned nil. New, renamed and removed names in a directory survive once SyncDir of that
// directory has returned nil. If a file is missing, the error wraps [fs.ErrNotExist].
type FS interface {
	// Create creates a file for reading and writing. If the name is taken, the error wraps
	// fs.ErrExist.
	Create(name string) (File, error)

	// Open opens a file for reading only. If the name is a pipe or another irregular file, Open
	// does not block, and the error wraps ErrIrregular.
	Open(name string) (File, error)

	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)

	// Rename renames a file atomically. It replaces an existing file.
	Rename(from, to string) error

	// Publish renames a file or a directory atomically. If the new name is taken, the error wraps
	// fs.ErrExist.
	Publish(from, to string) error

	// Remove removes a file or an empty directory.
	Remove(name string) error

	// Mkdir creates a directory. If the name is taken, the error wraps fs.ErrExist.
	Mkdir(name string) error

	// ReadDir returns the entries of a directory, ordered by name.
	ReadDir(dir string) ([]fs.DirEntry, error)

	// SyncDir makes the names in a directory durable. If the file system cannot sync directories,
	// the error wraps ErrNoDirSync: the names exist but may not survive a crash.
	SyncDir(dir string) error

	// Lock takes the lock on a file. It creates a missing file, and the file stays. Lock does not
	// wait: if another owner holds the lock, the error wraps ErrLocked. The locks of a program are
	// released when the program ends.
	Lock(name string) (Lock, error)

	// Locked reports whether any owner holds the lock. It changes nothing.
	Locked(name string) (bool, error)

	// Close releases the tree. Open files stay open.
	Close() error
}

// A File is an open file of an [FS]. ReadAt and WriteAt are those of [io.ReaderAt] and
// [io.WriterAt]. WriteAt past the end extends the file.
//
// The errors of WriteAt, Sync and Close do not contain the file name, because the file may have
// been renamed. The caller adds the current name.
//
// A File may have two optional methods:
//   - WriteBack(offset, size int64) starts writing bytes to the device without waiting. A later
//     Sync then has less to do.
//   - SyncLocal(local func()) error is for a replicated file, whose Sync also waits for other
//     machines. See [SyncLocal].
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error          // Makes the bytes and the length durable.
	Size() (int64, error) // In bytes.
	Close() error

	// Named reports whether name still refers to this file. It returns false after the file was
	// removed, or after another file got the name.
	Named(name string) (bool, error)
}

// SyncLocal calls f.Sync. If f is replicated, SyncLocal calls local() as soon as the bytes survive
// a crash of this machine. It then waits for the other machines.
func SyncLocal(f File, local func()) error {
	if f, ok := f.(interface{ SyncLocal(local func()) error }); ok {
		return f.SyncLocal(local)
	}
	return f.Sync()
}

// SyncDir calls fsys.SyncDir and returns nil for [ErrNoDirSync]. In that case the names exist, and
// become durable when the file system writes them.
func SyncDir(fsys FS, dir string) error {
	if err := fsys.SyncDir(dir); !errors.Is(err, ErrNoDirSync) {
		return err
	}
	return nil
}

// Replicated reports whether the Sync of a file of fsys waits for other machines. The error why is
// the reason for which a Sync waits at the moment. It is nil if no Sync waits, or if the reason is
// unknown. A replicated FS implements the method Replicated() (bool, error).
func Replicated(fsys FS) (replicated bool, why error) {
	if fsys, ok := fsys.(interface{ Replicated() (bool, error) }); ok {
		return fsys.Replicated()
	}
	return false, nil
}

// Reopen opens a file of the operating system a second time, for a library that needs an
// [*os.File]. If f is another kind of file, such as one in memory, the error is
// [errors.ErrUnsupported]. If the name of f refers to another file by now, the error wraps
// [ErrLost].
func Reopen(f File) (*os.File, error) {
	if f, ok := f.(interface{ reopen() (*os.File, error) }); ok {
		return f.reopen()
	}
	return nil, errors.ErrUnsupported
}

// A Lock is a held lock on a file.
type Lock interface {
	// Held reports whether the lock still excludes other owners. Held returns false after Close,
	// and when the name of the locked file refers to another file.
	Held() (bool, error)

	// Sign replaces the contents of the lock file with text. The text may name the owner.
	Sign(text string) error

	// Close releases the lock.
	Close() error
}
