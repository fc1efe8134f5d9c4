package ecs

import (
	"cmp"
	"fmt"
	"slices"
)

// check returns the first inconsistency of g, or nil. It checks both the packed rows and the rows
// after them.
func (g *Group) check() error {
	if _, err := g.w.checkTracker(&g.rows, "group"); err != nil {
		return err
	}
	for _, s := range g.sets {
		if s.group != g || !s.observed || !g.w.watched {
			return fmt.Errorf("a storage has the wrong group")
		}
		if s.rows.N < g.rows.N {
			return fmt.Errorf("%d rows are packed of %d", g.rows.N, s.rows.N)
		}
		if !slices.Equal(s.dense.Live[:g.rows.N], g.Entities()) {
			return fmt.Errorf("packed rows differ: %v, %v", s.dense.Live[:g.rows.N], g.Entities())
		}
	}
	for _, e := range g.sets[0].dense.Live[g.rows.N:g.sets[0].rows.N] {
		if g.rows.Extra == 1 && g.has(e) {
			return fmt.Errorf("member %v is after the %d packed rows", e, g.rows.N)
		}
	}
	return nil
}

// An oracleGroup implements the documentation of Group on the stores of an oracle, as simply as
// possible.
type oracleGroup struct {
	stores []int
	packed int
	whole  bool
}

func (w *oracle) groupOf(store int) *oracleGroup {
	for i := range w.groups {
		if slices.Contains(w.groups[i].stores, store) {
			return &w.groups[i]
		}
	}
	return nil
}

func (w *oracle) member(g *oracleGroup, e Entity) bool {
	for _, i := range g.stores {
		if !slices.Contains(w.stores[i].entities, e) {
			return false
		}
	}
	return true
}

// moveTo swaps e with the entity in row at, in all stores of g.
func (w *oracle) moveTo(g *oracleGroup, e Entity, at int) {
	for _, i := range g.stores {
		s := &w.stores[i]
		k := slices.Index(s.entities, e)
		s.entities[k], s.entities[at] = s.entities[at], s.entities[k]
		s.values[k], s.values[at] = s.values[at], s.values[k]
	}
}

// regroup packs e in every group of which e has become a member.
func (w *oracle) regroup(e Entity) {
	for i := range w.groups {
		g := &w.groups[i]
		if w.member(g, e) && slices.Index(w.stores[g.stores[0]].entities, e) >= g.packed {
			w.moveTo(g, e, g.packed)
			g.packed++
		}
	}
}

// ungroup moves e out of the packed rows. e is about to lose a component.
func (w *oracle) ungroup(g *oracleGroup, e Entity) {
	if k := slices.Index(w.stores[g.stores[0]].entities, e); k >= 0 && k < g.packed {
		g.packed--
		w.moveTo(g, e, g.packed)
	}
}

func (w *oracle) resetGroup(store int) {
	if g := w.groupOf(store); g != nil {
		g.packed, g.whole = 0, true
	}
}

// pack packs all members, in the order of the smallest store.
func (w *oracle) pack() {
	for i := range w.groups {
		g := &w.groups[i]
		if g.whole {
			continue
		}
		d := g.stores[0]
		for _, k := range g.stores {
			if len(w.stores[k].entities) < len(w.stores[d].entities) {
				d = k
			}
		}
		for row := g.packed; row < len(w.stores[d].entities); row++ {
			if e := w.stores[d].entities[row]; w.member(g, e) {
				w.moveTo(g, e, g.packed)
				g.packed++
			}
		}
		g.whole = true
		w.forward = nil
	}
}

// group creates a group of stores.
func (p *model) group(stores ...int) bool {
	var storages []AnyStorage
	for _, i := range stores {
		if p.oracle.groupOf(i) != nil {
			return false
		}
		storages = append(storages, p.stores[i].any())
	}
	g, err := p.w.NewGroup(storages...)
	if err != nil {
		failf("NewGroup(%v) = %v", stores, err)
	}
	// Older states get the group as well, with no packed rows.
	for i := range p.oracle.frames {
		s := p.oracle.frames[i].state
		s.groups = append(s.groups, oracleGroup{stores: stores})
	}
	for _, s := range p.oracle.forward {
		s.groups = append(s.groups, oracleGroup{stores: stores})
	}
	p.oracle.groups = append(p.oracle.groups, oracleGroup{stores: stores})
	// If the world has no saved rows of the stores, their rows were the same in all older states.
	// The group is then packed in these states, too.
	if g.untouched() && g.rows.Untouched() {
		forward := p.oracle.forward
		p.oracle.pack()
		p.oracle.forward = forward
		now := p.oracle.groups[len(p.oracle.groups)-1]
		for _, f := range p.oracle.frames {
			f.state.groups[len(f.state.groups)-1] = now
		}
		for _, s := range forward {
			s.groups[len(s.groups)-1] = now
		}
		return true
	}
	p.oracle.pack()
	return true
}

// pack packs all groups. It returns false if all of them were already packed.
func (p *model) pack() bool {
	waits := slices.ContainsFunc(p.oracle.groups, func(g oracleGroup) bool { return !g.whole })
	for _, g := range p.w.groups {
		g.Pack()
	}
	p.oracle.pack()
	return waits
}

func (p *model) checkGroups() {
	if len(p.w.groups) != len(p.oracle.groups) {
		failf("%d groups, want %d", len(p.w.groups), len(p.oracle.groups))
	}
	for i, g := range p.w.groups {
		if want := p.oracle.groups[i]; g.Len() != want.packed || (g.rows.Extra == 1) != want.whole {
			failf("group %d: Len() = %d, all: %v, want %d, %v", i, g.Len(), g.rows.Extra == 1, want.packed, want.whole)
		}
		if want := p.oracle.stores[p.oracle.groups[i].stores[0]].entities[:g.Len()]; !slices.Equal(g.Entities(), want) {
			failf("group %d: Entities() = %v, want %v", i, g.Entities(), want)
		}
	}
}

// A sorter sorts a storage of any type.
type sorter interface {
	SortEntities(cmp func(a, b Entity) int)
	SortLike(other AnyStorage)
}

// byTens compares a and b by a key that has only three values. So many rows have equal keys, and
// the sort must keep their order.
func byTens(a, b int) int { return cmp.Compare(a/10%3, b/10%3) }

func byIndexBackwards(a, b Entity) int { return cmp.Compare(b.Index(), a.Index()) }

func (p *model) sortValues(i int) bool {
	if p.kinds[i].indexed {
		return false
	}
	p.stores[i].sort(byTens)
	return p.oracle.sort(i, func(s *oracleStore, a, b int) int { return byTens(s.values[a], s.values[b]) })
}

func (p *model) sortEntities(i int) bool {
	if p.kinds[i].indexed {
		return false
	}
	p.stores[i].any().(sorter).SortEntities(byIndexBackwards)
	return p.oracle.sort(i, func(s *oracleStore, a, b int) int { return byIndexBackwards(s.entities[a], s.entities[b]) })
}

func (p *model) sortLike(i, other int) bool {
	if p.kinds[i].indexed {
		return false
	}
	p.stores[i].any().(sorter).SortLike(p.stores[other].any())
	like := p.oracle.stores[other].entities
	at := func(s *oracleStore, row int) uint { return uint(slices.Index(like, s.entities[row])) }
	like = slices.Clone(like)
	return p.oracle.sort(i, func(s *oracleStore, a, b int) int { return cmp.Compare(at(s, a), at(s, b)) })
}

// sort sorts the packed rows of store i, and gives the same order to all stores of the group. Then
// it sorts the rows of store i that are not packed. It reports whether a row moved.
func (w *oracle) sort(i int, compare func(s *oracleStore, a, b int) int) bool {
	s := &w.stores[i]
	packed, stores := 0, []int(nil)
	if g := w.groupOf(i); g != nil {
		packed, stores = g.packed, g.stores
	}
	order := make([]int, len(s.entities))
	for row := range order {
		order[row] = row
	}
	by := func(a, b int) int { return compare(s, a, b) }
	slices.SortStableFunc(order[:packed], by)
	slices.SortStableFunc(order[packed:], by)
	if slices.IsSorted(order) {
		return false
	}
	if !slices.IsSorted(order[:packed]) {
		for _, k := range stores {
			w.markWritten(k)
			w.stores[k].reorder(order[:packed])
		}
	}
	if !slices.IsSorted(order[packed:]) {
		w.markWritten(i)
		copy(order[:packed], ascending(packed))
		s.reorder(order)
	}
	return true
}

func (p *model) align(stores ...int) bool {
	var storages []AnyStorage
	for _, i := range stores {
		if p.kinds[i].indexed {
			return false
		}
		storages = append(storages, p.stores[i].any())
	}
	p.w.Align(storages...)
	return p.oracle.align(stores)
}

// align moves the entities that are in all given stores to the front of each store. It reports
// whether a row moved.
func (w *oracle) align(stores []int) (moved bool) {
	var common []Entity
	for _, e := range w.stores[stores[0]].entities {
		if w.member(&oracleGroup{stores: stores}, e) {
			common = append(common, e)
		}
	}
	for _, i := range stores {
		s := &w.stores[i]
		packed, others := 0, []int(nil)
		if g := w.groupOf(i); g != nil {
			packed, others = g.packed, g.stores
		}
		members := forward(s.entities[:packed], common)
		rest := forward(s.entities[packed:], common)
		if !slices.IsSorted(members) {
			for _, k := range others {
				w.markWritten(k)
				w.stores[k].reorder(members)
			}
			moved = true
		}
		if !slices.IsSorted(rest) {
			w.markWritten(i)
			order := ascending(packed)
			for _, k := range rest {
				order = append(order, packed+k)
			}
			s.reorder(order)
			moved = true
		}
	}
	return moved
}

// forward returns a new order for the rows of entities. The entities in the list common come first.
// The entity that moves to row i is now in row order[i].
func forward(entities, common []Entity) (order []int) {
	for _, e := range common {
		if k := slices.Index(entities, e); k >= 0 {
			order = append(order, k)
		}
	}
	front := len(order)
	// Rows at the front whose entities must move to the back.
	var driven []int
	for k := range front {
		if !slices.Contains(order, k) {
			driven = append(driven, k)
		}
	}
	for k := front; k < len(entities); k++ {
		if slices.Contains(order[:front], k) {
			order, driven = append(order, driven[0]), driven[1:]
		} else {
			order = append(order, k)
		}
	}
	return order
}

func ascending(n int) (rows []int) {
	for i := range n {
		rows = append(rows, i)
	}
	return rows
}

func (s *oracleStore) reorder(order []int) {
	old := oracleStore{entities: slices.Clone(s.entities), values: slices.Clone(s.values)}
	for row, from := range order {
		s.entities[row], s.values[row] = old.entities[from], old.values[from]
	}
}

// The functions below return operations on groups.

func grouping(stores ...int) operation {
	return operation{fmt.Sprint("group ", stores), func(p *model) bool { return p.group(stores...) }}
}

var packing = operation{"pack", (*model).pack}

func aligns(stores ...int) []operation {
	return []operation{{fmt.Sprint("align ", stores), func(p *model) bool { return p.align(stores...) }}}
}

func sorts(stores ...int) (list []operation) {
	for k, i := range stores {
		other := stores[(k+1)%len(stores)]
		list = append(list,
			operation{fmt.Sprint("sort values of ", i), func(p *model) bool { return p.sortValues(i) }},
			operation{fmt.Sprint("sort entities of ", i), func(p *model) bool { return p.sortEntities(i) }},
			operation{fmt.Sprintf("sort %d like %d", i, other), func(p *model) bool { return p.sortLike(i, other) }})
	}
	return list
}
