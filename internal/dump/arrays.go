package dump

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command arrays shows the three arrays of a component: sparse, dense and data. For example,
// entity 12v3 has the component in row 5 if both of these are true:
//
//   - sparse[12] is 5.
//   - dense[5] is 12v3.
//
// The value of the entity is then data[5].
//
// A read error never occurs in the middle of the output. A small part of the arrays is read before
// anything is printed. For a large part, the full state is loaded first.

// arraysDoc is what arrays --json prints. Sparse maps the index of an entity to its row; dense
// and data are indexed by row. All three lists begin at --from.
type arraysDoc struct {
	stateDoc
	Component string `json:"component"`
	Kind      string `json:"kind"`    // Component, tag or resource.
	Rows      int    `json:"rows"`    // Total number of rows in dense and data.
	Indices   int    `json:"indices"` // Total number of indices in sparse.
	// Dense and Data begin with this row, and Sparse with this index.
	From int `json:"from,omitempty"`
	// The row of each index; -1 means no row. The list ends at the last index with a row, or at
	// --limit.
	Sparse []int `json:"sparse"`
	// Entities of the rows, at most --limit; empty for a resource.
	Dense []string       `json:"dense"`
	Data  []layout.Value `json:"data"` // Values of the rows, at most --limit.
}

var arraysCommand = command{
	use: "arrays STORE COMPONENT",
	doc: `Show the sparse, dense and data arrays of a component

Show the sparse, dense and data arrays of a component, in storage order. The array
sparse maps the index of an entity to its row. The array dense has the entity of each
row, and data has the value of each row.

With --entity, show each step of looking up an entity. The entity has the component if
sparse[index] is a row and dense[row] is this entity. An entity of the same index but
another generation does not match.`,
	example: `  ecsdump arrays D Position
  ecsdump arrays D Position --at 1200 --offset 4000 --limit 20
  ecsdump arrays D Position --entity 12v3`,
	complete: []completer{components(true)},
	run: func(f flags) action {
		var w window
		var entity string
		f.number(&w.from, "offset", "", 0, "skip this many at the start of the list")
		f.limit(&w.limit, "rows and elements of sparse")
		f.entity(&entity, "show the steps of looking up this entity")
		return f.withState(func(s *source, st *inspect.State) error {
			if err := cmp.Or(s.exclusive("entity", "offset"), s.exclusive("entity", "limit")); err != nil {
				return err
			}
			c, err := s.component(outline(st), s.args[1])
			if err != nil {
				return err
			}
			if entity != "" {
				return s.printLookup(st, c, entity)
			}
			return s.arrays(st, c, w)
		})
	},
}

// printOmitted prints how many of n items precede and follow the printed items.
func (a *app) printOmitted(first, end, n int, one, many string) {
	if first == 0 {
		a.printMore(n-end, n, one, many)
		return
	}
	a.Line("%d before and %d after, of %s", first, n-end, term.Count(n, one, many))
}

// arrays prints a window of the arrays of c.
func (s *source) arrays(st *inspect.State, c *inspect.Component, w window) error {
	// The rows of a large window are read during printing. Reading must not fail then, so load the
	// full state first.
	if w.limit == 0 || w.limit > loadLimit {
		if err := st.NeedWhole(); err != nil {
			return err
		}
	}
	l := arraysWindow{State: st, c: c, window: w}
	if err := l.read(); err != nil {
		return err
	}
	if n := max(c.Len(), l.indices); w.from > 0 && uint64(w.from) >= uint64(n) {
		return s.missing(describe.Command("arrays", s.path, c.Name), "%s has no row %d; it has %s", c.Name, w.from, term.Count(c.Len(), "row", "rows"))
	}
	if s.json {
		return s.arraysJSON(&l)
	}
	s.printHeading(c, outline(st).doc())
	if err := s.denseAndData(&l); err != nil || c.Resource {
		return err
	}
	s.Line("")
	s.sparse(&l)
	return nil
}

// arraysWindow is the printed part of the arrays of c. If the full state is in memory, dense and
// data stay empty, and row() reads from the state. Otherwise read() fills dense and data.
type arraysWindow struct {
	*inspect.State
	c *inspect.Component
	window

	indices int
	sparse  []int
	dense   []string
	data    []layout.Value
}

// read reads the window before anything is printed.
func (l *arraysWindow) read() (err error) {
	if l.indices, err = l.Span(l.c); err != nil {
		return err
	}
	first, end := l.of(l.indices)
	if l.sparse, err = l.Sparse(l.c, first, end); err != nil || l.Whole() {
		return err
	}
	first, end = l.of(l.c.Len())
	for row := first; row < end; row++ {
		holder, v, err := l.row(row)
		if err != nil {
			return err
		}
		l.dense, l.data = append(l.dense, holder), append(l.data, v)
	}
	return nil
}

// row returns the entity and the value of a row. The entity is "-" for an unused row, and empty for
// a resource.
func (l *arraysWindow) row(row int) (holder string, v layout.Value, err error) {
	if first, _ := l.of(l.c.Len()); row-first < len(l.data) {
		return l.dense[row-first], l.data[row-first], nil
	}
	if !l.c.Resource {
		e, err := l.Holder(l.c, row)
		if err != nil {
			return "", v, err
		}
		if holder = "-"; e != ecs.Vacant {
			holder = e.String()
		}
	}
	v, err = l.Value(l.c, row)
	return holder, v, err
}

// printHeading prints the heading of a component's arrays: its kind, the state, and its number of
// rows.
func (a *app) printHeading(c *inspect.Component, at stateDoc) {
	a.Line("%s %s at %s: %s", describe.Kind(c.Layout, c.Resource), c.Name, at.Place(), term.Count(c.Len(), "row", "rows"))
	a.Line("")
}

// arraysJSON prints the window as one document. Long values are printed in full. The document has
// three lists, so it cannot be streamed.
func (a *app) arraysJSON(l *arraysWindow) error {
	c := l.c
	doc := arraysDoc{
		stateDoc: outline(l.State).doc(), Component: c.Name, Kind: describe.Kind(c.Layout, c.Resource), Rows: c.Len(), Indices: l.indices,
		From: int(l.from), Sparse: l.sparse, Dense: []string{}, Data: []layout.Value{},
	}
	first, end := l.of(c.Len())
	for row := first; row < end; row++ {
		holder, v, err := l.row(row)
		if err != nil {
			return err
		}
		doc.Data = append(doc.Data, v)
		if !c.Resource {
			doc.Dense = append(doc.Dense, holder)
		}
	}
	return a.printJSON(doc)
}

// denseAndData prints the window row by row, because the text of all rows may exceed memory.
func (a *app) denseAndData(l *arraysWindow) error {
	g := a.Grid(">ROW", "DENSE", "<DATA")
	first, end := l.of(l.c.Len())
	for row := first; row < end; row++ {
		holder, v, err := l.row(row)
		if err != nil {
			return err
		}
		data := v.String()
		if l.c.Layout.Width() == 0 {
			data = ""
		}
		g.Row(row, holder, data)
	}
	g.Flush()
	a.printOmitted(first, end, l.c.Len(), "row", "rows")
	return nil
}

// sparse prints the window of the array sparse. This array is longer than dense if some indices are
// free or belong to entities without the component.
func (a *app) sparse(l *arraysWindow) {
	g := a.Grid(">INDEX", ">SPARSE")
	first, end := l.of(l.indices)
	for i, row := range l.sparse {
		g.Row(first+i, rowOrNone(row))
	}
	g.Flush()
	a.printOmitted(first, end, l.indices, "index", "indices")
}

// lookupDoc is what arrays --entity --json prints: each step of looking an entity up in a
// component. The entity has the component if sparse maps its index to a row, and dense has the
// entity in that row.
type lookupDoc struct {
	stateDoc
	Component string `json:"component"`
	Entity    string `json:"entity"`
	Alive     bool   `json:"alive"`
	Found     bool   `json:"found"`
	// A sentence that says why the entity was found or not.
	Why   string `json:"why"`
	Index uint32 `json:"index"` // Index of the entity in sparse.
	// The row that sparse has for the index; -1 if sparse has none.
	Row   int           `json:"row"`
	Dense string        `json:"dense,omitempty"` // The entity that dense has in this row.
	Data  *layout.Value `json:"data,omitempty"`  // The value; set if the entity was found.

	of *inspect.Component
}

// lookup looks e up in sparse and in dense, and records each entry it reads. A row in sparse is not
// enough: it may belong to another entity with the same index, so dense must have e in that row.
func lookup(st *inspect.State, c *inspect.Component, e ecs.Entity) (doc lookupDoc, err error) {
	indices, err := st.Span(c)
	if err != nil {
		return doc, err
	}
	doc = lookupDoc{
		stateDoc: outline(st).doc(), Component: c.Name, Entity: e.String(), Alive: st.IsAlive(e),
		Index: e.Index(), Row: -1, of: c,
	}
	var holder ecs.Entity
	if int(doc.Index) < indices {
		sparse, err := st.Sparse(c, int(doc.Index), int(doc.Index)+1)
		if err != nil {
			return doc, err
		}
		doc.Row = sparse[0]
	}
	if doc.Row >= 0 {
		if holder, err = st.Holder(c, doc.Row); err != nil {
			return doc, err
		}
		doc.Dense = holder.String()
	}
	switch {
	case int(doc.Index) >= indices:
		doc.Why = fmt.Sprintf("sparse ends before index %d: it has %s", doc.Index, term.Count(indices, "entry", "entries"))
	case doc.Row < 0:
		doc.Why = fmt.Sprintf("sparse has no row for index %d", doc.Index)
	case holder != e:
		doc.Why = fmt.Sprintf("row %d belongs to %s, which has the same index but another generation", doc.Row, doc.Dense)
	default:
		doc.Why = fmt.Sprintf("sparse maps its index to row %d, and dense has the entity in that row", doc.Row)
		v, err := st.Value(c, doc.Row)
		doc.Found, doc.Data = true, &v
		return doc, err
	}
	return doc, nil
}

// printLookup prints why the arrays of c contain, or lack, the entity that text names.
func (s *source) printLookup(st *inspect.State, c *inspect.Component, text string) error {
	if c.Resource {
		return s.isResource(c.Name)
	}
	e, err := s.entity(text, st.Seq)
	if err == nil {
		err = st.Count(s.ctx)
	}
	if err != nil {
		return err
	}
	doc, err := lookup(st, c, e)
	if err != nil {
		return err
	}
	return s.printReport(&doc)
}

// print prints the entries in the order of the look-up, then the conclusion.
func (doc *lookupDoc) print(a *app) {
	a.printHeading(doc.of, doc.stateDoc)
	g := a.Grid("ELEMENT", "~VALUE")
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

// rowOrNone returns a row as text; "-" for -1.
func rowOrNone(row int) string {
	if row < 0 {
		return "-"
	}
	return strconv.Itoa(row)
}
