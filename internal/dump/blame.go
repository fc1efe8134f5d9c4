package dump

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/inspect"
)

// blameDoc is what blame --json prints.
type blameDoc struct {
	stateDoc
	Entity     string      `json:"entity"`
	Components []blamedDoc `json:"components"`
}

// A blamedDoc is a component of the entity.
type blamedDoc struct {
	Name    string           `json:"name"`
	Written *writerDoc       `json:"written,omitempty"` // Who wrote it last, perhaps the value that it had.
	Fields  []blamedFieldDoc `json:"fields"`
}

// A blamedFieldDoc is a field of a component.
type blamedFieldDoc struct {
	Field   string       `json:"field"` // "": all of the component.
	Value   layout.Value `json:"value"`
	Changed *writerDoc   `json:"changed,omitempty"` // Who gave it its value.
}

var blameCommand = command{
	use: "blame STORE ENTITY[.Component[.field]]",
	doc: `Tell which tick gave every field of an entity its value

Tell of every field of an entity which tick gave it the value it has. If another
tick wrote the component last, without changing the field, it is told as well.

A value that no tick in the journal wrote was written "at or before" the oldest state
that the store still has. The journal is read from its end, no further than it takes:
a value that never changed takes all of it.`,
	example: `  ecsdump blame D 12v3
  ecsdump blame D 12v3.Position.X --at mark:boss`,
	complete: []completer{(*completion).subjects},
	run: func(f flags) action {
		var at point
		f.point(&at)
		return reading(func(s *source) error { return s.blame(at, s.args[1]) })
	},
}

// blame looks back from the point, and says what it finds. A save has no ticks to look at.
func (s *source) blame(at point, text string) error {
	if s.IsSave() {
		return s.noJournal(try("show", s.path, text), "nobody knows who wrote what is in it")
	}
	seq, err := s.Resolve(at.at)
	if err != nil {
		return err
	}
	sub, last, err := s.subject(text, seq)
	if err != nil {
		return err
	}
	if !last.Alive {
		return s.notAlive(last)
	}
	b := &blamer{number: sub.number}
	if err := b.look(s, sub.entity, seq); err != nil {
		return err
	}
	doc := &blameDoc{stateDoc{last.Tick, last.Seq}, sub.entity.String(), b.docs(sub)}
	if len(doc.Components) == 0 && sub.number != allComponents {
		return s.missing(try("history", s.path, sub.String()), "%v has no %s%s at %s", sub.entity, sub.component, sub.field, doc.place())
	}
	return s.tell(doc)
}

// docs returns what is known of what sub names.
func (b *blamer) docs(sub subject) []blamedDoc {
	docs := []blamedDoc{}
	for n, c := range b.last.Components {
		w := b.components[n]
		if w == nil {
			continue
		}
		d := blamedDoc{Name: c.Name, Written: w.written.doc()}
		for _, f := range w.fields {
			if sub.covers(f.path) {
				d.Fields = append(d.Fields, blamedFieldDoc{f.path, f.value, f.changed.doc()})
			}
		}
		if len(d.Fields) > 0 {
			docs = append(docs, d)
		}
	}
	return docs
}

// covers reports whether a field belongs to what sub names, or the other way round.
func (sub subject) covers(path string) bool {
	return related(strings.TrimPrefix(sub.field, "."), path)
}

// print prints a row for each field. A component is named once, and who wrote it only if
// that is another tick than the one that changed the field.
func (d *blameDoc) print(a *app) {
	a.Line("%s: alive at %s", d.Entity, d.place())
	if len(d.Components) == 0 {
		a.Line("it has no components")
		return
	}
	g := a.Grid("COMPONENT", "FIELD", "VALUE", "CHANGED", "WRITTEN")
	for _, c := range d.Components {
		name := c.Name
		for _, f := range c.Fields {
			text := f.Value.String()
			if f.Value.Kind() == layout.Struct {
				text = "" // It has no fields.
			}
			g.Row(name, f.Field, text, f.Changed, c.Written.unless(f.Changed))
			name = ""
		}
	}
	g.Flush()
}

// A writerDoc is a tick that wrote something. If it is not exact, the tick is the
// oldest one that was looked at, and it was written then or before.
type writerDoc struct {
	Tick  uint64     `json:"tick"`
	Seq   uint64     `json:"seq"`
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

// A blamer works out which ticks wrote what an entity has, from the newest back.
type blamer struct {
	number int   // Of the only component of interest, or allComponents.
	bytes  int64 // How many bytes of ticks to read, but for those that must be; 0: any.

	last       *inspect.EntityState
	components map[int]*writers // By number: those that it has.
}

// writers are the ticks that wrote a component last.
type writers struct {
	written writer
	fields  []fieldWriter
	begun   bool // It was added: older events are about one that the entity had before.
}

// A fieldWriter is the tick that gave a field the value it has.
type fieldWriter struct {
	path    string
	value   layout.Value
	changed writer
}

// A writer is the tick that wrote something last, if it is known. Else it is the oldest tick
// looked at so far: neither it nor a later one wrote.
type writer struct {
	known bool
	seq   uint64
	tick  uint64
	time  time.Time
}

func (w *writer) doc() *writerDoc {
	return &writerDoc{w.tick, w.seq, known(w.time), w.known}
}

// at notes that e wrote, unless a later event did.
func (w *writer) at(e *inspect.TraceEvent) {
	if !w.known {
		*w = writer{true, e.Seq, e.Tick, e.Time}
	}
}

// notSince notes that nothing after the state s wrote.
func (w *writer) notSince(s *inspect.EntityState) {
	if !w.known {
		*w = writer{seq: s.Seq, tick: s.Tick}
	}
}

// errNoStretch is for a life without a single stretch. TraceBack gives one at least.
var errNoStretch = errors.New("no state to begin with")

// look reads the journal back from record seq, until all is known or there is no
// more to read.
func (b *blamer) look(s *source, e ecs.Entity, seq uint64) error {
	read := int64(0)
	err := s.TraceBack(s.ctx, e, seq, func(stretch *inspect.Stretch) bool {
		if b.last == nil {
			b.begin(stretch.Last)
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
	return err
}

// begin notes what is to be explained.
func (b *blamer) begin(last *inspect.EntityState) {
	b.last, b.components = last, map[int]*writers{}
	for n, c := range last.Components {
		if c.Row < 0 || b.number != allComponents && b.number != n {
			continue
		}
		w := new(writers)
		for path, v := range leaves("", c.Value) {
			w.fields = append(w.fields, fieldWriter{path: path, value: v})
		}
		b.components[n] = w
	}
}

// take takes an event, which is older than those before.
func (b *blamer) take(e *inspect.TraceEvent) {
	w := b.components[e.Number]
	if w == nil || w.begun {
		return
	}
	switch e.Kind {
	case inspect.TraceWritten:
		w.written.at(e)
	case inspect.TraceSet, inspect.TraceConverted:
		w.written.at(e)
		for _, d := range e.Fields() {
			w.change(e, func(path string) bool { return related(d.Path, path) })
		}
		w.change(e, func(path string) bool { return !has(e.Old, path) })
	case inspect.TraceAdded:
		w.written.at(e)
		w.change(e, func(string) bool { return true })
		w.begun = true
	}
}

// change notes that e changed those fields.
func (w *writers) change(e *inspect.TraceEvent, changed func(path string) bool) {
	for i := range w.fields {
		if f := &w.fields[i]; !f.changed.known && changed(f.path) {
			f.changed.at(e)
		}
	}
}

// has reports whether v, which may be of an older type, has a field.
func has(v layout.Value, path string) bool {
	for p := range leaves("", v) {
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
	for _, w := range b.components {
		w.written.notSince(first)
		known = known && w.written.known
		for i := range w.fields {
			w.fields[i].changed.notSince(first)
			known = known && w.fields[i].changed.known
		}
	}
	return known
}

// changed returns the newest of those that changed a field.
func (w *writers) changed() *writer {
	newest := &w.fields[0].changed
	for i := range w.fields {
		if f := &w.fields[i].changed; f.known && (!newest.known || f.seq > newest.seq) {
			newest = f
		}
	}
	return newest
}

// related reports whether one of two paths leads to the other, or beyond.
func related(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(b, a)
	return ok && (a == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}
