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

// A Typed is a world with its Go types that recorded ticks are applied to, as they are to an
// [Image], in O(rows that a tick wrote). Its storages must hold rows as they are stored:
// where something would have to be converted, an image is what ticks can be applied to.
type Typed struct {
	World raw.World

	// What follows is looked up once for a schema, as nearly all ticks have the same.
	schema   *format.Schema // The last that Fits was asked for.
	storages []raw.Storage  // By their number in it; nil: the world has another one.
}

// Fits reports whether ticks that s describes can be applied: the world has each of its
// components as it is stored. It costs nothing for the schema that it was asked for last.
func (t *Typed) Fits(s *format.Schema) bool {
	if s != t.schema {
		t.find(s)
	}
	return !slices.Contains(t.storages, nil)
}

// Forget makes the next Fits look at all storages again: a load may have exchanged some, which the
// address of the schema does not tell.
func (t *Typed) Forget() { t.schema = nil }

// find finds the storages of the components of s.
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

// ErrUnlike says that a tick cannot be applied to a world, as its types are not what is stored.
var ErrUnlike = errors.New("the world has other types")

// Patch returns tick, which is record id and described by s, as the world, whose state it
// continues, applies it. It shares memory with tick. [ErrUnlike] says that s does not fit.
//
// A raw.Patch gives rows whole. So those that tick edits are made here, of the rows that the world
// has.
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

// whole returns p, which is of st, with all rows that it edits given.
func (t *Typed) whole(p *format.StoragePatch, st raw.Storage) (format.StoragePatch, error) {
	n := st.Rows()
	if st.IsResource() {
		n = min(n, p.Before) // The world has it, whether it was ever recorded or not.
	}
	if err := CheckStorage(&t.schema.Components[p.Number], p, n, st.Layout().Width()); err != nil {
		return *p, err
	}
	return p.Whole(st.Layout(), func(row int) []byte { return st.AppendRows(nil, row, row+1) })
}
