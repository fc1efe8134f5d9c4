package repair

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// pieces is a state with the rows of the readable pages of a damaged snapshot. All other rows are
// unknown. Entities and values have separate pages, so a row may have a known entity and an unknown
// value. A tick that writes an unknown row makes it known.
type pieces struct {
	im       *image.Image
	digest   ecs.Digest // The digest of the complete state.
	registry knownRows
	entities []knownRows // Rows whose entity is known, by component.
	values   []knownRows
	sparse   []snap.SparsePage // Pages of sparse arrays, ordered by key.
}

// knownRows says for each row whether its content is known.
type knownRows []bool

// add marks rows [lo, hi) as known.
func (k knownRows) add(lo, hi int) {
	for i := lo; i < hi; i++ {
		k[i] = true
	}
}

// unknown returns the number of unknown rows.
func (k knownRows) unknown() (n int) {
	for _, known := range k {
		if !known {
			n++
		}
	}
	return n
}

// patched resizes k to n rows, and marks the rows of ranges as known.
func (k knownRows) patched(n int, ranges []raw.Range) knownRows {
	k = image.Resized(k, n)
	for _, r := range ranges {
		k.add(r.First, r.First+r.N)
	}
	return k
}

// gather collects the readable pages of a snapshot. Rows without bytes count as known.
func gather(ctx context.Context, v *catalog.Catalog, name string) (*pieces, error) {
	m, err := snap.SalvageManifest(ctx, v.Files, name)
	if err != nil {
		return nil, err
	}
	f, err := snap.Salvage(ctx, v.Files, name, m, catalog.SnapshotName)
	if err != nil {
		return nil, err
	}
	p := &pieces{im: f.Image, digest: m.Digest, registry: f.Known(m.Registry()), sparse: f.SparsePages()}
	p.im.Index = make([]uint32, m.Total)
	for n, c := range p.im.Components {
		values := knownRows(f.Known(m.Array(n, format.DataArray)))
		if c.Width == 0 {
			values = make(knownRows, c.N)
			values.add(0, c.N)
		}
		p.entities, p.values = append(p.entities, f.Known(m.Array(n, format.DenseArray))), append(p.values, values)
	}
	return p, nil
}

// restored returns the original state if it could be restored completely. The recorded digest shows
// this. Otherwise restored returns nil, and p is unusable.
func (p *pieces) restored() *image.Image {
	p.mended()
	if p.im.Link(context.Background()) != nil || p.im.Digest() != p.digest {
		return nil
	}
	return p.im
}

// forward applies the ticks of path until a tick cannot be read or applied. It returns the number
// of applied ticks, and the error of the next tick. Rows that a tick writes become known.
func (p *pieces) forward(ctx context.Context, v *catalog.Catalog, path []journal.Entry) (n int, err error) {
	for i, e := range path {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		r := v.Record(e)
		err := v.Describe(r, p.im.ID, p.im.Stored)
		if err == nil && r.Decoded.Parent != p.im.ID {
			err = v.EntryError(e, fmt.Errorf("tick %d continues state %v, not %v", e.Tick, r.Decoded.Parent, p.im.ID))
		}
		if err == nil {
			err = p.adopt(r.Schema)
		}
		if err == nil {
			err = p.im.Patch(p.editable(r.Decoded))
		}
		if err != nil {
			return i, err
		}
		p.patched(r.Decoded)
		p.im.Tick, p.im.ID = e.Tick, e.ID
	}
	return len(path), nil
}

// adopt adds the components that the schema s has and the image lacks. A new component has no rows,
// so it has no unknown rows.
func (p *pieces) adopt(s *format.Schema) error {
	if err := p.im.Adopt(s); err != nil {
		return err
	}
	for range p.im.Components[len(p.values):] {
		p.entities, p.values = append(p.entities, nil), append(p.values, nil)
	}
	return nil
}

// editable returns the tick t without the edits of unknown rows. An edit needs the old bytes of the
// row, so the edit of an unknown row would fail.
func (p *pieces) editable(t *format.Tick) *format.Tick {
	known := *t
	known.Storages = slices.Clone(t.Storages)
	for i, s := range known.Storages {
		if s.Number < len(p.values) && len(s.EditRanges) > 0 {
			values := p.values[s.Number]
			known.Storages[i] = s.EditingOnly(func(row int) bool { return row < len(values) && values[row] })
		}
	}
	return &known
}

// patched marks the rows that t wrote as known. New rows at the end are unknown if t does not write
// them, which happens only in a damaged tick.
func (p *pieces) patched(t *format.Tick) {
	if r := t.Registry; r != nil {
		p.registry = p.registry.patched(r.Total, r.Ranges)
	}
	for i := range t.Storages {
		s := &t.Storages[i]
		c := p.im.Components[s.Number]
		if !c.Resource {
			p.entities[s.Number] = p.entities[s.Number].patched(s.After, s.EntityRanges)
		}
		p.values[s.Number] = p.values[s.Number].patched(s.After, s.ValueRanges)
		if c.Width == 0 {
			p.values[s.Number].add(0, s.After)
		}
	}
}
