//go:build stetdebug

package ecs

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/internal/naming"
)

// In a debug build the slices of entities that a world hands out are copies, in which
// it strikes out what lies elsewhere by now:
//
//	for _, e := range w.Entities() {    | 0 | 1 | 2 | 3 |
//		w.Destroy(e)                    | - | 1 | 2 | - |    3 has moved into the place of 0
//	}                                   | - | - | - | - |    2 into that of 1: next comes a panic
//
// In other builds the loop would go on to what is destroyed already, and leave half of
// the entities alive.

// A loan is a copy that was handed out.
type loan struct {
	t    *track.Tracker        // How many rows there are now,
	c    *track.Column[Entity] // and what they are.
	rows []Entity              // Handed out,
	was  []Entity              // and what they were.
}

// struckOut stands in a loan for an entity that is not there any more. No entity has
// its index.
const struckOut = Vacant - 1<<32

const maxLoans = 8

// loan returns the first rows of c, as many as t says.
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

// spoil strikes out what lies elsewhere by now.
func (w *World) spoil() {
	for _, l := range w.guards.loans {
		for i, e := range l.was {
			if e != struckOut && e != Vacant && l.rows[i] == e && (i >= l.t.N || l.c.Live[i] != e) {
				l.rows[i], l.was[i] = struckOut, struckOut
			}
		}
	}
}

// verifyLoans panics if the program wrote what it was handed out.
func (w *World) verifyLoans() {
	for _, l := range w.guards.loans {
		for i, e := range l.was {
			if l.rows[i] != e {
				w.panicOfStray(fmt.Sprintf("row %d of the entities of the %s", i, naming.Shown(w.nameOf(l.c))))
			}
		}
	}
}

// nameOf returns whose entities c has.
func (w *World) nameOf(c *track.Column[Entity]) string {
	for i, s := range w.sets {
		if &s.dense == c {
			return w.storages[i].Name()
		}
	}
	return "registry"
}

// mustBeCurrent panics if e was struck out.
func mustBeCurrent(e Entity) {
	if e == struckOut {
		panic("ecs: an entity of a slice that Entities returned, of a place in which the world has another by now; " +
			"a loop that destroys or removes goes from the last to the first (slices.Backward), or leaves that to DestroyAll, RemoveAll or Clear")
	}
}
