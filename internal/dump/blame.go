package dump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command blame finds, for each field of an entity, the tick that last changed the field: its
// writer. The journal records which rows a tick wrote, but not which fields. So blame reads the
// history backward and compares the values before and after each write:
//
//   - setComponents lists the components and fields of the newest state.
//   - addEvent sets the writers that an event reveals. Events come newest first.
//   - At each snapshot, addOldest ends the search if all writers are known.
//   - If a writer is still unknown at the oldest state, blame prints "at or before" this state.
//
// A tick may write a row without changing a field. So the last write of a component can be newer
// than the last change of each field.

// blameDoc is what blame --json prints.
type blameDoc struct {
	stateDoc
	Entity     string      `json:"entity,omitempty"` // Missing for a resource.
	Components []blamedDoc `json:"components"`       // The components, or the resource.
}

// A blamedDoc is a component of the entity, or the resource.
type blamedDoc struct {
	Name string `json:"name"`
	// The tick that last wrote the component, even if the value stayed the same.
	Written *writerDoc       `json:"written,omitempty"`
	Fields  []blamedFieldDoc `json:"fields"`

	// True once the search has reached the event that added the component. Older events are
	// ignored: they belong to an earlier component, which was removed.
	begun bool
}

// A blamedFieldDoc is a field of a component.
type blamedFieldDoc struct {
	Field   string       `json:"field"` // Empty for the whole component.
	Value   layout.Value `json:"value"`
	Changed *writerDoc   `json:"changed,omitempty"` // The tick that gave the field its value.
}

var blameCommand = command{
	use: "blame STORE ENTITY[.Component[.field]]|RESOURCE[.field]",
	doc: `Show which tick gave each field of an entity or a resource its value

Show, for each field of an entity or a resource, which tick gave it its value. If a
later tick wrote the component without changing the field, blame shows this tick too.

For a value that no tick in the journal wrote, blame prints "at or before" the oldest
state that the store still has. It reads the journal backwards, only as far as needed:
for a value that never changed, it reads the whole journal.`,
	example: `  ecsdump blame D 12v3
  ecsdump blame D 12v3.Position.X --at mark:boss
  ecsdump blame D Weather`,
	complete: []completer{(*completion).subjects},
	run: func(f flags) action {
		var at string
		f.point(&at)
		return withSource(func(s *source) error { return s.blame(at, s.args[1]) })
	},
}

// blame searches backward from the point and prints the result. It fails for a save, which has no
// ticks. It also fails for a dead entity, a missing component, and a resource without a value. For
// a dead entity, the error names the tick of its death.
func (s *source) blame(at string, text string) error {
	if s.IsSave() {
		return s.noJournal(describe.Command("show", s.path, text), "a save does not record which tick wrote a value")
	}
	seq, err := s.Resolve(at)
	if err != nil {
		return err
	}
	sub, last, err := s.subject(text, seq)
	if err != nil {
		return err
	}
	if !sub.isResource() && !last.Alive {
		return s.notAlive(last)
	}
	b := &writerSearch{only: sub.numbers()}
	if err := b.search(s, sub.entity, seq); err != nil {
		return err
	}
	doc := &blameDoc{describe.State(last.Tick, last.Seq), sub.holder(), b.docs(sub)}
	switch none := len(doc.Components) == 0; {
	case none && sub.isResource():
		return s.noValue(sub, last)
	case none && sub.number != allComponents:
		return s.missing(describe.Command("history", s.path, sub.String()), "%v has no %s%s at %s", sub.entity, sub.component, sub.field, doc.Place())
	}
	return cmp.Or(s.printReport(doc), b.unread)
}

// noValue returns the error for a resource that has no value.
func (s *source) noValue(sub subject, at *inspect.EntityState) error {
	return s.missing(describe.Command("schema", s.path), "%s has no value at %s", sub, describe.State(at.Tick, at.Seq).Place())
}

// docs returns the components and fields that sub names, in the order of the component numbers.
func (b *writerSearch) docs(sub subject) []blamedDoc {
	docs := []blamedDoc{}
	for n := range b.last.Components {
		if d := b.components[n]; d != nil {
			d.Fields = slices.DeleteFunc(d.Fields, func(f blamedFieldDoc) bool { return !sub.covers(f.Field) })
			if len(d.Fields) > 0 {
				docs = append(docs, *d)
			}
		}
	}
	return docs
}

// covers reports whether sub names the field at path, a part of it, or a value that contains it.
// For example, "12v3.Bag.Items[0]" covers the field Bag.Items.
func (sub subject) covers(path string) bool {
	return related(strings.TrimPrefix(sub.field, "."), path)
}

// print prints a row for each field. The tick of the last write is printed only if it differs from
// the tick that changed the field.
func (d *blameDoc) print(a *app) {
	name := "RESOURCE"
	if d.Entity != "" {
		name = "COMPONENT"
		a.Line("%s: alive at %s", d.Entity, d.Place())
	}
	if len(d.Components) == 0 {
		a.Line("the entity has no components")
		return
	}
	g := a.Grid(name, "FIELD", "~VALUE", "CHANGED", "WRITTEN")
	for _, c := range d.Components {
		name := c.Name
		for _, f := range c.Fields {
			g.Row(name, f.Field, leafText(f.Value), f.Changed, c.Written.textUnless(f.Changed))
			name = ""
		}
	}
	g.Flush()
}

// A writerDoc is the tick that wrote a value. If exact is false, an older tick may have written the
// value, because the search read no older ticks.
type writerDoc struct {
	Tick  uint64     `json:"tick"`
	Seq   uint64     `json:"record"`
	Time  *time.Time `json:"time,omitempty"`
	Exact bool       `json:"exact"`
}

// String returns w for people: "tick 3", "at or before tick 3".
func (w *writerDoc) String() string {
	if !w.Exact {
		return fmt.Sprintf("at or before tick %d", w.Tick)
	}
	return fmt.Sprintf("tick %d", w.Tick)
}

// textUnless returns w as text, or "" if w equals the argument.
func (w *writerDoc) textUnless(other *writerDoc) string {
	if w.Seq == other.Seq && w.Exact == other.Exact {
		return ""
	}
	return w.String()
}

// A writerSearch finds the ticks that wrote the values of an entity. It reads ticks backward until
// all writers are known. For a field that never changed, it reads the whole journal.
type writerSearch struct {
	only []int // Numbers of the wanted components. If empty, all components are wanted.
	// The search stops after it has read this many bytes of ticks; 0 means no limit. The ticks
	// after the nearest snapshot are always read and do not count.
	bytes int64

	last       *inspect.EntityState
	components map[int]*blamedDoc // The components that the entity has, by number.
	unread     error              // The damage that ended the search, or nil.
}

// at sets w to the tick of event e, which wrote the value. If the writer is known already, w stays
// the same: events come newest first.
func (w *writerDoc) at(e *inspect.TraceEvent) {
	if !w.Exact {
		*w = writerDoc{e.Tick, e.Seq, describe.Known(e.Time), true}
	}
}

// notSince reports whether w has the exact tick that wrote the value. Otherwise notSince records in
// w that the value was written at or before the state s.
func (w *writerDoc) notSince(s *inspect.EntityState) bool {
	if !w.Exact {
		*w = writerDoc{Tick: s.Tick, Seq: s.Seq}
	}
	return w.Exact
}

// search reads the journal backward from record seq until all writers are known. It also stops at
// the first snapshot after the limit on bytes, or at damage. The damage is stored in b.unread, and
// reported at the end of the output. Damage among the newest ticks is returned as an error.
func (b *writerSearch) search(s *source, e ecs.Entity, seq uint64) error {
	read := int64(0)
	err := s.TraceBack(s.ctx, e, seq, func(stretch *inspect.Stretch) bool {
		if b.last == nil {
			// This is the first call, with the newest part of the history. Its last state has all
			// components of the entity.
			b.setComponents(stretch.Last)
		} else {
			read += stretch.Bytes
		}
		for _, event := range slices.Backward(stretch.Events) {
			b.addEvent(&event)
		}
		return !b.addOldest(stretch.First) && (b.bytes == 0 || read < b.bytes)
	})
	if b.last != nil && damaged(err) {
		b.unread, err = err, nil
	}
	return err
}

// wants reports whether the caller asked for component n.
func (b *writerSearch) wants(n int) bool { return len(b.only) == 0 || slices.Contains(b.only, n) }

// setComponents lists the components whose writers the search finds. These are the components that
// the entity has in the last state.
func (b *writerSearch) setComponents(last *inspect.EntityState) {
	b.last, b.components = last, map[int]*blamedDoc{}
	for n, c := range last.Components {
		if c.Row < 0 || !b.wants(n) {
			continue
		}
		d := &blamedDoc{Name: c.Name, Written: new(writerDoc)}
		for field, v := range describe.Leaves(c.Value) {
			d.Fields = append(d.Fields, blamedFieldDoc{field, v, new(writerDoc)})
		}
		b.components[n] = d
	}
}

// addEvent records the tick of event e as the writer of a component and of its fields. Events come
// newest first, so a writer that is already known stays. Each kind of event sets the writer of the
// component, and the writers of some fields:
//
//	written     no fields
//	set         the fields that differ
//	converted   the fields that differ, and the fields that the conversion added
//	added       all fields; older events are then ignored
func (b *writerSearch) addEvent(e *inspect.TraceEvent) {
	d := b.components[e.Number]
	if d == nil || d.begun {
		return
	}
	switch e.Kind {
	case inspect.TraceWritten:
		d.Written.at(e)
	case inspect.TraceSet, inspect.TraceConverted:
		d.Written.at(e)
		for _, f := range e.Fields() {
			d.change(e, func(field string) bool { return related(f.Path, field) })
		}
		// A conversion may have added fields, which the old value does not have.
		d.change(e, func(field string) bool { return !has(e.Old, field) })
	case inspect.TraceAdded:
		d.Written.at(e)
		d.change(e, func(string) bool { return true })
		d.begun = true
	}
}

// change sets the writer of each field for which the function changed returns true. The writer is
// the tick of e. A field that already has a newer writer keeps it.
func (d *blamedDoc) change(e *inspect.TraceEvent, changed func(field string) bool) {
	for _, f := range d.Fields {
		if changed(f.Field) {
			f.Changed.at(e)
		}
	}
}

// has reports whether v has a field at this path.
func has(v layout.Value, path string) bool {
	for p := range describe.Leaves(v) {
		if related(p, path) {
			return true
		}
	}
	return false
}

// addOldest records for each unknown writer that the value was written at or before the state
// first. It reports whether all writers are known.
func (b *writerSearch) addOldest(first *inspect.EntityState) bool {
	known := true
	for _, d := range b.components {
		known = d.Written.notSince(first) && known
		for _, f := range d.Fields {
			known = f.Changed.notSince(first) && known
		}
	}
	return known
}

// changed returns the newest tick that is known to have changed a field. If no such tick is known,
// it returns the oldest tick that was read.
func (d *blamedDoc) changed() *writerDoc {
	newest := d.Fields[0].Changed
	for _, f := range d.Fields {
		if f.Changed.Exact && (!newest.Exact || f.Changed.Seq > newest.Seq) {
			newest = f.Changed
		}
	}
	return newest
}

// related reports whether the two paths are equal, or one of them leads into the other. Bag and
// Bag.Items[0] are related; Bag and Bagpipe are not.
func related(a, b string) bool { return describe.Inside(a, b) || describe.Inside(b, a) }
