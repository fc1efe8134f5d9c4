package dump

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
)

// arraysDoc is what arrays --json prints: sparse leads from the index of an
// entity to its row, dense and data go by row. All three begin with --from.
type arraysDoc struct {
	stateDoc
	Component string         `json:"component"`
	Kind      string         `json:"kind"`           // component, tag or resource.
	Rows      int            `json:"rows"`           // In dense and data, all in all.
	Indices   int            `json:"indices"`        // In sparse, all in all.
	From      int            `json:"from,omitempty"` // The first row, and index, that is here.
	Sparse    []int          `json:"sparse"`         // -1: no row. Up to the highest index that has one, or --limit.
	Dense     []string       `json:"dense"`          // Entities. At most --limit; empty for a resource.
	Data      []layout.Value `json:"data"`           // At most --limit.
}

var arraysCommand = command{
	use: "arrays STORE COMPONENT",
	doc: `Show the sparse, dense and data arrays of a component as they lie

Show the sparse, dense and data arrays of a component as they lie. Sparse leads from
the index of an entity to its row, dense says which entity has the row, and data is
what the entity has.

With --entity, show how one is looked up: it has the component if sparse[index] is
a row, and dense[row] is the entity itself. One that had the index before it, in
another generation, does not pass.`,
	example: `  ecsdump arrays D Position
  ecsdump arrays D Position --at 1200 --from 4000 --limit 20
  ecsdump arrays D Position --entity 12v3`,
	complete: []completer{components(true)},
	run: func(f flags) action {
		var w window
		var entity string
		f.number(&w.from, "from", "", 0, "begin with this row, and sparse entry")
		f.limit(&w.limit, 0, "rows, and sparse entries")
		f.entity(&entity, "show how this entity is looked up")
		return f.showing(func(s *source, im state) error {
			if err := cmp.Or(s.exclusive("entity", "from"), s.exclusive("entity", "limit")); err != nil {
				return err
			}
			c, err := s.component(im, s.args[1])
			if err != nil {
				return err
			}
			if entity != "" {
				return s.lookUp(im, c, entity)
			}
			return s.arrays(im, c, w)
		})
	},
}

// outside prints how many of n things come before and behind those that were printed.
func (a *app) outside(first, end, n int, one, many string) {
	if first == 0 {
		a.more(n-end, n, one, many)
		return
	}
	a.Line("%d before and %d behind, of %s", first, n-end, term.Count(n, one, many))
}

// arrays prints a window of the arrays of c.
func (s *source) arrays(im state, c *inspect.Component, w window) error {
	sparse := c.Sparse()
	if n := max(c.Len(), len(sparse)); w.from > 0 && uint64(w.from) >= uint64(n) {
		return s.missing(try("arrays", s.path, c.Name), "%s has no row %d; there are %d", c.Name, w.from, c.Len())
	}
	if s.json {
		return s.arraysJSON(im, c, sparse, w)
	}
	s.rowsOf(c, im.doc())
	if err := s.denseAndData(c, w); err != nil || c.Resource {
		return err
	}
	s.Line("")
	s.sparse(sparse, w)
	return nil
}

// rowsOf begins what is printed of a component.
func (a *app) rowsOf(c *inspect.Component, at stateDoc) {
	a.Line("%s %s at %s: %s", kind(c), c.Name, at.place(), term.Count(c.Len(), "row", "rows"))
	a.Line("")
}

// arraysJSON prints the window as one document: a row that is long, or varies, is a value
// there, so that nothing is cut. It has three lists, so none of them can be streamed.
func (a *app) arraysJSON(im state, c *inspect.Component, sparse []int, w window) error {
	doc := arraysDoc{
		stateDoc: im.doc(), Component: c.Name, Kind: kind(c), Rows: c.Len(), Indices: len(sparse),
		From: int(w.from), Dense: []string{}, Data: []layout.Value{},
	}
	first, end := w.of(len(sparse))
	doc.Sparse = append([]int{}, sparse[first:end]...)
	first, end = w.of(c.Len())
	for row := first; row < end; row++ {
		v, err := c.Value(row)
		if err != nil {
			return err
		}
		doc.Data = append(doc.Data, v)
		if !c.Resource {
			doc.Dense = append(doc.Dense, entityAt(c, row))
		}
	}
	return a.document(doc)
}

// denseAndData prints the window row by row: a component may have more rows than memory
// has room for as text.
func (a *app) denseAndData(c *inspect.Component, w window) error {
	g := a.Grid(">ROW", "DENSE", "DATA")
	first, end := w.of(c.Len())
	for row := first; row < end; row++ {
		v, err := c.Value(row)
		if err != nil {
			return err
		}
		data := v.String()
		if c.Layout.Width() == 0 {
			data = ""
		}
		g.Row(row, entityAt(c, row), data)
	}
	g.Flush()
	a.outside(first, end, c.Len(), "row", "rows")
	return nil
}

// entityAt names the entity of a row of c: "-" is a gap, and a resource has none.
func entityAt(c *inspect.Component, row int) string {
	switch {
	case c.Resource:
		return ""
	case c.Entities[row] == ecs.Vacant:
		return "-"
	}
	return c.Entities[row].String()
}

// sparse prints the window of sparse. It is longer than dense where indices are free, or
// belong to entities without the component.
func (a *app) sparse(sparse []int, w window) {
	g := a.Grid(">INDEX", ">SPARSE")
	first, end := w.of(len(sparse))
	for index := first; index < end; index++ {
		g.Row(index, rowOrNone(sparse[index]))
	}
	g.Flush()
	a.outside(first, end, len(sparse), "index", "indices")
}

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

	of *inspect.Component
}

// lookup looks for e as the two-sided test does, and notes what it meets. Sparse alone does
// not tell whether e has the component: its entry may be of an entity that had the index before.
func lookup(im state, c *inspect.Component, e ecs.Entity) (doc lookupDoc, err error) {
	sparse := c.Sparse()
	doc = lookupDoc{
		stateDoc: im.doc(), Component: c.Name, Entity: e.String(), Alive: im.IsAlive(e),
		Index: e.Index(), Row: -1, of: c,
	}
	if int(doc.Index) < len(sparse) {
		doc.Row = sparse[doc.Index]
	}
	if doc.Row >= 0 {
		doc.Dense = c.Entities[doc.Row].String()
	}
	switch {
	case int(doc.Index) >= len(sparse):
		doc.Why = fmt.Sprintf("sparse ends before index %d, it has %s", doc.Index, term.Count(len(sparse), "entry", "entries"))
	case doc.Row < 0:
		doc.Why = fmt.Sprintf("sparse leads from index %d to no row", doc.Index)
	case c.Entities[doc.Row] != e:
		doc.Why = fmt.Sprintf("row %d belongs to %s, which has the same index and another generation", doc.Row, doc.Dense)
	default:
		doc.Why = fmt.Sprintf("row %d, where sparse leads, belongs to it", doc.Row)
		v, err := c.Value(doc.Row)
		doc.Found, doc.Data = true, &v
		return doc, err
	}
	return doc, nil
}

// lookUp prints how the entity that text names is found among the rows of c, or why
// it is not.
func (s *source) lookUp(im state, c *inspect.Component, text string) error {
	if c.Resource {
		return s.isResource(c.Name)
	}
	e, err := s.entity(text, im.seq)
	if err != nil {
		return err
	}
	doc, err := lookup(im, c, e)
	if err != nil {
		return err
	}
	return s.tell(&doc)
}

// print prints the entries that the look-up met, as it meets them, and what it concludes.
func (doc *lookupDoc) print(a *app) {
	a.rowsOf(doc.of, doc.stateDoc)
	g := a.Grid("ENTRY", "HOLDS")
	g.Row(fmt.Sprintf("sparse[%d]", doc.Index), rowOrNone(doc.Row))
	if doc.Row >= 0 {
		g.Row(fmt.Sprintf("dense[%d]", doc.Row), doc.Dense)
	}
	if doc.Found && doc.Data.Type().Width() != 0 {
		g.Row(fmt.Sprintf("data[%d]", doc.Row), doc.Data.String())
	}
	g.Flush()
	a.Line("")
	who, has := doc.Entity, "does not have"
	if !doc.Alive {
		who += ", which is not alive,"
	}
	if doc.Found {
		has = "has"
	}
	a.Line("%s %s %s: %s", who, has, doc.Component, doc.Why)
}

// rowOrNone returns a row for people; "-" for -1.
func rowOrNone(row int) string {
	if row < 0 {
		return "-"
	}
	return strconv.Itoa(row)
}
