package image

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A Typed applies recorded ticks to a world with Go types. The cost is O(rows that the tick wrote).
// The storages of the world must equal the stored ones. For ticks that need a conversion, use an
// [Image].
type Typed struct {
	World raw.World

	// The fields below are looked up once per schema, because almost all ticks have the same
	// schema.
	schema *format.Schema // The schema of the last call of Fits.
	// Storages by number in schema. Nil means that the world lacks the storage, or that its storage
	// differs.
	storages []raw.Storage
}

// Fits reports whether ticks with schema s can be applied: the world has each component as it is
// stored. A repeated call with the same schema costs nothing.
func (t *Typed) Fits(s *format.Schema) bool {
	if s != t.schema {
		t.find(s)
	}
	return !slices.Contains(t.storages, nil)
}

// Forget makes the next Fits look up all storages again. A load may have replaced storages without
// changing the address of the schema.
func (t *Typed) Forget() { t.schema = nil }

// find looks up the storages of the components of s.
func (t *Typed) find(s *format.Schema) {
	t.schema, t.storages = s, make([]raw.Storage, len(s.Components))
	for _, st := range t.World.Storages() {
		n, stored := s.Numbers[st.Name()]
		if !stored || !st.Persistent() {
			continue
		}
		if e := format.EntryOf(st); e.Same(&s.Components[n]) {
			t.storages[n] = st
		}
	}
}

// ErrUnlike reports that a tick cannot be applied to a world because the types differ.
var ErrUnlike = errors.New("the world has other types")

// Patch converts the given tick, which has ID id and schema s, to a patch for the world. The world
// has the state that the tick continues. The patch shares memory with the tick. If s does not fit,
// the error is [ErrUnlike].
//
// A raw.Patch contains whole rows. So Patch applies the edits of the tick to the rows of the world.
func (t *Typed) Patch(tick *format.Tick, s *format.Schema, id journal.ID) (*raw.Patch, error) {
	if !t.Fits(s) {
		return nil, ErrUnlike
	}
	p := &raw.Patch{Tick: tick.Tick, Seq: id.Seq, Storages: make([]raw.StoragePatch, 0, len(tick.Storages))}
	if r := tick.Registry; r != nil {
		p.Entities = raw.EntityChange{Changed: true, Alive: r.Alive, Free: r.Free, Total: r.Total, Rows: r.Ranges}
		p.Registry = r.Rows
	}
	for i := range tick.Storages {
		number := tick.Storages[i].Number
		if number >= len(t.storages) {
			return nil, fmt.Errorf("tick %d: component number %d of %d", tick.Tick, number, len(t.storages))
		}
		st := t.storages[number]
		c, err := t.whole(&tick.Storages[i], st)
		if err != nil {
			return nil, fmt.Errorf("tick %d: component %s: %w", tick.Tick, naming.Shown(st.Name()), err)
		}
		change := raw.StorageChange{Storage: st, Before: c.Before, Entities: c.EntityRanges, Values: c.ValueRanges}
		p.Storages = append(p.Storages, raw.StoragePatch{StorageChange: change, After: c.After, Members: c.Entities, Rows: c.Values})
	}
	return p, nil
}

// whole returns p, a patch of st, with edits replaced by whole rows.
func (t *Typed) whole(p *format.StoragePatch, st raw.Storage) (format.StoragePatch, error) {
	n := st.Rows()
	if st.IsResource() {
		// A world always has the row of a resource. The stored state has no such row before the
		// first write of the resource. p.Before is 0 then, so count 0 rows in the world, too.
		n = min(n, p.Before)
	}
	if err := CheckStorage(&t.schema.Components[p.Number], p, n, st.Layout().Width()); err != nil {
		return *p, err
	}
	return p.Whole(st.Layout(), func(row int) []byte { return st.AppendRows(nil, row, row+1) })
}
