package pagefile

import (
	"errors"

	"github.com/stet-ecs/stet/disk"
)

var (
	// ErrForeign reports a file that is not a page file.
	ErrForeign = disk.ErrForeign

	// ErrNewer reports a page file of a later format, or one that uses a
	// feature this version does not know. Nothing is known to be wrong with it.
	ErrNewer = disk.ErrNewer

	// ErrCorrupt reports bytes that are not what was written.
	ErrCorrupt = disk.ErrCorrupt

	// ErrOrder reports a key that is not above the one put before it.
	ErrOrder = errors.New("keys do not ascend")

	// ErrTooLarge reports a value longer than [MaxValueSize].
	ErrTooLarge = errors.New("value too large")
)

// A DamageError says which bytes of a file cannot be used. The range is as
// narrow as the checksums allow: a block, a page, or the trailer. It unwraps to
// ErrCorrupt, or to the error that reading the range gave.
type DamageError = disk.DamageError

// corrupt returns damage of bytes that are not what was written.
func corrupt(file string, offset, length int64, reason string) *DamageError {
	return &DamageError{File: file, Offset: offset, Length: length, Reason: reason, Err: ErrCorrupt}
}
