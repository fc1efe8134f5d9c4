package inspect

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A tree is built from a field that refers to another entity, such as ChildOf.Parent. First, a
// column reads the entity and the target of each row, which takes 16 bytes per row. Then a relation
// links each entity to its target and its sources. Links may form cycles, so a walk along the links
// stops at an entity that it has visited.

// A TreeNode is an entity in the tree that [View.Tree] returns. An entity with the component is a
// source. The entity in the field is its target, which is above the source. [ecs.None] means no
// target.
type TreeNode struct {
	// Target is ecs.None if the entity has no target.
	Entity, Target ecs.Entity
	// TargetDead says that Target is not alive.
	TargetDead bool

	// Depth is 0 for a root or the requested entity, and negative above the requested entity.
	Depth int
	// Sources is the number of entities whose target this entity is.
	Sources int
	// Below is the number of all entities below this one. For a node above the requested entity
	// it is 0.
	Below int
	// Last says that this is the last source of its target.
	Last bool
	// Again says that the links form a cycle and lead back to the start of the tree. Sources and
	// Below are 0 in this node.
	Again bool
}

// EntityFields returns the fields of c that contain one entity. [View.Tree] accepts these fields.
// Paths look like "Parent" or "Link.To", or "" if the value is an entity itself.
func (c *EntityComponent) EntityFields() (paths []string) {
	eachEntityField(c.Layout, "", nil, func(path string, _ []int) { paths = append(paths, path) })
	return paths
}

// eachEntityField calls f for each field of t that is an entity. For Link.To, f gets this path and
// the field numbers of Link and To. The arguments path and steps lead to t itself.
func eachEntityField(t *layout.Type, path string, steps []int, f func(path string, steps []int)) {
	switch t.Kind {
	case layout.Entity:
		f(path, steps)
	case layout.Struct:
		if path != "" {
			path += "."
		}
		for i, field := range t.Fields {
			eachEntityField(field.Type, path+field.Name, append(steps[:len(steps):len(steps)], i), f)
		}
	}
}

// relationFrom builds the relation of a field in a state.
func relationFrom(ctx context.Context, s *State, component, field string) (*relation, error) {
	c, err := newColumn(s, component, field)
	if err != nil {
		return nil, err
	}
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	if err := s.Count(ctx); err != nil {
		return nil, err
	}
	return newRelation(c), nil
}

// A column has the entity and the target of each row of a component.
type column struct {
	*stateColumn
	steps []int // Field numbers that lead to the field.

	owners, targets []ecs.Entity
}

// newColumn returns an empty column, or an error if s has no such field.
func newColumn(s *State, component, field string) (*column, error) {
	of := s.outline.Find(component)
	if of == nil || of.Resource {
		return nil, fmt.Errorf("%w: no component %s", format.ErrNotFound, naming.Shown(component))
	}
	c := &column{stateColumn: s.column(of)}
	found := false
	eachEntityField(c.Layout, "", nil, func(path string, steps []int) {
		if path == field && !found {
			c.steps, found = steps, true
		}
	})
	if !found {
		return nil, fmt.Errorf("%w: component %s has no field %q that is an entity", format.ErrNotFound, naming.Shown(component), field)
	}
	return c, nil
}

// read reads all rows.
func (c *column) read(ctx context.Context) error {
	return c.eachPage(ctx, func(lo, hi int, content []byte) error { return c.splitPage(lo, hi, content, c.add) })
}

// add adds a row.
func (c *column) add(row int, value []byte) error {
	v, err := c.Layout.Value(value)
	if err != nil {
		return err
	}
	for _, i := range c.steps {
		v = v.Index(i)
	}
	e, err := c.holder(row)
	c.owners, c.targets = append(c.owners, e), append(c.targets, ecs.Entity(v.Uint()))
	return err
}

// A relation links entities with their targets. Its members are all entities that have the
// component, and all targets. A member is identified by its index in members:
//
//   - target[i] is the target of member i.
//   - sources[first[i]:first[i+1]] are the sources of member i.
type relation struct {
	members []member
	// target[i] is noMember if member i has no target, or if its target is not alive.
	target  []int
	first   []int
	sources []int
	number  map[ecs.Entity]int
}

// A member is an entity that has the component, or is a target.
type member struct {
	ecs.Entity
	names  ecs.Entity // The target, or 0.
	alive  bool
	source bool // The entity has the component.
}

const noMember = -1

// newRelation returns the relation of the rows in c. Only a live entity can have a target. Some
// rows have no live entity: gaps, whose entity is ecs.Vacant, and rows of dead entities in
// no-rewind components.
func newRelation(c *column) *relation {
	r := &relation{number: map[ecs.Entity]int{}}
	// Sort members by entity, so the result does not depend on the order of a map. Targets are
	// members, too, even dead ones.
	for row, e := range c.owners {
		r.number[e] = 0
		r.number[c.targets[row]] = 0
	}
	r.members = make([]member, 0, len(r.number))
	for e := range r.number {
		r.members = append(r.members, member{Entity: e, alive: c.state.IsAlive(e)})
	}
	slices.SortFunc(r.members, func(a, b member) int { return compareEntities(a.Entity, b.Entity) })
	for i, m := range r.members {
		r.number[m.Entity] = i
	}
	for row, e := range c.owners {
		if i, ok := r.number[e]; ok && r.members[i].alive {
			r.members[i].source, r.members[i].names = true, c.targets[row]
		}
	}
	r.link()
	return r
}

// link sets r.target, r.first and r.sources. It groups the sources by target, with a counting sort.
// The sources of a target stay in the order of members.
func (r *relation) link() {
	r.target, r.first = make([]int, len(r.members)), make([]int, len(r.members)+1)
	for i, m := range r.members {
		r.target[i] = noMember
		if t, ok := r.number[m.names]; ok && r.members[t].alive {
			r.target[i] = t
			r.first[t+1]++
		}
	}
	// So far, first[t+1] is the number of sources of member t. Add up the numbers, so first[t+1] is
	// the end of these sources in r.sources.
	for i := range r.members {
		r.first[i+1] += r.first[i]
	}
	r.sources = make([]int, r.first[len(r.members)])
	next := slices.Clone(r.first)
	for i, t := range r.target {
		if t != noMember {
			r.sources[next[t]] = i
			next[t]++
		}
	}
}

// all returns the trees of all roots, and the sources that are in no tree. Each of these sources is
// in a cycle or below a cycle.
func (r *relation) all() (nodes []TreeNode, rootless []ecs.Entity) {
	met := make([]bool, len(r.members))
	for i, m := range r.members {
		if m.alive && r.target[i] == noMember && (m.source || r.first[i] < r.first[i+1]) {
			nodes = r.walk(nodes, i, met)
		}
	}
	for i, m := range r.members {
		if m.source && !met[i] {
			rootless = append(rootless, m.Entity)
		}
	}
	return nodes, rootless
}

// of returns the entities above e, the highest first, and the tree below e. The depths of entities
// above e are negative, and e has depth 0.
func (r *relation) of(e ecs.Entity) (nodes []TreeNode) {
	start, ok := r.number[e]
	if !ok {
		return []TreeNode{{Entity: e, Last: true}}
	}
	met := make([]bool, len(r.members))
	met[start] = true
	// Go up to a root, or to an entity of a cycle that was already visited.
	for i := r.target[start]; i != noMember && !met[i]; i = r.target[i] {
		met[i] = true
		nodes = append(nodes, r.node(i, -1-len(nodes), false))
	}
	slices.Reverse(nodes)
	return r.walk(nodes, start, met)
}

// node describes a member.
func (r *relation) node(i, depth int, last bool) TreeNode {
	m := &r.members[i]
	return TreeNode{
		Entity: m.Entity, Target: m.names, TargetDead: m.names != 0 && r.target[i] == noMember,
		Depth: depth, Sources: r.first[i+1] - r.first[i], Last: last,
	}
}

// walk appends the entity members[start] and all entities below it to nodes, and marks them as
// visited in the slice met. Each entity has only one target, so the walk can meet no entity twice,
// except the start. If the start is in a cycle, walk appends it a second time, with Again.
func (r *relation) walk(nodes []TreeNode, start int, met []bool) []TreeNode {
	type open struct {
		number, node int
		next         int // Index of the next source.
		before       int // Entities visited so far, including this one.
	}
	var path []open
	entities := 0
	enter := func(i int, last bool) {
		met[i] = true
		entities++
		path = append(path, open{i, len(nodes), r.first[i], entities})
		nodes = append(nodes, r.node(i, len(path)-1, last))
	}
	// path is the stack of the walk. The walk does not recurse, since trees may be very deep.
	for enter(start, true); len(path) > 0; {
		top := &path[len(path)-1]
		end := r.first[top.number+1]
		if top.next == end {
			nodes[top.node].Below = entities - top.before
			path = path[:len(path)-1]
			continue
		}
		i := r.sources[top.next]
		top.next++
		if i != start {
			enter(i, top.next == end)
			continue
		}
		again := r.node(i, len(path), top.next == end)
		again.Sources, again.Again = 0, true
		nodes = append(nodes, again)
	}
	return nodes
}
