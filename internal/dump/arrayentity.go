package dump

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// lookupDoc is what arrays --entity --json prints: the entity has the component if
// sparse leads to a row of which dense says that it belongs to the entity.
type lookupDoc struct {
	stateDoc
	Component string        `json:"component"`
	Entity    string        `json:"entity"`
	Alive     bool          `json:"alive"`
	Found     bool          `json:"found"`
	Why       string        `json:"why"`             // For people: why it was found, or was not.
	Index     uint32        `json:"index"`           // Of the entity, in sparse.
	Row       int           `json:"row"`             // What sparse has there; -1: nothing.
	Dense     string        `json:"dense,omitempty"` // The entity that has the row.
	Data      *layout.Value `json:"data,omitempty"`  // If the entity was found.
}

// lookup looks for e as the two-sided test does, and notes what it meets.
func lookup(im state, c *persist.Component, e ecs.Entity) (doc lookupDoc, err error) {
	sparse := c.Sparse()
	doc = lookupDoc{
		stateDoc: im.doc(), Component: c.Name, Entity: e.String(), Alive: im.IsAlive(e),
		Index: e.Index(), Row: -1,
	}
	if int(doc.Index) < len(sparse) {
		doc.Row = sparse[doc.Index]
	}
	switch {
	case int(doc.Index) >= len(sparse):
		doc.Why = fmt.Sprintf("sparse ends before index %d, it has %s", doc.Index, term.Count(len(sparse), "entry", "entries"))
		return doc, nil
	case doc.Row < 0:
		doc.Why = fmt.Sprintf("sparse leads from index %d to no row", doc.Index)
		return doc, nil
	}
	doc.Dense = c.Entities[doc.Row].String()
	if c.Entities[doc.Row] != e {
		doc.Why = fmt.Sprintf("row %d belongs to %s, which has the same index and another generation", doc.Row, doc.Dense)
		return doc, nil
	}
	v, err := c.Value(doc.Row)
	doc.Found, doc.Data = true, &v
	doc.Why = fmt.Sprintf("row %d, where sparse leads, belongs to it", doc.Row)
	return doc, err
}

// lookUp prints how the entity that text names is found among the rows of c, or why
// it is not.
func (a *app) lookUp(s *source, im state, c *persist.Component, text string) error {
	e, err := parseEntity(s.path, text)
	if err != nil {
		return err
	}
	if c.Resource {
		return s.isResource(c.Name)
	}
	doc, err := lookup(im, c, e)
	if err != nil {
		return err
	}
	if a.json {
		return a.document(doc)
	}
	a.Line("%s %s at %v: %s", kind(c), c.Name, im, term.Count(c.Len(), "row", "rows"))
	a.Line("")
	g := a.Grid("ENTRY", "HOLDS")
	entry := fmt.Sprintf("sparse[%d]", doc.Index)
	if doc.Row < 0 {
		g.Row(entry, "-")
	} else {
		g.Row(entry, doc.Row)
		g.Row(fmt.Sprintf("dense[%d]", doc.Row), doc.Dense)
	}
	if doc.Found && c.Layout.Width() != 0 {
		g.Row(fmt.Sprintf("data[%d]", doc.Row), doc.Data.String())
	}
	g.Flush()
	a.Line("")
	a.Line("%s", doc.sentence())
	return nil
}

func (d lookupDoc) sentence() string {
	who := d.Entity
	if !d.Alive {
		who += ", which is not alive,"
	}
	if d.Found {
		return fmt.Sprintf("%s has %s: %s", who, d.Component, d.Why)
	}
	return fmt.Sprintf("%s does not have %s: %s", who, d.Component, d.Why)
}
