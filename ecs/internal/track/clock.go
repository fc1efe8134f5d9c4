// Package track stores rows that can be restored. Rows are elements of slices of any type. Columns
// that change together save values before they are overwritten. So the cost of a restore is
// proportional to the number of written rows. The package is independent of entities and worlds.
//
//	Clock         the current span of writing and the open frame
//	Frame         the trackers that changed between two boundaries
//	Tracker       columns that change together, and their lengths; a record for each frame
//	Column        rows, with a log of saved rows for each record
//	Sparse        a column in pages, allocated on first use
//	Old           the rows of a column written since a boundary, with their values at the boundary
//	AsOf          a tracker at a retained boundary, with the Olds of its columns
//	Pin           an Old that copies its rows, for a slow reader
//	DirtySet      the rows written since a reader last looked, with or without a frame
//
// Other packages find the written rows by [Tracker.Since], [Log.SavedRuns] and [Spans.Read].
package track

import (
	"sync"
	"sync/atomic"
)

// A Clock is the state that all trackers of a world share, above all the current span and the open
// frame. The owner of the clock starts new spans and frames. Most writes of rows only read the
// clock. The first change of a tracker in a span also writes to the clock, in [Tracker.Reopen].
type Clock struct {
	// Serial number of the current span, a period in which each row is saved at most once. It only
	// increases.
	Span uint64
	// The open frame. Changes are saved in its logs. If nil, no values are saved.
	Frame *Frame

	// Undone is set while undone frames can be redone. The next change then calls End, which drops
	// the undone frames of all trackers.
	Undone bool
	End    func()

	// Shared is set while several goroutines write different trackers. Everything that all trackers
	// share is then used under Lock.
	Shared bool
	shared sync.Mutex

	// Scratch space. Seen is empty between uses.
	Seen RowSet
	// Scratch space.
	spans  []Span
	chunks []*chunk

	// Number of calls of Tracker.Reopen.
	opened uint64
	// Memory size of the logs of all columns.
	bytes   atomic.Int64
	columns int // Number of columns.
	sparse  int // Number of sparse arrays.
}

// Lock locks what all trackers share, if Shared is set. It returns the function that ends the lock.
func (c *Clock) Lock() (unlock func()) {
	if !c.Shared {
		return func() {}
	}
	c.shared.Lock()
	return c.shared.Unlock
}

// Bytes returns the memory size of the logs of all columns.
func (c *Clock) Bytes() int64 { return c.bytes.Load() }

// A Frame is the time between two boundaries, such as commits or checkpoints. Touched lists the
// trackers that changed in the frame. Each of them has a record of the frame, from which a restore
// goes back to the start of the frame.
type Frame struct {
	ID uint64 // Increases from frame to frame.
	// Bare is set if no restore will go back to the start of this frame. The logs then only record
	// which rows were written. They save old values only if a reader needs them.
	Bare    bool
	Touched []*Tracker
}
