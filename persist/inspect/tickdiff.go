package inspect

import (
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// The changes of a tick are found without comparing two whole states. A tick lists the rows that it
// writes, edits, removes or adds. keepRows copies these rows of the image before the tick. The tick
// then changes the image in place, and diff compares the new rows with the copies. All other rows
// are equal and in the same place.
//
// The cost is that of the rows that the tick wrote. A row may be written with the same value, so
// the rows must be compared.

// A keptTick holds the rows that a tick will overwrite.
type keptTick struct {
	tick     uint64
	schema   *format.Schema
	registry registryRows // registry has only the rows in k.ranges.
	ranges   []raw.Range
	// columns has the old rows of each component, by number. A column without ranges does not
	// change.
	columns []keptRows
}

// keptRows are the rows of a component that a tick will overwrite.
type keptRows struct {
	n        int
	ranges   []raw.Range
	entities map[int]ecs.Entity
	rows     map[int][]byte
}

func (k keptRows) len() int                  { return k.n }
func (k keptRows) entity(row int) ecs.Entity { return k.entities[row] }
func (k keptRows) row(row int) []byte        { return k.rows[row] }

// keepRows copies the rows of im that t will overwrite.
func keepRows(im *image.Image, t *format.Tick) *keptTick {
	k := &keptTick{tick: im.Tick, schema: im.Stored(), registry: registry(im), columns: make([]keptRows, len(im.Components))}
	if p := t.Registry; p != nil {
		before := map[int]ecs.Entity{}
		// If the number of live entities changes from 3 to 5, rows 3 and 4 change their status. The
		// tick need not list these rows.
		k.ranges = union(p.Ranges, between(im.Alive, p.Alive), between(im.Free, p.Free), between(len(im.Registry), p.Total))
		// The tick changes im in place, so copy the old entities.
		everyRowOf(k.ranges, len(im.Registry), func(row int) { before[row] = im.Registry[row] })
		k.registry.entity = func(row int) ecs.Entity { return before[row] }
	}
	for i := range t.Storages {
		if p := &t.Storages[i]; p.Number < len(im.Components) {
			k.columns[p.Number] = keep(im.Components[p.Number], p)
		}
	}
	return k
}

// keep copies the rows of c that p overwrites or removes.
func keep(c *image.Component, p *format.StoragePatch) keptRows {
	k := keptRows{n: c.N, entities: map[int]ecs.Entity{}, rows: map[int][]byte{}}
	k.ranges = union(p.EntityRanges, p.ValueRanges, p.EditRanges, between(c.N, p.After))
	everyRowOf(k.ranges, c.N, func(row int) {
		k.entities[row] = imageRows{c}.entity(row)
		k.rows[row] = slices.Clone(c.Row(row))
	})
	return k
}

// diff compares im, the image after the tick, with the copied rows.
func (k *keptTick) diff(im *image.Image) (*Diff, error) {
	d := &Diff{OldTick: k.tick, NewTick: im.Tick}
	// The schemas differ only if the tick added components. A tick never removes a component.
	if len(im.Components) > len(k.columns) {
		d.Schema = diffSchemas(k.schema, im.Stored())
	}
	d.Registry = diffRegistries(k.registry, registry(im), k.ranges)
	for n, c := range im.Components {
		var err error
		if n >= len(k.columns) {
			err = d.component(absent, columnOf(c), between(0, c.N))
		} else if kept := k.columns[n]; len(kept.ranges) > 0 {
			err = d.component(diffColumn{c.Name, c.Layout, c.Resource, kept}, columnOf(c), kept.ranges)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// between returns the rows between a and b as a range, or nil if a equals b.
func between(a, b int) []raw.Range {
	if a == b {
		return nil
	}
	return []raw.Range{{First: min(a, b), N: max(a, b) - min(a, b)}}
}

// union returns the rows in any of the lists, in ascending order without overlaps.
func union(lists ...[]raw.Range) []raw.Range {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b raw.Range) int { return a.First - b.First })
	var merged []raw.Range
	for _, r := range all {
		if n := len(merged); n > 0 && r.First <= merged[n-1].First+merged[n-1].N {
			last := &merged[n-1]
			last.N = max(last.N, r.First+r.N-last.First)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// everyRowOf calls f for each row of ranges that is below n.
func everyRowOf(ranges []raw.Range, n int, f func(row int)) {
	for _, r := range ranges {
		for row := r.First; row < min(r.First+r.N, n); row++ {
			f(row)
		}
	}
}
