package ecs

import "fmt"

// A Stepper runs ticks from inputs. It has a list of systems, which are functions with names, and
// runs them one after the other. In is the type of a tick's external input: the buttons of all
// players, orders, or struct{} for no input.
//
// A simulation that reads only its world and its input is deterministic. After a rewind, the
// program can repeat a tick with the same input or with a corrected one:
//
//	save      each Step ends with Commit; Options.History retains the tick
//	load      w.History().Seek(tick)
//	advance   stepper.Step(w, input)
//
// A [SyncTest] checks whether a simulation is deterministic. The zero Stepper has no systems.
type Stepper[In any] struct{ systems []system[In] }

type system[In any] struct {
	name string
	run  func(w *World, in In)
}

// on runs the system on w.
func (s *system[In]) on(w *World, in In) {
	if debug {
		defer w.stepping(s.name)()
	}
	outer := w.system
	w.system = &s.name
	defer func() { w.system = outer }()
	s.run(w, in)
}

// Add adds a system to the end of the list. run changes w. While run is running, [World.Tick] is
// the previous tick. Commit and Seek panic in a system, because its tick has not ended.
//
// Storages, resources, groups and queries belong to one world. A system for several worlds, such as
// a world and its clone, finds the storages of w by [Storage.In], or receives them in in. If a
// system uses captured storages of another world, it changes that world, and the tick of w is
// empty. A debug build panics in this case.
//
// Add panics if the stepper already has a system of the same name.
func (s *Stepper[In]) Add(name string, run func(w *World, in In)) {
	for i := range s.systems {
		if s.systems[i].name == name {
			panic(fmt.Sprintf("ecs: a second system named %q; give each system a different name", name))
		}
	}
	s.systems = append(s.systems, system[In]{name, run})
}

// Systems returns the names of the systems, in order.
func (s *Stepper[In]) Systems() []string {
	names := make([]string, 0, len(s.systems))
	for i := range s.systems {
		names = append(names, s.systems[i].name)
	}
	return names
}

// Run runs the systems on w without a commit. The caller then ends the tick in another way, such as
// by the Commit of a store, which returns errors.
func (s *Stepper[In]) Run(w *World, in In) {
	for i := range s.systems {
		s.systems[i].on(w, in)
	}
}

// Step runs a tick: it runs the systems on w and commits.
func (s *Stepper[In]) Step(w *World, in In) {
	s.Run(w, in)
	w.Commit()
}
