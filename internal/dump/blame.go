package dump

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Blame goes back through the life of an entity and ends where it knows who wrote every field. The
// journal says that a tick wrote a row, not which fields of it: that follows from the values before
// and after. So "written" and "changed" may be two ticks.
//
//	newest state    begin: a writerDoc for each component and each field, all unknown
//	stretch         take: its events from the last to the first fill in who wrote
//	its beginning   stop: is all known? Else the next older stretch is read
//	oldest state    what is unknown by then was written "at or before" it
//
// A stretch is what lies between two snapshots; its events come in order and are taken backward. A
// writerDoc is filled once and then is exact; until then it names the oldest state looked at, so
// that whenever the search ends, what it has is true.

// blameDoc is what blame --json prints.
type blameDoc struct {
	stateDoc
	Entity     string      `json:"entity,omitempty"` // Missing: it is of a resource.
	Components []blamedDoc `json:"components"`       // Or the resource.
}

// A blamedDoc is a component of the entity, or the resource.
type blamedDoc struct {
	Name    string           `json:"name"`
	Written *writerDoc       `json:"written,omitempty"` // Who wrote it last, perhaps the value that it had.
	Fields  []blamedFieldDoc `json:"fields"`

	begun bool // It was added: older events are about one that the entity had before.
}

// A blamedFieldDoc is a field of a component.
type blamedFieldDoc struct {
	Field   string       `json:"field"` // "": all of the component.
	Value   layout.Value `json:"value"`
	Changed *writerDoc   `json:"changed,omitempty"` // Who gave it its value.
}

var blameCommand = command{
	use: "blame STORE ENTITY[.Component[.field]]|RESOURCE[.field]",
	doc: `Tell which tick gave every field of an entity or a resource its value

Tell of every field of an entity or a resource which tick gave it the value it has. If another
tick wrote the component last, without changing the field, it is told as well.

A value that no tick in the journal wrote was written "at or before" the oldest state
that the store still has. The journal is read from its end, no further than it takes:
a value that never changed takes all of it.`,
	example: `  ecsdump blame D 12v3
  ecsdump blame D 12v3.Position.X --at mark:boss
  ecsdump blame D Weather`,
	complete: []completer{(*completion).subjects},
	run: func(f flags) action {
		var at string
		f.point(&at)
		return reading(func(s *source) error { return s.blame(at, s.args[1]) })
	},
}

// blame looks back from the point, and says what it finds. A save has no ticks to look at. An
// entity that is dead by then is a failure that says when it died; one without the component, or a
// resource without a value, is one as well.
func (s *source) blame(at string, text string) error {
	if s.IsSave() {
		return s.noJournal(try("show", s.path, text), "nobody knows who wrote what is in it")
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
	b := &blamer{only: sub.numbers()}
	if err := b.look(s, sub.entity, seq); err != nil {
		return err
	}
	doc := &blameDoc{stateDoc{last.Tick, last.Seq}, sub.holder(), b.docs(sub)}
	switch none := len(doc.Components) == 0; {
	case none && sub.isResource():
		return s.noValue(sub, last)
	case none && sub.number != allComponents:
		return s.missing(try("history", s.path, sub.String()), "%v has no %s%s at %s", sub.entity, sub.component, sub.field, doc.place())
	}
	return cmp.Or(s.tell(doc), b.unread)
}

// noValue says that a resource, or a field of it, has no value.
func (s *source) noValue(sub subject, at *inspect.EntityState) error {
	return s.missing(try("schema", s.path), "%s has no value at %s", sub, stateDoc{at.Tick, at.Seq}.place())
}

// docs returns what is known of what sub names. They come in the order of their numbers. Fields
// that were not asked for, and components of which none is left, are dropped only here: an event is
// about a whole row.
func (b *blamer) docs(sub subject) []blamedDoc {
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

// covers reports whether a field belongs to what sub names, or the other way round.
// "12v3.Bag.Items[0]" covers the field Bag.Items, as slices are one leaf.
func (sub subject) covers(path string) bool {
	return related(strings.TrimPrefix(sub.field, "."), path)
}

// print prints a row for each field. A component is named once, and who wrote it only if
// that is another tick than the one that changed the field.
func (d *blameDoc) print(a *app) {
	name := "RESOURCE"
	if d.Entity != "" {
		name = "COMPONENT"
		a.Line("%s: alive at %s", d.Entity, d.place())
	}
	if len(d.Components) == 0 {
		a.Line("it has no components")
		return
	}
	g := a.Grid(name, "FIELD", "~VALUE", "CHANGED", "WRITTEN")
	for _, c := range d.Components {
		name := c.Name
		for _, f := range c.Fields {
			g.Row(name, f.Field, leafText(f.Value), f.Changed, c.Written.unless(f.Changed))
			name = ""
		}
	}
	g.Flush()
}

// A writerDoc is a tick that wrote something. If it is not exact, the tick is the
// oldest one that was looked at, and it was written then or before.
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

// unless returns w for people, or "" if it is the same tick as other.
func (w *writerDoc) unless(other *writerDoc) string {
	if w.Seq == other.Seq && w.Exact == other.Exact {
		return ""
	}
	return w.String()
}

// A blamer works out which ticks wrote what an entity has, from the newest back: it begins with
// all fields of the entity, each not known to be written by anybody, and ends when a tick is
// found for all of them. What most often changes is found soonest, and what never changed only
// by reading all; show ends earlier, after so many bytes.
type blamer struct {
	only  []int // The components of interest, by number; none: all.
	bytes int64 // How many bytes of ticks to read, but for those that must be; 0: any.

	last       *inspect.EntityState
	components map[int]*blamedDoc // By number: those that it has.
	unread     error              // The damage that ended the search, if any did.
}

// at notes that e wrote, unless a later event did. Events come from the newest on, so the first one
// that is noted stays.
func (w *writerDoc) at(e *inspect.TraceEvent) {
	if !w.Exact {
		*w = writerDoc{e.Tick, e.Seq, describe.Known(e.Time), true}
	}
}

// notSince notes that nothing after the state s wrote. It reports whether it is known what
// did. Unless that is known, w becomes "at or before s", which a later call moves further back.
func (w *writerDoc) notSince(s *inspect.EntityState) bool {
	if !w.Exact {
		*w = writerDoc{Tick: s.Tick, Seq: s.Seq}
	}
	return w.Exact
}

// errNoStretch says that there was no state to begin with. It does not happen: TraceBack gives one
// stretch at least, that of the state asked for.
var errNoStretch = errors.New("no state to begin with")

// look reads the journal back from record seq, until all is known or there is no
// more to read. With a bound on bytes it also ends where that many were read, but never within a
// stretch, and the newest stretch does not count: its ticks are needed to know what the entity has.
// Damage behind the newest stretch ends it as well. It is kept in unread, to be told at the end.
func (b *blamer) look(s *source, e ecs.Entity, seq uint64) error {
	read := int64(0)
	b.unread = nil
	err := s.TraceBack(s.ctx, e, seq, func(stretch *inspect.Stretch) bool {
		if b.last == nil {
			b.begin(stretch.Last) // The newest stretch has to be read to know the entity at all.
		} else {
			read += stretch.Bytes
		}
		for _, event := range slices.Backward(stretch.Events) {
			b.take(&event)
		}
		return !b.stop(stretch.First) && (b.bytes == 0 || read < b.bytes)
	})
	if err == nil && b.last == nil {
		return errNoStretch
	}
	if b.last != nil && damaged(err) {
		b.unread, err = err, nil
	}
	return err
}

// wants reports whether component n is of interest.
func (b *blamer) wants(n int) bool { return len(b.only) == 0 || slices.Contains(b.only, n) }

// begin notes what is to be explained. Components that the entity does not have at the end are not
// explained, and events about them are passed over by take.
func (b *blamer) begin(last *inspect.EntityState) {
	b.last, b.components = last, map[int]*blamedDoc{}
	for n, c := range last.Components {
		if c.Row < 0 || !b.wants(n) {
			continue
		}
		d := &blamedDoc{Name: c.Name, Written: new(writerDoc)}
		for field, v := range describe.Leaves("", c.Value) {
			d.Fields = append(d.Fields, blamedFieldDoc{field, v, new(writerDoc)})
		}
		b.components[n] = d
	}
}

// take takes an event, which is older than those before. So the first that is taken for a field
// is the one that gave it its value:
//
//	written    the value that it had: no field changed
//	set        the fields that differ; and those that the old type did not have, which a
//	converted  conversion made
//	added      all that nothing later changed, and the end of the search: what came before is
//	           about the component that the entity had once and lost
func (b *blamer) take(e *inspect.TraceEvent) {
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
		// The old value may be of an older type: no difference names a field that it does not have.
		d.change(e, func(field string) bool { return !has(e.Old, field) })
	case inspect.TraceAdded:
		d.Written.at(e)
		d.change(e, func(string) bool { return true })
		d.begun = true
	}
}

// change notes that e changed those fields. Fields that a later tick changed keep that: see
// writerDoc.at.
func (d *blamedDoc) change(e *inspect.TraceEvent, changed func(field string) bool) {
	for _, f := range d.Fields {
		if changed(f.Field) {
			f.Changed.at(e)
		}
	}
}

// has reports whether v, which may be of an older type, has a field.
func has(v layout.Value, path string) bool {
	for p := range describe.Leaves("", v) {
		if related(p, path) {
			return true
		}
	}
	return false
}

// stop notes that nothing unknown was written since first, and reports whether
// everything is known.
func (b *blamer) stop(first *inspect.EntityState) bool {
	known := true
	for _, d := range b.components {
		known = d.Written.notSince(first) && known
		for _, f := range d.Fields {
			known = f.Changed.notSince(first) && known
		}
	}
	return known
}

// changed returns the newest of those that changed a field. If none is known exactly it is the "at
// or before" of the first field, which all share. Every component has a field: a tag has one
// without a name.
func (d *blamedDoc) changed() *writerDoc {
	newest := d.Fields[0].Changed
	for _, f := range d.Fields {
		if f.Changed.Exact && (!newest.Exact || f.Changed.Seq > newest.Seq) {
			newest = f.Changed
		}
	}
	return newest
}

// related reports whether one of two paths leads to the other, or beyond: Bag and Bag.Items[0]
// are, Bag and Bagpipe are not.
func related(a, b string) bool { return inside(a, b) || inside(b, a) }

// inside reports whether a path is that of a field or leads into it.
func inside(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (field == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}
