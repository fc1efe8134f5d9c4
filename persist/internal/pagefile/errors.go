package pagefile

import (
	"errors"

	"github.com/stet-ecs/stet/disk"
)

// The package also returns the errors of package disk: ErrForeign, ErrNewer, ErrCorrupt and
// DamageError. The range of a DamageError is a block, a page, or the trailer.
var (
	// ErrOrder reports a key that is not greater than the previous one.
	ErrOrder = errors.New("keys do not ascend")

	// ErrTooLarge reports a value longer than [MaxValueSize].
	ErrTooLarge = errors.New("value too large")
)

// corrupt returns a DamageError for bytes that differ from what was written.
func corrupt(file string, offset, length int64, reason string) *disk.DamageError {
	return &disk.DamageError{File: file, Offset: offset, Length: length, Reason: reason, Err: disk.ErrCorrupt}
}
