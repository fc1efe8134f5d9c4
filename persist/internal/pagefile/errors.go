package pagefile

import (
	"errors"

	"github.com/stet-ecs/stet/disk"
)

var (
	// ErrForeign reports a file that is not a page file.
	ErrForeign = disk.ErrForeign

	// ErrNewer reports a page file of a later format, or one that uses an unknown feature. The file
	// may be valid.
	ErrNewer = disk.ErrNewer

	// ErrCorrupt reports bytes that differ from what was written.
	ErrCorrupt = disk.ErrCorrupt

	// ErrOrder reports a key that is not greater than the previous one.
	ErrOrder = errors.New("keys do not ascend")

	// ErrTooLarge reports a value longer than [MaxValueSize].
	ErrTooLarge = errors.New("value too large")
)

// A DamageError says which bytes of a file cannot be used. The range is as narrow as the checksums
// allow: a block, a page, or the trailer. It unwraps to ErrCorrupt, or to the error of reading the
// range.
type DamageError = disk.DamageError

// corrupt returns a DamageError for bytes that differ from what was written.
func corrupt(file string, offset, length int64, reason string) *DamageError {
	return &DamageError{File: file, Offset: offset, Length: length, Reason: reason, Err: ErrCorrupt}
}
