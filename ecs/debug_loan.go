//go:build stetdebug

package ecs

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/internal/naming"
)

// In a debug build, the slices of entities that a world returns are copies. The world overwrites
// the entries of entities that have moved or are destroyed:
//
//	for _, e := range w.Entities() {    | 0 | 1 | 2 | 3 |
//		w.Destroy(e)                    | - | 1 | 2 | - |    3 has moved into the place of 0
//	}                                   | - | - | - | - |    2 into that of 1: next comes a panic
//
// In other builds the loop continues with entities that are destroyed already, and leaves half of
// the entities alive.

// A loan is a copy that the world returned.
type loan struct {
	t    *track.Tracker        // Has the present number of rows.
	c    *track.Column[Entity] // Has the present rows.
	rows []Entity              // The slice that the program has.
	was  []Entity              // The expected content of rows.
}

// struckOut replaces, in a loan, an entity that has moved or is destroyed. No entity has its
// index.
const struckOut = Vacant - 1<<32

const maxLoans = 8

// loan returns a copy of the rows of c. t has their number.
func (w *World) loan(t *track.Tracker, c *track.Column[Entity]) []Entity {
	rows := c.Live[:t.N:t.N]
	for _, l := range w.guards.loans {
		if l.t == t && l.c == c && slices.Equal(l.was, rows) {
			return l.rows
		}
	}
	if len(w.guards.loans) == maxLoans {
		w.guards.loans = w.guards.loans[1:]
	}
	l := &loan{t, c, slices.Clip(slices.Clone(rows)), slices.Clone(rows)}
	w.guards.loans = append(w.guards.loans, l)
	return l.rows
}

// spoil overwrites the entries of entities that have moved or are destroyed.
func (w *World) spoil() {
	for _, l := range w.guards.loans {
		for i, e := range l.was {
			if e != struckOut && e != Vacant && l.rows[i] == e && (i >= l.t.N || l.c.Live[i] != e) {
				l.rows[i], l.was[i] = struckOut, struckOut
			}
		}
	}
}

// verifyLoans panics if the program wrote to a returned slice.
func (w *World) verifyLoans() {
	for _, l := range w.guards.loans {
		for i, e := range l.was {
			if l.rows[i] != e {
				w.panicOfStray(fmt.Sprintf("row %d of the entities of the %s", i, naming.Shown(w.nameOf(l.c))))
			}
		}
	}
}

// nameOf returns the name of the storage whose entities are c, or "registry".
func (w *World) nameOf(c *track.Column[Entity]) string {
	for i, s := range w.sets {
		if &s.dense == c {
			return w.storages[i].Name()
		}
	}
	return "registry"
}

// mustBeCurrent panics if e is struckOut.
func mustBeCurrent(e Entity) {
	if e == struckOut {
		panic("ecs: a slice of Entities was read at a position at which the world now has another entity; " +
			"a loop that destroys or removes must go from the last to the first (slices.Backward), or use DestroyAll, RemoveAll or Clear")
	}
}
