package disk

import (
	"errors"
	"fmt"
	"io/fs"
)

var (
	// ErrCorrupt reports bytes that are not what was written.
	ErrCorrupt = errors.New("corrupt")

	// ErrForeign reports bytes that somebody else wrote: another program, or this one
	// for something else.
	ErrForeign = errors.New("foreign")

	// ErrNewer reports bytes that a later version of the program wrote, or that use a
	// feature this version does not know. Nothing is known to be wrong with them.
	ErrNewer = errors.New("newer than this program")
)

// A DamageError says which bytes of which file cannot be used, and why. It unwraps to
// [ErrCorrupt], [ErrForeign], [ErrNewer], or to the error that reading them gave. The
// range is as narrow as checksums allow.
type DamageError struct {
	File   string // Its name in the directory that is spoken of.
	Offset int64  // First byte in question; -1 if only the file is known.
	Length int64  // Bytes in question; 0 if that is unknown, or they are missing.
	Reason string // What is wrong, in lower case.
	Err    error
}

// Error says what is wrong with which bytes of which file.
func (e *DamageError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%v: %s: %s", e.Err, e.File, e.Reason)
	}
	return fmt.Sprintf("%v: %s: %d bytes at offset %d: %s", e.Err, e.File, e.Length, e.Offset, e.Reason)
}

// Unwrap returns what kind of damage it is.
func (e *DamageError) Unwrap() error { return e.Err }

// In returns the same damage, spoken of from above: dir is the directory that has the file.
func (e *DamageError) In(dir string) *DamageError {
	above := *e
	above.File = dir + "/" + e.File
	return &above
}

// Irregular returns damage if a name that is to be that of a regular file, or with dir set of a
// directory, is that of something else, such as a symbolic link; nil: it is what it should be. The
// reason says what to do. The error wraps [ErrForeign] and [ErrIrregular].
func Irregular(name string, t fs.FileMode, dir bool) *DamageError {
	want := "file"
	if dir {
		want = "directory"
	}
	advice := "move it away"
	switch {
	case t.IsDir() && dir || t.IsRegular() && !dir:
		return nil
	case t&fs.ModeSymlink != 0:
		advice = "replace it by the " + want + " that it leads to"
	}
	return &DamageError{File: name, Offset: -1, Reason: fmt.Sprintf("it is %s, no %s; %s", kindOf(t), want, advice), Err: noFile{}}
}

// noFile is the error that [Irregular] wraps: it is both ErrForeign and ErrIrregular.
type noFile struct{}

func (noFile) Error() string { return ErrForeign.Error() }

func (noFile) Is(target error) bool { return target == ErrForeign || target == ErrIrregular }

// kindOf says in words what something in a directory is.
func kindOf(t fs.FileMode) string {
	switch {
	case t.IsDir():
		return "a directory"
	case t&fs.ModeSymlink != 0:
		return "a symbolic link"
	case t&fs.ModeNamedPipe != 0:
		return "a pipe"
	case t&fs.ModeSocket != 0:
		return "a socket"
	case t&fs.ModeDevice != 0:
		return "a device"
	case t.IsRegular():
		return "a file"
	}
	return "nothing that can be read"
}
