package persist

import (
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// Open converts a store whose component types differ from those of the program. Old ticks are
// replayed under the schema they were written with. The resulting state is converted once and
// becomes a full snapshot. Its state ID stays the same, but the snapshot has a higher number and
// the new schema:
//
//	snapshot 1 ── tick ── tick ── head           schema A
//	                              snapshot 2 ── tick ── …   schema B
//
// So two snapshots can have the same state ID. The schema in a record's preamble shows which of the
// two snapshots the record continues.
//
// The conversion first makes the journal's new segment durable. Only then does the snapshot get its
// name. If the process crashes between these two steps, the new segment has no records. The next
// opening converts the store again. If an older program opens the store instead, it continues under
// schema A without a conversion.

// evolved returns the schema of a store after its conversion to the types of w. It returns s itself
// if nothing differs. Components that are not registered stay in the schema.
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
			e.Former = formerSchemas(c)
		// The layouts are equal, and only the numbers of named constants differ.
		case slices.ContainsFunc(conversions, told):
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

// formerSchemas returns the former schemas of the component that replaces c. These are the former
// schemas of c, and the schema of c itself.
func formerSchemas(c *format.Entry) []format.Former {
	for _, f := range c.Former {
		if f.Name == c.Name && f.Version == c.Version && f.Layout.Equal(c.Layout) {
			return c.Former
		}
	}
	former := append(slices.Clip(c.Former), format.Former{Name: c.Name, Version: c.Version, Layout: c.Layout})
	return former[max(0, len(former)-format.MaxFormer):]
}

// conversionsOf returns the conversions from schema s to the types of w. The result also lists the
// components that only s or only w has; see [image.Conversions].
func conversionsOf(s *format.Schema, w *ecs.World) ([]raw.Conversion, error) {
	conversions, err := image.Conversions(s, w)
	if err != nil {
		return nil, err
	}
	return rewindChanges(s, w, conversions), nil
}

// rewindChanges finds components that are NoRewind in schema s or in world w, but not in both. It
// adds these changes to conversions, because package ecs does not report them.
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
