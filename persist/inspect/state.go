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

// errWhole is the error of [State.NeedWhole].
var errWhole = errors.New("persist: the whole state is needed")

// A State gives access to a state of the world, and reads it on demand:
//
//	sizes, layouts, digest   Outline, Digest, Indices: from the manifest, no pages
//	single rows              Sparse, Holder, Row, Find: a page of an array; the last one is cached
//	rows in any order        Lookup: pages of the column, all cached
//	entities by index, with  IsAlive, [State.Sweep]: the registry, and pages of columns in the
//	their values             order of indices, each read once and released after its last row
//
// Some states are completely in memory, with the same methods. Methods must not be called
// concurrently, except IsAlive and the function that Lookup returns.
type State struct {
	Seq uint64 // Record that leads to the state.

	outline  *Image
	digest   ecs.Digest
	indices  int
	columns  []stateColumn // Columns by component number.
	reader   *snap.Reader
	view     *View     // The view that is read.
	aliveSet *aliveSet // Set of live entities, or nil before Count is called.
	// failed says that a page could not be read. In that case Read starts again with the whole
	// state and ignores the result of f.
	failed atomic.Bool
}

// readPages calls f with the state in a snapshot. It returns false if f needs the whole state or
// a page cannot be read. The caller then ignores err and loads the state another way.
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
	// A page that cannot be read counts even if f succeeds: f may have ignored the error.
	return !st.failed.Load() && !errors.Is(err, errWhole), err
}

// stateOf returns im as a State. All of its columns are in memory, so it never reads a page.
func stateOf(im *Image) *State {
	s := &State{outline: im, indices: len(im.Registry)}
	for _, c := range im.Components {
		s.columns = append(s.columns, stateColumn{Component: c, state: s, inMemory: true})
	}
	return s
}

// newState returns the state in snapshot r. In a store, no-rewind components may have rows of
// dead entities. newState reads the rows of these components at once and drops those of dead
// entities. All other data is read on demand.
func newState(ctx context.Context, v *View, r *snap.Reader, save bool) (*State, error) {
	m := r.Manifest
	if err := r.CheckRegistry(); err != nil {
		return nil, err
	}
	s := &State{outline: outlineOf(m), digest: m.Digest, indices: m.Total, view: v, reader: r, columns: make([]stateColumn, len(m.Components))}
	for n, c := range s.outline.Components {
		s.columns[n] = stateColumn{
			Component: c, state: s, number: n,
			sparse: m.Array(n, format.SparseArray), dense: m.Array(n, format.DenseArray), data: m.Array(n, format.DataArray),
		}
		if c.Resource && c.N > 1 {
			return nil, fmt.Errorf("component %s: resource of %d rows", c.Name, c.N)
		}
		if !save && !c.Rewinds && !c.Resource && c.N > 0 {
			if err := s.loadRows(ctx, &s.columns[n]); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// outlineOf returns an image with the components of m, but without rows.
func outlineOf(m *format.Manifest) *Image {
	im := image.New(m.Schema)
	im.Tick, im.ID, im.Alive, im.Free, im.Schema = m.Tick, m.ID, m.Alive, m.Free, m.Schema
	for n, c := range im.Components {
		c.N = m.Components[n].Rows
	}
	return im
}

// Whole reports whether the whole state is in memory.
func (s *State) Whole() bool { return s.reader == nil }

// NeedWhole returns nil if the whole state is in memory, otherwise an error. A function called by
// [View.Read] can return this error. Read then calls the function again with the whole state.
func (s *State) NeedWhole() error {
	if s.Whole() {
		return nil
	}
	return errWhole
}

// Outline returns an image with the counts and components of s, and the number of rows of each
// component. It includes the rows only if the whole state is in memory.
func (s *State) Outline() *Image { return s.outline }

// Indices returns the number of entity indices, including unused ones.
func (s *State) Indices() int { return s.indices }

// Digest returns the digest of the state. If s is read from a snapshot file, this is the recorded
// digest.
func (s *State) Digest() ecs.Digest {
	if s.Whole() {
		return s.outline.Digest()
	}
	return s.digest
}

// column returns the column of c, a component of the outline.
func (s *State) column(c *Component) *stateColumn {
	return &s.columns[slices.IndexFunc(s.columns, func(col stateColumn) bool { return col.Component == c })]
}

// Holder returns the entity of a row of c, or [ecs.Vacant] for a gap. c must not be a resource.
func (s *State) Holder(c *Component, row int) (ecs.Entity, error) {
	return s.column(c).holder(row)
}

// Value returns the value of a row of c.
func (s *State) Value(c *Component, row int) (layout.Value, error) {
	b, err := s.Row(c, row)
	if err != nil {
		return layout.Value{}, err
	}
	return c.Layout.Value(b)
}

// Row returns an encoded row of c. It is valid until the next row is read.
func (s *State) Row(c *Component, row int) ([]byte, error) {
	return s.column(c).row(row)
}

// Find returns the row that a live entity has in c, or -1. For a dead entity it may return the
// row of another entity with the same index.
func (s *State) Find(c *Component, e ecs.Entity) (int, error) {
	if c.Resource {
		return -1, nil
	}
	col := s.column(c)
	if col.inMemory {
		return c.Find(e), nil
	}
	rows, err := col.sparsePage(int(e.Index()) / format.PageRows)
	if err != nil || len(rows) == 0 {
		return -1, err
	}
	return int(rows[e.Index()%format.PageRows]), nil
}

// Has returns the encoded value of c for a live entity, and whether the entity has c. If c is a
// resource, it returns the resource's value. The value is valid until the next row is read.
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

// Sparse returns entries [lo, hi) of the sparse array of c: a row for each index, or -1 for none.
// hi must not exceed [State.Span].
func (s *State) Sparse(c *Component, lo, hi int) ([]int, error) {
	col, entries := s.column(c), make([]int, 0, hi-lo)
	if col.inMemory {
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

// Span returns the highest index that has a row in c, plus one.
func (s *State) Span(c *Component) (int, error) {
	col := s.column(c)
	if col.inMemory {
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

// Gaps returns how many rows of c have no entity. Only indexed components have gaps. For an
// indexed component, Gaps reads all pages of dense.
func (s *State) Gaps(c *Component) (n int, err error) {
	col := s.column(c)
	if col.inMemory || !c.Indexed {
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

// RowBytes returns the total size of the encoded rows of c. If rows have a fixed size, it reads
// no pages. Otherwise it reads all pages, one by one.
func (s *State) RowBytes(c *Component) (n int64, err error) {
	if w := c.Layout.Width(); w >= 0 {
		return int64(w) * int64(c.Len()), nil
	}
	col := s.column(c)
	if col.inMemory {
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

// A stateColumn is a component of a [State]. Its rows are read from pages, or are in memory.
type stateColumn struct {
	*Component
	state    *State
	inMemory bool

	// number is the number of the component. number and the fields below are unused if inMemory
	// is set.
	number              int
	sparse, dense, data format.Array

	// The fields below cache the last page of each array. rows is a page of sparse; it is empty
	// if no index of the page has a row.
	rows []int32
	// rowsPage is the number of the cached page plus one; 0 means that no page is cached. The same
	// is true of entityPage and valuePage.
	rowsPage   int
	entities   []byte
	entityPage int
	values     pageRows
	valuePage  int
}

// fault wraps err, the error of reading a page of c, and names the component.
func (c *stateColumn) fault(err error) error {
	if err == nil {
		return nil
	}
	return c.state.fault(c.state.reader.InComponent(c.number, err))
}

// fault records that a page cannot be read. [View.Read] then starts again, since an older
// snapshot may lead to the same state.
func (s *State) fault(err error) error {
	if err == nil {
		return nil
	}
	s.failed.Store(true)
	return s.reader.Damage(err)
}

// holder returns the entity of a row.
func (c *stateColumn) holder(row int) (ecs.Entity, error) {
	if c.inMemory {
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

// row returns an encoded row.
func (c *stateColumn) row(row int) ([]byte, error) {
	switch {
	case c.inMemory:
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

// sparsePage returns the row of each index on a page of sparse, with -1 for indices without a
// row. It returns an empty slice if no index has a row.
func (c *stateColumn) sparsePage(page int) ([]int32, error) {
	if c.rowsPage != page+1 {
		rows, err := c.readSparse(page, nil)
		if err != nil {
			return nil, err
		}
		c.rows, c.rowsPage = rows, page+1
	}
	return c.rows, nil
}

// readSparse is like sparsePage, but caches nothing. It may reuse the memory of rows. Goroutines
// of a sweep call it concurrently, each with its own buffer rows.
func (c *stateColumn) readSparse(page int, rows []int32) ([]int32, error) {
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

// page reads a page of values and checks all of its rows, so later reads need no checks.
func (c *stateColumn) page(page int) (p pageRows, err error) {
	content, err := c.state.reader.Page(c.data, page)
	if err != nil {
		return p, c.fault(err)
	}
	lo, hi := c.data.Span(page)
	p = pageRows{content: content, width: c.Width}
	if c.Width >= 0 {
		return p, c.fault(c.Layout.Check(content, hi-lo))
	}
	// A row begins where the previous row ends.
	p.ends = make([]uint32, 0, hi-lo)
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

// errRest reports a page with bytes after its rows.
var errRest = errors.New("a page of values has bytes after its rows")

// pageRows holds the rows of a page.
type pageRows struct {
	content []byte
	width   int
	ends    []uint32       // Ends of rows, if rows vary in size.
	few     map[int][]byte // If not nil, only these rows remain, by position.
}

// row returns the row at position i, or nil if few does not contain it.
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

// loadRows reads all rows of c into memory, and drops the rows of dead entities. When a row is
// dropped, later rows move up, so all rows must be read first.
func (s *State) loadRows(ctx context.Context, c *stateColumn) error {
	if err := s.Count(ctx); err != nil {
		return err
	}
	// c starts empty; Resize grows it page by page.
	c.N = 0
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
	c.inMemory = true
	// Gaps have no entity, so they stay.
	c.Keep(func(row int) bool {
		e := c.Entities[row]
		return c.Indexed && e == ecs.Vacant || s.IsAlive(e)
	})
	return nil
}
