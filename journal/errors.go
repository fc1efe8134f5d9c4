package journal

import (
	"errors"

	"github.com/stet-ecs/stet/disk"
)

var (
	// ErrForeign reports bytes that are not a journal of this world: another
	// kind of file, or a segment of another world.
	ErrForeign = disk.ErrForeign

	// ErrNewer reports a segment written by a later version of this package,
	// or one that uses a feature this version does not know.
	ErrNewer = disk.ErrNewer

	// ErrTorn reports unfinished bytes at the end of the journal. Nothing that
	// was acknowledged is missing.
	ErrTorn = errors.New("journal: torn tail")

	// ErrCorrupt reports bytes that were durable once and can no longer be
	// read.
	ErrCorrupt = disk.ErrCorrupt

	// ErrClosed reports the use of a closed [Journal].
	ErrClosed = errors.New("journal: closed")

	// ErrBacklog reports a record that a full queue did not take; see
	// [Options.RefuseWhenFull]. It can be appended again.
	ErrBacklog = errors.New("journal: the queue is full, the disk does not keep up")

	// ErrTooLong reports a payload that no segment can hold.
	ErrTooLong = errors.New("journal: payload too long")

	// ErrNotFound reports a seq that has no readable record.
	ErrNotFound = errors.New("journal: no such record")

	// ErrNotAncestor reports two records of which neither is on the other's
	// way back to the root.
	ErrNotAncestor = errors.New("journal: not an ancestor")
)

// A DamageError says which bytes of which file of the journal could not be used, and
// why. It unwraps to [ErrTorn], [ErrCorrupt], [ErrForeign] or [ErrNewer].
type DamageError = disk.DamageError
