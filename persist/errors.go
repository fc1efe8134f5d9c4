package persist

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/format"
)

var (
	// ErrForeign reports a directory or file that is not a store or a save.
	ErrForeign = format.ErrForeign

	// ErrNewer reports a store or save that a later version wrote.
	ErrNewer = format.ErrNewer

	// ErrCorrupt reports bytes that differ from what was written.
	ErrCorrupt = format.ErrCorrupt

	// ErrIrregular reports that the path of a save is a directory, a pipe, a device or another
	// irregular file. [SaveTo] writes to pipes and devices.
	ErrIrregular = disk.ErrIrregular

	// ErrLocked reports a directory that another process has open.
	ErrLocked = format.ErrLocked

	// ErrLost reports a store that another process has taken over, or may have taken over. Its lock
	// file was removed or replaced, or names another owner. Ticks that were durable before belong
	// to the new owner. No later tick is saved, and every later call fails.
	ErrLost = disk.ErrLost

	// ErrSchema reports stored components that do not fit the registered types.
	ErrSchema = format.ErrSchema

	// ErrNotEmpty reports a world that has entities, although it must be empty to be filled from an
	// existing store.
	ErrNotEmpty = format.ErrNotEmpty

	// ErrNotFound reports a point in time, an entity or a component that the store does not have.
	ErrNotFound = format.ErrNotFound

	// ErrName reports an invalid name of a slot, a mark or an input, or a note of a slot that is
	// too long.
	ErrName = format.ErrName

	// ErrPoint reports a text that is not a point in time.
	ErrPoint = format.ErrPoint

	// ErrUncommitted reports that the world has changes since the last Commit, and that the call
	// needs a committed world. A call in a system also returns it, because the tick has not ended.
	// Close returns it if changes, marks, inputs or slots wait for a Commit. The text names what
	// was written. A loop over a query with Write writes each row that it visits, even if the
	// program only reads the row.
	ErrUncommitted = errors.New("persist: uncommitted changes")

	// ErrBacklog reports a tick that was not ended because too many bytes already wait for the
	// disk. Nothing is lost or changed; see [Options.RefuseWhenFull].
	ErrBacklog = errors.New("persist: the disk does not keep up; commit again later")

	// ErrClosed reports the use of a closed store.
	ErrClosed = errors.New("persist: used after Close")

	// errFollowed reports that the program committed a world that a Follower updates.
	errFollowed = errors.New("persist: the world of a follower was committed; follow the store again")
)

// tooEarly returns the [ErrUncommitted] of a call that must come right after a commit.
func tooEarly(w raw.World, call string) error {
	return uncommittedError(w, call+" needs a tick that has ended; call it after Commit, and not in a system")
}

// uncommittedError returns an [ErrUncommitted] that names what was written since the last commit.
func uncommittedError(w raw.World, text string) error {
	const most = 5
	names := w.Written()
	for i := range names {
		names[i] = naming.Shown(names[i])
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 { // The call came from a system that has written nothing yet.
		return fmt.Errorf("%w: %s", ErrUncommitted, text)
	}
	return fmt.Errorf("%w of %s: %s", ErrUncommitted, strings.Join(names, ", "), text)
}

// A DamageError says which bytes of which file cannot be used, and why. It is [disk.DamageError],
// where its fields are described: File, Offset, Length, Reason and Err. File is relative to the
// store's directory. The error unwraps to [ErrCorrupt], [ErrForeign], [ErrNewer] or the error of
// reading the bytes.
type DamageError = disk.DamageError
