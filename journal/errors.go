package journal

import (
	"errors"

	"github.com/stet-ecs/stet/disk"
)

var (
	// ErrForeign reports bytes that do not belong to a journal of this world: another kind of file,
	// or a segment of another world.
	ErrForeign = disk.ErrForeign

	// ErrNewer reports a segment that a later version of this package wrote, or a segment with an
	// unknown feature.
	ErrNewer = disk.ErrNewer

	// ErrTorn reports unfinished bytes at the end of the journal. No acknowledged record is
	// missing.
	ErrTorn = errors.New("journal: torn tail")

	// ErrCorrupt reports bytes that were durable once and can no longer be read.
	ErrCorrupt = disk.ErrCorrupt

	// ErrClosed reports the use of a closed [Journal].
	ErrClosed = errors.New("journal: closed")

	// ErrBacklog reports a record that a full queue refused; see [Options.RefuseWhenFull]. The
	// caller can append the record again later.
	ErrBacklog = errors.New("journal: the queue is full, the disk does not keep up")

	// ErrTooLong reports a payload that no segment can hold.
	ErrTooLong = errors.New("journal: payload too long")

	// ErrNotFound reports a seq that has no readable record.
	ErrNotFound = errors.New("journal: no such record")

	// ErrNotAncestor reports that a record is not an ancestor of another record, so no path leads
	// from the first to the second.
	ErrNotAncestor = errors.New("journal: not an ancestor")
)
