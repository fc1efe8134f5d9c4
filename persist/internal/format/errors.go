package format

import (
	"errors"

	"github.com/stet-ecs/stet/disk"
)

var (
	// ErrForeign reports a directory or file that is not a store or a save.
	ErrForeign = disk.ErrForeign

	// ErrNewer reports a store or save that a later version wrote.
	ErrNewer = disk.ErrNewer

	// ErrCorrupt reports bytes that differ from what was written.
	ErrCorrupt = disk.ErrCorrupt

	// ErrLocked reports a directory that another process has open.
	ErrLocked = errors.New("persist: in use")

	// ErrSchema reports stored components that do not match the registered types.
	ErrSchema = errors.New("persist: schema does not fit")

	// ErrNotEmpty reports that a world with entities cannot be opened on a directory that already
	// has a state.
	ErrNotEmpty = errors.New("persist: both world and directory hold a state")

	// ErrNotFound reports a point in time, an entity or a component that the store does not have.
	ErrNotFound = errors.New("persist: not found")

	// ErrName reports an invalid name of a snapshot, a mark or an input.
	ErrName = errors.New("persist: invalid name")

	// ErrPoint reports a text that is not a point in time.
	ErrPoint = errors.New("persist: not a point in time")
)

// A DamageError says which bytes of which file cannot be used, and why. File is relative to the
// store's directory.
type DamageError = disk.DamageError
