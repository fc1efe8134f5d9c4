package ecs

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A Group keeps the entities that have all of some components, its members, in
// front of the rows of each of their storages, in one order:
//
//	positions     | a | b | c | x | y | z |
//	velocities    | a | b | c | w |
//	              0           n                n = 3 members
//
// A query over the components then finds one run, whatever came and went, and
// looks at nothing behind it. The price is paid by changes: an entity that
// becomes a member, or ceases to be one, is exchanged with the one at the border,
// in each storage.
//
// Make the groups of a program with [World.NewGroup], once its components are
// registered: like these they are a part of the program and not of what is saved.
// A restore puts members back as it does everything else. What does not pay that price
// with each change is [World.Align], which the program calls now and then.
//
// # Pointers
//
// A change in one storage of a group moves rows in all of them: what [Storage.Mut]
// says of its storage goes for the whole group.
//
// # Changing the world while iterating
//
// To the rules of [Query1] a group adds, for a loop whose driving storage is in
// it:
//
//   - The entity being visited may enter the group. It may leave it if it leaves
//     the query with that.
//   - Other entities may enter the group, new ones too, while a member is visited;
//     a query over all components of the group visits nothing else.
//   - Anything else that would move rows across the loop panics with a message that
//     says so, instead of skipping entities or visiting them twice.
type Group struct {
	w        *World
	rows     track.Tracker // Rows [0, N) of each storage are members; Extra is 1 if there are no others.
	storages []AnyStorage
	sets     []*set // Those of storages.
	at       []int  // Scratch of take: the row in each.

	// For iteration: who came and went last, and how many ever.
	entries, exits uint64
	entered, left  Entity
	resets         uint64 // How often n may have fallen in another way.
}

// group makes a group of storages that are fit.
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
			return fmt.Errorf("%s is NoRewind, and its rows cannot follow those that are put back", s.Name())
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
	g := &Group{w: w, storages: slices.Clone(storages), at: make([]int, len(storages))}
	g.rows.Init(&g.w.clock, false)
	g.rows.Rewound = func(track.Lengths) { g.resets++ }
	for _, s := range storages {
		set := s.sparseSet()
		set.group = g
		g.sets = append(g.sets, set)
	}
	g.w.groups = append(g.w.groups, g)
	g.w.settleObserved()
	return g
}

// Len returns how many rows of each storage are packed: the number of members,
// unless some wait for [Group.Pack].
func (g *Group) Len() int { return g.rows.N }

// Entities returns the entities of the packed rows. The slice is valid until the
// next change of the group's storages and must not be written. The components lie
// in the same order in front of [Storage.Values].
func (g *Group) Entities() []Entity { return g.w.loan(&g.rows, &g.sets[0].dense) }

// In returns the group of the same storages in another world, or nil. A clone of
// a world has all groups of the world.
func (g *Group) In(w *World) *Group {
	for _, other := range w.groups {
		if slices.EqualFunc(g.storages, other.storages, func(a, b AnyStorage) bool { return a.Name() == b.Name() }) {
			return other
		}
	}
	return nil
}

// Pack packs the members that are not; see [World.NewGroup]. There are none, and it
// costs nothing, unless the program became a different one or went back to before
// the group: then it costs O(rows of the smallest storage).
func (g *Group) Pack() {
	if g.rows.Extra == 1 {
		return
	}
	g.ready()
	changes := g.w.changes
	d := g.smallest()
	for row := g.rows.N; row < d.rows.N; row++ {
		g.take(d.dense.Live[row])
	}
	g.rows.Extra = 1
	if g.w.changes != changes {
		for _, s := range g.sets {
			s.rewoundAt = g.w.changes // A loop cannot tell where its rows went, as after a restore.
		}
	}
}

// pack packs all groups.
func (w *World) pack() {
	for _, g := range w.groups {
		g.Pack()
	}
}

// smallest returns the set with the fewest rows, the first of equals.
func (g *Group) smallest() *set {
	d := g.sets[0]
	for _, s := range g.sets {
		if s.rows.N < d.rows.N {
			d = s
		}
	}
	return d
}

// take makes e, which is not packed, the last packed row, if it is a member.
func (g *Group) take(e Entity) bool {
	for i, s := range g.sets {
		if g.at[i] = s.row(e); g.at[i] < 0 {
			return false
		}
	}
	g.ready()
	for i, s := range g.storages {
		s.swapRows(g.at[i], g.rows.N)
	}
	g.rows.N++
	return true
}

func (g *Group) ready() {
	if g.rows.Span != g.w.clock.Span {
		g.rows.Open()
	}
}

// enter is called when e has got one of the components. If there are members that
// are not packed, e is packed before them.
func (g *Group) enter(e Entity) {
	if g.take(e) {
		g.entries++
		g.entered = e
	}
}

// leave is called when e is about to lose one of the components.
func (g *Group) leave(e Entity) {
	row := g.sets[0].row(e)
	if row < 0 || row >= g.rows.N {
		return
	}
	g.ready()
	g.rows.N--
	for _, s := range g.storages {
		s.swapRows(row, g.rows.N)
	}
	g.exits++
	g.left = e
}

// leaveAll is called when one of the storages is about to be cleared.
func (g *Group) leaveAll() {
	if g.rows.N == 0 && g.rows.Extra == 1 {
		return
	}
	g.ready()
	g.rows.Lengths = track.Lengths{Extra: 1}
	g.resets++
}

// packed returns how many rows of s hold members of its group.
func (s *set) packed() int {
	if s.group == nil {
		return 0
	}
	return s.group.rows.N
}

// measure finds out how many rows are packed, and whether there are members
// behind them. What it finds must hold for all frames.
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
	g.resets++
}

// aligned reports whether a row holds the same entity in all storages.
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

// untouched reports whether the storages are the same in all frames.
func (g *Group) untouched() bool {
	for _, s := range g.sets {
		if !s.rows.Untouched() {
			return false
		}
	}
	return true
}

// regroup follows other rows that were loaded. They lie as they were saved; to
// move them is for later, when a recorder can be told.
func (w *World) regroup() {
	for _, g := range w.groups {
		g.measure()
	}
}

// cloneGroups gives c, a clone of w, the groups of w.
func (w *World) cloneGroups(c *World) {
	for _, g := range w.groups {
		var storages []AnyStorage
		for _, s := range g.storages {
			storages = append(storages, c.names[s.Name()])
		}
		c.newGroup(storages).rows.Lengths = g.rows.Lengths
	}
}

// A groupCursor is what a cursor knows of the group of its driver, so that rows
// which the group moves are neither skipped nor visited twice:
//
//	driver    | visited ... | row | not visited yet ... |
//
// Who enters the group goes to its border, who leaves it goes behind. While no row
// in front of the one visited is behind the border, nothing moves there.
type groupCursor struct {
	all            bool // The query is over all sets of the group: there is nothing behind its members.
	n              int
	entries, exits uint64
	resets         uint64
}

// cursor returns what there is to know of g, which may be nil, for a loop over one of
// its sets.
func (g *Group) cursor() (c groupCursor) {
	if g != nil {
		c = groupCursor{n: g.rows.N, entries: g.entries, exits: g.exits, resets: g.resets}
	}
	return c
}

// follow goes on after the group of s moved rows while e, then in row, was visited by a
// loop that s drives. It returns the row to go on with, unless e is there. since is the
// world's count of changes before that, before what the group looked like, and finds
// says whether the loop finds e at a row.
func (s *set) follow(row int, e Entity, since uint64, before groupCursor, finds func(at int) bool) int {
	g := s.group
	if g == nil || g.entries == before.entries && g.exits == before.exits {
		return row
	}
	removed := s.lostAt > since
	exits := g.exits - before.exits
	switch {
	case g.resets != before.resets || exits > 1 || exits == 1 && g.left != e:
	case row <= before.n:
		// All that moved lies at row or behind. If e is one of them, it must be gone
		// from the loop, or have come back as a new row.
		if at := s.row(e); at <= row || removed || !finds(at) {
			return row
		}
	case !removed && g.entries == before.entries+1 && g.entered == e:
		return row + 1 // It was exchanged with one visited before.
	}
	panic("ecs: a group moved rows across a query that was iterating at " + e.String() +
		": another entity left it, or entered it while one that is no member was visited, or the one visited left it and not the query; change such entities after the loop")
}

// mustStay panics if s was put back or sorted since then, or lost another entity than
// e, or more, unless it may.
func (s *set) mustStay(e Entity, since uint64, mayLose bool) {
	if s.rewoundAt > since {
		panic("ecs: the world was restored while a loop was iterating over it, or rows of it were sorted or packed; end the loop first")
	}
	if s.lostAt > since && (s.lostBefore > since || s.removed != e) && !mayLose {
		panic("ecs: another entity than the one visited, " + e.String() +
			", lost a component that the loop is over, or was destroyed; collect such entities and change them after the loop")
	}
}

// goOn returns the row with which a loop over s alone goes on after the world changed
// while e, then in row, was visited. since is the world's count of changes before that,
// and group what the group of s looked like.
func (s *set) goOn(row int, e Entity, since uint64, group groupCursor) int {
	if s.version > since {
		s.mustStay(e, since, false)
		row = s.follow(row, e, since, group, func(at int) bool { return at >= 0 })
	}
	if row < s.rows.N && s.dense.Live[row] == e {
		row++
	}
	return row
}
