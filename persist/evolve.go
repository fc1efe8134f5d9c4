package persist

import (
	"context"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A store whose components are no longer those of the program is converted when
// it is opened. Ticks are never converted: those before are replayed under the
// schema they were written with, and what that leads to is converted once and
// becomes a full snapshot. It has the identity of the state it was made of, a
// higher number and another schema:
//
//	snapshot 1 ── tick ── tick ── head           schema A
//	                              snapshot 2 ── tick ── …   schema B
//
// So two snapshots can name one state. The records behind say which of them they
// continue: their preamble has its schema.
//
// The journal's new segment is durable before the snapshot has its name. After a
// crash between the two, the segment has no records, and the next opening
// converts again or, if it is that of the older program, goes on as before.

// evolved returns the schema of a store with schema s that is converted to the
// types of w, which conversions are for: s itself if nothing differs. What is not
// registered stays.
func evolved(s *format.Schema, w *ecs.World, conversions []raw.Conversion) *format.Schema {
	next, changed := format.NewSchema(), false
	entries := slices.Clone(s.Components)
	for _, st := range w.Raw().Storages() {
		n, stored := image.NumberOf(s, st)
		if !stored || st.Unknown() {
			continue
		}
		c, e := &s.Components[n], format.EntryOf(st)
		switch told := func(v raw.Conversion) bool { return v.Stored == c.Name }; {
		case !c.Same(&e):
			e.Former = outlived(c)
		case slices.ContainsFunc(conversions, told): // Only constants have other numbers.
			e.Former = c.Former
		default:
			continue
		}
		entries[n], changed = e, true
	}
	if !changed {
		return s
	}
	for _, e := range entries {
		next.Add(e)
	}
	return next
}

// outlived returns the former entries of what c becomes.
func outlived(c *format.Entry) []format.Former {
	for _, f := range c.Former {
		if f.Name == c.Name && f.Version == c.Version && f.Layout.Equal(c.Layout) {
			return c.Former
		}
	}
	former := append(slices.Clip(c.Former), format.Former{Name: c.Name, Version: c.Version, Layout: c.Layout})
	return former[max(0, len(former)-format.MaxFormer):]
}

// conversionsOf returns what must be converted to make a state of a store with schema s one of
// w, and what only one of the two has; see [image.Conversions].
func conversionsOf(s *format.Schema, w *ecs.World) ([]raw.Conversion, error) {
	conversions, err := image.Conversions(s, w)
	if err != nil {
		return nil, err
	}
	return rewindChanges(s, w, conversions), nil
}

// rewindChanges appends to conversions those that package ecs does not see: what
// is put back with the world.
func rewindChanges(s *format.Schema, w *ecs.World, conversions []raw.Conversion) []raw.Conversion {
	for _, st := range w.Raw().Storages() {
		n, stored := image.NumberOf(s, st)
		if !stored || st.Unknown() || s.Components[n].Rewinds == st.Rewinds() {
			continue
		}
		what := "rewinds now"
		if !st.Rewinds() {
			what = "no longer rewinds"
		}
		change := layout.Change{What: what}
		name := s.Components[n].Name
		if k := slices.IndexFunc(conversions, func(c raw.Conversion) bool { return c.Stored == name }); k >= 0 {
			conversions[k].Changes = append(slices.Clip(conversions[k].Changes), change)
		} else {
			conversions = append(conversions, raw.Conversion{Stored: name, Name: st.Name(), Changes: []layout.Change{change}})
		}
	}
	return conversions
}

// converting returns those of conversions that convert something.
func converting(conversions []raw.Conversion) (some []raw.Conversion) {
	for _, c := range conversions {
		if c.Name != "" && c.Stored != "" {
			some = append(some, c)
		}
	}
	return some
}

// convert continues a store whose state was converted: before the first commit
// there is a full snapshot under the new schema.
func (s *Store) convert(ctx context.Context, log *journal.Log, before *raw.State) error {
	if err := s.world.Raw().Attach(s, s.head); err != nil {
		return err
	}
	s.table, s.sums = nil, nil // Pages of the old layout are not to be shared.
	_, err := s.firstSnapshot(ctx, log)
	if err == nil {
		return nil
	}
	_ = s.world.Raw().Detach(s)    // No checkpoint is held.
	_ = s.world.Raw().Load(before) // It fitted before.
	if s.journal != nil {
		s.journal.Abandon()
	}
	return err
}
