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

// The life of an entity is told from the states before and after each tick, which a follower
// has, and from the operations of the tick, which tell what leaves no trace in either: a
// component that was removed and added again, an entity that was created and destroyed within
// the tick. TraceBack asks for the newest events first, so it traces stretches between two
// snapshots, the last one first.

// A TraceKind says what happened to an entity or to a component of it.
type TraceKind uint8

// The kinds of events. Those from TraceAdded on concern a component.
const (
	TraceCreated   TraceKind = 1
	TraceDestroyed TraceKind = 2 // With all components it had.
	TraceAlive     TraceKind = 3 // In the first state looked at it was there already.
	TraceAdded     TraceKind = 4
	TraceRemoved   TraceKind = 5
	TracePresent   TraceKind = 6  // In the first state looked at it was there already.
	TraceSet       TraceKind = 7  // It has another value.
	TraceWritten   TraceKind = 8  // It was written, but has the value it had.
	TraceMoved     TraceKind = 9  // To another row, with its value.
	TraceConverted TraceKind = 10 // A program opened the store whose type is another one.
)

var traceNames = [...]string{
	"", "created", "destroyed", "alive", "added", "removed", "present", "set", "written", "moved", "converted",
}

// String returns the name of k in lower case: "created".
func (k TraceKind) String() string {
	if int(k) < len(traceNames) {
		return traceNames[k]
	}
	return fmt.Sprintf("kind %d", k)
}

// A TraceEvent is something that happened to an entity.
type TraceEvent struct {
	Kind      TraceKind
	Seq, Tick uint64    // The record that did it, and its tick.
	Time      time.Time // When it was committed, by the clock of the writer; zero: not known.

	// What follows is about a component. A value that was set and removed within
	// one tick is in no state and not known.
	Component string
	Number    int          // Of the component, -1: the event is about the entity itself.
	Row, Was  int          // Where its value lies after the event and lay before, or -1.
	Old, New  layout.Value // The zero Value where there is none.
	Layout    *layout.Type // After the event.
}

// Fields returns the fields in which the new value differs from the old one, see
// [ComponentDiff.Fields]; nothing if there is only one of them.
func (e *TraceEvent) Fields() []FieldDiff {
	var f fieldDiffs
	if e.Old.Kind() != 0 && e.New.Kind() != 0 {
		f.values("", e.Old, e.New)
	}
	return f
}

// A Stretch is a part of an entity's life: what happened to it between two states.
type Stretch struct {
	First, Last *EntityState
	Events      []TraceEvent
	Bytes       int64 // Of the ticks between, which were read.
}

// stretch returns the stretch from the nearest snapshot before that of number older
// to record seq, or nil if there is none, and where it begins. Two snapshots may have the same state, as
// before and after a conversion, so their numbers tell which was there before.
func stretch(ctx context.Context, v *catalog.Catalog, e ecs.Entity, seq uint64, older uint32) (s *Stretch, base SnapshotInfo, err error) {
	bases := slices.DeleteFunc(stretchBases(v, seq), func(s SnapshotInfo) bool { return s.Number >= older })
	f, base, err := followFrom(ctx, v, bases, e, seq)
	switch {
	case err == nil:
		s, err = traceStretch(ctx, f, seq)
	case older < math.MaxUint32 && ctx.Err() == nil: // Not the first stretch, of which the error is told.
		err = nil // The rest of its life cannot be seen.
	}
	return s, base, err
}

// stretchBases is bases, those of converted states last: a stretch does not begin
// with a conversion, which is an event.
func stretchBases(v *catalog.Catalog, seq uint64) []SnapshotInfo {
	var bases, converted []SnapshotInfo
	for _, s := range v.Bases(seq) {
		if wasConverted(v, s) {
			converted = append(converted, s)
		} else {
			bases = append(bases, s)
		}
	}
	return append(bases, converted...)
}

// wasConverted reports whether s holds a state that was converted: the record that
// led to it, or an older snapshot of the same state, has another schema.
func wasConverted(v *catalog.Catalog, s SnapshotInfo) bool {
	if s.Err != nil {
		return false
	}
	if e, ok := v.Log.Find(s.ID.Seq); ok {
		before, err := v.SchemaAt(e)
		return err == nil && before.Differs(s.Schema) != nil
	}
	return slices.ContainsFunc(v.Snapshots, func(o SnapshotInfo) bool {
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

// A trace is a follower that tells what happens. The first error of found ends the telling:
// it is kept in err, so that those who tell need not look after each event.
type trace struct {
	*follower
	found func(*TraceEvent) error
	bytes int64
	ops   traceOps
	err   error // The first of found; nothing is told after it.
}

// newTrace returns a trace that has come to record from; 0: the oldest state that leads to record to.
// That from leads to it is only denied where all records between are known: with some of them lost, the
// trace tells what it can.
func newTrace(ctx context.Context, v *catalog.Catalog, e ecs.Entity, from, to uint64) (*trace, error) {
	t := new(trace)
	err := v.Persevere(ctx, func() (err error) {
		if from == 0 {
			t.follower, err = oldestFollower(ctx, v, e, to)
			return err
		}
		if _, err := v.Log.Path(from, to); err != nil && !errors.Is(err, journal.ErrCorrupt) {
			return v.JournalError(err)
		}
		if t.follower, err = nearestFollower(ctx, v, e, from); err == nil {
			err = t.follow(ctx, from)
		}
		return err
	})
	return t, err
}

// readableBases returns the snapshots that lead to record seq and have a manifest, oldest
// first.
func readableBases(v *catalog.Catalog, seq uint64) []SnapshotInfo {
	bases := slices.DeleteFunc(v.Bases(seq), func(s SnapshotInfo) bool { return s.Err != nil })
	slices.SortFunc(bases, func(a, b SnapshotInfo) int {
		return cmp.Or(cmp.Compare(a.ID.Seq, b.ID.Seq), cmp.Compare(a.Number, b.Number))
	})
	return bases
}

// oldestFollower returns what the oldest readable snapshot that leads to record seq
// has of e.
func oldestFollower(ctx context.Context, v *catalog.Catalog, e ecs.Entity, seq uint64) (*follower, error) {
	f, _, err := followFrom(ctx, v, readableBases(v, seq), e, seq)
	if err == nil || ctx.Err() != nil {
		return f, err
	}
	return nearestFollower(ctx, v, e, seq) // Says what is wrong.
}

// parts tells what the first state has, and goes on to record to: at damage with the next
// snapshot, as with a first state. It returns the first damage, once all the rest is told.
//
//	snapshot ── 1 ── 2 ── 3 ── lost ── 5 ── snapshot ── 7 ── to
//	           └─────────┘                             └───────┘
func (t *trace) parts(ctx context.Context, to uint64) (damage error) {
	for {
		err := t.begin()
		if err == nil {
			err = t.run(ctx, t.reachable(to))
		}
		if err == nil && t.id.Seq != to { // It is known what is lost.
			_, err = t.view.Log.Path(t.id.Seq, to)
			err = t.view.JournalError(err)
		}
		if err == nil || t.err != nil || !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrForeign) {
			return cmp.Or(err, damage)
		}
		damage = cmp.Or(damage, err)
		behind := slices.DeleteFunc(readableBases(t.view, to), func(s SnapshotInfo) bool { return s.ID.Seq <= t.id.Seq })
		f, _, err := followFrom(ctx, t.view, behind, t.entity, to)
		if err != nil {
			return damage
		}
		t.follower = f
	}
}

// reachable returns the last record on the way to record to that can be gone to, by what is
// known: the next is lost.
func (t *trace) reachable(to uint64) uint64 {
	last := to
	for e := range t.view.Log.Ancestors(to) {
		if e.ID.Seq <= t.id.Seq {
			break
		}
		if e.Lost() {
			last = e.Parent
		}
	}
	return last
}

// run goes on to record seq.
func (t *trace) run(ctx context.Context, seq uint64) error {
	return t.each(ctx, seq, func(ctx context.Context, r *catalog.Record) error {
		if err := t.across(ctx, r.Entry); err != nil {
			return err
		}
		before, err := t.step(ctx, r)
		if err != nil {
			return err
		}
		t.bytes += int64(r.Length)
		return t.compare(before, r.Says, r.Entry)
	})
}

// across goes on from the converted snapshot of the same state, if record e was
// written under another schema.
func (t *trace) across(ctx context.Context, e journal.Entry) error {
	next, err := t.view.SchemaAt(e)
	if err != nil || t.schema == next || t.schema.Differs(next) == nil {
		return nil // The step tells.
	}
	s, ok := t.view.SnapshotUnder(t.id, next)
	if !ok {
		return nil
	}
	f, err := peekSnapshot(ctx, t.view, s, t.entity)
	if err != nil {
		return err
	}
	before := t.follower
	t.follower = f
	for n := range t.rows { // A conversion keeps the numbers of components.
		if n < len(before.rows) && !before.schema.Components[n].Same(&f.schema.Components[n]) && f.has(n) >= 0 {
			t.event(before, TraceConverted, n)
		}
	}
	return t.err
}

// begin tells what the first state has.
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

// event tells of an event that led from before to t. What is gone has no new value, what came no old one.
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

// valueOf returns row and value of component number n.
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

// compare tells what a tick did. The states before and after it are the truth; the
// operations tell what was undone again within the tick.
func (t *trace) compare(before *follower, tick *format.Tick, e journal.Entry) error {
	if err := t.ops.read(tick.Ops, t.entity, len(t.rows)); err != nil {
		return t.view.EntryError(e, err)
	}
	was, is := before.isAlive(), t.isAlive()
	// Created and destroyed again within the tick, it is in neither state; the operations have it.
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

// component tells what a tick did to component number n:
//
//	before   after   operations          event
//	no       yes                         added
//	yes      no                          removed
//	no       no      added and removed   added, removed
//	yes      yes     removed and added   removed, added
//	yes      yes                         set, moved or written, by value, row and who wrote it
func (t *trace) component(before *follower, n int) {
	was, is := before.has(n), t.has(n)
	ops := t.ops.components[n]
	switch {
	case was < 0 && is >= 0:
		t.event(before, TraceAdded, n)
	case was >= 0 && is < 0:
		t.event(before, TraceRemoved, n)
	case was < 0: // It lacks the component before and after.
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
	case t.rows[n].wrote == t.id.Seq && t.schema.Components[n].Rewinds: // A tick gives all rows of what does not rewind.
		t.event(before, TraceWritten, n)
	}
}

// traceOps has what the operations of one tick say of an entity.
type traceOps struct {
	created    bool
	components []componentOps
}

// componentOps has whether a component was added to the entity, and removed from it, at any time of the
// tick. A clear removes it from all.
type componentOps struct{ added, removed bool }

// read reads the operations of a tick on one of n components.
func (o *traceOps) read(ops []byte, e ecs.Entity, n int) error {
	o.created = false
	o.components = append(o.components[:0], make([]componentOps, n)...)
	return format.EachOp(ops, func(op Op) {
		ours := op.Entity == e && op.Kind != raw.OpClear // A clear is of all, and names nobody.
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
