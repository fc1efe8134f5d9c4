package dump

import (
	"context"
	"strings"

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
		return reading(func(c *call, s *source) error { return c.blame(c.ctx, s, at, c.args[1]) })
	},
}

// blame looks back from the point, and says what it finds. A save has no ticks to look at.
func (a *app) blame(ctx context.Context, s *source, at point, text string) error {
	if s.IsSave() {
		return fail(exitNotFound, try("show", s.path, text), "%s: a save has no journal: nobody knows who wrote what is in it", s.path)
	}
	seq, err := s.Resolve(at.at)
	if err != nil {
		return err
	}
	sub, last, err := s.subject(text, func(e ecs.Entity) (*inspect.EntityState, error) { return s.Peek(ctx, e, seq) })
	if err != nil {
		return err
	}
	if !last.Alive {
		return s.notAlive(ctx, last)
	}
	b := &blamer{number: sub.number}
	if err := b.look(ctx, s, sub.entity, seq); err != nil {
		return err
	}
	doc := blameDoc{stateDoc{last.Tick, last.Seq}, sub.entity.String(), b.docs(sub)}
	if len(doc.Components) == 0 && sub.number != allComponents {
		return fail(exitNotFound, try("history", s.path, sub.String()), "%s: %v has no %s%s at %s", s.path, sub.entity, sub.component, sub.field, doc.place())
	}
	return a.tell(doc, func() { doc.print(a) })
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
