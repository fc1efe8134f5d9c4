package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// errWhole is what [State.NeedWhole] returns.
var errWhole = errors.New("persist: the whole state is needed")

// A State is a state of which only what is asked for is read:
//
//	sizes, layouts, digest   Outline, Digest, Indices: from the manifest, without any page
//	single rows              Sparse, Holder, Row, Find: a page of an array, of which the last one read is kept
//	rows here and there      Lookup: the pages of a column that were read, all of which are kept
//	entities, and by index   IsAlive, [State.Sweep]: the registry; of columns the pages of one stretch of
//	what they have           indices after the other, each read once and let go behind its last row
//
// Or else all of it lies in memory. The methods are those of either; they may not be called at
// the same time, but for IsAlive and what Lookup returns.
type State struct {
	Seq uint64 // Of the record that leads to it.

	outline *Image
	digest  ecs.Digest
	indices int
	columns []stored // By number.
	reader  *snap.Reader
	view    *View       // That is read.
	census  *census     // Who is alive; nil: nobody was counted.
	failed  atomic.Bool // A page could not be read: whatever f made of it, Read begins anew with the whole state.
}

// readPages calls f with what lies in a snapshot. It is not done if that needs the whole state, or a page
// cannot be read: then err does not count, as there may be another way.
func (v *View) readPages(ctx context.Context, s SnapshotInfo, f func(*State) error) (done bool, err error) {
	r, err := snap.Open(v.cat.Files, s.Name, catalog.SnapshotName)
	if err != nil {
		return false, err
	}
	defer r.Close()
	st, err := newState(ctx, v, r, v.IsSave())
	if err != nil {
		return false, err
	}
	st.Seq = s.ID.Seq
	err = f(st)
	// failed counts whatever f returned: it may have taken an error of a page for something else.
	return !st.failed.Load() && !errors.Is(err, errWhole), err
}

// stateOf returns im as a state that lies in memory. Its columns are settled: they ask the
// image, and never a page.
func stateOf(im *Image) *State {
	s := &State{outline: im, indices: len(im.Registry)}
	for _, c := range im.Components {
		s.columns = append(s.columns, stored{Component: c, state: s, settled: true})
	}
	return s
}

// newState returns the state that r has. Of a store it may have rows of entities that are dead,
// of components that do not rewind: those are read at once, and dropped. All else is read when it is
// asked for.
func newState(ctx context.Context, v *View, r *snap.Reader, save bool) (*State, error) {
	m := r.Manifest
	if err := r.CheckRegistry(); err != nil {
		return nil, err
	}
	s := &State{outline: outlineOf(m), digest: m.Digest, indices: m.Total, view: v, reader: r, columns: make([]stored, len(m.Components))}
	for n, c := range s.outline.Components {
		s.columns[n] = stored{
			Component: c, state: s, number: n,
			sparse: m.Array(n, format.SparseArray), dense: m.Array(n, format.DenseArray), data: m.Array(n, format.DataArray),
		}
		if c.Resource && c.N > 1 {
			return nil, fmt.Errorf("component %s: resource of %d rows", c.Name, c.N)
		}
		if !save && !c.Rewinds && !c.Resource && c.N > 0 {
			if err := s.settle(ctx, &s.columns[n]); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// outlineOf returns an image of the components that m names, without a row.
func outlineOf(m *format.Manifest) *Image {
	im := image.New(m.Schema)
	im.Tick, im.ID, im.Alive, im.Free, im.Schema = m.Tick, m.ID, m.Alive, m.Free, m.Schema
	for n, c := range im.Components {
		c.N = m.Components[n].Rows
	}
	return im
}

// Whole reports whether all of s lies in memory.
func (s *State) Whole() bool { return s.reader == nil }

// NeedWhole returns nil if s is whole. Else a function that [View.Read] called returns its error, to
// be called again with one that is.
func (s *State) NeedWhole() error {
	if s.Whole() {
		return nil
	}
	return errWhole
}

// Outline returns an image that has the sizes of s, its components and how many rows they have;
// the rows themselves only if s is whole.
func (s *State) Outline() *Image { return s.outline }

// Indices returns how many indices there are, in use or not.
func (s *State) Indices() int { return s.indices }

// Digest returns the digest of the state: that which was recorded, if s is not whole.
func (s *State) Digest() ecs.Digest {
	if s.Whole() {
		return s.outline.Digest()
	}
	return s.digest
}

// column returns the column of c, which is of the outline.
func (s *State) column(c *Component) *stored {
	return &s.columns[slices.IndexFunc(s.columns, func(col stored) bool { return col.Component == c })]
}

// Holder returns the entity of a row of c, which is no resource; [ecs.Vacant] for a gap.
func (s *State) Holder(c *Component, row int) (ecs.Entity, error) {
	return s.column(c).holder(row)
}

// Value returns a row of c.
func (s *State) Value(c *Component, row int) (layout.Value, error) {
	b, err := s.Row(c, row)
	if err != nil {
		return layout.Value{}, err
	}
	return c.Layout.Value(b)
}

// Row returns a row of c, encoded. It is valid until another one is asked for.
func (s *State) Row(c *Component, row int) ([]byte, error) {
	return s.column(c).row(row)
}

// Find returns the row of an entity that is alive in c; -1: it has none. Of one that is not alive it may
// return the row of who has its index.
func (s *State) Find(c *Component, e ecs.Entity) (int, error) {
	if c.Resource {
		return -1, nil
	}
	col := s.column(c)
	if col.settled {
		return c.Find(e), nil
	}
	rows, err := col.sparsePage(int(e.Index()) / format.PageRows)
	if err != nil || len(rows) == 0 {
		return -1, err
	}
	return int(rows[e.Index()%format.PageRows]), nil
}

// Has returns what an entity that is alive has of c, encoded, and whether it has it; of a
// resource what all have. It is valid until another row is asked for.
func (s *State) Has(c *Component, e ecs.Entity) (row []byte, has bool, err error) {
	n := c.N - 1
	if !c.Resource {
		n, err = s.Find(c, e)
	}
	if err != nil || n < 0 {
		return nil, false, err
	}
	row, err = s.Row(c, n)
	return row, true, err
}

// Sparse returns entries [lo, hi) of the sparse array of c, which must be below [State.Span]; -1
// for those without a row.
func (s *State) Sparse(c *Component, lo, hi int) ([]int, error) {
	col, entries := s.column(c), make([]int, 0, hi-lo)
	if col.settled {
		return append(entries, c.Sparse()[lo:hi]...), nil
	}
	for index := lo; index < hi; index++ {
		rows, err := col.sparsePage(index / format.PageRows)
		if err != nil {
			return nil, err
		}
		row := -1
		if len(rows) > 0 {
			row = int(rows[index%format.PageRows])
		}
		entries = append(entries, row)
	}
	return entries, nil
}

// Span returns the highest index that has a row in c, and one more.
func (s *State) Span(c *Component) (int, error) {
	col := s.column(c)
	if col.settled {
		return len(c.Sparse()), nil
	}
	for page := col.sparse.Pages() - 1; page >= 0; page-- {
		rows, err := col.sparsePage(page)
		if err != nil {
			return 0, err
		}
		for i := len(rows) - 1; i >= 0; i-- {
			if rows[i] >= 0 {
				return page*format.PageRows + i + 1, nil
			}
		}
	}
	return 0, nil
}

// Gaps returns how many rows of c belong to no entity. Only an indexed component has some: of that, all of dense
// is read, one page after the other.
func (s *State) Gaps(c *Component) (n int, err error) {
	col := s.column(c)
	if col.settled || !c.Indexed {
		return c.Gaps, nil
	}
	for row := range c.Len() {
		e, err := col.holder(row)
		if err != nil {
			return 0, err
		}
		if e == ecs.Vacant {
			n++
		}
	}
	return n, nil
}

// RowBytes returns the size of the rows of c, encoded. Of rows of one size nothing is read; of others all
// pages are, one after the other.
func (s *State) RowBytes(c *Component) (n int64, err error) {
	if w := c.Layout.Width(); w >= 0 {
		return int64(w) * int64(c.Len()), nil
	}
	col := s.column(c)
	if col.settled {
		for row := range c.Len() {
			n += int64(len(c.Row(row)))
		}
		return n, nil
	}
	var content []byte
	for page := range col.data.Pages() {
		if content, err = s.reader.PageInto(content, col.data, page); err != nil {
			return 0, col.fault(err)
		}
		n += int64(len(content))
	}
	return n, nil
}

// A stored is a component of a [State]: its rows as they lie in pages, or settled in memory.
type stored struct {
	*Component
	state   *State
	settled bool

	number              int // Of the component. This and what follows is not used when settled.
	sparse, dense, data format.Array

	// The pages read last.
	rows       []int32 // Of one of sparse; empty: no index of it has a row.
	rowsPage   int     // Its number plus one; 0: none was read. So are the two below.
	entities   []byte
	entityPage int
	values     pageRows
	valuePage  int
}

// fault says of which component err is: a page of c cannot be read.
func (c *stored) fault(err error) error {
	if err == nil {
		return nil
	}
	return c.state.fault(c.state.reader.InComponent(c.number, err))
}

// fault notes that a page cannot be read. The state may be had in another way, from an older snapshot:
// so whoever asked is asked to begin again, see [View.Read].
func (s *State) fault(err error) error {
	if err == nil {
		return nil
	}
	s.failed.Store(true)
	return s.reader.Damage(err)
}

// holder returns the entity of a row.
func (c *stored) holder(row int) (ecs.Entity, error) {
	if c.settled {
		return c.Entities[row], nil
	}
	if page := row / c.dense.PageRows; c.entityPage != page+1 {
		content, err := c.state.reader.Page(c.dense, page)
		if err != nil {
			return 0, c.fault(err)
		}
		c.entities, c.entityPage = content, page+1
	}
	return format.EntityAt(c.entities, row%c.dense.PageRows), nil
}

// row returns a row, encoded.
func (c *stored) row(row int) ([]byte, error) {
	switch {
	case c.settled:
		return c.Component.Row(row), nil
	case c.Width == 0:
		return nil, nil
	}
	if page := row / c.data.PageRows; c.valuePage != page+1 {
		values, err := c.page(page)
		if err != nil {
			return nil, err
		}
		c.values, c.valuePage = values, page+1
	}
	return c.values.row(row % c.data.PageRows), nil
}

// sparsePage returns the rows that a page of sparse leads to, for each index of it, -1 for none;
// nothing: it has no entry.
func (c *stored) sparsePage(page int) ([]int32, error) {
	if c.rowsPage != page+1 {
		rows, err := c.readSparse(page, nil)
		if err != nil {
			return nil, err
		}
		c.rows, c.rowsPage = rows, page+1
	}
	return c.rows, nil
}

// readSparse is sparsePage without keeping the page. It may use the memory of rows. Spans of a sweep
// call it at the same time, each with rows of its own.
func (c *stored) readSparse(page int, rows []int32) ([]int32, error) {
	if c.N == 0 || page >= c.sparse.Pages() {
		return rows[:0], nil
	}
	content, err := c.state.reader.Page(c.sparse, page)
	if err != nil || content == nil {
		return rows[:0], c.fault(err)
	}
	rows = slices.Grow(rows[:0], format.PageRows)[:format.PageRows]
	for i := range rows {
		rows[i] = -1
	}
	err = format.DecodeSparsePage(content, func(i int, row uint32, n int) error {
		if int64(row)+int64(n) > int64(c.N) {
			return fmt.Errorf("sparse entry %d names row %d of %d", page*format.PageRows+i, row, c.N)
		}
		for j := range n {
			rows[i+j] = int32(row) + int32(j)
		}
		return nil
	})
	return rows, c.fault(err)
}

// page reads a page of values, and checks all of its rows: whoever reads one of them later need not.
func (c *stored) page(page int) (p pageRows, err error) {
	content, err := c.state.reader.Page(c.data, page)
	if err != nil {
		return p, c.fault(err)
	}
	lo, hi := c.data.Span(page)
	p = pageRows{content: content, width: c.Width}
	if c.Width >= 0 {
		return p, c.fault(c.Layout.Check(content, hi-lo))
	}
	p.ends = make([]uint32, 0, hi-lo) // A row is found by where it and the one before end.
	for rest := content; len(p.ends) < hi-lo; {
		if _, rest, err = c.Layout.Next(rest); err != nil {
			return p, c.fault(err)
		}
		p.ends = append(p.ends, uint32(len(content)-len(rest)))
	}
	if n := len(p.ends); n > 0 && int(p.ends[n-1]) < len(content) {
		return p, c.fault(errRest)
	}
	return p, nil
}

// errRest reports a page that goes on behind its rows.
var errRest = errors.New("a page of values goes on behind its rows")

// pageRows are the rows of a page.
type pageRows struct {
	content []byte
	width   int
	ends    []uint32       // Of rows that vary.
	few     map[int][]byte // Or only some rows.
}

// row returns a row; nil: it is none of few.
func (p *pageRows) row(i int) []byte {
	if p.few != nil {
		return p.few[i]
	}
	if p.width >= 0 {
		return p.content[i*p.width : (i+1)*p.width : (i+1)*p.width]
	}
	start := uint32(0)
	if i > 0 {
		start = p.ends[i-1]
	}
	return p.content[start:p.ends[i]:p.ends[i]]
}

// settle reads all rows of c into memory, and drops those of entities that are not alive. Where rows are
// dropped others move up, so no row is known before all are read.
func (s *State) settle(ctx context.Context, c *stored) error {
	if err := s.Count(ctx); err != nil {
		return err
	}
	c.N = 0 // It grows with the pages that there are.
	for page := range c.dense.Pages() {
		content, err := c.state.reader.Page(c.dense, page)
		if err != nil {
			return c.fault(err)
		}
		lo, hi := c.dense.Span(page)
		c.Resize(hi)
		if err := c.SetEntities(lo, content, s.indices); err != nil {
			return c.fault(err)
		}
	}
	for page := range c.data.Pages() {
		content, err := c.state.reader.Page(c.data, page)
		if err != nil {
			return c.fault(err)
		}
		lo, hi := c.data.Span(page)
		if _, err := c.SetRows(lo, hi-lo, content); err != nil {
			return c.fault(err)
		}
	}
	c.settled = true
	c.Keep(func(row int) bool { // Gaps stay: they are rows of no entity, dead or alive.
		e := c.Entities[row]
		return c.Indexed && e == ecs.Vacant || s.IsAlive(e)
	})
	return nil
}
