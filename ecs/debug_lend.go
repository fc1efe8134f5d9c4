//go:build stetdebug

package ecs

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/stet-ecs/stet/internal/naming"
)

// In a debug build a storage puts its values elsewhere before an entity comes or leaves, if
// the program has pointers to them. What is written through such a pointer afterwards then
// goes to the old place, and the next boundary finds it there:
//
//	p := s.Mut(a)     old | a | b |     p points here
//	s.Set(c, v)       new | a | b | c |
//	p.X = 1           old | A | b |     differs from what it was
//
// In other builds the write is lost if the storage grew, and reaches another entity's
// component if that moved into the row.

// A lending is what a set knows of the pointers that the program has.
type lending struct {
	out   bool   // The program was given pointers since the values moved last.
	watch func() // Watches the place in which the values lie.
	move  func() // Puts the values elsewhere.
	size  int    // Bytes of a value.
}

// An oldPlace is memory in which the values of a storage lay when the program had pointers.
type oldPlace struct {
	s        *set
	entities []Entity
	stray    func() int // The first row that was written since, or -1.
	pointers bool       // Values keep other memory from the collector.
}

const (
	maxOldPlaces = 32      // Of a world.
	maxMoved     = 4 << 20 // Bytes that are moved between two boundaries.
)

func (s *Storage[T]) initLending() {
	size := int(unsafe.Sizeof(*new(T)))
	s.lent.watch = func() {
		old := s.data.Live[:s.rows.N]
		was := slices.Clone(old)
		s.w.watchOld(&oldPlace{&s.set, slices.Clone(s.dense.Live[:s.rows.N]), func() int { return differing(bytesOf(old), bytesOf(was), size) }, s.pointers})
	}
	s.lent.move = s.data.Move
	s.lent.size = size
}

// bytesOf returns the memory of rows.
func bytesOf[T any](rows []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)*int(unsafe.Sizeof(*new(T))))
}

// differing returns the first row of so many bytes in which a and b differ, or -1.
func differing(a, b []byte, size int) int {
	if string(a) == string(b) {
		return -1
	}
	for row := 0; ; row++ {
		if lo, hi := row*size, (row+1)*size; string(a[lo:hi]) != string(b[lo:hi]) {
			return row
		}
	}
}

// lend records that the program gets pointers to values of s.
func (s *set) lend() { s.lent.out = true }

// lendWritten records that the program gets pointers to the columns that a loop writes.
func lendWritten(columns []joinedColumn) {
	for _, m := range columns {
		if m.write {
			m.set.lend()
		}
	}
}

// outgrow comes before the values of s move to a larger place.
func (s *set) outgrow() {
	if s.lent.out && s.lent.size > 0 {
		s.lent.watch()
	}
	s.lent.out = false
}

// displace comes before an entity comes to s, leaves it or moves in it. The rows of an Indexed
// storage stay where they are as long as it does not grow.
func (s *set) displace() {
	if s.kind == Indexed {
		return
	}
	w, bytes := s.w, s.rows.N*s.lent.size
	if s.lent.out && bytes > 0 && w.guards.moved+bytes <= maxMoved {
		w.guards.moved += bytes
		s.lent.watch()
		s.lent.move()
		w.changes++ // Loops look for their rows again.
	}
	s.lent.out = false
}

// watchOld adds p to the places that are looked at.
func (w *World) watchOld(p *oldPlace) {
	if len(w.guards.old) == maxOldPlaces {
		oldest := w.guards.old[0]
		w.guards.old = slices.Delete(w.guards.old, 0, 1)
		oldest.verify()
	}
	w.guards.old = append(w.guards.old, p)
}

// verifyOld panics if the program wrote to a place in which values lay before.
func (w *World) verifyOld() {
	w.guards.moved = 0
	for i, p := range w.guards.old {
		if p.stray() >= 0 {
			w.guards.old = slices.Delete(w.guards.old, i, i+1)
			p.verify()
		}
	}
	w.guards.old = slices.DeleteFunc(w.guards.old, func(p *oldPlace) bool { return p.pointers })
}

func (p *oldPlace) verify() {
	if row := p.stray(); row >= 0 {
		panic(fmt.Sprintf("ecs: %s of %v was written through a pointer from before an entity came to the storage, left it or moved in it: the write is lost, or it changes another entity's component; "+
			"take the pointer again, by Mut, MutValues or the next step of a loop, after Set of a new component, Remove, Destroy, Clear, Reserve and sorts",
			naming.Shown(p.s.w.nameOf(&p.s.dense)), p.entities[row]))
	}
}
