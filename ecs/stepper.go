package ecs

import "fmt"

// A Stepper makes ticks out of inputs: a list of systems, which are functions with
// names, that run one after the other. In is what a tick gets from outside of the
// world: the buttons of all players, orders, nothing at all as struct{}.
//
// A simulation that reads no more than its world and its input is deterministic,
// and then a tick can be made again after going back, with the same input or with
// what the input should have been:
//
//	save      each Step ends with Commit: Options.History keeps the tick
//	load      w.History().Seek(tick)
//	advance   stepper.Step(w, input)
//
// A [SyncTest] finds out whether it is. The zero Stepper has no systems.
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

// Add adds a system behind the others. run changes w, whose [World.Tick] is the
// tick before the one that is being made. Commit and Seek panic in a system, as its tick has
// not ended.
//
// Storages, resources and groups are those of one world, and so are queries. A system
// for several worlds, as a clone is another one, finds those of w by [Storage.In], or
// is given what belongs to w in In. Where a system closes over those of another world
// it changes that one, and the tick of w is empty: a debug build panics.
//
// It panics if there is a system of that name.
func (s *Stepper[In]) Add(name string, run func(w *World, in In)) {
	for i := range s.systems {
		if s.systems[i].name == name {
			panic(fmt.Sprintf("ecs: a second system %q; give each a name of its own", name))
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

// Run runs the systems on w and leaves the tick open: for whoever ends it in
// another way, as the Commit of a store that tells errors.
func (s *Stepper[In]) Run(w *World, in In) {
	for i := range s.systems {
		s.systems[i].on(w, in)
	}
}

// Step makes a tick: it runs the systems on w and commits.
func (s *Stepper[In]) Step(w *World, in In) {
	s.Run(w, in)
	w.Commit()
}
