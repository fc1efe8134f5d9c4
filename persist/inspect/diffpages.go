package inspect

import (
	"bytes"
	"context"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A stateDiff compares two states. It reads a column into memory if ticks have changed the column,
// or if only one state has the column. It compares all other columns page by page. It skips pages
// that two snapshot files share, and releases pages with equal bytes.
//
// To compare a row, both its entity and its value are needed. So if either the page of entities or
// the page of values differs, both pages stay in memory.
//
// In every [2] array, element 0 belongs to the older state and element 1 to the newer one.
type stateDiff struct {
	*Diff
	states [2]*State
}

// diffStates compares newer with older. The two states may belong to different stores, or one of
// them may be a save. Memory grows with the number of pages that differ. Neither state may change
// while the result is in use.
func diffStates(ctx context.Context, older, newer *State) (*Diff, error) {
	d := &stateDiff{&Diff{OldTick: older.outline.Tick, NewTick: newer.outline.Tick}, [2]*State{older, newer}}
	for _, s := range d.states {
		if err := s.checkRoom(); err != nil {
			return nil, err
		}
	}
	d.Schema = diffSchemas(older.outline.Stored(), newer.outline.Stored())
	if err := d.registry(); err != nil {
		return nil, err
	}
	for o, n := range pairs(pointers(older.columns), pointers(newer.columns), func(c *stateColumn) string { return c.Name }) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := d.column(ctx, o, n); err != nil {
			return nil, err
		}
	}
	return d.Diff, nil
}

// registry compares the entity registries of the two states.
func (d *stateDiff) registry() error {
	older, newer := d.states[0], d.states[1]
	if older.registryLoaded || newer.registryLoaded {
		for _, s := range d.states {
			if err := s.loadRegistry(); err != nil {
				return err
			}
		}
		d.Registry = diffRegistries(registry(older.outline), registry(newer.outline), between(0, max(older.indices, newer.indices)))
		return nil
	}
	m, n := older.reader.Manifest, newer.reader.Manifest
	a := d.array(m.Registry(), n.Registry())
	differ, err := a.differing()
	if err != nil {
		return err
	}
	// Live entities have the first registry rows, then come free indices, then retired ones. If the
	// number of live or free indices differs, some rows changed their status without a change of
	// their bytes.
	for _, ends := range [2][2]int{{m.Alive, n.Alive}, {m.Free, n.Free}} {
		for row := min(ends[0], ends[1]); row < max(ends[0], ends[1]); row++ {
			differ[row/format.PageRows] = true
		}
	}
	// Load each page in differ from both states, even if its bytes are equal.
	var ranges []raw.Range
	for page, differs := range differ {
		if !differs {
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
	d.Registry = diffRegistries(side(0, m), side(1, n), ranges)
	return nil
}

// column compares one component. A side is nil if its state does not have the component.
func (d *stateDiff) column(ctx context.Context, older, newer *stateColumn) error {
	if older == nil || newer == nil || !older.pagedLike(newer) {
		var sides [2]*image.Component
		for i, c := range []*stateColumn{older, newer} {
			if c == nil {
				continue
			}
			if err := c.load(ctx); err != nil {
				return err
			}
			sides[i] = c.Component
		}
		return d.component(columnOf(sides[0]), columnOf(sides[1]), differing(sides[0], sides[1]))
	}
	rows := &pagedRows{layout: older.Layout, unit: older.data.PageRows}
	if !older.Resource {
		rows.dense = d.array(older.dense, newer.dense)
	}
	if older.Width != 0 {
		rows.data = d.array(older.data, newer.data)
	}
	ranges, err := rows.load()
	if err != nil {
		return fmt.Errorf("component %s: %w", naming.Shown(older.Name), err)
	}
	side := func(i int, c *stateColumn) diffColumn {
		return diffColumn{c.Name, c.Layout, c.Resource, pagedSide{rows, i, c.N}}
	}
	return d.component(side(0, older), side(1, newer), ranges)
}

// pagedLike reports whether both columns are in files, with equal layouts and pages of the same
// size. Bytes of different layouts cannot be compared. A page of entities covers one or more pages
// of values.
func (c *stateColumn) pagedLike(o *stateColumn) bool {
	return !c.inMemory && !o.inMemory && c.Resource == o.Resource && c.Layout.Equal(o.Layout) &&
		c.data.PageRows == o.data.PageRows && format.PageRows%c.data.PageRows == 0
}

// A pagedArray is one array of a component or of the registry, in both states.
type pagedArray struct {
	files  [2]*snap.Reader
	arrays [2]format.Array
	same   []bool // For each page, whether it is equal in both states.
	// held has the pages in memory of each state, by page number. A page is in memory if it
	// differs. An equal page of entities is in memory if the values of its rows differ, and vice
	// versa.
	held [2]map[int][]byte
}

// array returns a pagedArray in which no page is loaded.
func (d *stateDiff) array(older, newer format.Array) *pagedArray {
	return &pagedArray{
		files: [2]*snap.Reader{d.states[0].reader, d.states[1].reader}, arrays: [2]format.Array{older, newer},
		same: make([]bool, max(older.Pages(), newer.Pages())), held: [2]map[int][]byte{{}, {}},
	}
}

// count returns how many rows a page has in one state.
func (a *pagedArray) count(side, page int) int {
	lo, hi := a.arrays[side].Span(page)
	return max(0, hi-lo)
}

// differing compares all pages, and returns which of them differ. Pages whose bytes differ stay in
// memory.
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

// compare reports whether a page is equal in both states. If its bytes differ, both versions stay
// in memory.
func (a *pagedArray) compare(page int) (bool, error) {
	// Pages with different numbers of rows differ: one of them is the last page of a shorter array.
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

// shared reports whether both states refer to the same stored page. A file refers only to files
// with lower numbers. So there are two cases:
//
//   - The newer file refers to the page in the older file.
//   - Both files refer to a page in a third file.
//
// The result is false for a save, which has no number, and for files of different worlds. The pages
// that this method reads stay in memory.
func (a *pagedArray) shared(page int) (bool, error) {
	first, second := 1, 0
	if a.files[0].Manifest.Number > a.files[1].Manifest.Number {
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
	// The file with the higher number refers to the page in the other file.
	if ref.File == n.Number && ref.Column == 0 {
		return true, nil
	}
	other, err := a.own(second, page)
	if err != nil || a.held[second][page] != nil {
		return false, err
	}
	return ref.Elsewhere() && ref == other, nil
}

// own looks for a page in the file of one state. If the file contains the page, own stores the page
// in a.held. Otherwise it returns the reference to the page in another place.
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

// load loads a page of both states. A page that is equal in both is read once.
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
	unit   int // Number of rows on a page of data.

	values [2]map[int]*pageRows // Rows of data, by page.
}

// load reads the pages that may differ, and returns their rows. It goes through the rows in units.
// A unit has the rows of one page of data. It may differ if its values or its entities differ.
func (r *pagedRows) load() ([]raw.Range, error) {
	r.values = [2]map[int]*pageRows{{}, {}}
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
		rows, err := newPageRows(r.layout, r.data.held[side][unit], r.data.count(side, unit))
		if err != nil {
			return r.data.files[side].Damage(fmt.Errorf("page %v: %w", r.data.arrays[side].Key(unit), err))
		}
		r.values[side][unit] = &rows
	}
	return nil
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
	if s.data == nil {
		return nil
	}
	return s.values[s.side][row/s.unit].row(row % s.unit)
}
