package inspect

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Two states are compared in three ways, which give the same Diff. Each finds ranges of rows outside
// of which both are known to hold the same at the same place, and then compares these:
//
//	two images         pages that differ as bytes        diffImages here, differing
//	snapshot files     pages that differ, or are shared  diffpages.go
//	a tick             rows that it wrote                tickdiff.go
//	                   └─▶ Diff.component, diffRegistries: rows joined by entity

// A Diff says how two states differ: what is different in the new one. Its rows
// share memory with what was read to find them.
type Diff struct {
	OldTick, NewTick uint64
	Schema           []SchemaDiff
	Registry         RegistryDiff
	Components       []*ComponentDiff // Of either state, in the order of the old schema, then the new one; also those without differences.
}

// Same reports whether the states hold the same. Their ticks may differ, and their
// types in what no row shows.
func (d *Diff) Same() bool {
	differs := func(c *ComponentDiff) bool { return len(c.Rows) > 0 }
	return len(d.Schema) == 0 && d.Registry.same() && !slices.ContainsFunc(d.Components, differs)
}

// A ComponentDiff lists the rows of a component or resource that are not the same
// in two states.
type ComponentDiff struct {
	Name     string
	Resource bool
	Old, New *layout.Type // nil: the component is not known there.
	Rows     []RowDiff    // By index and generation of their entities.

	older, newer diffRows // Where the rows are that Rows names; others may not be there.
}

// A RowDiff is what became of the row of an entity.
type RowDiff struct {
	Entity         ecs.Entity // 0 for a resource.
	OldRow, NewRow int        // Where it is; -1: it is not there.
	Changed        bool       // It is there in both, and holds something else.
}

// Added reports whether only the new state has the row.
func (r RowDiff) Added() bool { return r.OldRow < 0 }

// Removed reports whether only the old state has the row.
func (r RowDiff) Removed() bool { return r.NewRow < 0 }

// Moved reports whether both have the row, in different places: dense order is
// part of the state, though no value differs.
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

// Count returns how many rows were added, removed, changed, and moved; one that
// changed may have moved as well.
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

// diffImages compares newer with older. Neither may change as long as the result
// is used.
func diffImages(ctx context.Context, older, newer *Image) (*Diff, error) {
	d := &Diff{OldTick: older.Tick, NewTick: newer.Tick}
	d.Schema = diffSchemas(older.Stored(), newer.Stored())
	// All rows of the registry are compared: they are in memory, 8 bytes each.
	d.Registry = diffRegistries(registry(older), registry(newer), between(0, max(len(older.Registry), len(newer.Registry))))
	for o, n := range pairs(older.Components, newer.Components, func(c *Component) string { return c.Name }) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := d.component(columnOf(o), columnOf(n), differing(o, n)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// pairs matches two lists by name, in the order of the old one, then those that are only
// in the new one; nil: one list has nothing of that name.
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

// matched goes through two lists in the order of compare and pairs what is equal in it;
// nil: one list has nothing.
func matched[T any](older, newer []T, compare func(a, b T) int) iter.Seq2[*T, *T] {
	return func(yield func(o, n *T) bool) {
		for len(older) > 0 || len(newer) > 0 {
			order := cmp.Compare(len(newer), len(older)) // If one is at its end, the other is first.
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

// A diffColumn is a component in one of two states.
type diffColumn struct {
	name     string
	layout   *layout.Type // nil: the state does not have it.
	resource bool
	diffRows
}

// diffRows is where the rows of a component are.
type diffRows interface {
	len() int
	entity(row int) ecs.Entity // 0 for a resource.
	row(row int) []byte
}

// absent is a component that a state does not have.
var absent = diffColumn{diffRows: keptRows{}}

func columnOf(c *Component) diffColumn {
	if c == nil {
		return absent
	}
	return diffColumn{c.Name, c.Layout, c.Resource, imageRows{c}}
}

// imageRows are the rows of a component of an image.
type imageRows struct{ c *Component }

func (r imageRows) len() int           { return r.c.N }
func (r imageRows) row(row int) []byte { return r.c.Row(row) }

func (r imageRows) entity(row int) ecs.Entity {
	if r.c.Resource {
		return 0
	}
	return r.c.Entities[row]
}

// differing returns the rows that are not the same in a and b at the same place, in
// pieces that may hold others. Pages are compared as bytes, which takes no look at rows, and
// most pages of two states near each other are the same.
func differing(a, b *Component) []raw.Range {
	// Rows that vary in size are not packed, and the same bytes mean another value in another layout.
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

// component compares what two states have under one name. Outside of ranges they
// are known to hold the same at the same place.
func (d *Diff) component(older, newer diffColumn, ranges []raw.Range) error {
	// A resource and a component of one name are two things: one is gone, the other new.
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

// A placedRow is a row that another entity has in the other state.
type placedRow struct {
	entity ecs.Entity
	row    int
}

// place returns the row, -1 for nil.
func (p *placedRow) place() int {
	if p == nil {
		return -1
	}
	return p.row
}

// compareEntities orders by index, then by generation.
func compareEntities(a, b ecs.Entity) int {
	return cmp.Or(cmp.Compare(a.Index(), b.Index()), cmp.Compare(a.Generation(), b.Generation()))
}

// compare finds the rows that differ, in ranges. Entities that have one in ranges
// in one state have none outside of them in the other: there they would have it in
// both.
func (c *ComponentDiff) compare(ranges []raw.Range) error {
	same := c.sameRows()
	var older, newer []placedRow
	at := func(rows diffRows, row int) ecs.Entity { // Of a row past the end as of a gap.
		if row < rows.len() {
			return rows.entity(row)
		}
		return ecs.Vacant
	}
	for _, r := range ranges {
		for row := r.First; row < r.First+r.N; row++ {
			o, n := at(c.older, row), at(c.newer, row)
			if o == n && o != ecs.Vacant { // It stayed where it is. In most diffs most rows do.
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
	// Who is left has another row in the other state, or none: the two lists are joined by entity.
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

// add adds the row of e, if it differs, in value or in place.
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

// sameRows returns how rows of the two layouts are compared: by their bytes, or by
// the fields that both have.
func (c *ComponentDiff) sameRows() func(a, b []byte) (bool, error) {
	if c.Old == nil || c.New == nil || c.Old.Equal(c.New) {
		return func(a, b []byte) (bool, error) { return bytes.Equal(a, b), nil }
	}
	return func(a, b []byte) (bool, error) {
		fields, err := diffFields(c.Old, a, c.New, b)
		return len(fields) == 0, err
	}
}
