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

// An Image is the state of a world at the end of a tick, without Go types: rows
// are bytes in the format of package layout. Recovery and tools replay ticks on
// it.
//
//	snapshot ─▶ New, pages put in place ─▶ Link ─▶ Adopt, Apply … ─▶ DropDead ─▶ Fill or World
//	                                               (for each tick)
//
// Between two ticks this holds, and every method that changes rows keeps it:
//
//	Entities       as many as N; none for a resource
//	Packed, Rows   N rows, in the one that Width says; behind the length of either all is zero
//	Rows[i]        is never written to, only replaced: clones share it
//	Gaps           how many Entities of an indexed component are vacant
//	Index          Index[Registry[r].Index()] == r
//	Pointers       Pointers[Entities[r].Index()] == r, for who is not vacant; the rest is rubbish
//
// A bare image has neither Index nor Pointers.
type Image struct {
	Tick uint64
	ID   journal.ID // Of the record that led here; zero for the base.

	Registry    []ecs.Entity // Rows [0, Alive) are alive, [Alive, Free) free, the rest retired.
	Alive, Free int
	Components  []*Component // By their number in the schema.

	ops    opCheck        // Its memory only; it holds nothing from one tick to the next.
	Index  []uint32       // Entity index to row of Registry.
	Schema *format.Schema // The last one adopted.

	Checked *raw.Registry // See Check.
}

// A Component is a storage or resource of an [Image]: what the schema says of it, and
// its rows.
type Component struct {
	format.Entry
	Entities []ecs.Entity // In dense order; none for a resource.

	N        int      // Rows,
	Gaps     int      // and how many of them are gaps.
	Width    int      // Bytes of a row; -1: rows vary.
	Packed   []byte   // Rows of fixed width, end to end.
	Rows     [][]byte // Rows that vary.
	Pointers []uint32 // Entity index to row; entries without a row hold rubbish.

	// In a bare image, rows that vary are not cut apart: each of pages holds
	// PageRows of them, the last one the rest.
	Pages    [][]byte
	PageRows int

	Checked *raw.Sparse // See Image.Check.
}

// New returns an image of no entities with the components of s.
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

// Find returns the component of that name, or nil.
func (im *Image) Find(name string) *Component {
	for _, c := range im.Components {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// IsAlive reports whether e is alive: its index has a row among the first, and its generation is
// the one there.
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

// Row returns the encoded row i. It shares memory with the image. A bare image has no
// single rows that vary.
func (c *Component) Row(i int) []byte {
	if c.Width >= 0 {
		return c.Packed[i*c.Width : (i+1)*c.Width : (i+1)*c.Width]
	}
	return c.Rows[i]
}

// Value returns row i for people and tools.
func (c *Component) Value(i int) (layout.Value, error) { return c.Layout.Value(c.Row(i)) }

// Find returns the row of e, or -1. What Pointers says of an index is only believed if the
// row has e: entries of entities that have left it are not taken back.
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

// Sparse returns the sparse array up to the highest index with a row. Entries
// without a row are -1.
func (c *Component) Sparse() []int {
	sparse := make([]int, c.indices())
	for index, row := range format.SparseOf(c.Entities, len(sparse)) {
		if sparse[index] = int(row); row == format.NoRow {
			sparse[index] = -1
		}
	}
	return sparse
}

// indices returns the highest index with a row, and one more.
func (c *Component) indices() (n int) {
	for _, e := range c.Entities {
		if e != ecs.Vacant {
			n = max(n, int(e.Index())+1)
		}
	}
	return n
}

// AppendRows appends rows [lo, hi), end to end. Pages are appended whole, so in a bare image both
// ends must be those of pages.
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

// Resize makes the component n rows long. New rows hold nothing yet: neither an entity, nor a value
// that can be decoded, and they are no gaps either. Whoever asks for them gives them next.
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

// resizeRows makes room for n rows of values, or gives up those behind.
func (c *Component) resizeRows(n int) {
	if c.Width >= 0 {
		c.Packed = Resized(c.Packed, n*c.Width)
	} else {
		c.Rows = Resized(c.Rows, n)
	}
}

// Resized returns s with length n; what is new is zero. It counts on zeros past the
// length of s, and leaves zeros there.
func Resized[T any](s []T, n int) []T {
	if n <= len(s) {
		clear(s[n:])
		return s[:n]
	}
	if n <= cap(s) { // What is past the length is zero: it is cleared when that falls.
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

// SetRows replaces rows from first on by n rows of src, which it checks, and
// returns the rest of src.
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

// CutRows cuts a page of rows that vary, of type t, apart.
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

// SetEntities makes the entities of rows from first on those encoded in src,
// whose indices must be below indices. Rows that they had before are not looked at: while
// a patch is put in place an entity may have two, and the operations tell afterwards
// whether it has.
func (c *Component) SetEntities(first int, src []byte, indices int) error {
	for row := first; len(src) > 0; row, src = row+1, src[8:] {
		e := ecs.Entity(binary.LittleEndian.Uint64(src))
		c.CountGap(c.Entities[row], -1) // Rows that are new hold none.
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

// CountGap counts the row of e, if it is a gap.
func (c *Component) CountGap(e ecs.Entity, by int) {
	if c.Indexed && e == ecs.Vacant {
		c.Gaps += by
	}
}

// point notes the row of an entity. What was noted of one that has none any more stays:
// [Component.Find] compares with the entity in the row.
func (c *Component) point(index uint32, row int) {
	if int(index) >= len(c.Pointers) {
		c.Pointers = append(c.Pointers, make([]uint32, max(int(index)+1, 2*len(c.Pointers))-len(c.Pointers))...)
	}
	c.Pointers[index] = uint32(row)
}

// Apply makes im the state after t, whose record has that ID. An error leaves im unusable.
//
// What the operations lead to is worked out before the rows change and compared afterwards, so that a
// tick which contradicts itself is not taken. It costs what t has, and a little for each component.
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

// DropDead removes what does not rewind from entities that are not alive, as a
// world does when it is put back. A snapshot has it as it was when the snapshot
// was taken, which may be later than the ticks replayed behind it.
func (im *Image) DropDead() {
	for _, c := range im.Components {
		if !c.Rewinds && !c.Resource {
			c.Keep(func(row int) bool { e := c.Entities[row]; return c.Indexed && e == ecs.Vacant || im.IsAlive(e) })
		}
	}
}

// Keep removes the rows of c, which is no resource, that are not good: those of an
// indexed component become gaps, of another one those behind come up.
func (c *Component) Keep(good func(row int) bool) {
	kept := 0 // Rows that are not indexed move up to here, in their order.
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

// vacate makes a row of an indexed component a gap, which holds the same bytes as any
// other: digests sum gaps as well.
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

// Digest returns the digest of the world that im is the image of, without what
// is not persistent.
func (im *Image) Digest() ecs.Digest { return im.Digests().World }

// Digests returns what [ecs.World.Digests] would of the world that im is the image of.
// Both sum the same bytes in the same pages, so they are equal if the states are.
func (im *Image) Digests() (d ecs.Digests) {
	registry := SumRows(len(im.Registry), func(p *Page, lo, hi int) { p.Entities(im.Registry[lo:hi]) })
	var parts []digest.Part
	for _, c := range im.Components {
		if c.N > 0 && c.Rewinds {
			parts = append(parts, digest.Part{Name: c.Name, Sum: SumRows(c.N, c.sumPage)})
		}
	}
	d.Registry = ecs.Digest(digest.RegistryOf(registry, im.Alive, im.Free))
	d.World = ecs.Digest(digest.World(im.Tick, uint64(d.Registry), parts)) // It sorts parts.
	for _, p := range parts {
		d.Storages = append(d.Storages, ecs.StorageDigest{Name: p.Name, Digest: ecs.Digest(p.Sum)})
	}
	return d
}

// sumPage sums rows [lo, hi).
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

// A Page is a page that is summed, piece by piece where the pieces lie.
type Page struct {
	sum xxh3.Hasher
	buf []byte
}

// Bytes adds rows as they are stored.
func (p *Page) Bytes(rows []byte) { _, _ = p.sum.Write(rows) }

// Entities adds rows of entities.
func (p *Page) Entities(rows []ecs.Entity) { p.Bytes(digest.EntityBytes(rows)) }

// Rows adds rows [lo, hi), which are appended first.
func (p *Page) Rows(lo, hi int, appendRows func(dst []byte, lo, hi int) []byte) {
	p.buf = appendRows(p.buf[:0], lo, hi)
	p.Bytes(p.buf)
}

// SumRows returns the sum of n rows, that of the sums of their pages. page gives the rows [lo, hi) of one; it
// is called for several pages at the same time.
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

// summedPages holds pages with their buffers.
var summedPages = sync.Pool{New: func() any { return new(Page) }}

// Fill makes im, which was read from file and what follows it, the state of w.
func (im *Image) Fill(w *ecs.World, file string) error { return Put(w, im.State(), file) }

// Put makes state, which was read from file and what follows it, that of w. Its types fit. What the
// world refuses of it is damage: bytes and types were checked before, so the rows contradict each
// other.
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

// State returns what [raw.World.Load] takes. It shares memory with im, which is of no
// use after that: the world may keep it and write into it. Rows that vary are copied, unless the image
// is a bare one.
func (im *Image) State() *raw.State {
	s := &raw.State{Tick: im.Tick, Registry: raw.As[uint64](im.Registry), Alive: im.Alive, Free: im.Free, Checked: im.Checked, Owned: true}
	for _, c := range im.Components {
		if c.Resource && c.N == 0 {
			continue // Registered, but never journaled or snapshotted.
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

// Stored returns the schema of im, as it would be saved under.
func (im *Image) Stored() *format.Schema {
	s := format.NewSchema()
	for _, c := range im.Components {
		s.Add(c.Entry)
	}
	return s
}

// Adopt adds to im the components that s has beyond those of im. The others must
// be the same: numbers are only added. Every tick is preceded by it; nearly all have
// the schema of the one before, which is known by its address, as whoever reads schemas keeps them.
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

// Link makes what finds the rows of entities, once all of them are in place: Index and Pointers. From
// then on ticks keep both up to date. O(rows), by several goroutines.
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

// Check readies a bare image for [Component.CheckSparse] to leave the world that it fills nothing to
// check. It is not for components with few entities for the indices there are: a world may have no
// pages for those. If the registry is not right, the world says why.
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

// fewest is how many indices there are for an entity of a component, at most, that is checked
// for a world.
const fewest = 16

// CheckSparse compares a page of the sparse array with what follows from dense. It
// returns how many entries the page has. A component that is checked for a world keeps the page.
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

// compareSparse is CheckSparse that says what is wrong. All entries are decoded before the first
// is looked up: the decoder's branches keep look-ups that miss the cache from running side by side.
func (c *Component) compareSparse(page int, content []byte) (entries int, err error) {
	var buf [format.PageRows]sparseRun
	runs := buf[:0]
	err = format.DecodeSparsePage(content, func(i int, row uint32, n int) error {
		runs = append(runs, sparseRun{uint32(page*format.PageRows + i), row, uint32(n)})
		return nil
	})
	for _, r := range runs { // A row behind the last one has no entity, so it is not the one named.
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

// A sparseRun is n entries of a sparse array, from first on: their rows follow each other.
type sparseRun struct{ first, row, n uint32 }

// Clone returns a copy of im that ticks may be replayed on. Of what it shares with im
// nothing ever changes.
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

// Settled returns im as a program would see it: without what does not rewind of
// entities that are dead. Ticks may follow im itself, which keeps that, and not what is returned: it
// shares with im all that it need not change.
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
	d.Packed, d.Rows = slices.Clone(c.Packed), slices.Clone(c.Rows) // A row of bytes never changes.
	return &d
}

// World returns a new world in the state of im, none of whose components is known
// to the program: they are rows of bytes that can be saved, journaled and
// digested. It shares nothing with im.
func (im *Image) World(options ecs.Options) (*ecs.World, error) {
	w := ecs.NewWorld(options)
	state := im.State()
	state.Owned = false // The world copies what it keeps.
	if err := w.Raw().Load(state); err != nil {
		return nil, err
	}
	return w, nil
}
