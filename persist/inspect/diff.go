package inspect

import (
	"bytes"
	"cmp"
	"iter"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A comparison begins with ranges of rows that may differ. All other rows are equal and in the same
// place in both states. The ranges come from one of three places:
//
//	differing      for columns in memory: pages whose bytes differ
//	diffpages.go   for columns in files: different pages that the files do not share
//	tickdiff.go    for a tick: the rows that the tick wrote
//
// Diff.component and diffRegistries then compare only the rows in the ranges. They join the rows of
// the two states by entity.

// A Diff lists how a newer state differs from an older one. The rows in it share memory with the
// two compared states.
type Diff struct {
	OldTick, NewTick uint64
	Schema           []SchemaDiff
	Registry         RegistryDiff
	// Components has every component that either state has, also components without differences.
	// Those of the old schema come first, in its order.
	Components []*ComponentDiff
}

// Same reports whether the two states are equal. It ignores their ticks, and differences of types
// that change no row.
func (d *Diff) Same() bool {
	differs := func(c *ComponentDiff) bool { return len(c.Rows) > 0 }
	return len(d.Schema) == 0 && d.Registry.same() && !slices.ContainsFunc(d.Components, differs)
}

// A ComponentDiff lists the rows of a component or resource that differ in two states.
type ComponentDiff struct {
	Name     string
	Resource bool
	// Old and New are the layouts in the two states; nil if the state does not have the
	// component.
	Old, New *layout.Type
	// Rows are ordered by index and generation of their entities.
	Rows []RowDiff

	// older and newer read the rows of the two states. Only the rows in Rows are certain to be in
	// memory.
	older, newer diffRows
}

// A RowDiff says how the row of an entity differs.
type RowDiff struct {
	Entity         ecs.Entity // [ecs.None] for a resource.
	OldRow, NewRow int        // Row in each state; -1 means that the state does not have the row.
	Changed        bool       // Both states have the row, with different values.
}

// Added reports whether only the new state has the row.
func (r RowDiff) Added() bool { return r.OldRow < 0 }

// Removed reports whether only the old state has the row.
func (r RowDiff) Removed() bool { return r.NewRow < 0 }

// Moved reports whether both states have the row, in different places. The order of rows is part
// of the state, even if no value differs.
func (r RowDiff) Moved() bool { return r.OldRow >= 0 && r.NewRow >= 0 && r.OldRow != r.NewRow }

// OldRow returns the encoded row of r in the old state, or nil.
func (c *ComponentDiff) OldRow(r RowDiff) []byte { return rowOrNil(c.older, r.OldRow) }

// NewRow returns the encoded row of r in the new state, or nil.
func (c *ComponentDiff) NewRow(r RowDiff) []byte { return rowOrNil(c.newer, r.NewRow) }

func rowOrNil(rows diffRows, i int) []byte {
	if i < 0 {
		return nil
	}
	return rows.row(i)
}

// Count returns how many rows were added, removed, changed and moved. A row may count as both
// changed and moved.
func (c *ComponentDiff) Count() (added, removed, changed, moved int) {
	for _, r := range c.Rows {
		switch {
		case r.Added():
			added++
		case r.Removed():
			removed++
		case r.Changed:
			changed++
		}
		if r.Moved() {
			moved++
		}
	}
	return added, removed, changed, moved
}

// pairs matches two lists by name. It yields the elements of the old list in order, then the
// elements that only the new list has. The missing side of a pair is nil.
func pairs[T any](older, newer []*T, name func(*T) string) iter.Seq2[*T, *T] {
	return func(yield func(o, n *T) bool) {
		byName := make(map[string]*T, len(newer))
		for _, n := range newer {
			byName[name(n)] = n
		}
		for _, o := range older {
			n := byName[name(o)]
			if delete(byName, name(o)); !yield(o, n) {
				return
			}
		}
		for _, n := range newer {
			if byName[name(n)] != nil && !yield(nil, n) {
				return
			}
		}
	}
}

// matched merges two lists that are sorted by compare(), and pairs equal elements. If an element is
// in only one list, the other side of its pair is nil.
func matched[T any](older, newer []T, compare func(a, b T) int) iter.Seq2[*T, *T] {
	return func(yield func(o, n *T) bool) {
		for len(older) > 0 || len(newer) > 0 {
			// If one list is at its end, use the next element of the other list.
			order := cmp.Compare(len(newer), len(older))
			if len(older) > 0 && len(newer) > 0 {
				order = compare(older[0], newer[0])
			}
			var o, n *T
			if order <= 0 {
				o, older = &older[0], older[1:]
			}
			if order >= 0 {
				n, newer = &newer[0], newer[1:]
			}
			if !yield(o, n) {
				return
			}
		}
	}
}

// A diffColumn is one state's version of a component.
type diffColumn struct {
	name     string
	layout   *layout.Type // nil means that the state does not have the component.
	resource bool
	diffRows
}

// diffRows reads the rows of a component.
type diffRows interface {
	len() int
	entity(row int) ecs.Entity // 0 for a resource.
	row(row int) []byte
}

// absent stands for a component that a state does not have.
var absent = diffColumn{diffRows: keptRows{}}

func columnOf(c *image.Component) diffColumn {
	if c == nil {
		return absent
	}
	return diffColumn{c.Name, c.Layout, c.Resource, imageRows{c}}
}

// imageRows reads the rows of a component that is in memory.
type imageRows struct{ c *image.Component }

func (r imageRows) len() int           { return r.c.N }
func (r imageRows) row(row int) []byte { return r.c.Row(row) }

func (r imageRows) entity(row int) ecs.Entity {
	if r.c.Resource {
		return 0
	}
	return r.c.Entities[row]
}

// differing returns ranges of rows that may differ between a and b. Rows outside of the ranges
// are equal and in the same place. It compares the bytes of whole pages: in similar states most
// pages are equal.
func differing(a, b *image.Component) []raw.Range {
	// All rows may differ if pages cannot be compared. Rows of variable size have no pages, and in
	// different layouts equal bytes may be different values.
	if a == nil || b == nil || a.Resource || b.Resource || a.Width < 0 || !a.Layout.Equal(b.Layout) {
		return between(0, max(columnOf(a).len(), columnOf(b).len()))
	}
	common := min(a.N, b.N)
	var ranges []raw.Range
	for lo := 0; lo < common; lo += format.PageRows {
		hi := min(lo+format.PageRows, common)
		if !slices.Equal(a.Entities[lo:hi], b.Entities[lo:hi]) || !bytes.Equal(a.Packed[lo*a.Width:hi*a.Width], b.Packed[lo*a.Width:hi*a.Width]) {
			ranges = append(ranges, raw.Range{First: lo, N: hi - lo})
		}
	}
	return append(ranges, between(a.N, b.N)...)
}

// component adds the differences of one component, given by its columns in both states. Rows
// outside of ranges are equal and in the same place.
func (d *Diff) component(older, newer diffColumn, ranges []raw.Range) error {
	// A resource and a component of the same name are unrelated: one was removed, the other
	// added.
	if older.layout != nil && newer.layout != nil && older.resource != newer.resource {
		if err := d.component(older, absent, between(0, older.len())); err != nil {
			return err
		}
		return d.component(absent, newer, between(0, newer.len()))
	}
	c := &ComponentDiff{
		Name: cmp.Or(older.name, newer.name), Resource: older.resource || newer.resource,
		Old: older.layout, New: newer.layout, older: older, newer: newer,
	}
	d.Components = append(d.Components, c)
	return c.compare(ranges)
}

// A placedRow is an entity and its row in one state, if the other state does not have the entity in
// that row.
type placedRow struct {
	entity ecs.Entity
	row    int
}

// place returns the row, or -1 if p is nil.
func (p *placedRow) place() int {
	if p == nil {
		return -1
	}
	return p.row
}

// compareEntities orders entities by index first, then by generation.
func compareEntities(a, b ecs.Entity) int {
	return cmp.Or(cmp.Compare(a.Index(), b.Index()), cmp.Compare(a.Generation(), b.Generation()))
}

// compare finds the rows that differ, and looks only at rows in ranges. That is enough: a row
// outside of ranges belongs to the same entity in both states, with the same value.
func (c *ComponentDiff) compare(ranges []raw.Range) error {
	same := c.sameRows()
	var older, newer []placedRow
	// at returns the entity of a row. It treats a row past the end as a gap.
	at := func(rows diffRows, row int) ecs.Entity {
		if row < rows.len() {
			return rows.entity(row)
		}
		return ecs.Vacant
	}
	for _, r := range ranges {
		for row := r.First; row < r.First+r.N; row++ {
			o, n := at(c.older, row), at(c.newer, row)
			// Most entities have the same row in both states.
			if o == n && o != ecs.Vacant {
				if err := c.add(o, row, row, same); err != nil {
					return err
				}
				continue
			}
			if o != ecs.Vacant {
				older = append(older, placedRow{o, row})
			}
			if n != ecs.Vacant {
				newer = append(newer, placedRow{n, row})
			}
		}
	}
	byEntity := func(a, b placedRow) int { return compareEntities(a.entity, b.entity) }
	// The remaining entities have different rows in the two states, or a row in one state only.
	// Join the two lists by entity.
	slices.SortFunc(older, byEntity)
	slices.SortFunc(newer, byEntity)
	for o, n := range matched(older, newer, byEntity) {
		if err := c.add(cmp.Or(o, n).entity, o.place(), n.place(), same); err != nil {
			return err
		}
	}
	slices.SortFunc(c.Rows, func(a, b RowDiff) int { return compareEntities(a.Entity, b.Entity) })
	return nil
}

// add adds the row of e to the diff if its value or its place differs.
func (c *ComponentDiff) add(e ecs.Entity, oldRow, newRow int, same func(a, b []byte) (bool, error)) error {
	r := RowDiff{Entity: e, OldRow: oldRow, NewRow: newRow}
	if !r.Added() && !r.Removed() {
		equal, err := same(c.older.row(oldRow), c.newer.row(newRow))
		if err != nil || equal && !r.Moved() {
			return err
		}
		r.Changed = !equal
	}
	c.Rows = append(c.Rows, r)
	return nil
}

// sameRows returns the function that compares rows of the two layouts. Rows of equal layouts are
// compared as bytes, others by the fields that both layouts have.
func (c *ComponentDiff) sameRows() func(a, b []byte) (bool, error) {
	if c.Old == nil || c.New == nil || c.Old.Equal(c.New) {
		return func(a, b []byte) (bool, error) { return bytes.Equal(a, b), nil }
	}
	return func(a, b []byte) (bool, error) {
		fields, err := diffFields(c.Old, a, c.New, b)
		return len(fields) == 0, err
	}
}
