package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A pageDiff compares two states page by page in their snapshot files. It skips pages that the
// two files share, and releases pages with equal bytes. To compare a row, both its entity and its
// value are needed. So if one of the two pages differs, both stay in memory:
//
//	entities    | same | differ | same   |
//	rows        | same | same   | differ |
//	in memory          | both   | both   |
//
// In every [2] array, element 0 belongs to the older state and element 1 to the newer one.
//
// If a page cannot be read, or the states have no comparable snapshot files, DiffTo ignores the
// result. It compares the two states in memory instead. So an error of a pageDiff only means that
// the states cannot be compared by pages.
type pageDiff struct {
	*Diff
	files [2]*snap.Reader
}

// errNoPages says that two states cannot be compared page by page.
var errNoPages = errors.New("persist: not in snapshot files of the same kind")

// diffPages does the work of [View.DiffTo] for two states that are in snapshot files. For other
// states it returns errNoPages. The files may belong to two stores, or one of them may be a save.
// Memory grows with the number of pages that differ.
func diffPages(ctx context.Context, v *catalog.Catalog, a uint64, u *catalog.Catalog, b uint64) (*Diff, error) {
	var p pageDiff
	var err error
	if p.files[0], err = snapshotOf(v, a); err != nil {
		return nil, err
	}
	defer p.files[0].Close()
	if p.files[1], err = snapshotOf(u, b); err != nil {
		return nil, err
	}
	defer p.files[1].Close()
	m, n := p.files[0].Manifest, p.files[1].Manifest
	p.Diff = &Diff{OldTick: m.Tick, NewTick: n.Tick, Schema: diffSchemas(m.Schema, n.Schema)}
	if err := p.registry(); err != nil {
		return nil, err
	}
	for older, newer := range pairs(columns(m), columns(n), func(c *storedColumn) string { return c.Name }) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.component(older, newer); err != nil {
			return nil, err
		}
	}
	return p.Diff, nil
}

// snapshotOf opens the snapshot file of the state after record seq.
func snapshotOf(v *catalog.Catalog, seq uint64) (*snap.Reader, error) {
	bases := v.CandidateSnapshots(seq)
	if len(bases) == 0 || bases[0].Err != nil || bases[0].ID.Seq != seq {
		return nil, errNoPages
	}
	r, err := snap.Open(v.Files, bases[0].Name, catalog.SnapshotName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoPages
	}
	if err == nil && (!r.Manifest.AllRewind() || !r.Plausible()) {
		// Reject a file with a no-rewind component: it may have rows of dead entities, which the
		// state does not have. Also reject a file whose manifest is implausible.
		r.Close()
		return nil, errNoPages
	}
	return r, err
}

// A storedColumn is a component in a snapshot file. The sparse array (index to row) is not
// compared, because it follows from the dense array (row to entity).
type storedColumn struct {
	format.Entry
	rows        int
	dense, data format.Array
}

// none stands for an array that a state does not have.
var none = format.Array{PageRows: 1}

// columns returns the components of a snapshot, by number.
func columns(m *format.Manifest) []*storedColumn {
	list := make([]*storedColumn, len(m.Components))
	for n := range list {
		list[n] = &storedColumn{m.Schema.Components[n], m.Components[n].Rows, m.Array(n, format.DenseArray), m.Array(n, format.DataArray)}
	}
	return list
}

// registry compares the entity registries of the two states.
func (p *pageDiff) registry() error {
	m, n := p.files[0].Manifest, p.files[1].Manifest
	a := p.array(m.Registry(), n.Registry())
	differ, err := a.differing()
	if err != nil {
		return err
	}
	// The position of a registry row says whether its entity is alive, free or retired. If a
	// boundary moved, the rows between the two boundaries changed their status, even on pages
	// with equal bytes.
	for _, ends := range [2][2]int{{m.Alive, n.Alive}, {m.Free, n.Free}} {
		for row := min(ends[0], ends[1]); row < max(ends[0], ends[1]); row++ {
			differ[row/format.PageRows] = true
		}
	}
	// Load each page in differ from both states, even if its bytes are equal.
	var ranges []raw.Range
	for page, d := range differ {
		if !d {
			continue
		}
		if err := a.load(page); err != nil {
			return err
		}
		ranges = append(ranges, raw.Range{First: page * format.PageRows, N: format.PageRows})
	}
	side := func(i int, m *format.Manifest) registryRows {
		return registryRows{func(row int) ecs.Entity { return a.entity(i, row) }, m.Alive, m.Free, m.Total}
	}
	p.Registry = diffRegistries(side(0, m), side(1, n), ranges)
	return nil
}

// component compares one component. A side is nil if its state does not have the component. If
// the layouts differ, it returns errNoPages: bytes of different layouts cannot be compared.
func (p *pageDiff) component(older, newer *storedColumn) error {
	sides := [2]*storedColumn{older, newer}
	known := older
	if known == nil {
		known = newer
	}
	// Use an empty column in place of a nil side.
	c, d := &storedColumn{dense: none, data: none}, &storedColumn{dense: none, data: none}
	if older != nil {
		c = older
	}
	if newer != nil {
		d = newer
	}
	// A unit is a page of values. A page of entities covers one or more units.
	unit := known.data.PageRows
	if older != nil && newer != nil && (c.Resource != d.Resource || !c.Layout.Equal(d.Layout) || c.data.PageRows != d.data.PageRows) {
		return errNoPages
	}
	if format.PageRows%unit != 0 {
		return errNoPages
	}
	rows := &pagedRows{width: known.Layout.Width(), layout: known.Layout, unit: unit}
	if !known.Resource {
		rows.dense = p.array(c.dense, d.dense)
	}
	if rows.width != 0 {
		rows.data = p.array(c.data, d.data)
	}
	ranges, err := rows.load()
	if err != nil {
		return fmt.Errorf("component %s: %w", naming.Shown(known.Name), err)
	}
	columns := [2]diffColumn{absent, absent}
	for i, s := range sides {
		if s != nil {
			columns[i] = diffColumn{s.Name, s.Layout, s.Resource, pagedSide{rows, i, s.rows}}
		}
	}
	return p.Diff.component(columns[0], columns[1], ranges)
}

// A pagedArray is one array of a component or of the registry, in both states.
type pagedArray struct {
	files  [2]*snap.Reader
	arrays [2]format.Array
	same   []bool // For each page, whether it is equal in both states.
	// held has the pages of each state that are in memory, by page number. A page is in memory if
	// it differs, or if the other array has a page of the same rows that differs.
	held [2]map[int][]byte
}

// array returns a pagedArray in which no page is loaded.
func (p *pageDiff) array(older, newer format.Array) *pagedArray {
	return &pagedArray{
		files: p.files, arrays: [2]format.Array{older, newer},
		same: make([]bool, max(older.Pages(), newer.Pages())), held: [2]map[int][]byte{{}, {}},
	}
}

// count returns how many rows a page has in one state.
func (a *pagedArray) count(side, page int) int {
	lo, hi := a.arrays[side].Span(page)
	return max(0, hi-lo)
}

// differing compares all pages, and returns which of them differ. Pages that differ stay in held.
func (a *pagedArray) differing() ([]bool, error) {
	differ := make([]bool, len(a.same))
	for page := range differ {
		var err error
		if a.same[page], err = a.compare(page); err != nil {
			return nil, err
		}
		differ[page] = !a.same[page]
	}
	return differ, nil
}

// compare reports whether a page is equal in both states. If the page differs, its bytes stay in
// held.
func (a *pagedArray) compare(page int) (bool, error) {
	// The page is the last one of an array, and the two arrays differ in length.
	if a.count(0, page) != a.count(1, page) {
		return false, nil
	}
	shared, err := a.shared(page)
	if shared || err != nil {
		return shared, err
	}
	for side := range 2 {
		if err := a.hold(side, page); err != nil {
			return false, err
		}
	}
	if !bytes.Equal(a.held[0][page], a.held[1][page]) {
		return false, nil
	}
	delete(a.held[0], page)
	delete(a.held[1], page)
	return true, nil
}

// shared reports whether both states refer to the same stored page. A file refers only to pages of
// files with lower numbers. So the file with the higher number refers to the other file, or both
// refer to a third one. Pages that method own reads stay in held, so no page is read twice. The
// result is false for a save, which has no number, and for files of different worlds.
func (a *pagedArray) shared(page int) (bool, error) {
	first, second := 1, 0
	if a.files[0].Number() > a.files[1].Number() {
		first, second = 0, 1
	}
	m, n := a.files[first].Manifest, a.files[second].Manifest
	k := a.arrays[0].Key(page)
	if n.Number == 0 || m.World != n.World || k != a.arrays[1].Key(page) {
		return false, nil
	}
	ref, err := a.own(first, page)
	if err != nil || a.held[first][page] != nil {
		return false, err
	}
	// The reference names the page with the same key in file n.
	if ref.File == n.Number && ref.Column == 0 {
		return true, nil
	}
	other, err := a.own(second, page)
	if err != nil || a.held[second][page] != nil {
		return false, err
	}
	return ref.Elsewhere() && ref == other, nil
}

// own returns the reference to a page, for one state. If the page is in the state's own file, own
// reads the page into held.
func (a *pagedArray) own(side, page int) (format.PageRef, error) {
	content, ref, err := a.files[side].Own(a.arrays[side], page)
	if err != nil {
		return ref, a.files[side].Damage(err)
	}
	a.held[side][page] = content
	return ref, nil
}

// hold reads a page of one state into held. It does nothing if the page is already in held.
func (a *pagedArray) hold(side, page int) error {
	if a.held[side][page] != nil || a.count(side, page) == 0 {
		return nil
	}
	content, err := a.files[side].Page(a.arrays[side], page)
	if err != nil {
		return a.files[side].Damage(err)
	}
	a.held[side][page] = content
	return nil
}

// load puts a page of both states into held. A page that is equal in both is read once.
func (a *pagedArray) load(page int) error {
	if err := a.hold(0, page); err != nil {
		return err
	}
	if a.same[page] {
		a.held[1][page] = a.held[0][page]
		return nil
	}
	return a.hold(1, page)
}

// entity returns the entity of a row whose page is loaded. It returns 0 for a row past the end.
func (a *pagedArray) entity(side, row int) ecs.Entity {
	array := &a.arrays[side]
	if row >= array.Rows {
		return 0
	}
	return format.EntityAt(a.held[side][row/array.PageRows], row%array.PageRows)
}

// pagedRows holds those rows of a component, from both states, that may differ.
type pagedRows struct {
	dense  *pagedArray // nil for a resource.
	data   *pagedArray // nil if rows have no bytes.
	layout *layout.Type
	width  int
	unit   int // Rows per page of data.

	cut [2]map[int][][]byte // Rows of variable size, by page of data.
}

// load reads the units that may differ, and returns their rows. A unit is a page of data. It may
// differ if its bytes or the entities of its rows differ.
func (r *pagedRows) load() ([]raw.Range, error) {
	r.cut = [2]map[int][][]byte{{}, {}}
	var differ []bool // For each page of data, whether it differs.
	if r.data != nil {
		var err error
		if differ, err = r.data.differing(); err != nil {
			return nil, err
		}
	}
	if r.dense != nil {
		pages, err := r.dense.differing()
		if err != nil {
			return nil, err
		}
		// A tag has no data: only its entities can differ.
		if r.data == nil {
			differ = make([]bool, (max(r.dense.arrays[0].Rows, r.dense.arrays[1].Rows)+r.unit-1)/r.unit)
		}
		for unit := range differ {
			differ[unit] = differ[unit] || pages[unit*r.unit/format.PageRows]
		}
	}
	var ranges []raw.Range
	for unit, d := range differ {
		if d {
			if err := r.loadUnit(unit); err != nil {
				return nil, err
			}
			ranges = append(ranges, raw.Range{First: unit * r.unit, N: r.unit})
		}
	}
	return ranges, nil
}

// loadUnit loads a page of data and the entities of its rows.
func (r *pagedRows) loadUnit(unit int) error {
	if r.dense != nil {
		if err := r.dense.load(unit * r.unit / format.PageRows); err != nil {
			return err
		}
	}
	if r.data == nil {
		return nil
	}
	if err := r.data.load(unit); err != nil {
		return err
	}
	for side := range 2 {
		if err := r.check(side, unit); err != nil {
			return r.data.files[side].Damage(fmt.Errorf("page %v: %w", r.data.arrays[side].Key(unit), err))
		}
	}
	return nil
}

// check verifies that the rows of a page are values of the layout. If rows vary in size, it also
// splits the page into rows.
func (r *pagedRows) check(side, unit int) error {
	content, n := r.data.held[side][unit], r.data.count(side, unit)
	if r.width >= 0 {
		return r.layout.Check(content, n)
	}
	rows := make([][]byte, n)
	r.cut[side][unit] = rows
	return image.CutRows(r.layout, rows, content)
}

// A pagedSide gives access to the pagedRows of one state.
type pagedSide struct {
	*pagedRows
	side, n int
}

func (s pagedSide) len() int { return s.n }

func (s pagedSide) entity(row int) ecs.Entity {
	if s.dense == nil {
		return 0
	}
	return s.dense.entity(s.side, row)
}

func (s pagedSide) row(row int) []byte {
	switch at := row % s.unit; {
	case s.width < 0:
		return s.cut[s.side][row/s.unit][at]
	case s.width > 0:
		return s.data.held[s.side][row/s.unit][at*s.width : (at+1)*s.width]
	}
	return nil
}
