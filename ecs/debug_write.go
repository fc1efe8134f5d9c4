//go:build stetdebug

package ecs

import (
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
)

// In a debug build, each write first checks whether the program may write the world now. These
// functions must not write it: the body of ParallelRuns, the key function of an index, and a system
// that runs on another world.

// A refusal is the reason why a write is an error, and how to correct the program.
type refusal struct{ reason, repair string }

// refuses returns a refusal if the program must not write w now, or nil.
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

// mustBeWritable panics if the program must not write w now. op is the method that writes.
func (w *World) mustBeWritable(op string) {
	r := w.refuses()
	if r == nil {
		r = w.refusesUse("", raw.Unused, raw.Writes, "the entities of the world", "schedule.Creates")
	}
	if r != nil {
		r.panic(op)
	}
}

// mustBeReadable panics if the program must not read s now. op is the method that reads.
func (s *set) mustBeReadable(op string) {
	if s.w.guards.stepped == nil {
		return
	}
	name, values := s.w.nameOf(&s.dense), raw.Reads
	if op == "Has" || op == "Row" || op == "Entities" {
		values = raw.Unused
	}
	if r := s.w.refusesUse(name, values, raw.Reads, naming.Shown(name), "ecs.Read of the storage"); r != nil {
		r.panic(op + " of " + naming.Shown(name))
	}
}

// writeQuery names a writing loop in error texts.
const writeQuery = "a query with Write"

// mustBeAlone panics if a system runs whose access is not schedule.Alone. op is the method that the
// system calls.
func (w *World) mustBeAlone(op string) {
	if step := w.guards.stepped; step != nil && !step.system.Alone {
		(&refusal{fmt.Sprintf("the system %q uses the whole world, which its access does not name", step.system.Name),
			"use schedule.Alone as the access in Schedule.Add"}).panic(op)
	}
}

// mustBeReadable panics if the program must not run a query with the given uses now.
func (w *World) mustBeReadable(uses []raw.Use) {
	for _, u := range uses {
		if u.Storage == nil {
			continue
		}
		if r := w.refusesUse(u.Name(), min(u.Values, raw.Reads), u.Members, naming.Shown(u.Name()), "the query"); r != nil {
			r.panic("a query")
		}
	}
}

// mustReadResource panics if the program must not read the resource now. The parameter op names the
// method.
func (w *World) mustReadResource(op, name string) {
	if w.guards.stepped == nil {
		return
	}
	if r := w.refusesUse(name, raw.Reads, raw.Unused, "the resource "+naming.Shown(name), "schedule.Reads of the resource"); r != nil {
		r.panic(op + " of " + naming.Shown(name))
	}
}

// refusesWrite returns a refusal if the access of the running system does not include the write of
// s.
func (s *set) refusesWrite(op string, e Entity) *refusal {
	if s.w.guards.stepped == nil {
		return nil
	}
	name := s.w.nameOf(&s.dense)
	if op == writeQuery || strings.HasPrefix(op, "Mut") || op == "Set" && s.row(e) >= 0 {
		return s.w.refusesUse(name, raw.Writes, raw.Reads, naming.Shown(name), "ecs.Write of the storage")
	}
	return s.w.refusesUse(name, raw.Writes, raw.Writes, "the members of "+naming.Shown(name), "the storage")
}

// refusesUse returns a refusal if the access of the running system does not include the use. For
// the text of the refusal, what names the data, and add names the missing access.
func (w *World) refusesUse(name string, values, members raw.Mode, what, add string) *refusal {
	step := w.guards.stepped
	if step == nil || step.system.May(name, values, members) {
		return nil
	}
	verb := "reads"
	if values == raw.Writes || members == raw.Writes {
		verb = "writes"
	}
	return &refusal{fmt.Sprintf("the system %q %s %s, which its access does not name", step.system.Name, verb, what),
		"add " + add + " to the access in Schedule.Add"}
}

// mustBeWritable panics if the program must not write s now. op is the method that writes. e is the
// entity, or 0 for many entities.
func (s *set) mustBeWritable(op string, e Entity) {
	r := s.w.refuses()
	if r == nil {
		r = s.refusesWrite(op, e)
	}
	if r == nil {
		return
	}
	op += " of " + naming.Shown(s.w.nameOf(&s.dense))
	if e != 0 {
		op += " of " + e.String()
	}
	r.panic(op)
}

// mustWriteResource panics if the program must not write the resource now.
func (w *World) mustWriteResource(name string) {
	r := w.refuses()
	if r == nil && w.guards.stepped != nil {
		r = w.refusesUse(name, raw.Writes, raw.Unused, "the resource "+naming.Shown(name), "the resource")
	}
	if r != nil {
		r.panic("a write of the resource " + naming.Shown(name))
	}
}

// following records that a key function of an index of s runs. While it runs, writes and look-ups
// in an index panic. The caller calls end after the key function has returned.
func (s *set) following() (end func()) {
	s.w.guards.following = s.w.nameOf(&s.dense)
	return func() { s.w.guards.following = "" }
}

// mustNotFollow panics if a key function is running. It is called by a look-up in an index of s.
func (s *set) mustNotFollow() {
	if outer := s.w.guards.following; outer != "" {
		panic(fmt.Sprintf("ecs: the key function of an index of %s looks up an index of %s; it must only compute a key from its argument",
			naming.Shown(outer), naming.Shown(s.w.nameOf(&s.dense))))
	}
}
