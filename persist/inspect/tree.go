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

// A tree is what one field of a component, as ChildOf.Parent, makes of the entities. It is read
// without building the state: of each row only whose it is and whom the field names, 16 bytes
// (column); from the registry who is alive (living); and both go on by the ticks behind the
// snapshot. Only then are sources linked to targets (relation). Cycles are possible, since a
// field is only a field: a walk ends where it comes to somebody whom it met.

// A TreeNode is an entity in the tree that [View.Tree] returns. Who has the component is a
// source, whom the field names its target, which is above it; the zero entity is nobody.
type TreeNode struct {
	Entity, Target ecs.Entity // Target: 0: it names nobody.
	TargetDead     bool       // Target is not alive.

	Depth   int  // 0: a root, or the entity asked for; less: above it.
	Sources int  // Entities that name it,
	Below   int  // and all that are below it, but itself; not counted of those above the entity asked for.
	Last    bool // It is the last source of its target.
	Again   bool // It is the entity asked for once more: a cycle. It ends here, Sources and Below are 0.
}

// EntityFields returns the fields that hold one entity in each value of c, by which
// [View.Tree] can go: paths as "Parent" or "Link.To"; "" if a value is an entity itself.
func (c *EntityComponent) EntityFields() (paths []string) {
	eachEntityField(c.Layout, "", nil, func(path string, _ []int) { paths = append(paths, path) })
	return paths
}

// eachEntityField calls f with the path of each field of t that is an entity, and with the
// numbers of the fields on the way; path and steps are those of t.
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

// relationFrom reads who names whom from a snapshot and the ticks behind it.
func relationFrom(ctx context.Context, v *catalog.Catalog, s SnapshotInfo, component, field string, seq uint64) (of *relation, err error) {
	err = livingFrom(v, s, seq, func(r *snap.Reader, path []journal.Entry, l *living) error {
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

// A column has, by row of a component, whose row it is and whom a field of it names.
type column struct {
	*format.Entry
	number int
	steps  []int // To the field.
	width  int

	owners, targets []ecs.Entity
	edited          bool // Ticks edited rows: what is in them, only the whole state says.
}

// newColumn returns an empty column of a field, or an error if s has no such field.
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

// read reads the rows of a snapshot, which does not have the component if it came later.
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

// readWhole reads the rows of the whole state after record seq: an edit is of bytes, and
// bytes of rows are not kept here. Owners are read again as well: the state has no rows of dead entities.
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

// set takes the targets of rows [lo, hi) from src, and returns the rest of it.
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

// apply goes on by what t did to the component.
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

// patch goes on by what a tick did to the component, as an image does. After the first edit it only
// waits for readWhole.
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

// A relation has who names whom. Its members are those who do and whom they name, by index;
// what has a member's number there leads to it:
//
//	members[i] names members[target[i]]; those who name it are sources[first[i]:first[i+1]]
type relation struct {
	members []member
	target  []int // Nobody if there is none, or none that is alive.
	first   []int
	sources []int
	number  map[ecs.Entity]int
}

// A member is an entity in a relation: one that has the component, or is named by one that has.
type member struct {
	ecs.Entity
	names  ecs.Entity // 0: nobody.
	alive  bool
	source bool // It has the component.
}

const nobody = -1

// newRelation returns what c says of those who are alive: what does not rewind can have rows
// of others. The zero entity, whom those name that name nobody, and ecs.Vacant, who has the gaps, become
// members that are never alive.
func newRelation(ctx context.Context, c *column, l *living) (*relation, error) {
	r := &relation{number: map[ecs.Entity]int{}}
	// Members are numbered in the order of entities: what is told must not depend on the order
	// of a map. Whoever is named is a member as well, dead or alive.
	for row, e := range c.owners { // That of a gap is not alive.
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

// link leads from each member to its target and its sources. It sorts by counting: first
// becomes how many name each target, then where the sources of each begin; next is where the
// following source of each goes. So sources of one target are in the order of members.
func (r *relation) link() {
	r.target, r.first = make([]int, len(r.members)), make([]int, len(r.members)+1)
	for i, m := range r.members {
		r.target[i] = nobody
		if t, ok := r.number[m.names]; ok && r.members[t].alive {
			r.target[i] = t
			r.first[t+1]++
		}
	}
	for i := range r.members { // From how many to where each begins.
		r.first[i+1] += r.first[i]
	}
	r.sources = make([]int, r.first[len(r.members)])
	next := slices.Clone(r.first)
	for i, t := range r.target {
		if t != nobody {
			r.sources[next[t]] = i
			next[t]++
		}
	}
}

// all returns the trees of all roots, and who is in none of them: sources in a cycle, or below one.
func (r *relation) all() (nodes []TreeNode, rootless []ecs.Entity) {
	met := make([]bool, len(r.members))
	for i, m := range r.members {
		if m.alive && r.target[i] == nobody && (m.source || r.first[i] < r.first[i+1]) {
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

// of returns who is above e, the highest first, and its tree. Their depths are below 0, so that e is at 0
// whatever lies above.
func (r *relation) of(e ecs.Entity) (nodes []TreeNode) {
	start, ok := r.number[e]
	if !ok {
		return []TreeNode{{Entity: e, Last: true}}
	}
	met := make([]bool, len(r.members))
	met[start] = true
	for i := r.target[start]; i != nobody && !met[i]; i = r.target[i] { // Up, to a root or somebody met: a cycle.
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
		Entity: m.Entity, Target: m.names, TargetDead: m.names != 0 && r.target[i] == nobody,
		Depth: depth, Sources: r.first[i+1] - r.first[i], Last: last,
	}
}

// walk appends start and all below it to nodes, and notes in met whom it meets. It comes back
// to start if that is in a cycle, and to nobody else: each has one target.
func (r *relation) walk(nodes []TreeNode, start int, met []bool) []TreeNode {
	type open struct {
		number, node int
		next         int // Of its sources.
		before       int // Entities met, with itself.
	}
	var path []open
	entities := 0
	enter := func(i int, last bool) {
		met[i] = true
		entities++
		path = append(path, open{i, len(nodes), r.first[i], entities})
		nodes = append(nodes, r.node(i, len(path)-1, last))
	}
	// path is the way from start to where the walk is, in place of recursion: trees may be as deep as
	// there are entities.
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
