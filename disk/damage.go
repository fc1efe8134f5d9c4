package disk

import (
	"errors"
	"fmt"
	"io/fs"
)

var (
	// ErrCorrupt reports bytes that differ from what was written.
	ErrCorrupt = errors.New("corrupt")

	// ErrForeign reports bytes of another program, or of this program for another purpose.
	ErrForeign = errors.New("foreign")

	// ErrNewer reports bytes that a later version of the program wrote, or that use an unknown
	// feature. The bytes may be valid.
	ErrNewer = errors.New("newer than this program")
)

// A DamageError says which bytes of which file cannot be used, and why. It unwraps to [ErrCorrupt],
// [ErrForeign], [ErrNewer], or to the error of reading the bytes. The range can include valid
// bytes, because one checksum covers many bytes.
type DamageError struct {
	File   string // File name, relative to the checked directory.
	Offset int64  // First affected byte. -1 if only the file is known.
	// Number of affected bytes; 0 if the number is unknown, or if the bytes are missing.
	Length int64
	Reason string // What is wrong, in lower case.
	Err    error
}

// Error returns the kind of damage, the file, the range and the reason.
func (e *DamageError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%v: %s: %s", e.Err, e.File, e.Reason)
	}
	return fmt.Sprintf("%v: %s: %d bytes at offset %d: %s", e.Err, e.File, e.Length, e.Offset, e.Reason)
}

// Unwrap returns the kind of damage.
func (e *DamageError) Unwrap() error { return e.Err }

// In returns a copy of e whose file name begins with dir/, for a caller that checks the parent
// directory.
func (e *DamageError) In(dir string) *DamageError {
	above := *e
	above.File = dir + "/" + e.File
	return &above
}

// Irregular checks the type of an existing file. If dir is set, the file must be a directory.
// Otherwise, it must be a regular file. For a file of another type, Irregular returns an error that
// wraps [ErrForeign] and [ErrIrregular]. Its reason says what the user can do.
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

// noFile is the error that [Irregular] wraps. errors.Is(noFile{}, target) is true for both
// ErrForeign and ErrIrregular.
type noFile struct{}

func (noFile) Error() string { return ErrForeign.Error() }

func (noFile) Is(target error) bool { return target == ErrForeign || target == ErrIrregular }

// kindOf returns words for a file mode, such as "a directory".
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
