//go:build stetdebug

package ecs

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/stet-ecs/stet/internal/naming"
)

// A debug build detects writes through old pointers. It moves the values of a storage to new memory
// before an entity is added or removed, if the program may have pointers to them. The next
// checkpoint or end of a tick detects writes to the old memory. This example shows the
// memory that each line uses:
//
//	p := s.Mut(a)     old | a | b |        p points to a in the old memory
//	s.Set(c, v)       new | a | b | c |    the values have moved to new memory
//	p.X = 1           old | A | b |        the old memory has changed
//
// In other builds, such a write may be lost, or may change the component of another entity.

// A lending records whether the program has pointers to values of a set.
type lending struct {
	out   bool   // The program has taken a pointer since the values last moved.
	watch func() // Starts to watch the current memory of the values.
	move  func() // Moves the values to new memory.
	size  int    // Size of a value in bytes.
	// Call stack of the last change of the rows.
	callers [16]uintptr
}

// An oldPlace is former memory of a storage's values. The program may still have pointers to it.
type oldPlace struct {
	s        *set
	entities []Entity
	stray    func() int // Returns the first row written after the values moved, or -1.
	pointers bool       // The values contain pointers, which keep other memory alive.
}

const (
	maxOldPlaces = 32      // Maximum number of watched memory blocks in a world.
	maxMoved     = 4 << 20 // Maximum number of bytes moved between two boundaries.
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

// differing returns the first row in which a and b differ, or -1. Each row has size bytes.
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

// lendWritten records that the program gets pointers to the rows that a loop writes. It panics if
// the program must not write them now.
func lendWritten(columns []joinedColumn) {
	for _, m := range columns {
		if m.write {
			m.set.mustBeWritable(writeQuery, 0)
			m.set.lend()
		}
	}
}

// outgrow runs before the storage moves its values to a larger array.
func (s *set) outgrow() {
	if s.lent.out && s.lent.size > 0 {
		s.lent.watch()
	}
	s.lent.out = false
}

// displace runs before an entity is added to s, removed or moved. It does nothing for Indexed
// storages, whose rows move only when the storage grows.
func (s *set) displace() {
	s.recordCaller()
	if s.kind == Indexed {
		return
	}
	w, bytes := s.w, s.rows.N*s.lent.size
	if s.lent.out && bytes > 0 && w.guards.moved+bytes <= maxMoved {
		w.guards.moved += bytes
		s.lent.watch()
		s.lent.move()
		w.changes++ // Makes running loops compute the addresses of their rows again.
	}
	s.lent.out = false
}

// recordCaller records the calls that led to a change of the rows.
func (s *set) recordCaller() {
	clear(s.lent.callers[:])
	runtime.Callers(2, s.lent.callers[:])
}

// caller returns the file and line of the program that last changed the rows, as " (by FILE:LINE)".
func (s *set) caller() string {
	frames := runtime.CallersFrames(s.lent.callers[:])
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.File != "" && (!strings.HasPrefix(f.Function, ownPackage) || strings.HasSuffix(f.File, "_test.go")) {
			return fmt.Sprintf(" (by %s:%d)", filepath.Base(f.File), f.Line)
		}
	}
	return ""
}

// ownPackage is the prefix of the names of all functions of this package.
var ownPackage = reflect.TypeFor[World]().PkgPath() + "."

// watchOld adds p to the watched memory blocks. It verifies and drops the oldest block if there are
// too many.
func (w *World) watchOld(p *oldPlace) {
	if len(w.guards.old) == maxOldPlaces {
		oldest := w.guards.old[0]
		w.guards.old = slices.Delete(w.guards.old, 0, 1)
		oldest.verify()
	}
	w.guards.old = append(w.guards.old, p)
}

// verifyOld panics if the program wrote to a watched memory block.
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
		panic(fmt.Sprintf("ecs: %s of %v was written through a pointer from before an entity was added to the storage, removed or moved: the write is lost, or it changes another entity's component; "+
			"take the pointer again, by Mut, MutValues or the next step of a loop, after Set of a new component, Remove, Destroy, Clear, Reserve and sorts",
			naming.Shown(p.s.w.nameOf(&p.s.dense)), p.entities[row]))
	}
}
