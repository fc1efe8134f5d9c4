package persist

import (
	"errors"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/format"
)

var (
	// ErrForeign reports a directory or file that is not a store or a save.
	ErrForeign = format.ErrForeign

	// ErrNewer reports a store or save that a later version wrote.
	ErrNewer = format.ErrNewer

	// ErrCorrupt reports bytes that are not what was written.
	ErrCorrupt = format.ErrCorrupt

	// ErrIrregular reports a directory, a pipe, a device or the like where a file was to be
	// saved. [SaveTo] writes to pipes and devices.
	ErrIrregular = disk.ErrIrregular

	// ErrLocked reports a directory that another process has open.
	ErrLocked = format.ErrLocked

	// ErrLost reports a store that another process has taken, or could have: its lock
	// file was removed or replaced, or says that somebody else has the store. What was
	// durable before is his now; nothing later is saved, and no call succeeds again.
	ErrLost = disk.ErrLost

	// ErrSchema reports stored components that do not fit the registered types.
	ErrSchema = format.ErrSchema

	// ErrNotEmpty reports a world with entities that was to be filled from a
	// directory with a state of its own.
	ErrNotEmpty = format.ErrNotEmpty

	// ErrNotFound reports a point in time, an entity or a component that the
	// store does not have.
	ErrNotFound = format.ErrNotFound

	// ErrName reports a name that a snapshot, a mark or an input cannot have.
	ErrName = format.ErrName

	// ErrPoint reports a text that is not a point in time.
	ErrPoint = format.ErrPoint

	// ErrUncommitted reports a world with changes since its last commit.
	ErrUncommitted = errors.New("persist: uncommitted changes")

	// ErrBacklog reports a tick that was not ended, because too much waits for the
	// disk already. Nothing is lost or changed; see [Options.RefuseWhenFull].
	ErrBacklog = errors.New("persist: the disk does not keep up; commit again later")

	// ErrClosed reports the use of a closed store.
	ErrClosed = errors.New("persist: closed")

	// errFollowed says that a program ended a tick of a world that is followed.
	errFollowed = errors.New("persist: the world of a follower was committed; follow the store again")
)

// A DamageError says which bytes of which file cannot be used, and why: File,
// relative to the store's directory; Offset of the first byte in question, -1 if only
// the file is known; Length in bytes, 0 if unknown; Reason. It unwraps to [ErrCorrupt]
// or to what the layer below said.
type DamageError = format.DamageError
