package schedule

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/internal/system"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
)

// A Schedule is a list of systems that change a world. [New] creates a Schedule. A Schedule is for
// one goroutine, like its world.
//
// The type In is the external input of a tick, such as the buttons of all players, or struct{} if
// there is none.
type Schedule[In any] struct {
	w       *ecs.World
	raw     system.World
	systems []*System[In]
	groups  []*Group
	plan    *plan // Nil if the list of systems has changed.
	workers int
	seed    uint64
	began   bool // The first step has begun.
	running bool // A step is running.

	completed uint64 // The tick of the last step that ran all systems, or 0.
	// The value of World.Restores after that step. If it has increased, a restore has undone the
	// step.
	undone uint64

	next     int              // The system that StepSystem runs next.
	points   []ecs.Checkpoint // The checkpoints before the systems that StepSystem ran.
	at       uint64           // The tick that StepSystem makes.
	restores uint64           // World.Restores after the last StepSystem or BackSystem.
}

// New returns a schedule for w without systems.
func New[In any](w *ecs.World) *Schedule[In] {
	return &Schedule[In]{w: w, raw: runner(w), workers: 1}
}

func runner(w *ecs.World) system.World { return w.Raw().(system.World) }

// World returns the world that the systems change.
func (s *Schedule[In]) World() *ecs.World { return s.w }

// Seed sets the seed of [Tick.Rand]. To repeat a run, use the same seed. The default is 0. Seed
// returns s.
func (s *Schedule[In]) Seed(seed uint64) *Schedule[In] {
	s.seed = seed
	return s
}

// Workers sets how many systems may run at the same time. The default is 1, and 0 means the number
// of processors. The number does not change the result of a step. Workers returns s.
//
// Systems that add or remove components run one at a time. In a debug build, all systems do.
func (s *Schedule[In]) Workers(n int) *Schedule[In] {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	s.workers = n
	return s
}

type plannedSystem = system.System

// A System is a system in the list of a [Schedule]. Its methods restrict when it runs.
type System[In any] struct {
	plannedSystem
	access  Access
	run     func(*Tick[In])
	every   uint64
	startup bool
	group   *Group
	when    []func(*Tick[In]) bool
	now     Tick[In]
	body    func() // Runs the system with the Tick in the field now.
	// Set if the last call of body called run. It does not if a group is off or a condition is
	// false.
	ran     bool
	queries []system.Query // The queries of the access.
	times   Time
}

// Add adds a system to the end of the list. The argument access names everything that the function
// run uses; see the package description. Nil means [Alone]. Add panics if the schedule has a system
// of the same name.
func (s *Schedule[In]) Add(name string, access Access, run func(t *Tick[In])) *System[In] {
	s.mustNotRun("Add")
	if name == "" || run == nil {
		panic(fmt.Sprintf("schedule: Add(%q): a system needs a name and a function", name))
	}
	for _, other := range s.systems {
		if other.Name == name {
			panic(fmt.Sprintf("schedule: a second system named %s; give each system a different name", naming.Shown(name)))
		}
	}
	if access == nil {
		access = Alone
	}
	_, anything := access.(alone)
	y := &System[In]{plannedSystem: plannedSystem{Name: name, Alone: anything}, access: access, run: run, every: 1, times: Time{System: name}}
	y.body = y.runBody
	s.systems, s.plan = append(s.systems, y), nil
	return y
}

// Startup adds a system that runs only in the first tick of the world, to create what a new game
// begins with. It does not run in a loaded world, which is at a later tick. Step panics if the
// program commits a tick before the first step, because the system would never run.
func (s *Schedule[In]) Startup(name string, access Access, run func(t *Tick[In])) *System[In] {
	y := s.Add(name, access, run)
	y.startup = true
	return y
}

// Every makes the system run only in ticks whose number is a multiple of n. Every returns y.
func (y *System[In]) Every(n uint64) *System[In] {
	switch {
	case n == 0:
		panic(fmt.Sprintf("schedule: the system %s runs every 0 ticks; give it 1 or more", naming.Shown(y.Name)))
	case n > 1 && y.startup:
		panic(fmt.Sprintf("schedule: the startup system %s runs every %d ticks; it runs in tick 1 only, so omit Every", naming.Shown(y.Name), n))
	}
	y.every = n
	return y
}

// If makes the system run only if the given function returns true. The schedule calls the function
// at the system's place in the list, with the access of the system. After several calls of If, all
// conditions must hold. If returns y.
func (y *System[In]) If(when func(t *Tick[In]) bool) *System[In] {
	y.when = append(y.when, when)
	return y
}

// In adds the system to a group. A system is in at most one group. In returns y.
func (y *System[In]) In(g *Group) *System[In] {
	y.group = g
	return y
}

// Systems returns the names of the systems, in the order of the list.
func (s *Schedule[In]) Systems() []string {
	names := make([]string, 0, len(s.systems))
	for _, y := range s.systems {
		names = append(names, y.Name)
	}
	return names
}

// A Group is a set of systems that are switched on and off together, such as those of a menu. The
// switch is a resource of the world, so it is restored, journaled and saved. [Schedule.Group]
// creates a Group.
type Group struct {
	name string
	on   *ecs.Resource[groupState]
}

type groupState struct{ Off bool }

// Group returns the group with the given name, and creates it if necessary. A new group is on.
// Group panics if the world has another resource or component with the name of the switch, such as
// "Group.menu".
func (s *Schedule[In]) Group(name string) *Group {
	for _, g := range s.groups {
		if g.name == name {
			return g
		}
	}
	on := ecs.Must(ecs.RegisterResource(s.w, groupState{}, ecs.Component[groupState]{Name: "Group." + name}))
	g := &Group{name, on}
	s.groups = append(s.groups, g)
	return g
}

// On reports whether the systems of g run.
func (g *Group) On() bool { return !g.on.Read().Off }

// Switch switches the systems of g on or off. A system that calls Switch names g in its access.
func (g *Group) Switch(on bool) { g.on.Set(groupState{!on}) }

// Uses is the access of a system that switches g.
func (g *Group) Uses() []raw.Use { return g.on.Uses() }

// prepare computes the plan if the list has changed.
func (s *Schedule[In]) prepare() *plan {
	if s.plan != nil {
		return s.plan
	}
	all := make([]*system.System, len(s.systems))
	storages := s.w.Raw().Storages()
	for i, y := range s.systems {
		y.Uses = y.access.Uses()
		if y.group != nil {
			y.Uses = append(y.Uses, Reads(y.group).Uses()...)
		}
		y.queries = nil
		for _, u := range y.Uses {
			if q, ok := u.Buffers.(system.Query); ok && !slices.Contains(y.queries, q) {
				y.queries = append(y.queries, q)
			}
			if u.Storage != nil && !slices.Contains(storages, u.Storage) {
				panic(fmt.Sprintf("schedule: the access of the system %s names %s of another world", naming.Shown(y.Name), naming.Shown(u.Name())))
			}
			y.Alone = y.Alone || u.Hooked
		}
		all[i] = &y.plannedSystem
	}
	s.plan = newPlan(all)
	return s.plan
}

// names returns the names of systems for an error text.
func names(systems []*system.System) string {
	quoted := make([]string, len(systems))
	for i, y := range systems {
		quoted[i] = naming.Shown(y.Name)
	}
	return strings.Join(quoted, ", ")
}
