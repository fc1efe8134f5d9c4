package ecs

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A Group keeps its members contiguous. Its members are the entities that have all components of
// the group. They are at the front of the rows of each storage, in the same order:
//
//	positions     | a | b | c | x | y | z |
//	velocities    | a | b | c | w |
//	              0           n                n = 3 members
//
// A query over these components then finds one run and reads nothing after it, even after many
// changes. In return, changes cost more. When an entity becomes a member or stops being one, it
// swaps its row with the row at the border, in each storage.
//
// Create the groups of a program with [World.NewGroup], after registering the components. Like
// components, groups are part of the program and are not saved. A restore restores the members.
// To make rows contiguous now and then, without the cost at each change, use [World.Align].
//
// # Pointers
//
// A change in one storage of a group moves rows in all of them. So the rules of [Storage.Mut]
// about changes of its storage apply to changes in the whole group.
//
// # Changing the world while iterating
//
// The rules of [Query1] apply. A loop visits each entity once, even if the group moves the row of
// the entity across the position of the loop. A loop over all components of the group visits only
// members.
type Group struct {
	_ noCopy

	w *World
	// rows.N is the number of members at the front of the storages (packed members). rows.Extra is
	// 1 if all members are packed, and 0 otherwise.
	rows track.Tracker
	sets []*set
	at   []int // Buffer of packEntity: the entity's row in each set.
}

// NewGroup creates a group of two or more storages of w. It packs the entities that have all of
// these components, in the order of the storage with the fewest rows. This counts as a change of
// the world. A query over all components of a group finds one run.
//
// If w already has a group of the same storages in the same order, NewGroup returns that group. A
// storage may belong to only one group, and must not be NoRewind or [Indexed]. Otherwise NewGroup
// returns an error. A clone has the groups of the original.
//
// New members are packed at once. Members may be unpacked after a rewind to a state before
// NewGroup, or after a Load of data saved without the group. The next Commit, or [Group.Pack],
// packs them.
func (w *World) NewGroup(storages ...AnyStorage) (*Group, error) {
	for _, g := range w.groups {
		if slices.EqualFunc(g.sets, storages, func(a *set, b AnyStorage) bool { return a.storage == b }) {
			return g, nil
		}
	}
	if err := w.checkGroup(storages); err != nil {
		return nil, fmt.Errorf("ecs: bad group: %w", err)
	}
	return w.group(storages), nil
}

// group creates a group of storages that checkGroup accepts.
func (w *World) group(storages []AnyStorage) *Group {
	g := w.newGroup(storages)
	if g.measure(); g.rows.Extra == 1 && g.untouched() {
		return g
	}
	g.rows.Lengths = track.Lengths{}
	g.Pack()
	return g
}

func (w *World) checkGroup(storages []AnyStorage) error {
	if n := len(storages); n < 2 {
		return fmt.Errorf("of %d storages; give it two or more", n)
	}
	for i, s := range storages {
		switch {
		case isNil(s):
			return fmt.Errorf("storage %d is nil", i)
		case s.sparseSet() == nil:
			return fmt.Errorf("%s is a resource; it belongs to no entity", s.Name())
		case s.sparseSet().w != w:
			return fmt.Errorf("%s is of another world", s.Name())
		case s.about().unknown:
			return fmt.Errorf("%s is not registered", s.Name())
		case s.about().noRewind:
			return fmt.Errorf("%s is NoRewind, and its rows cannot follow rows that a restore moves", s.Name())
		case s.sparseSet().group != nil:
			return fmt.Errorf("%s is in a group already", s.Name())
		case s.Kind() == Indexed:
			return fmt.Errorf("%s is Indexed, and its rows cannot move", s.Name())
		case slices.Contains(storages[:i], s):
			return fmt.Errorf("%s is named twice", s.Name())
		}
	}
	return nil
}

func (w *World) newGroup(storages []AnyStorage) *Group {
	g := &Group{w: w, at: make([]int, len(storages))}
	g.rows.Init(&g.w.clock, false)
	for _, s := range storages {
		set := s.sparseSet()
		set.group = g
		g.sets = append(g.sets, set)
	}
	g.w.groups = append(g.w.groups, g)
	g.w.updateObserved()
	return g
}

// Len returns the number of packed rows of each storage. It is the number of members, unless
// [Group.Pack] still has to pack some of them.
func (g *Group) Len() int { return g.rows.N }

// Entities returns the entities of the packed rows. The slice is valid until the next change of
// the group's storages, and must not be written. [Storage.Values] begins with their components,
// in the same order.
func (g *Group) Entities() []Entity { return g.w.loan(&g.rows, &g.sets[0].dense) }

// In returns the group of the same storages in another world, or nil. A clone of a world has all
// groups of the world.
func (g *Group) In(w *World) *Group {
	for _, other := range w.groups {
		if slices.EqualFunc(g.sets, other.sets, func(a, b *set) bool { return a.storage.Name() == b.storage.Name() }) {
			return other
		}
	}
	return nil
}

// Pack packs the members that are not packed yet. Normally all members are packed, and Pack costs
// nothing. Members may be unpacked after loading data of another program, or after a rollback to a
// state before the group existed. Pack then costs O(rows of the smallest storage).
func (g *Group) Pack() {
	if g.rows.Extra == 1 {
		return
	}
	g.rows.Open()
	changes := g.w.changes
	d := g.smallest()
	for row := g.rows.N; row < d.rows.N; row++ {
		g.packEntity(d.dense.Live[row])
	}
	g.rows.Extra = 1
	if g.w.changes != changes {
		for _, s := range g.sets {
			s.rearrange("packed")
		}
	}
}

// pack packs all groups.
func (w *World) pack() {
	for _, g := range w.groups {
		g.Pack()
	}
}

// smallest returns the set with the fewest rows. If several sets have the fewest rows, it returns
// the first of them.
func (g *Group) smallest() *set {
	d := g.sets[0]
	for _, s := range g.sets {
		if s.rows.N < d.rows.N {
			d = s
		}
	}
	return d
}

// packEntity moves e to the end of the packed rows, if e is a member that is not packed yet.
func (g *Group) packEntity(e Entity) {
	for i, s := range g.sets {
		if g.at[i] = s.row(e); g.at[i] < 0 {
			return
		}
	}
	g.rows.Open()
	for i, s := range g.sets {
		s.storage.swapRows(g.at[i], g.rows.N)
	}
	g.rows.N++
}

// beforeRemove runs before e loses one of the components.
func (g *Group) beforeRemove(e Entity) {
	row := g.sets[0].row(e)
	if row < 0 || row >= g.rows.N {
		return
	}
	g.rows.Open()
	g.rows.N--
	for _, s := range g.sets {
		s.storage.swapRows(row, g.rows.N)
	}
}

// beforeClear runs before one of the storages is cleared.
func (g *Group) beforeClear() {
	if g.rows.N == 0 && g.rows.Extra == 1 {
		return
	}
	g.rows.Open()
	g.rows.Lengths = track.Lengths{Extra: 1}
}

// packed returns the number of packed rows of s, or 0 if s has no group.
func (s *set) packed() int {
	if s.group == nil {
		return 0
	}
	return s.group.rows.N
}

// measure sets g.rows from the rows of the storages: it counts the packed members and looks for
// others. A caller in a frame first calls g.rows.Open, which saves the old values for a restore.
func (g *Group) measure() {
	d := g.smallest()
	g.rows.Lengths = track.Lengths{Extra: 1}
	for g.rows.N < d.rows.N && g.aligned(g.rows.N) {
		g.rows.N++
	}
	for _, e := range d.dense.Live[g.rows.N:d.rows.N] {
		if g.has(e) {
			g.rows.Extra = 0
		}
	}
}

// aligned reports whether row belongs to the same entity in all storages.
func (g *Group) aligned(row int) bool {
	for _, s := range g.sets {
		if s.dense.Live[row] != g.sets[0].dense.Live[row] {
			return false
		}
	}
	return true
}

func (g *Group) has(e Entity) bool {
	for _, s := range g.sets {
		if !s.Has(e) {
			return false
		}
	}
	return true
}

// untouched reports whether no frame has changes of the storages.
func (g *Group) untouched() bool {
	for _, s := range g.sets {
		if !s.rows.Untouched() {
			return false
		}
	}
	return true
}

// regroup measures the groups after a load. It moves no rows; Pack moves them later.
func (w *World) regroup() {
	for _, g := range w.groups {
		g.measure()
	}
}

// cloneGroups adds the groups of w to c, a clone of w.
func (w *World) cloneGroups(c *World) {
	for _, g := range w.groups {
		var storages []AnyStorage
		for _, s := range g.sets {
			storages = append(storages, c.names[s.storage.Name()])
		}
		c.newGroup(storages).rows.Lengths = g.rows.Lengths
	}
}
