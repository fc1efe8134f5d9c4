package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A tree is the relation that one field of a component defines, such as ChildOf.Parent. It is
// built without loading the state:
//
//  1. A column reads the entity and the target of each row from a snapshot, 16 bytes per row. A
//     liveRegistry reads the live entities.
//  2. The column and the liveRegistry apply the ticks after the snapshot.
//  3. A relation links the sources in the column to their targets.
//
// Links may form cycles, so a walk over the relation ends at an entity that it has visited.

// A TreeNode is an entity in the tree that [View.Tree] returns. An entity with the component is a
// source. The entity in the field is its target, which is above the source. The zero entity means
// no target.
type TreeNode struct {
	// Target is 0 if the entity has no target.
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
	// Again says that the node repeats the start of the tree, because of a cycle. Sources and Below
	// are 0 in this node.
	Again bool
}

// EntityFields returns the fields of c that contain one entity. [View.Tree] accepts these fields.
// Paths look like "Parent" or "Link.To", or "" if the value is an entity itself.
func (c *EntityComponent) EntityFields() (paths []string) {
	eachEntityField(c.Layout, "", nil, func(path string, _ []int) { paths = append(paths, path) })
	return paths
}

// eachEntityField calls f for each field of t that is an entity. f gets the field's path and the
// field numbers that lead to it. path and steps are those of t.
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

// relationFrom builds a relation from a snapshot and the ticks after it.
func relationFrom(ctx context.Context, v *catalog.Catalog, s SnapshotInfo, component, field string, seq uint64) (of *relation, err error) {
	err = readLiveRegistry(v, s, seq, func(r *snap.Reader, path []journal.Entry, l *liveRegistry) error {
		schema, err := lastSchema(v, r.Manifest, path)
		if err != nil {
			return err
		}
		c, err := newColumn(schema, component, field)
		if err != nil {
			return err
		}
		if err := c.read(ctx, r); err != nil {
			return r.Damage(fmt.Errorf("component %s: %w", naming.Shown(component), err))
		}
		if err := l.follow(ctx, v, path, c.apply); err != nil {
			return err
		}
		if c.edited {
			if err := c.readWhole(ctx, v, seq); err != nil {
				return err
			}
		}
		of, err = newRelation(ctx, c, l)
		return err
	})
	return of, err
}

// A column has the entity and the target of each row of a component.
type column struct {
	*format.Entry
	number int
	steps  []int // Field numbers that lead to the field.
	width  int

	owners, targets []ecs.Entity
	// edited says that ticks edited rows. The whole state must then be read.
	edited bool
}

// newColumn returns an empty column, or an error if s has no such field.
func newColumn(s *format.Schema, component, field string) (*column, error) {
	n := slices.IndexFunc(s.Components, func(c format.Entry) bool { return c.Name == component && !c.Resource })
	if n < 0 {
		return nil, fmt.Errorf("%w: no component %s", format.ErrNotFound, naming.Shown(component))
	}
	c := &column{Entry: &s.Components[n], number: n, width: s.Components[n].Layout.Width()}
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

// read reads the rows of a snapshot. It does nothing if a later tick added the component.
func (c *column) read(ctx context.Context, r *snap.Reader) error {
	if c.number >= len(r.Manifest.Components) {
		return nil
	}
	dense, data := r.Manifest.Array(c.number, format.DenseArray), r.Manifest.Array(c.number, format.DataArray)
	err := r.Entities(dense, dense.Rows, func(row int, e ecs.Entity) bool {
		c.owners = append(c.owners, e)
		return row%format.PageRows > 0 || ctx.Err() == nil
	})
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	c.targets = make([]ecs.Entity, len(c.owners))
	for page := range data.Pages() {
		content, err := r.Page(data, page)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		lo, hi := data.Span(page)
		if _, err := c.set(content, lo, min(hi, len(c.targets))); err != nil {
			return err
		}
	}
	return nil
}

// readWhole reads the rows of the whole state after record seq. It is needed after an edit,
// because edits apply to the bytes of rows, which a column does not store. It also reads the
// owners again, since the whole state has no rows of dead entities.
func (c *column) readWhole(ctx context.Context, v *catalog.Catalog, seq uint64) error {
	im, err := v.At(ctx, seq)
	if err != nil {
		return err
	}
	rows := im.Components[c.number]
	c.owners, c.targets = rows.Entities, make([]ecs.Entity, rows.Len())
	_, err = c.set(rows.AppendRows(nil, 0, rows.Len()), 0, rows.Len())
	return err
}

// set sets the targets of rows [lo, hi) from src, and returns the bytes of src after these rows.
func (c *column) set(src []byte, lo, hi int) (rest []byte, err error) {
	for row := lo; row < hi; row++ {
		var value []byte
		if value, src, err = nextRow(c.Layout, c.width, src); err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		v, err := c.Layout.Value(value)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		for _, i := range c.steps {
			v = v.Index(i)
		}
		c.targets[row] = ecs.Entity(v.Uint())
	}
	return src, nil
}

// apply applies t to the column.
func (c *column) apply(t *format.Tick) error {
	for i := range t.Storages {
		if t.Storages[i].Number != c.number {
			continue
		}
		if err := c.patch(&t.Storages[i]); err != nil {
			return fmt.Errorf("component %s: %w", naming.Shown(c.Name), err)
		}
	}
	return nil
}

// patch applies a patch to the column, as it would be applied to an image. After the first edit
// it does nothing, since readWhole follows.
func (c *column) patch(p *format.StoragePatch) (err error) {
	if c.edited = c.edited || len(p.EditRanges) > 0; c.edited {
		return nil
	}
	if err := image.CheckStorage(c.Entry, p, len(c.owners), c.width); err != nil {
		return err
	}
	c.owners, c.targets = image.Resized(c.owners, p.After), image.Resized(c.targets, p.After)
	eachRow(p.EntityRanges, p.Entities, func(row int, e ecs.Entity) { c.owners[row] = e })
	src := p.Values
	for _, r := range p.ValueRanges {
		if src, err = c.set(src, r.First, r.First+r.N); err != nil {
			return err
		}
	}
	if len(src) > 0 {
		return image.ErrRanges
	}
	return nil
}

// A relation links sources and targets. Its members are all entities that have the component, and
// all targets. Links are indices into members:
//
//	members[target[i]] is the target of members[i]; its sources are sources[first[i]:first[i+1]]
type relation struct {
	members []member
	// target is -1 if there is no target, or if it is not alive.
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

// newRelation returns the relation between live entities in c. No-rewind components can have rows
// of dead entities. Two members are never alive: the zero entity, which stands for no target, and
// ecs.Vacant, which stands for gaps.
func newRelation(ctx context.Context, c *column, l *liveRegistry) (*relation, error) {
	r := &relation{number: map[ecs.Entity]int{}}
	// Sort members by entity, so the result does not depend on the order of a map. Dead targets
	// are members too.
	for row, e := range c.owners {
		r.number[e] = 0
		r.number[c.targets[row]] = 0
	}
	r.members = make([]member, 0, len(r.number))
	for e := range r.number {
		r.members = append(r.members, member{Entity: e})
	}
	slices.SortFunc(r.members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.Index(), b.Index()), cmp.Compare(a.Generation(), b.Generation()))
	})
	for i, m := range r.members {
		r.number[m.Entity] = i
	}
	err := l.each(ctx, func(e ecs.Entity) {
		if i, ok := r.number[e]; ok {
			r.members[i].alive = true
		}
	})
	if err != nil {
		return nil, err
	}
	for row, e := range c.owners {
		if i, ok := r.number[e]; ok && r.members[i].alive {
			r.members[i].source, r.members[i].names = true, c.targets[row]
		}
	}
	r.link()
	return r, nil
}

// link sets target, first and sources by a counting sort. first counts the sources of each target
// at first, and later has their start positions. next has the position for the next source of
// each target. So the sources of a target are in the order of members.
func (r *relation) link() {
	r.target, r.first = make([]int, len(r.members)), make([]int, len(r.members)+1)
	for i, m := range r.members {
		r.target[i] = noMember
		if t, ok := r.number[m.names]; ok && r.members[t].alive {
			r.target[i] = t
			r.first[t+1]++
		}
	}
	// Turn the counts into start positions.
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

// all returns the trees of all roots, and the sources outside of these trees. A source outside is
// in a cycle, or below one.
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

// of returns the entities above e, the highest first, and the tree below e. The depths of
// entities above e are negative, and e has depth 0.
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

// walk appends start and all entities below it to nodes, and sets them in met. If start is in a
// cycle, the walk returns to start. It visits every other entity once, since each has one target.
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
