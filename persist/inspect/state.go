package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// errWhole is the error of [State.NeedWhole].
var errWhole = errors.New("persist: the whole state is needed")

// A State gives access to a state of the world, and reads it on demand:
//
//   - Outline, Digest and Indices return sizes, layouts and the digest. They read no pages.
//   - Sparse, Holder, Row and Find return single rows. They read a page of an array, and cache
//     only the latest page of each array.
//   - Lookup returns rows in any order. It caches all pages of the column that it reads.
//   - [State.Sweep] returns entities by index, with their values. It reads each page of the
//     columns once, and releases it after its last row.
//   - IsAlive uses the set of living entities, which Count loads.
//
// Some states are completely in memory, with the same methods. Several goroutines may call IsAlive
// and the function that Lookup returns. Only one goroutine at a time may call other methods.
type State struct {
	Seq uint64 // Record that leads to the state.

	outline  *image.Image
	shown    *Image     // The result of Outline, or nil before the call.
	digest   ecs.Digest // Recorded digest, or 0 after a tick was applied.
	indices  int
	columns  []stateColumn // Columns by component number.
	reader   *snap.Reader
	view     *View
	wanted   func(*image.Component) bool // Selects the components to load and to update.
	aliveSet *aliveSet                   // Set of live entities, or nil before Count is called.
	// registryLoaded says that outline has the registry. In that case aliveSet is not used.
	registryLoaded bool
	roomy          bool // checkRoom has succeeded.
	// failed says that a page could not be read. In that case Read starts again with the whole
	// state and ignores the result of f.
	failed atomic.Bool
}

// readAt calls f with the state after record seq, from the nearest readable snapshot and the ticks
// after it. f may use only the components for which wanted() returns true. f may be called again
// with the state from another snapshot.
func (v *View) readAt(ctx context.Context, seq uint64, wanted func(*image.Component) bool, f func(*State) error) error {
	return v.cat.RetryOnChange(ctx, func() error {
		return firstReadable(ctx, v.cat, leadingBases(v.cat, seq), seq, func(s catalog.SnapshotInfo) error {
			return v.readFrom(ctx, s, seq, wanted, f)
		})
	})
}

// readNearest is like readAt, but tries only the nearest snapshot, and reads every component.
func (v *View) readNearest(ctx context.Context, seq uint64, f func(*State) error) error {
	bases := leadingBases(v.cat, seq)
	if len(bases) == 0 {
		return v.cat.Unreachable(seq)
	}
	return v.readFrom(ctx, bases[0], seq, everyComponent, f)
}

// leadingBases returns the snapshots from which replay can reach record seq, nearest first. The
// schema must not change on the way. Unreadable snapshots are included.
func leadingBases(v *catalog.Catalog, seq uint64) []catalog.SnapshotInfo {
	return slices.DeleteFunc(v.CandidateSnapshots(seq), func(s catalog.SnapshotInfo) bool { return s.Err == nil && !v.SameSchemaPath(s, seq) })
}

// firstReadable calls read() with each snapshot of bases, in this order, until a call succeeds.
// Each of them leads to record seq, after fewer or more ticks. If all calls fail, firstReadable
// joins their errors.
func firstReadable(ctx context.Context, v *catalog.Catalog, bases []catalog.SnapshotInfo, seq uint64, read func(catalog.SnapshotInfo) error) error {
	var skipped []error
	for _, s := range bases {
		err := read(s)
		if err == nil || ctx.Err() != nil {
			return err
		}
		skipped = append(skipped, err)
	}
	if len(skipped) > 0 {
		return errors.Join(skipped...)
	}
	return v.Unreachable(seq)
}

// everyComponent and noComponent select all components or none for [View.readFrom].
func everyComponent(*image.Component) bool { return true }
func noComponent(*image.Component) bool    { return false }

// readFrom calls f with the state after record seq, to which snapshot s leads.
func (v *View) readFrom(ctx context.Context, s catalog.SnapshotInfo, seq uint64, wanted func(*image.Component) bool, f func(*State) error) error {
	if s.Err != nil {
		return s.Err
	}
	r, err := snap.Open(v.cat.Files, s.Name, catalog.SnapshotName)
	if err != nil {
		return err
	}
	defer r.Close()
	path, err := v.cat.Path(s.ID.Seq, seq)
	if err != nil {
		return err
	}
	st, err := newState(v, r, wanted)
	if err != nil {
		return r.Damage(err)
	}
	if err := v.cat.Records(ctx, path, st.advance); err != nil {
		return err
	}
	// A save never has rows of dead entities.
	if !v.IsSave() {
		if err := st.dropDead(ctx); err != nil {
			return err
		}
	}
	st.Seq = seq
	return f(st)
}

// stateOf returns im as a State. All of its columns are in memory, so it never reads a page.
func stateOf(im *image.Image) *State {
	s := &State{Seq: im.ID.Seq, outline: im, indices: len(im.Registry), registryLoaded: true}
	for _, c := range im.Components {
		s.columns = append(s.columns, stateColumn{Component: c, state: s, inMemory: true})
	}
	return s
}

// newState returns the state in snapshot r. It reads no pages.
func newState(v *View, r *snap.Reader, wanted func(*image.Component) bool) (*State, error) {
	m := r.Manifest
	if err := m.CheckRegistry(); err != nil {
		return nil, fmt.Errorf("entities: %w", err)
	}
	s := &State{outline: outlineOf(m), digest: m.Digest, indices: m.Total, view: v, reader: r, wanted: wanted, columns: make([]stateColumn, len(m.Components))}
	for n, c := range s.outline.Components {
		s.columns[n] = stateColumn{
			Component: c, state: s,
			sparse: m.Array(n, format.SparseArray), dense: m.Array(n, format.DenseArray), data: m.Array(n, format.DataArray),
		}
		if c.Resource && c.N > 1 {
			return nil, fmt.Errorf("component %s: resource of %d rows", naming.Shown(c.Name), c.N)
		}
	}
	return s, nil
}

// outlineOf returns an image with the components of m, but without rows.
func outlineOf(m *format.Manifest) *image.Image {
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
// component. It includes the entities and rows only if the whole state is in memory.
func (s *State) Outline() *Image {
	if s.shown == nil {
		s.shown = NewImage(s.outline)
		s.shown.Seq, s.shown.Indices = s.Seq, s.indices
	}
	return s.shown
}

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
func (s *State) column(c *image.Component) *stateColumn {
	return &s.columns[slices.IndexFunc(s.columns, func(col stateColumn) bool { return col.Component == c })]
}

// Holder returns the entity of a row of c, or [ecs.Vacant] for a gap. c must not be a resource.
func (s *State) Holder(c *Component, row int) (ecs.Entity, error) {
	return s.column(c.rows).holder(row)
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
	return s.column(c.rows).row(row)
}

// Find returns the row that a live entity has in c, or -1. For a dead entity it may return the
// row of another entity with the same index.
func (s *State) Find(c *Component, e ecs.Entity) (int, error) {
	return s.column(c.rows).rowOf(e)
}

// Has returns the encoded value of c for a live entity, and whether the entity has c. If c is a
// resource, it returns the resource's value. The value is valid until the next row is read.
func (s *State) Has(c *Component, e ecs.Entity) (row []byte, has bool, err error) {
	col := s.column(c.rows)
	n := col.N - 1
	if !c.Resource {
		n, err = col.rowOf(e)
	}
	if err != nil || n < 0 {
		return nil, false, err
	}
	row, err = col.row(n)
	return row, true, err
}

// Sparse returns entries [lo, hi) of the sparse array of c: a row for each index, or -1 for none.
// hi must not exceed [State.Span].
func (s *State) Sparse(c *Component, lo, hi int) ([]int, error) {
	col, entries := s.column(c.rows), make([]int, 0, hi-lo)
	if col.inMemory {
		return append(entries, col.Sparse()[lo:hi]...), nil
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
	col := s.column(c.rows)
	if col.inMemory {
		return len(col.Sparse()), nil
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

// Gaps returns how many rows of c have no entity. Only an indexed component has gaps. If its rows
// are in a file, Gaps reads all of its entities.
func (s *State) Gaps(c *Component) (n int, err error) {
	col := s.column(c.rows)
	if col.inMemory || !c.Indexed {
		return col.Gaps, nil
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
	err = s.column(c.rows).eachPage(context.Background(), func(_, _ int, content []byte) error {
		n += int64(len(content))
		return nil
	})
	return n, err
}

// A stateColumn is a component of a [State]. Its rows are read from pages, or are in memory.
type stateColumn struct {
	*image.Component
	state    *State
	inMemory bool

	// The fields below are unused if inMemory is set.
	sparse, dense, data format.Array

	// The fields below cache the most recent page of each array. rows has a page of the sparse
	// array. If no index on that page has a row, rows is empty.
	rows []int32
	// rowsPage is the number of the page in rows, plus one. 0 means that no page is cached.
	// entityPage and valuePage work in the same way.
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
	return c.state.fault(fmt.Errorf("component %s: %w", naming.Shown(c.Name), err))
}

// fault records that a page cannot be read. [View.Read] then starts again, since an older
// snapshot may lead to the same state.
func (s *State) fault(err error) error {
	if err == nil {
		return nil
	}
	if s.failed.Store(true); s.Whole() {
		return err
	}
	return s.reader.Damage(err)
}

// holder returns the entity of a row, or 0 for a resource.
func (c *stateColumn) holder(row int) (ecs.Entity, error) {
	switch {
	case c.Resource:
		return 0, nil
	case c.inMemory:
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

// rowOf returns the row of a live entity, or -1, see [State.Find].
func (c *stateColumn) rowOf(e ecs.Entity) (int, error) {
	switch {
	case c.Resource:
		return -1, nil
	case c.inMemory:
		return c.Find(e), nil
	}
	rows, err := c.sparsePage(int(e.Index()) / format.PageRows)
	if err != nil || len(rows) == 0 {
		return -1, err
	}
	return int(rows[e.Index()%format.PageRows]), nil
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

// page reads a page of values and checks all of its rows. Later reads of the rows need no checks.
func (c *stateColumn) page(page int) (pageRows, error) {
	content, err := c.state.reader.Page(c.data, page)
	if err != nil {
		return pageRows{}, c.fault(err)
	}
	lo, hi := c.data.Span(page)
	p, err := newPageRows(c.Layout, content, hi-lo)
	return p, c.fault(err)
}

// newPageRows returns the n rows in content, after checking them.
func newPageRows(t *layout.Type, content []byte, n int) (p pageRows, err error) {
	p = pageRows{content: content, width: t.Width()}
	if p.width >= 0 {
		return p, t.Check(content, n)
	}
	// A row begins where the previous row ends.
	p.ends = make([]uint32, 0, n)
	rest := content
	for len(p.ends) < n {
		if _, rest, err = t.Next(rest); err != nil {
			return p, err
		}
		p.ends = append(p.ends, uint32(len(content)-len(rest)))
	}
	if len(rest) > 0 {
		err = errRest
	}
	return p, err
}

// errRest reports a page with bytes after its rows.
var errRest = errors.New("a page of values has bytes after its rows")

// pageRows holds the rows of a page.
type pageRows struct {
	content []byte
	width   int
	ends    []uint32       // Ends of rows, if rows vary in size.
	few     map[int][]byte // If not nil, only these rows are in memory, by position.
}

// row returns the row at position i of the page, or nil if that row is no longer in memory.
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

// eachPage calls f with the encoded rows [lo, hi) of each page, concatenated. content is valid
// until f returns. Rows in memory come in pages, too.
func (c *stateColumn) eachPage(ctx context.Context, f func(lo, hi int, content []byte) error) (err error) {
	pages := c.data
	if c.inMemory {
		pages = format.Array{Rows: c.N, PageRows: format.PageRows}
	}
	var content []byte
	for page := range pages.Pages() {
		lo, hi := pages.Span(page)
		if c.inMemory {
			content = c.AppendRows(content[:0], lo, hi)
		} else if content, err = c.state.reader.PageInto(content, c.data, page); err != nil {
			return c.fault(err)
		}
		if err := cmp.Or(ctx.Err(), f(lo, hi, content)); err != nil {
			return err
		}
	}
	return nil
}

// splitPage calls f with each of the rows [lo, hi). content has the encoded rows, as eachPage
// passes them: rows of fixed width have the right length.
func (c *stateColumn) splitPage(lo, hi int, content []byte, f func(row int, value []byte) error) (err error) {
	var value []byte
	for row := lo; row < hi; row++ {
		if c.Width >= 0 {
			value, content = content[:c.Width], content[c.Width:]
		} else {
			value, content, err = c.Layout.Next(content)
		}
		if err == nil {
			err = f(row, value)
		}
		if err != nil {
			return c.fault(fmt.Errorf("row %d: %w", row, err))
		}
	}
	return nil
}

// load reads all rows of c into memory.
func (c *stateColumn) load(ctx context.Context) error {
	if c.inMemory {
		return nil
	}
	if err := c.state.checkRoom(); err != nil {
		return err
	}
	rows := c.N
	c.N = 0
	c.Resize(rows)
	err := c.eachPage(ctx, func(lo, hi int, content []byte) error {
		_, err := c.SetRows(lo, hi-lo, content)
		return c.fault(err)
	})
	if err != nil {
		return err
	}
	for page := range c.dense.Pages() {
		content, err := c.state.reader.Page(c.dense, page)
		if err != nil {
			return c.fault(err)
		}
		if err := c.SetEntities(page*c.dense.PageRows, content, c.state.indices); err != nil {
			return c.fault(err)
		}
	}
	c.inMemory = true
	return nil
}

// checkRoom returns an error if the manifest claims more rows than the files can hold. Without this
// check, a damaged manifest could make the caller allocate too much memory.
func (s *State) checkRoom() error {
	if s.roomy = s.roomy || s.Whole() || s.reader.Plausible(); !s.roomy {
		return s.fault(errors.New("it claims more rows than the files can hold"))
	}
	return nil
}

// loadRegistry reads the registry into memory.
func (s *State) loadRegistry() error {
	if s.registryLoaded {
		return nil
	}
	if err := s.checkRoom(); err != nil {
		return err
	}
	m := s.reader.Manifest
	all := format.RegistryPatch{Alive: m.Alive, Free: m.Free, Total: m.Total, Ranges: between(0, m.Total), Rows: make([]byte, 0, 8*m.Total)}
	registry := m.Registry()
	for page := range registry.Pages() {
		content, err := s.reader.Page(registry, page)
		if err != nil {
			return s.fault(fmt.Errorf("entities: %w", err))
		}
		all.Rows = append(all.Rows, content...)
	}
	s.registryLoaded = true
	return s.fault(s.outline.Patch(&format.Tick{Tick: m.Tick, Registry: &all}))
}

// advance applies the tick of r. It loads the registry and the columns that the tick changes.
func (s *State) advance(ctx context.Context, r *catalog.Record) error {
	if err := s.view.cat.Describe(r, s.outline.ID, s.outline.Stored); err != nil {
		return err
	}
	if err := s.adopt(r.Schema); err != nil {
		return s.view.cat.EntryError(r.Entry, err)
	}
	if err := s.loadRegistry(); err != nil {
		return err
	}
	for i := range r.Decoded.Storages {
		if n := r.Decoded.Storages[i].Number; n < len(s.columns) && s.wanted(s.columns[n].Component) {
			if err := s.columns[n].load(ctx); err != nil {
				return err
			}
		}
	}
	if err := s.apply(r.Decoded, r.ID); err != nil {
		return s.view.cat.EntryError(r.Entry, err)
	}
	return nil
}

// adopt adds the components of schema that s does not have. They have no rows yet.
func (s *State) adopt(schema *format.Schema) error {
	if err := s.outline.Adopt(schema); err != nil {
		return err
	}
	for _, c := range s.outline.Components[len(s.columns):] {
		s.columns = append(s.columns, stateColumn{Component: c, state: s, inMemory: true})
	}
	return nil
}

// apply applies t, whose rows are in memory. It skips components that are not wanted.
func (s *State) apply(t *format.Tick, id journal.ID) error {
	im := s.outline
	if t.Parent != im.ID {
		return fmt.Errorf("tick %d continues state %v, not %v", t.Tick, t.Parent, im.ID)
	}
	wanted := &format.Tick{Tick: t.Tick, Registry: t.Registry}
	for _, p := range t.Storages {
		if p.Number >= len(s.columns) || s.wanted(s.columns[p.Number].Component) {
			wanted.Storages = append(wanted.Storages, p)
		}
	}
	if err := im.Patch(wanted); err != nil {
		return err
	}
	im.Tick, im.ID, s.indices, s.digest = t.Tick, id, len(im.Registry), 0
	return nil
}

// dropDead drops the rows of dead entities in no-rewind components. Later rows then move up in
// memory, but not in the file. So dropDead loads all rows first.
func (s *State) dropDead(ctx context.Context) error {
	for n := range s.columns {
		if c := &s.columns[n]; !c.Rewinds && s.wanted(c.Component) {
			if err := c.dropDead(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropDead drops the rows of dead entities. Gaps have no entity, so they stay.
func (c *stateColumn) dropDead(ctx context.Context) error {
	if c.Resource || c.N == 0 {
		return nil
	}
	if err := c.state.Count(ctx); err != nil {
		return err
	}
	if err := c.load(ctx); err != nil {
		return err
	}
	c.Keep(func(row int) bool {
		e := c.Entities[row]
		return c.Indexed && e == ecs.Vacant || c.state.IsAlive(e)
	})
	return nil
}
