package image

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// An Image is the state of a world at the end of a tick, without Go types. Rows are bytes in the
// format of package layout. Recovery and tools replay ticks on it. The methods are called in this
// order:
//
//	New             an image of a snapshot, in which pages are then put in place
//	Link            when all pages are in place
//	Adopt, Apply    for each tick
//	DropDead        after the last tick
//	Fill or World   loads the state into a world
//
// These invariants hold between two ticks, and every method that changes rows keeps them:
//
//	Entities       N entries; none for a resource
//	Packed, Rows   N rows, in the field that Width selects; memory after the length is zero
//	Rows[i]        is never written to, only replaced, because clones share it
//	Gaps           number of vacant Entities of an indexed component
//	Index          Index[Registry[r].Index()] == r
//	Pointers       Pointers[Entities[r].Index()] == r unless vacant; other entries are undefined
//
// A bare image has neither Index nor Pointers.
type Image struct {
	Tick uint64
	ID   journal.ID // ID of the last applied record. Zero before the first record.

	// Rows [0, Alive) are alive, rows [Alive, Free) are free, and later rows are retired.
	Registry    []ecs.Entity
	Alive, Free int
	Components  []*Component // By number in the schema.

	ops    opCheck        // Reused for its memory. It has no data between ticks.
	Index  []uint32       // Maps an entity index to its row in Registry.
	Schema *format.Schema // The last adopted schema.

	Checked *raw.Registry // The result of the checks of Registry. Nil unless Check set it.
}

// A Component is a storage or resource of an [Image]: its schema entry and its rows.
type Component struct {
	format.Entry
	Entities []ecs.Entity // In dense order. Empty for a resource.

	N        int      // Number of rows.
	Gaps     int      // Number of rows that are gaps.
	Width    int      // Bytes of a row. -1 means that the width varies.
	Packed   []byte   // Rows of fixed width, concatenated.
	Rows     [][]byte // Rows of varying width.
	Pointers []uint32 // Maps an entity index to a row. Undefined for entities without a row.

	// Rows of varying width in a bare image. Each page has PageRows rows; the last page may have
	// fewer.
	Pages    [][]byte
	PageRows int

	Checked *raw.Sparse // The pages that CheckSparse found valid. Nil unless Check set it.
}

// New returns an image without entities, with the components of s.
func New(s *format.Schema) *Image {
	im := new(Image)
	im.extend(s)
	return im
}

// extend adds the components of s that im does not have yet.
func (im *Image) extend(s *format.Schema) {
	for _, e := range s.Components[min(len(im.Components), len(s.Components)):] {
		im.Components = append(im.Components, &Component{Entry: e, Width: e.Layout.Width()})
	}
}

// Find returns the component with this name, or nil.
func (im *Image) Find(name string) *Component {
	for _, c := range im.Components {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// IsAlive reports whether e is alive: its registry row is below Alive and has the same generation.
func (im *Image) IsAlive(e ecs.Entity) bool {
	i := e.Index()
	if int(i) >= len(im.Index) {
		return false
	}
	r := int(im.Index[i])
	return r < im.Alive && im.Registry[r] == e
}

// Len returns the number of rows, gaps included.
func (c *Component) Len() int { return c.N }

// Members returns the number of entities that have the component.
func (c *Component) Members() int { return c.N - c.Gaps }

// Row returns the encoded row i. It shares memory with the image. In a bare image, rows of varying
// width are not available.
func (c *Component) Row(i int) []byte {
	if c.Width >= 0 {
		return c.Packed[i*c.Width : (i+1)*c.Width : (i+1)*c.Width]
	}
	return c.Rows[i]
}

// Value returns row i decoded, for people and tools.
func (c *Component) Value(i int) (layout.Value, error) { return c.Layout.Value(c.Row(i)) }

// Find returns the row of e, or -1. An entry of Pointers counts only if the row contains e, because
// entries of removed entities are not reset.
func (c *Component) Find(e ecs.Entity) int {
	i := e.Index()
	if int(i) >= len(c.Pointers) {
		return -1
	}
	if r := int(c.Pointers[i]); r < len(c.Entities) && c.Entities[r] == e {
		return r
	}
	return -1
}

// Sparse returns the sparse array up to the highest index with a row. Entries without a row are -1.
func (c *Component) Sparse() []int {
	sparse := make([]int, c.indices())
	for index, row := range format.SparseOf(c.Entities, len(sparse)) {
		if sparse[index] = int(row); row == format.NoRow {
			sparse[index] = -1
		}
	}
	return sparse
}

// indices returns the highest index with a row, plus one.
func (c *Component) indices() (n int) {
	for _, e := range c.Entities {
		if e != ecs.Vacant {
			n = max(n, int(e.Index())+1)
		}
	}
	return n
}

// AppendRows appends rows [lo, hi), concatenated. In a bare image, lo and hi must be page
// boundaries, because pages are appended as a whole.
func (c *Component) AppendRows(dst []byte, lo, hi int) []byte {
	if c.Pages != nil {
		for _, page := range c.Pages[lo/c.PageRows : (hi+c.PageRows-1)/c.PageRows] {
			dst = append(dst, page...)
		}
		return dst
	}
	if c.Width >= 0 {
		return append(dst, c.Packed[lo*c.Width:hi*c.Width]...)
	}
	for _, r := range c.Rows[lo:hi] {
		dst = append(dst, r...)
	}
	return dst
}

// Resize sets the number of rows to n. New rows contain neither an entity nor a valid value, and
// are not counted as gaps. The caller sets them next.
func (c *Component) Resize(n int) {
	if !c.Resource {
		for _, e := range c.Entities[min(n, len(c.Entities)):] {
			c.CountGap(e, -1)
		}
		c.Entities = Resized(c.Entities, n)
	}
	c.resizeRows(n)
	c.N = n
}

// resizeRows sets the number of value rows to n.
func (c *Component) resizeRows(n int) {
	if c.Width >= 0 {
		c.Packed = Resized(c.Packed, n*c.Width)
	} else {
		c.Rows = Resized(c.Rows, n)
	}
}

// Resized returns s with length n. New elements are zero. The unused capacity of s must be zero,
// and stays zero.
func Resized[T any](s []T, n int) []T {
	if n <= len(s) {
		clear(s[n:])
		return s[:n]
	}
	// Elements after the length are zero: they are cleared when the length decreases.
	if n <= cap(s) {
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

// SetRows replaces n rows, beginning with row first, by rows from the beginning of src. It checks
// these rows and returns the remaining bytes of src.
func (c *Component) SetRows(first, n int, src []byte) (rest []byte, err error) {
	if c.Width >= 0 {
		size := n * c.Width
		if size > len(src) {
			return nil, format.ErrShort
		}
		if err := c.Layout.Check(src[:size], n); err != nil {
			return nil, err
		}
		copy(c.Packed[first*c.Width:], src[:size])
		return src[size:], nil
	}
	for i := range n {
		row, rest, err := c.Layout.Next(src)
		if err != nil {
			return nil, err
		}
		c.Rows[first+i], src = append([]byte(nil), row...), rest
	}
	return src, nil
}

// CutRows splits content, a page of rows of type t, into rows. The rows vary in width.
func CutRows(t *layout.Type, rows [][]byte, content []byte) (err error) {
	for i := range rows {
		if rows[i], content, err = t.Next(content); err != nil {
			return err
		}
	}
	if len(content) > 0 {
		return ErrRanges
	}
	return nil
}

// SetEntities puts the entities encoded in src into consecutive rows, beginning with row first. The
// index of each entity must be less than the parameter indices. SetEntities accepts an entity that
// already has another row. Apply detects this later, when it compares the rows with the operations.
func (c *Component) SetEntities(first int, src []byte, indices int) error {
	for row := first; len(src) > 0; row, src = row+1, src[8:] {
		e := ecs.Entity(binary.LittleEndian.Uint64(src))
		// A new row contains the entity 0. It is not vacant, so it was not counted as a gap.
		c.CountGap(c.Entities[row], -1)
		c.CountGap(e, 1)
		c.Entities[row] = e
		if c.Indexed && e == ecs.Vacant {
			continue
		}
		if int64(e.Index()) >= int64(indices) || c.Indexed && int(e.Index()) != row {
			return fmt.Errorf("row %d belongs to %v of %d", row, e, indices)
		}
		c.point(e.Index(), row)
	}
	return nil
}

// CountGap adds the parameter by to the number of gaps, if c is indexed and e is vacant.
func (c *Component) CountGap(e ecs.Entity, by int) {
	if c.Indexed && e == ecs.Vacant {
		c.Gaps += by
	}
}

// point sets the row of an entity index. The entry of a removed entity stays, because
// [Component.Find] compares it with the entity in the row.
func (c *Component) point(index uint32, row int) {
	if int(index) >= len(c.Pointers) {
		c.Pointers = append(c.Pointers, make([]uint32, max(int(index)+1, 2*len(c.Pointers))-len(c.Pointers))...)
	}
	c.Pointers[index] = uint32(row)
}

// Apply turns im into the state after t. id is the ID of the record of t. After an error im is
// unusable.
//
// Apply computes the effect of the operations, changes the rows, and compares the rows with that
// effect. So it rejects a tick that contradicts itself. The cost is that of t, plus a little for
// each component.
func (im *Image) Apply(t *format.Tick, id journal.ID) error {
	if t.Parent != im.ID {
		return fmt.Errorf("tick %d continues state %v, not %v", t.Tick, t.Parent, im.ID)
	}
	if err := im.expect(t.Ops); err != nil {
		return err
	}
	if err := im.Patch(t); err != nil {
		return err
	}
	if err := im.ops.compare(im); err != nil {
		return fmt.Errorf("tick %d: %w", t.Tick, err)
	}
	im.Tick, im.ID = t.Tick, id
	return nil
}

// DropDead removes the values of dead entities from components that do not rewind. A world does the
// same after a restore. A snapshot has such components as they were when the file was written. By
// then, ticks after the snapshot's state may have created entities or destroyed some.
func (im *Image) DropDead() {
	for _, c := range im.Components {
		if !c.Rewinds && !c.Resource {
			c.Keep(func(row int) bool { e := c.Entities[row]; return c.Indexed && e == ecs.Vacant || im.IsAlive(e) })
		}
	}
}

// Keep removes the rows of c for which good returns false. c is not a resource. In an indexed
// component, removed rows become gaps. In other components, later rows move up.
func (c *Component) Keep(good func(row int) bool) {
	kept := 0 // The next kept row moves to this row, unless c is indexed.
	for row := range c.Entities {
		switch ok := good(row); {
		case c.Indexed && !ok:
			c.vacate(row)
		case !c.Indexed && ok:
			c.move(row, kept)
			kept++
		}
	}
	if !c.Indexed {
		c.Resize(kept)
	}
}

// vacate makes a row of an indexed component a gap. All gaps have the same bytes, because digests
// cover gaps, too.
func (c *Component) vacate(row int) {
	empty := c.Gap()
	c.CountGap(c.Entities[row], -1)
	c.Entities[row] = ecs.Vacant
	c.Gaps++
	if c.Width >= 0 {
		copy(c.Packed[row*c.Width:], empty)
	} else {
		c.Rows[row] = empty
	}
}

// move copies a row over an earlier one.
func (c *Component) move(from, to int) {
	c.Entities[to] = c.Entities[from]
	c.point(c.Entities[to].Index(), to)
	if c.Width >= 0 {
		copy(c.Packed[to*c.Width:(to+1)*c.Width], c.Packed[from*c.Width:])
	} else {
		c.Rows[to] = c.Rows[from]
	}
}

// Digest returns the digest of the persistent parts of the world that im represents.
func (im *Image) Digest() ecs.Digest { return im.Digests().World }

// Digests returns the same result as [ecs.World.Digests] of the world that im represents. Both sum
// the same bytes in the same pages, so equal states have equal digests.
func (im *Image) Digests() (d ecs.Digests) {
	registry := SumRows(len(im.Registry), func(p *Page, lo, hi int) { p.Entities(im.Registry[lo:hi]) })
	var parts []digest.Part
	for _, c := range im.Components {
		if c.N > 0 && c.Rewinds {
			parts = append(parts, digest.Part{Name: c.Name, Sum: SumRows(c.N, c.sumPage)})
		}
	}
	d.Registry = ecs.Digest(digest.RegistryOf(registry, im.Alive, im.Free))
	// The order of parts does not matter, because digest.World sorts them.
	d.World = ecs.Digest(digest.World(im.Tick, uint64(d.Registry), parts))
	for _, p := range parts {
		d.Storages = append(d.Storages, ecs.StorageDigest{Name: p.Name, Digest: ecs.Digest(p.Sum)})
	}
	return d
}

// sumPage adds rows [lo, hi) of c to the checksum p.
func (c *Component) sumPage(p *Page, lo, hi int) {
	if !c.Resource {
		p.Entities(c.Entities[lo:hi])
	}
	switch {
	case c.Pages != nil:
		for _, rows := range c.Pages[lo/c.PageRows : (hi+c.PageRows-1)/c.PageRows] {
			p.Bytes(rows)
		}
	case c.Width >= 0:
		p.Bytes(c.Packed[lo*c.Width : hi*c.Width])
	default:
		p.Rows(lo, hi, c.AppendRows)
	}
}

// A Page computes the checksum of a page of rows. The parts of the page may be in several buffers.
type Page struct {
	sum xxh3.Hasher
	buf []byte
}

// Bytes adds encoded rows to the checksum.
func (p *Page) Bytes(rows []byte) { _, _ = p.sum.Write(rows) }

// Entities adds rows of entities to the checksum.
func (p *Page) Entities(rows []ecs.Entity) { p.Bytes(digest.EntityBytes(rows)) }

// Rows adds rows [lo, hi) to the checksum. It appends the rows to a buffer first.
func (p *Page) Rows(lo, hi int, appendRows func(dst []byte, lo, hi int) []byte) {
	p.buf = appendRows(p.buf[:0], lo, hi)
	p.Bytes(p.buf)
}

// SumRows returns the checksum of n rows, computed from the checksums of their pages. It calls the
// function page with the rows [lo, hi) of each page, for several pages at the same time.
func SumRows(n int, page func(p *Page, lo, hi int)) uint64 {
	sums := make([]uint64, (n+digest.PageRows-1)/digest.PageRows)
	_ = parallel.Do(context.Background(), len(sums), func(i int) error {
		p := summedPages.Get().(*Page)
		defer summedPages.Put(p)
		p.sum.Reset()
		page(p, i*digest.PageRows, min((i+1)*digest.PageRows, n))
		sums[i] = p.sum.Sum64()
		return nil
	})
	return digest.Storage(n, sums)
}

// summedPages keeps pages with their buffers for reuse.
var summedPages = sync.Pool{New: func() any { return new(Page) }}

// Fill loads im into w. file is the snapshot file that im was read from, for errors.
func (im *Image) Fill(w *ecs.World, file string) error { return Put(w, im.State(), file) }

// Put loads the given state into w. file is the snapshot file that the state was read from, for
// errors. The caller has checked the bytes and types of the state. A world may still refuse the
// state, because rows contradict each other. Put reports that as damage to the file.
func Put(w *ecs.World, state *raw.State, file string) error {
	err := w.Raw().Load(state)
	if errors.Is(err, layout.ErrIntSize) {
		return fmt.Errorf("%s: %w", file, err)
	}
	if errors.Is(err, raw.ErrState) {
		return &format.DamageError{File: file, Offset: -1, Length: 0, Reason: err.Error(), Err: format.ErrCorrupt}
	}
	return err
}

// State returns the argument of [raw.World.Load]. It shares memory with im. The world may keep and
// change that memory, so im must not be used afterwards. Rows of varying width are copied, unless
// the image is bare.
func (im *Image) State() *raw.State {
	s := &raw.State{Tick: im.Tick, Registry: raw.As[uint64](im.Registry), Alive: im.Alive, Free: im.Free, Checked: im.Checked, Owned: true}
	for _, c := range im.Components {
		if c.Resource && c.N == 0 {
			continue // The resource is registered, but was never journaled or snapshotted.
		}
		rows := c.Packed
		if c.Width < 0 && c.Pages == nil {
			rows = c.AppendRows(nil, 0, c.N)
		}
		st := c.Entry.State()
		st.NoRewind, st.Entities, st.Checked, st.Rows, st.Pages, st.PageRows = !c.Rewinds, raw.As[uint64](c.Entities), c.Checked, rows, c.Pages, c.PageRows
		s.Storages = append(s.Storages, st)
	}
	return s
}

// Stored returns the schema under which im would be saved.
func (im *Image) Stored() *format.Schema {
	s := format.NewSchema()
	for _, c := range im.Components {
		s.Add(c.Entry)
	}
	return s
}

// Adopt adds the components of s that im does not have yet. Components that both have must be
// equal. Adopt is called before every tick. It returns early if s has the same address as in the
// previous call.
func (im *Image) Adopt(s *format.Schema) error {
	if im.Schema == s {
		return nil
	}
	if err := im.Stored().Differs(s); err != nil {
		return err
	}
	im.extend(s)
	im.Schema = s
	return nil
}

// Link builds the lookup of rows by entity: Index and Pointers. All entities must be in place.
// Later ticks keep Index and Pointers up to date. Cost: O(rows), in several goroutines.
func (im *Image) Link(ctx context.Context) error {
	return parallel.Do(ctx, 1+len(im.Components), func(i int) error {
		if i == 0 {
			im.Index = format.SparseOf(im.Registry, len(im.Registry))
		} else if c := im.Components[i-1]; !c.Resource {
			c.Pointers = format.SparseOf(c.Entities, c.indices())
		}
		return nil
	})
}

// Check prepares a bare image for [Component.CheckSparse]. CheckSparse then also does checks that a
// world would otherwise do when it loads the image. Check leaves out indexed components, and
// components with few entities. If the registry is invalid, Check does nothing more, because the
// world reports the error later.
func (im *Image) Check() {
	var err error
	if im.Checked, err = raw.CheckRegistry(raw.As[uint64](im.Registry), im.Alive, im.Free); err != nil {
		return
	}
	for _, c := range im.Components {
		if !c.Resource && !c.Indexed && len(c.Entities) >= len(im.Registry)/fewest {
			c.Checked = im.Checked.Sparse(raw.As[uint64](c.Entities))
		}
	}
}

// Check skips components that have fewer than one entity per 16 indices.
const fewest = 16

// CheckSparse compares a page of the sparse array with the dense array. It returns the number of
// entries in the page that have a row. If c.Checked is set, CheckSparse also adds the page to it if
// the page is valid. A world that loads the image then need not check the page again.
func (c *Component) CheckSparse(page int, content []byte) (entries int, err error) {
	if c.Checked != nil {
		var rows [format.PageRows]uint32
		if format.DecodeSparseRows(content, &rows) == nil {
			if n, ok := c.Checked.Put(page, &rows); ok {
				return n, nil
			}
		}
	}
	return c.compareSparse(page, content)
}

// compareSparse is the slow path of CheckSparse. It finds the entry that is wrong. It first decodes
// all entries, and looks up their rows in a second loop. In this short loop, the processor can wait
// for several rows in memory at the same time.
func (c *Component) compareSparse(page int, content []byte) (entries int, err error) {
	var buf [format.PageRows]sparseRun
	runs := buf[:0]
	err = format.DecodeSparsePage(content, func(i int, row uint32, n int) error {
		runs = append(runs, sparseRun{uint32(page*format.PageRows + i), row, uint32(n)})
		return nil
	})
	// A row after the last one has no entity. Then have is shorter than the run, and the entry is
	// wrong.
	for _, r := range runs {
		have := c.Entities[min(int(r.row), len(c.Entities)):min(int(r.row)+int(r.n), len(c.Entities))]
		k := uint32(0)
		for k < uint32(len(have)) && have[k].Index() == r.first+k {
			k++
		}
		if entries += int(k); k < r.n {
			return entries, fmt.Errorf("sparse entry %d names row %d of another entity", r.first+k, int(r.row)+int(k))
		}
	}
	return entries, err
}

// A sparseRun is a run of n entries of a sparse array with consecutive rows. first is the index of
// the first entry, and row is the row in this entry.
type sparseRun struct{ first, row, n uint32 }

// Clone returns a copy of im on which ticks can be replayed. The copy shares only memory that never
// changes.
func (im *Image) Clone() *Image {
	c := *im
	c.ops = opCheck{}
	c.Registry, c.Index = slices.Clone(im.Registry), slices.Clone(im.Index)
	c.Components = make([]*Component, len(im.Components))
	for i, comp := range im.Components {
		c.Components[i] = comp.clone()
	}
	return &c
}

// Settled returns im as a program would see it: without values of dead entities in components that
// do not rewind. The result shares unchanged components with im. Later ticks can be applied to im,
// but not to the result.
func (im *Image) Settled() *Image {
	rewinds := func(c *Component) bool { return c.Rewinds || c.Resource }
	if !slices.ContainsFunc(im.Components, func(c *Component) bool { return !rewinds(c) }) {
		return im
	}
	s := *im
	s.Components = slices.Clone(im.Components)
	for i, c := range s.Components {
		if !rewinds(c) {
			s.Components[i] = c.clone()
		}
	}
	s.DropDead()
	return &s
}

// clone returns a copy of c that may be changed.
func (c *Component) clone() *Component {
	d := *c
	d.Entities, d.Pointers = slices.Clone(c.Entities), slices.Clone(c.Pointers)
	// The clones share the bytes of single rows, which never change.
	d.Packed, d.Rows = slices.Clone(c.Packed), slices.Clone(c.Rows)
	return &d
}

// World returns a new world in the state of im. Its components have no Go types: their rows are
// bytes that can be saved, journaled and digested. The world shares no memory with im.
func (im *Image) World(options ecs.Options) (*ecs.World, error) {
	w := ecs.NewWorld(options)
	state := im.State()
	state.Owned = false // The world copies the memory of im instead of using it.
	if err := w.Raw().Load(state); err != nil {
		return nil, err
	}
	return w, nil
}
