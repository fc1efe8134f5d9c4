package journal

import (
	"errors"
	"fmt"
)

var (
	// ErrForeign reports bytes that are not a journal of this world: another
	// kind of file, or a segment of another world.
	ErrForeign = errors.New("journal: not ours")

	// ErrNewer reports a segment written by a later version of this package,
	// or one that uses a feature this version does not know.
	ErrNewer = errors.New("journal: newer than this program")

	// ErrTorn reports unfinished bytes at the end of the journal. Nothing that
	// was acknowledged is missing.
	ErrTorn = errors.New("journal: torn tail")

	// ErrCorrupt reports bytes that were durable once and can no longer be
	// read.
	ErrCorrupt = errors.New("journal: corrupt")

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

// A DamageError says which bytes of which file could not be used, and why. It
// unwraps to [ErrTorn], [ErrCorrupt], [ErrForeign] or [ErrNewer].
type DamageError struct {
	File   string // Name in the journal's directory.
	Offset int64  // First byte in question.
	Length int64  // Bytes in question; 0 if what is missing has no length.
	Reason string // What was wrong, in lower case.
	Err    error  // One of the sentinels above.
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%v: %s: %d bytes at offset %d: %s", e.Err, e.File, e.Length, e.Offset, e.Reason)
}

func (e *DamageError) Unwrap() error { return e.Err }
