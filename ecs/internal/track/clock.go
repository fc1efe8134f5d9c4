// Package track keeps rows that can be put back: slices of rows of any type, which
// change together and save what is overwritten, so that going back costs what was
// written and not what there is. It knows neither entities nor worlds.
//
//	Clock     says which span of writing it is, and which frame is open
//	Frame     what was written between two boundaries, by tracker
//	Tracker   columns that change together, and their lengths; a record for each frame
//	Column    rows, with a log of saved rows for each record
//	Sparse    a column in pages, allocated on first use
//	Past      a column as it was at a boundary, for a reader that takes its time
//	News      which rows were written since a reader looked last, frame or no frame
//
// Whoever wants to know what was written reads the logs through [Tracker.Since],
// [Column.Saved] and [Column.Oldest].
package track

import "sync/atomic"

// A Clock is what all trackers of a world have in common. Its owner moves it; while
// rows are written it is only read, but for [Tracker.Open], the first change of a
// tracker in a span.
type Clock struct {
	Span  uint64 // Serial number of the present span of writing; only rises.
	Frame *Frame // The open frame, to which changes belong; nil: nothing is kept.

	// Undone says that frames were undone and can be redone. The first change ends
	// that: it calls End, which makes the trackers forget them.
	Undone bool
	End    func()

	Seen   RowSet // Scratch,
	spans  []Span // and more of it.
	chunks []*chunk

	opened  uint64       // How often a tracker was opened.
	bytes   atomic.Int64 // Held by the logs of all columns.
	columns int          // How many there are,
	sparse  int          // and sparse arrays.
}

// Bytes returns what the logs of all columns hold.
func (c *Clock) Bytes() int64 { return c.bytes.Load() }

// A Frame is the span between two boundaries: the trackers that changed in it
// have a record of it, with what is needed to go back to its beginning.
type Frame struct {
	ID      uint64 // Rises from frame to frame.
	Bare    bool   // Nothing will be put back to its beginning: rows are noted, and saved only for readers of the past.
	Touched []*Tracker
}
