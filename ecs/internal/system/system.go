// Package system has the interface between worlds and package schedule, which runs systems.
package system

import "github.com/stet-ecs/stet/ecs/raw"

// A System is a function that changes a world once a tick.
type System struct {
	Name string
	Uses []raw.Use
	// The system may use the whole world, so Uses is not checked.
	Alone bool
}

// May reports whether s may use the storage called name, or the registry if name is "". The
// parameter values says how it uses the values of components. The parameter members says how it
// uses the set of entities that have the component.
func (s *System) May(name string, values, members raw.Mode) bool {
	if s.Alone {
		return true
	}
	for _, u := range s.Uses {
		if u.Name() == name {
			values, members = left(values, u.Values), left(members, u.Members)
		}
	}
	return values == raw.Unused && members == raw.Unused
}

// left returns what remains of the mode want if an access already permits the mode has. If has
// includes want, nothing remains, and left returns raw.Unused. Otherwise it returns want.
func left(want, has raw.Mode) raw.Mode {
	if has >= want {
		return raw.Unused
	}
	return want
}

// A World has the methods of a world that package schedule needs. The result of ecs.World.Raw
// implements it.
type World interface {
	// RunSystem calls the function run, which is the body of s. Until run() returns, the world
	// cannot be committed. A debug build panics if run() uses something else than s.Uses.
	RunSystem(s *System, run func())

	// RunTogether calls the function run, which may run systems on several goroutines. These
	// systems may neither create or destroy entities, nor add or remove components. If a system
	// writes what another one uses, the result is undefined. The parameter names lists the systems,
	// for error texts.
	RunTogether(names string, run func())

	// Stage begins a new period of writes, called a span, and returns its number.
	Stage() (span uint64)

	// Sums returns the digest of the registry, then the digest of each storage and resource, in the
	// order of registration. The argument before has the digests of an earlier call. Sums computes
	// a digest only if its data was written in the given span or later. It copies the other digests
	// from before. A digest is 0 if a storage has no rows or is excluded from digests.
	Sums(before []uint64, span uint64) []uint64

	// InSystem reports whether a system runs on the world.
	InSystem() bool

	// OneAtATime reports whether RunTogether must not be called, as in a debug build.
	OneAtATime() bool

	// HistoryTicks returns the value of ecs.Options.History.
	HistoryTicks() int
}

// A Query is a query of a world. Package schedule finds it in the field Buffers of a raw.Use.
type Query interface {
	// Visited returns the number of rows that loops over the query have visited. A loop visits rows
	// in runs. If it ends early, all rows of the current run count.
	Visited() uint64
}
