//go:build stetdebug

package ecs

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/internal/naming"
)

// In a debug build, a world returns copies of its slices of entities. If an entity moves or is
// destroyed, the world overwrites its entry in the copies. In this example, a loop over
// w.Entities() destroys each entity. Each line shows the copy after a call:
//
//	w.Entities()    | 0 | 1 | 2 | 3 |
//	w.Destroy(0)    | - | 1 | 2 | - |    3 has moved to the row of 0
//	w.Destroy(1)    | - | - | - | - |    2 has moved to the row of 1
//
// The loop panics at the third entry. In other builds, this loop leaves half of the entities alive.

// A loan is a slice of entities that the world returned to the program.
type loan struct {
	t    *track.Tracker
	c    *track.Column[Entity]
	rows []Entity
	was  []Entity
}

// struckOut replaces the entry of an entity that has moved or is destroyed. No entity has this
// index.
const struckOut = Vacant - 1<<32

const maxLoans = 8

// loan returns a copy of the first rows of c. The tracker t knows their number.
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

// spoil overwrites the entries of entities that have moved or are destroyed, in all loans.
func (w *World) spoil() {
	for _, l := range w.guards.loans {
		for i, e := range l.was {
			if e != struckOut && e != Vacant && l.rows[i] == e && (i >= l.t.N || l.c.Live[i] != e) {
				l.rows[i], l.was[i] = struckOut, struckOut
			}
		}
	}
}

// verifyLoans panics if the program wrote to a loan.
func (w *World) verifyLoans() {
	for _, l := range w.guards.loans {
		for i, e := range l.was {
			if l.rows[i] != e {
				w.panicOfStray(fmt.Sprintf("row %d of the entities of the %s", i, naming.Shown(w.nameOf(l.c))))
			}
		}
	}
}

// nameOf returns the name of the storage whose entities are in c, or "registry".
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
