package format

import (
	"errors"
	"fmt"
)

var (
	// ErrForeign reports a directory or file that is not a store or a save.
	ErrForeign = errors.New("persist: not a store")

	// ErrNewer reports a store or save that a later version wrote.
	ErrNewer = errors.New("persist: newer than this program")

	// ErrCorrupt reports bytes that are not what was written.
	ErrCorrupt = errors.New("persist: corrupt")

	// ErrLocked reports a directory that another process has open.
	ErrLocked = errors.New("persist: in use")

	// ErrSchema reports stored components that do not fit the registered types.
	ErrSchema = errors.New("persist: schema does not fit")

	// ErrNotEmpty reports a world with entities that was to be filled from a
	// directory with a state of its own.
	ErrNotEmpty = errors.New("persist: both world and directory hold a state")

	// ErrNotFound reports a point in time, an entity or a component that the
	// store does not have.
	ErrNotFound = errors.New("persist: not found")

	// ErrName reports a name that a snapshot, a mark or an input cannot have.
	ErrName = errors.New("persist: bad name")

	// ErrPoint reports a text that is not a point in time.
	ErrPoint = errors.New("persist: not a point in time")
)

// A DamageError says which bytes of which file cannot be used, and why. It
// unwraps to [ErrCorrupt] or to what the layer below said.
type DamageError struct {
	File   string // Relative to the store's directory.
	Offset int64  // First byte in question; -1 if only the file is known.
	Length int64  // Bytes in question; 0 if unknown.
	Reason string
	Err    error
}

// Error says which bytes of which file, and why.
func (e *DamageError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%v: %s: %s", e.Err, e.File, e.Reason)
	}
	return fmt.Sprintf("%v: %s: %d bytes at offset %d: %s", e.Err, e.File, e.Length, e.Offset, e.Reason)
}

// Unwrap returns the sentinel that the damage is of.
func (e *DamageError) Unwrap() error { return e.Err }
