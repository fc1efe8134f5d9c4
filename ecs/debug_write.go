//go:build stetdebug

package ecs

import (
	"fmt"

	"github.com/stet-ecs/stet/internal/naming"
)

// In a debug build, each write first checks whether the program may write the world now. The body
// of ParallelRuns must not write, because several goroutines would write marks and logs at the same
// time. The key function of an index must not write, and neither must a system of another world's
// step.

// A refusal is the reason why a write is an error, and how to correct the program.
type refusal struct{ reason, repair string }

// refuses returns the reason why a write of w is an error now, or nil.
func (w *World) refuses() *refusal {
	switch {
	case w.parallel:
		return &refusal{"the world is written in the body of ParallelRuns",
			"write only the rows of the run there; collect other changes under a lock, and make them after the loop"}
	case w.guards.following != "":
		return &refusal{"the key function of an index of " + naming.Shown(w.guards.following) + " writes the world",
			"it must only compute a key from its argument"}
	}
	return w.refusesStep()
}

func (r *refusal) panic(write string) {
	panic(fmt.Sprintf("ecs: %s (by %s); %s", r.reason, write, r.repair))
}

// mustBeWritable panics if the program may not write w now. op is the method that writes.
func (w *World) mustBeWritable(op string) {
	if r := w.refuses(); r != nil {
		r.panic(op)
	}
}

// mustBeWritable panics if the program may not write s now. op is the method that writes, and e
// its entity, or 0 for many entities.
func (s *set) mustBeWritable(op string, e Entity) {
	r := s.w.refuses()
	if r == nil {
		return
	}
	op += " of " + naming.Shown(s.w.nameOf(&s.dense))
	if e != 0 {
		op += " of " + e.String()
	}
	r.panic(op)
}

// mustBeWritable panics if the program may not write r now.
func (r *Resource[T]) mustBeWritable() {
	if refused := r.w.refuses(); refused != nil {
		refused.panic("a write of the resource " + naming.Shown(r.name))
	}
}

// following records that an index of s runs its key function. The caller calls end afterwards.
func (s *set) following() (end func()) {
	s.w.guards.following = s.w.nameOf(&s.dense)
	return func() { s.w.guards.following = "" }
}

// mustNotFollow panics if a key function looks up an index of s.
func (s *set) mustNotFollow() {
	if outer := s.w.guards.following; outer != "" {
		panic(fmt.Sprintf("ecs: the key function of an index of %s looks up an index of %s; it must only compute a key from its argument",
			naming.Shown(outer), naming.Shown(s.w.nameOf(&s.dense))))
	}
}
