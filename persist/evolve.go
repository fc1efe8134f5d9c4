package persist

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
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

// find returns the number of what st is in s: by its name, or by a former one.
func (s *schema) find(st ecs.AnyStorage) (n int, ok bool) {
	name, ok := st.StoredAs(func(name string) bool { _, ok := s.numbers[name]; return ok })
	return s.numbers[name], ok
}

// conversions returns what must be converted to make a state with this schema one
// of w. An error names the first field in which the stored schema does not fit
// the types registered in w.
func (s *schema) conversions(w *ecs.World) ([]ecs.Conversion, error) {
	registered := map[string]bool{}
	for _, st := range w.Storages() {
		registered[st.Name()] = true
	}
	for _, st := range w.Storages() {
		n, stored := s.find(st)
		if !stored {
			if err := s.outgrown(st, registered); err != nil {
				return nil, err
			}
			continue
		}
		c := &s.components[n]
		switch {
		case !st.Persistent():
			return nil, fmt.Errorf("%w: %s is stored, but registered with NoPersist", ErrSchema, c.Name)
		case c.Resource != st.IsResource():
			return nil, fmt.Errorf("%w: %s is a resource in one of store and program, a component in the other", ErrSchema, c.Name)
		case st.Version() < c.Version:
			return nil, fmt.Errorf("%w: %s has version %d, the program version %d", ErrNewer, c.Name, c.Version, st.Version())
		case c.had(st):
			return nil, fmt.Errorf("%w: %s: %s; the store was converted from what the program has. To go back to it, give %s the version %d",
				ErrNewer, c.Name, layout.Diff(c.Layout, st.Layout()), c.Name, c.Version+1)
		}
	}
	conversions, err := w.Conversions(s.states())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return conversions, nil
}

// outgrown returns an error if st, which is not stored, has a name that something
// stored had before that the program does not know, so that it is the older one.
func (s *schema) outgrown(st ecs.AnyStorage, registered map[string]bool) error {
	for i := range s.components {
		c := &s.components[i]
		if !registered[c.Name] && slices.ContainsFunc(c.Former, func(f formerEntry) bool { return f.Name == st.Name() }) {
			return fmt.Errorf("%w: %s became %s in this store", ErrNewer, st.Name(), c.Name)
		}
	}
	return nil
}

// had reports whether c was converted from the layout that st has.
func (c *schemaEntry) had(st ecs.AnyStorage) bool {
	if st.Version() > c.Version || c.Layout.Equal(st.Layout()) {
		return false
	}
	return slices.ContainsFunc(c.Former, func(f formerEntry) bool {
		return f.Version == st.Version() && f.Layout.Equal(st.Layout())
	})
}

// states returns what is in s as storages without rows.
func (s *schema) states() []ecs.StorageState {
	states := make([]ecs.StorageState, len(s.components))
	for n, c := range s.components {
		states[n] = ecs.StorageState{Name: c.Name, Version: c.Version, Layout: c.Layout, Resource: c.Resource, Indexed: c.Indexed}
		if len(c.Default) > 0 {
			states[n].Default = c.Default
		}
	}
	return states
}

// evolved returns the schema of a store with schema s that is converted to the
// types of w: s itself if nothing differs. What is not registered stays.
func (s *schema) evolved(w *ecs.World) *schema {
	next, changed := newSchema(), false
	entries := slices.Clone(s.components)
	for _, st := range w.Storages() {
		n, stored := s.find(st)
		if !stored || st.Unknown() {
			continue
		}
		c, e := &s.components[n], entryOf(st)
		if c.same(&e) {
			continue
		}
		e.Former = c.outlived()
		entries[n], changed = e, true
	}
	if !changed {
		return s
	}
	for _, e := range entries {
		next.add(e)
	}
	return next
}

// outlived returns the former entries of what c becomes.
func (c *schemaEntry) outlived() []formerEntry {
	for _, f := range c.Former {
		if f.Name == c.Name && f.Version == c.Version && f.Layout.Equal(c.Layout) {
			return c.Former
		}
	}
	former := append(slices.Clip(c.Former), formerEntry{c.Name, c.Version, c.Layout})
	return former[max(0, len(former)-maxFormer):]
}

// same reports whether ticks and rows under c mean the same under e.
func (c *schemaEntry) same(e *schemaEntry) bool {
	return c.Name == e.Name && c.Version == e.Version && c.Resource == e.Resource && c.Rewinds == e.Rewinds &&
		c.Indexed == e.Indexed && c.Layout.Equal(e.Layout) && string(c.gap()) == string(e.gap())
}

// gap returns the row that gaps hold, nil if there are none.
func (c *schemaEntry) gap() []byte {
	if c.Indexed && len(c.Default) == 0 {
		return c.Layout.AppendZero(nil)
	}
	return c.Default
}

// differs returns an error unless one of s and t continues the other: numbers are
// only added.
func (s *schema) differs(t *schema) error {
	for n := range min(len(s.components), len(t.components)) {
		if c, e := &s.components[n], &t.components[n]; !c.same(e) {
			return fmt.Errorf("component number %d is %s %v here and %s %v before", n, e.Name, e.Layout, c.Name, c.Layout)
		}
	}
	return nil
}

func (c *schemaEntry) encodeFormer(e *encoder) {
	e.array(len(c.Former))
	for _, f := range c.Former {
		e.array(3)
		e.string(f.Name)
		e.uint(uint64(f.Version))
		e.bin(f.Layout.Append(nil))
	}
}

// former reads what a component was before.
func (d *decoder) former() (former []formerEntry) {
	n := d.arrayLen()
	if n > maxFormer {
		d.fail("%d former layouts, at most %d", n, maxFormer)
		return nil
	}
	for range n {
		d.array(3)
		f := formerEntry{Name: d.string(), Version: uint32(d.count("version", 1<<32-1))}
		described := d.bin()
		if d.err != nil {
			return nil
		}
		var err error
		if f.Layout, err = layout.Parse(described); err != nil {
			d.fail("former layout of %.40q: %v", f.Name, err)
			return nil
		}
		former = append(former, f)
	}
	return former
}

// rewindChanges appends to conversions those that package ecs does not see: what
// is put back with the world.
func (s *schema) rewindChanges(w *ecs.World, conversions []ecs.Conversion) []ecs.Conversion {
	for _, st := range w.Storages() {
		n, stored := s.find(st)
		if !stored || st.Unknown() || s.components[n].Rewinds == st.Rewinds() {
			continue
		}
		what := "rewinds now"
		if !st.Rewinds() {
			what = "no longer rewinds"
		}
		change := layout.Change{What: what}
		name := s.components[n].Name
		if k := slices.IndexFunc(conversions, func(c ecs.Conversion) bool { return c.Stored == name }); k >= 0 {
			conversions[k].Changes = append(slices.Clip(conversions[k].Changes), change)
		} else {
			conversions = append(conversions, ecs.Conversion{Stored: name, Name: st.Name(), Changes: []layout.Change{change}})
		}
	}
	return conversions
}

// convert continues a store whose state was converted: before the first commit
// there is a full snapshot under the new schema.
func (s *Store) convert(ctx context.Context, log *journal.Log, before *ecs.State) error {
	if err := s.world.Attach(s, s.head); err != nil {
		return err
	}
	s.table, s.sums = nil, nil // Pages of the old layout are not to be shared.
	_, err := s.snapshot(context.WithoutCancel(ctx), "", func(context.Context) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.openJournal(log)
	})
	if err == nil {
		return nil
	}
	_ = s.world.Attach(nil, 0) // No checkpoint is held.
	_ = s.world.Load(before)   // It fitted before.
	if s.journal != nil {
		s.journal.Abandon()
	}
	return err
}

// leads reports whether the records that lead from s to seq continue its schema.
// Those of a state that was converted afterwards, or before, do not.
func (v *View) leads(s SnapshotInfo, seq uint64) bool {
	if !v.converted() {
		return true
	}
	path, err := v.log.Path(s.ID.Seq, seq)
	if err != nil || len(path) == 0 {
		return true // Replay tells.
	}
	next, err := v.schemaAt(path[0])
	return err != nil || s.schema.differs(next) == nil
}

// converted reports whether the snapshots of the store have different schemas.
func (v *View) converted() bool {
	var last *schema
	for _, s := range v.snapshots {
		if s.schema == nil {
			continue
		}
		if last != nil && last.differs(s.schema) != nil {
			return true
		}
		last = s.schema
	}
	return false
}

// across returns im if record e continues its schema, and otherwise the snapshot
// of the same state that was converted to the schema of e, if there is one.
func (v *View) across(ctx context.Context, im *Image, e journal.Entry) (*Image, error) {
	next, err := v.schemaAt(e)
	if err != nil || im.schema == next || im.stored().differs(next) == nil {
		return im, nil // The step tells.
	}
	if s, ok := v.snapshotUnder(im.ID, next); ok {
		converted, _, err := v.loadSnapshot(ctx, s, false)
		return converted, err
	}
	return im, nil
}

// snapshotUnder returns the newest snapshot of a state whose schema and s continue
// each other.
func (v *View) snapshotUnder(id journal.ID, s *schema) (SnapshotInfo, bool) {
	for _, info := range slices.Backward(v.snapshots) {
		if info.Err == nil && info.ID == id && info.schema.differs(s) == nil {
			return info, true
		}
	}
	return SnapshotInfo{}, false
}
