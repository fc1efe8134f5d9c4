//go:build stetdebug

package ecs

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/naming"
)

// In a build with the tag stetdebug, a world detects writes that it did not track. No restore and
// no journal would include such a write. The program makes such a write:
//
//   - to a component that it got for reading
//   - to memory that a copy shares
//   - through a pointer or slice from before the last boundary or index lookup
//
// A boundary is a checkpoint or the end of a tick. A row is protected if a frame must save it
// before a write, or if an index must learn of a write. At each boundary, a debug world encodes the
// protected rows. At the next boundary, it encodes them again. It panics if a row has changed
// although the world did not make the row writable. It makes the same comparison before it saves a
// row.
//
// All other rows may be written freely. Values that cannot be encoded are not checked. A debug
// world also checks that each Clone returns a deep copy.
const debug = true

// A guard has copies of the protected rows of a column at the last boundary.
type guard struct {
	rows []byte // Canonical bytes of the rows.
	ends []int  // End offset of each row in rows.
	n    int
	// Number of rows that a frame must save before a write. The rows from saved to n-1 are compared
	// only because of indexes.
	saved   int
	scratch []byte

	// Row of the newest pointer for writing at the last index look-up. The pointer stays valid
	// after the look-up, so the program may still write this row.
	pointed    uint32
	pointedAll bool // At the last look-up, the program had pointers to all rows.
}

// mayBeWritten reports whether the program may write row without telling the world.
func (g *guard) mayBeWritten(row int) bool { return g.pointedAll || row == int(g.pointed) }

// guards are the additional state of a world in a debug build.
type guards struct {
	columns map[*track.Log]*guard
	loans   []*loan
	begun   *step // The step in which the world was created or loaded, or nil.
	stepped *step // The step that runs on the world, or nil.

	old   []*oldPlace // Former memory of values, to which the program may have pointers.
	moved int         // Number of bytes moved by displace since the last boundary.

	following string // Name of the component whose index runs its key function, or "".
}

func (s *Storage[T]) values() *track.Log  { return &s.data.Log }
func (r *Resource[T]) values() *track.Log { return &r.data.Log }

// guardedRows are a column, its guard, and functions that read its rows.
type guardedRows struct {
	log *track.Log
	*guard
	tracker *track.Tracker
	append  func(dst []byte, lo, hi int) []byte // Encodes rows.
	next    func(src []byte) (row, rest []byte) // Splits off the first row.
	what    func(row int) string                // Describes a row for an error.
}

// verify panics if the program wrote a protected row that the world did not make writable since the
// last boundary.
func (w *World) verify() {
	w.verifyLoans()
	w.verifyOld()
	w.eachGuarded(w.verifyRows)
}

func (w *World) verifyRows(c guardedRows) {
	if row := c.stray(w.clock.Span); row >= 0 {
		w.panicOfStray(c.what(row))
	}
}

func (w *World) panicOfStray(what string) {
	panic(fmt.Sprintf("ecs: %s was written in the tick after %d without the world's knowledge; "+
		"write through the pointers of Write and Mut, or call Set, and never to what Read, Get, All, Values or Entities return; "+
		"take pointers and slices again after Checkpoint, Commit, Restore, Release, Seek and a look-up in an index", what, w.tick))
}

// stray returns a row that the program wrote without telling the world, or -1.
func (c *guardedRows) stray(span uint64) int {
	g := c.guard
	g.scratch = c.append(g.scratch[:0], 0, g.n)
	was, is := g.rows, g.scratch
	if string(was) == string(is) {
		return -1
	}
	for row := range g.n {
		var a, b []byte
		a, was = c.next(was)
		b, is = c.next(is)
		if string(a) != string(b) && !c.mayBeWritten(row) && !(c.tracker.Span == span && c.log.Written(row)) {
			return row
		}
	}
	return -1
}

// saved runs when the world saves rows [lo, hi). It panics if a row changed before the save.
func (w *World) saved(c guardedRows, lo, hi int) {
	for row := lo; row < min(hi, c.n, c.guard.saved); row++ {
		from := 0
		if row > 0 {
			from = c.ends[row-1]
		}
		c.scratch = c.append(c.scratch[:0], row, row+1)
		if string(c.scratch) != string(c.rows[from:c.ends[row]]) && !c.mayBeWritten(row) {
			panic(fmt.Sprintf("ecs: %s was written in the tick after %d before the world could save it; "+
				"Get, Read, All, Values and Set share slices, maps and pointers with the world: "+
				"write through the pointers of Mut and Write, or Set a deep copy", c.what(row), w.tick))
		}
	}
}

// checkedClone returns a function that calls clone, and panics if the result is not a deep copy.
func checkedClone[T any](clone func(T) T, name string) func(T) T {
	if clone == nil {
		return nil
	}
	return func(v T) T {
		copied := clone(v)
		if fault := layout.CopyFault(v, copied); fault != "" {
			panic(fmt.Sprintf("ecs: Component.Clone of %s is not a deep copy: %s; copy this field too, or omit Clone", naming.Shown(name), fault))
		}
		return copied
	}
}

// remember copies the protected rows of all columns. It runs at every boundary.
func (w *World) remember() {
	w.eachGuarded(w.rememberRows)
}

func (w *World) rememberRows(c guardedRows) {
	g := c.guard
	g.saved, g.pointed, g.pointedAll = c.tracker.Protected(), track.NoRow, false
	g.n = max(g.saved, c.tracker.Followed())
	g.rows = c.append(g.rows[:0], 0, g.n)
	g.ends = g.ends[:0]
	for rest := g.rows; len(rest) > 0; {
		_, rest = c.next(rest)
		g.ends = append(g.ends, len(g.rows)-len(rest))
	}
	// The rows have no encoding: they are tags, or cannot be encoded. Compare none.
	if len(g.ends) < g.n {
		g.n = 0
	}
}

// verifyOf verifies only the columns of t.
func (w *World) verifyOf(t *track.Tracker) { w.guardedOf(t, w.verifyRows) }

// rememberOf copies the rows of t after an index look-up, because the index has now read all
// writes. The parameter pointed is the row that the program may still write, or track.NoRow. If all
// is true, the program may still write every row.
func (w *World) rememberOf(t *track.Tracker, pointed uint32, all bool) {
	w.guardedOf(t, func(c guardedRows) {
		w.rememberRows(c)
		c.guard.pointed, c.guard.pointedAll = pointed, all
	})
}

func (w *World) guardedOf(t *track.Tracker, do func(guardedRows)) {
	w.eachGuarded(func(c guardedRows) {
		if c.tracker == t {
			do(c)
		}
	})
}

func (w *World) eachGuarded(do func(guardedRows)) {
	if w.guards.columns == nil {
		w.guards.columns = map[*track.Log]*guard{}
	}
	f := func(c guardedRows) {
		if c.guard = w.guards.columns[c.log]; c.guard == nil {
			c.guard = new(guard)
			w.guards.columns[c.log] = c.guard
			c.log.Watch(func(lo, hi int) { w.saved(c, lo, hi) })
		}
		do(c)
	}
	f(guardedEntities(&w.entities.rows, &w.entities.dense, "registry"))
	for _, s := range w.storages {
		f(guardedEntities(s.tracked(), &s.sparseSet().dense, s.Name()))
		f(guardedValues(s, func(row int) string {
			return fmt.Sprintf("%s of %v, row %d,", naming.Shown(s.Name()), s.sparseSet().dense.Live[row], row)
		}))
	}
	for _, r := range w.resources {
		f(guardedValues(r, func(int) string { return "resource " + r.Name() }))
	}
}

func guardedEntities(t *track.Tracker, c *track.Column[Entity], name string) guardedRows {
	return guardedRows{&c.Log, nil, t,
		func(dst []byte, lo, hi int) []byte { return digest.AppendEntities(dst, c.Live[lo:hi]) },
		func(src []byte) (row, rest []byte) { return src[:8], src[8:] },
		func(row int) string { return fmt.Sprintf("row %d of the entities of the %s", row, naming.Shown(name)) }}
}

func guardedValues(s AnyStorage, what func(row int) string) guardedRows {
	c := guardedRows{s.(interface{ values() *track.Log }).values(), nil, s.tracked(), s.Raw().AppendRows, nil, what}
	if s.about().layout == nil {
		c.append = func([]byte, int, int) []byte { return nil }
		return c
	}
	width := s.about().layout.Width()
	c.next = func(src []byte) (row, rest []byte) {
		if width >= 0 {
			return src[:width], src[width:]
		}
		row, rest, err := s.about().layout.Next(src)
		if err != nil {
			panic(err) // AppendRows wrote the row, so it can be decoded.
		}
		return row, rest
	}
	return c
}
