package journal

import "github.com/stet-ecs/stet/internal/disk"

// An FS is one flat directory of files. [DirFS] is the operating system's;
// package journaltest has one in memory that fails and crashes on request.
//
// What an FS promises about crashes is what POSIX promises: bytes survive once
// [File.Sync] has returned nil, and names (new, renamed or removed) once
// SyncDir has. A missing file is reported as an error wrapping fs.ErrNotExist.
type FS interface {
	// Create makes a new file for reading and writing. It fails with an error
	// wrapping fs.ErrExist if the name is taken.
	Create(name string) (File, error)

	// Open opens a file for reading only.
	Open(name string) (File, error)

	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)

	// Rename gives a file another name in one step.
	Rename(from, to string) error

	// Remove removes a name.
	Remove(name string) error

	// List returns all files in order of their names.
	List() ([]FileInfo, error)

	// SyncDir makes the names durable.
	SyncDir() error
}

// A File is an open file of an [FS]: ReadAt and WriteAt with the contracts of
// io.ReaderAt and io.WriterAt, where WriteAt past the end makes the file
// longer; Sync, which makes the bytes durable, length included; Size in bytes; and
// Close.
type File = disk.File

// FileInfo is one line of a directory: Name, and Size in bytes.
type FileInfo = disk.FileInfo
