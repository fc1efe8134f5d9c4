package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// The events of an entity follow from the follower's states before and after each tick, and from
// the operations of the tick. Only the operations show changes that the same tick undid: a
// component removed and added again, or an entity created and destroyed. TraceBack returns the
// newest events first. So it first traces from the nearest snapshot to the given state. It then
// traces from each older snapshot to the next newer snapshot.

// A TraceKind says what happened to an entity or to one of its components.
type TraceKind uint8

// Kinds of events. TraceAdded and the kinds after it concern a component.
const (
	TraceCreated   TraceKind = 1
	TraceDestroyed TraceKind = 2 // The entity and all its components were destroyed.
	TraceAlive     TraceKind = 3 // The entity was alive in the first state.
	TraceAdded     TraceKind = 4
	TraceRemoved   TraceKind = 5
	TracePresent   TraceKind = 6  // The entity had the component in the first state.
	TraceSet       TraceKind = 7  // The value changed.
	TraceWritten   TraceKind = 8  // The value was written but did not change.
	TraceMoved     TraceKind = 9  // The value moved to another row.
	TraceConverted TraceKind = 10 // A program with another type opened the store.
)

var traceNames = [...]string{
	"", "created", "destroyed", "alive", "added", "removed", "present", "set", "written", "moved", "converted",
}

// String returns the name of k in lower case, such as "created".
func (k TraceKind) String() string {
	if int(k) < len(traceNames) {
		return traceNames[k]
	}
	return fmt.Sprintf("kind %d", k)
}

// A TraceEvent is an event of an entity.
type TraceEvent struct {
	Kind      TraceKind
	Seq, Tick uint64 // The record of the event, and its tick.
	// Time is the commit time by the clock of the writer; zero if unknown.
	Time time.Time

	// The fields below describe a component. Values that existed only within a tick are unknown.
	Component string
	// Number is the number of the component, or -1 if the event concerns the entity itself.
	Number int
	// Row is the row of the value after the event, Was the row before it; -1 means no row.
	Row, Was int
	// Old and New are the values before and after the event, or the zero Value.
	Old, New layout.Value
	Layout   *layout.Type // Layout after the event.
}

// Fields returns the fields in which Old and New differ, see [ComponentDiff.Fields]. It returns
// nil if one of the values is missing.
func (e *TraceEvent) Fields() []FieldDiff {
	var f fieldDiffs
	if e.Old.Kind() != 0 && e.New.Kind() != 0 {
		f.values("", e.Old, e.New)
	}
	return f
}

// A Stretch is a part of the history of an entity: the events between the states First and Last.
type Stretch struct {
	First, Last *EntityState
	Events      []TraceEvent
	Bytes       int64 // Size of the ticks in the stretch, in bytes.
}

// stretch returns the Stretch that ends at record seq, and the snapshot at which the Stretch
// begins. This is the nearest snapshot with a number below the argument older. If there is none,
// stretch returns nil. A conversion makes a second snapshot of the same record, so a seq instead of
// a number would not distinguish the two.
func stretch(ctx context.Context, v *View, e ecs.Entity, seq uint64, older uint32) (s *Stretch, base catalog.SnapshotInfo, err error) {
	bases := slices.DeleteFunc(stretchBases(v.cat, seq), func(s catalog.SnapshotInfo) bool { return s.Number >= older })
	f, base, err := followFrom(ctx, v, bases, e, seq)
	switch {
	case err == nil:
		s, err = traceStretch(ctx, f, seq)
	// In an older Stretch, an unreadable snapshot is not an error: the trace ends there.
	case older < math.MaxUint32 && ctx.Err() == nil:
		err = nil
	}
	return s, base, err
}

// stretchBases returns the snapshots that lead to record seq, with snapshots of converted states
// last. A Stretch that begins at a converted state would not have the conversion as an event.
func stretchBases(v *catalog.Catalog, seq uint64) []catalog.SnapshotInfo {
	var bases, converted []catalog.SnapshotInfo
	for _, s := range v.CandidateSnapshots(seq) {
		if wasConverted(v, s) {
			converted = append(converted, s)
		} else {
			bases = append(bases, s)
		}
	}
	return append(bases, converted...)
}

// wasConverted reports whether a conversion made the state of s. If so, the schema of s differs
// from that of its record. If the record was pruned, wasConverted compares s with older snapshots
// of the same state.
func wasConverted(v *catalog.Catalog, s catalog.SnapshotInfo) bool {
	if s.Err != nil {
		return false
	}
	if e, ok := v.Log.Find(s.ID.Seq); ok {
		before, err := v.SchemaAt(e)
		return err == nil && before.Differs(s.Schema) != nil
	}
	return slices.ContainsFunc(v.Snapshots, func(o catalog.SnapshotInfo) bool {
		return o.Err == nil && o.Number < s.Number && o.ID == s.ID && o.Schema.Differs(s.Schema) != nil
	})
}

// traceStretch traces f up to record seq.
func traceStretch(ctx context.Context, f *follower, seq uint64) (s *Stretch, err error) {
	s = new(Stretch)
	t := &trace{follower: f, found: func(e *TraceEvent) error { s.Events = append(s.Events, *e); return nil }}
	if s.First, err = f.state(); err != nil {
		return nil, err
	}
	if err = t.begin(); err != nil {
		return nil, err
	}
	if err = t.run(ctx, seq); err != nil {
		return nil, err
	}
	s.Bytes = t.bytes
	s.Last, err = t.state()
	return s, err
}

// A trace is a follower that passes each event to the function in field found. If that function
// fails, the error is stored in err, and no more events are passed. So the methods need not check
// for errors after each event.
type trace struct {
	*follower
	found func(*TraceEvent) error
	bytes int64
	ops   traceOps
	err   error // The first error of the function in field found.
}

// newTrace returns a trace between two records (from, to). The trace begins at the state after the
// first record. If the first record is 0, the trace begins at the oldest state that leads to the
// second record. newTrace fails if the first record is not an ancestor of the second. If lost
// records hide the ancestors, newTrace returns a trace anyway.
func newTrace(ctx context.Context, v *View, e ecs.Entity, from, to uint64) (*trace, error) {
	t := new(trace)
	err := v.cat.RetryOnChange(ctx, func() (err error) {
		if from == 0 {
			t.follower, err = oldestFollower(ctx, v, e, to)
			return err
		}
		if _, err := v.cat.Log.Path(from, to); err != nil && !errors.Is(err, journal.ErrCorrupt) {
			return v.cat.JournalError(err)
		}
		if t.follower, err = nearestFollower(ctx, v, e, from); err == nil {
			err = t.follow(ctx, from)
		}
		return err
	})
	return t, err
}

// readableBases returns the snapshots that lead to record seq and have a manifest, oldest first.
func readableBases(v *catalog.Catalog, seq uint64) []catalog.SnapshotInfo {
	bases := slices.DeleteFunc(v.CandidateSnapshots(seq), func(s catalog.SnapshotInfo) bool { return s.Err != nil })
	slices.SortFunc(bases, func(a, b catalog.SnapshotInfo) int {
		return cmp.Or(cmp.Compare(a.ID.Seq, b.ID.Seq), cmp.Compare(a.Number, b.Number))
	})
	return bases
}

// oldestFollower returns a follower of e at the oldest readable snapshot that leads to record
// seq.
func oldestFollower(ctx context.Context, v *View, e ecs.Entity, seq uint64) (*follower, error) {
	f, _, err := followFrom(ctx, v, readableBases(v.cat, seq), e, seq)
	if err == nil || ctx.Err() != nil {
		return f, err
	}
	// The error of nearestFollower names the damage.
	return nearestFollower(ctx, v, e, seq)
}

// parts reports the values of the first state, and the events up to the given record. After damage
// it continues at the next snapshot, and reports the values in that state. At the end it returns
// the first damage. In this example, parts reports the events of the records 1, 2, 3 and 7:
//
//	snapshot ── 1 ── 2 ── 3 ── lost ── 5 ── snapshot ── 7
func (t *trace) parts(ctx context.Context, to uint64) (damage error) {
	for {
		err := t.begin()
		if err == nil {
			err = t.run(ctx, t.reachable(to))
		}
		// run() has not reached the last record, because a record on the path is lost. Path returns
		// the error.
		if err == nil && t.id.Seq != to {
			_, err = t.view.cat.Log.Path(t.id.Seq, to)
			err = t.view.cat.JournalError(err)
		}
		if err == nil || t.err != nil || !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrForeign) {
			return cmp.Or(err, damage)
		}
		damage = cmp.Or(damage, err)
		behind := slices.DeleteFunc(readableBases(t.view.cat, to), func(s catalog.SnapshotInfo) bool { return s.ID.Seq <= t.id.Seq })
		f, _, err := followFrom(ctx, t.view, behind, t.entity, to)
		if err != nil {
			return damage
		}
		t.follower = f
	}
}

// reachable returns the last record before the first known loss on the path to the given record.
func (t *trace) reachable(to uint64) uint64 {
	last := to
	for e := range t.view.cat.Log.Ancestors(to) {
		if e.ID.Seq <= t.id.Seq {
			break
		}
		if e.Lost() {
			last = e.Parent
		}
	}
	return last
}

// run traces the records up to record seq.
func (t *trace) run(ctx context.Context, seq uint64) error {
	return t.each(ctx, seq, func(ctx context.Context, r *catalog.Record) error {
		if err := t.throughConversion(ctx, r.Entry); err != nil {
			return err
		}
		before, err := t.step(ctx, r)
		if err != nil {
			return err
		}
		t.bytes += int64(r.Length)
		return t.compare(before, r.Decoded, r.Entry)
	})
}

// A conversion may have changed the schema between the current state and record e.
// throughConversion then continues from the snapshot of the converted state, and reports an event
// for each converted component.
func (t *trace) throughConversion(ctx context.Context, e journal.Entry) error {
	next, err := t.view.cat.SchemaAt(e)
	if err != nil || t.schema == next || t.schema.Differs(next) == nil {
		// Continue with the current schema. If this schema is wrong, the next step fails.
		return nil
	}
	s, ok := t.view.cat.SnapshotUnder(t.id, next)
	if !ok {
		return nil
	}
	f, err := peekSnapshot(ctx, t.view, s, t.entity)
	if err != nil {
		return err
	}
	before := t.follower
	t.follower = f
	// A component has the same number before and after the conversion.
	for n := range t.rows {
		if n < len(before.rows) && !before.schema.Components[n].Same(&f.schema.Components[n]) && f.has(n) >= 0 {
			t.event(before, TraceConverted, n)
		}
	}
	return t.err
}

// begin reports the values of the first state.
func (t *trace) begin() error {
	none := &follower{schema: t.schema}
	if t.isAlive() {
		t.event(none, TraceAlive, format.NoComponent)
	}
	for n := range t.rows {
		if t.has(n) >= 0 {
			t.event(none, TracePresent, n)
		}
	}
	return t.err
}

// event reports an event. before holds the state before the event, and t the state after the event.
// A removal has no new value, and an addition has no old value.
func (t *trace) event(before *follower, kind TraceKind, number int) {
	if t.err != nil {
		return
	}
	e := &TraceEvent{Kind: kind, Seq: t.id.Seq, Tick: t.tick, Time: t.time, Number: number, Row: -1, Was: -1}
	if number >= 0 {
		e.Component, e.Layout = t.schema.Components[number].Name, t.schema.Components[number].Layout
		if kind != TraceAdded && kind != TracePresent {
			e.Was, e.Old = before.valueOf(number, &t.err)
		}
		if kind != TraceRemoved {
			e.Row, e.New = t.valueOf(number, &t.err)
		}
	}
	if t.err == nil {
		t.err = t.found(e)
	}
}

// valueOf returns the row and the value of component number n. If an error occurs and *failed is
// nil, valueOf sets *failed to this error.
func (f *follower) valueOf(n int, failed *error) (row int, v layout.Value) {
	row = f.has(n)
	if row < 0 {
		return row, v
	}
	v, err := f.schema.Components[n].Layout.Value(f.rows[n].value)
	if err != nil && *failed == nil {
		*failed = err
	}
	return row, v
}

// compare reports the events of a tick. It compares the states before and after the tick. From the
// operations, it adds changes that the same tick undid.
func (t *trace) compare(before *follower, tick *format.Tick, e journal.Entry) error {
	if err := t.ops.read(tick.Ops, t.entity, len(t.rows)); err != nil {
		return t.view.cat.EntryError(e, err)
	}
	was, is := before.isAlive(), t.isAlive()
	// An entity that was created and destroyed in the same tick is in neither state. Only the
	// operations show it.
	if is && !was || t.ops.created && !is && !was {
		t.event(before, TraceCreated, format.NoComponent)
	}
	if is || t.isWorld() {
		for n := range t.rows {
			t.component(before, n)
		}
	}
	if was && !is || t.ops.created && !is && !was {
		t.event(before, TraceDestroyed, format.NoComponent)
	}
	return t.err
}

// component reports what a tick did to component number n. The columns before and after say whether
// the entity has the component. The column operations has the calls in the tick:
//
//	before   after   operations          reported events
//	no       yes     any                 added
//	yes      no      any                 removed
//	no       no      added and removed   added, removed
//	yes      yes     removed and added   removed, added
//	yes      yes     any other           set, moved or written
//
// In the last case, the event is set if the value differs, and moved if only the row differs. The
// event is written if the tick wrote the same value into the same row.
func (t *trace) component(before *follower, n int) {
	was, is := before.has(n), t.has(n)
	ops := t.ops.components[n]
	switch {
	case was < 0 && is >= 0:
		t.event(before, TraceAdded, n)
	case was >= 0 && is < 0:
		t.event(before, TraceRemoved, n)
	// The entity does not have the component before or after the tick.
	case was < 0:
		if ops.added && ops.removed {
			t.event(before, TraceAdded, n)
			t.event(before, TraceRemoved, n)
		}
	case ops.removed && ops.added:
		t.event(before, TraceRemoved, n)
		t.event(before, TraceAdded, n)
	case string(before.rows[n].value) != string(t.rows[n].value):
		t.event(before, TraceSet, n)
	case was != is:
		t.event(before, TraceMoved, n)
	// A tick writes all rows of a no-rewind component, so these writes are no events.
	case t.rows[n].wrote == t.id.Seq && t.schema.Components[n].Rewinds:
		t.event(before, TraceWritten, n)
	}
}

// traceOps has the operations of one tick that concern an entity.
type traceOps struct {
	created    bool
	components []componentOps
}

// componentOps says whether the tick added a component to the entity, and whether it removed the
// component. An OpClear removes the component from all entities.
type componentOps struct{ added, removed bool }

// read reads the operations of a tick. n is the number of components.
func (o *traceOps) read(ops []byte, e ecs.Entity, n int) error {
	o.created = false
	o.components = append(o.components[:0], make([]componentOps, n)...)
	return format.EachOp(ops, func(op format.Op) {
		// An OpClear has no entity.
		ours := op.Entity == e && op.Kind != raw.OpClear
		inRange := op.Component >= 0 && op.Component < n
		switch {
		case op.Kind == raw.OpCreate:
			o.created = o.created || ours
		case inRange && op.Kind == raw.OpAdd && ours:
			o.components[op.Component].added = true
		case inRange && (op.Kind == raw.OpRemove && ours || op.Kind == raw.OpClear):
			o.components[op.Component].removed = true
		}
	})
}
