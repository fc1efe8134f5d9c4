package pagefile

import (
	"errors"
	"fmt"
)

var (
	// ErrForeign reports a file that is not a page file.
	ErrForeign = errors.New("pagefile: not a page file")

	// ErrNewer reports a page file of a later format, or one that uses a
	// feature this version does not know. Nothing is known to be wrong with it.
	ErrNewer = errors.New("pagefile: written by a newer version")

	// ErrCorrupt reports bytes that are not what was written.
	ErrCorrupt = errors.New("pagefile: corrupt")

	// ErrOrder reports a key that is not above the one put before it.
	ErrOrder = errors.New("pagefile: keys do not ascend")

	// ErrTooLarge reports a value longer than [MaxValueSize].
	ErrTooLarge = errors.New("pagefile: value too large")
)

// A DamageError says which bytes of a file cannot be used. The range is as
// narrow as the checksums allow: a block, a page, or the trailer.
type DamageError struct {
	File   string // Name of the file, as given to [Open].
	Offset int64  // First byte of the range.
	Length int64  // Size of the range in bytes.
	Reason string // What is wrong, in lower case.
	Err    error  // ErrCorrupt, or the error that reading the range gave.
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%v: %s at offset %d, %d bytes: %s", e.Err, e.File, e.Offset, e.Length, e.Reason)
}

func (e *DamageError) Unwrap() error { return e.Err }
