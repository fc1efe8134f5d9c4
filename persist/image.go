package persist

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
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/journal"
)

// An Image is the state of a world at the end of a tick, without Go types: rows
// are bytes in the format of package layout. Recovery and tools replay ticks on
// it.
type Image struct {
	Tick uint64
	ID   journal.ID // Of the record that led here; zero for the base.

	Registry    []ecs.Entity // Rows [0, Alive) are alive, [Alive, Free) free, the rest retired.
	Alive, Free int
	Components  []*Component // By their number in the schema.

	check  opCheck
	index  []uint32 // Entity index to row of Registry.
	schema *schema  // The last one adopted.
}

// A Component is a storage or resource of an [Image].
type Component struct {
	Name     string
	Layout   *layout.Type
	Resource bool
	Rewinds  bool
	Indexed  bool         // The row of an entity is its index; gaps are [ecs.Vacant].
	Entities []ecs.Entity // In dense order; none for a resource.

	version uint32
	former  []formerEntry

	n      int
	gaps   int
	gap    []byte   // The row that gaps hold; empty: the zero value.
	width  int      // Bytes of a row; -1: rows vary.
	packed []byte   // Rows of fixed width, end to end.
	rows   [][]byte // Rows that vary.
	sparse []uint32 // Entity index to row; entries without a row hold rubbish.

	// In a bare image, rows that vary are not cut apart: each of pages holds
	// pageRows of them, the last one the rest.
	pages    [][]byte
	pageRows int
}

func newImage(s *schema) *Image {
	im := new(Image)
	im.extend(s)
	return im
}

// extend adds the components of s that im does not have yet.
func (im *Image) extend(s *schema) {
	for _, e := range s.components[min(len(im.Components), len(s.components)):] {
		im.Components = append(im.Components, &Component{
			Name: e.Name, Layout: e.Layout, Resource: e.Resource, Rewinds: e.Rewinds, Indexed: e.Indexed,
			version: e.Version, former: e.Former, width: e.Layout.Width(), gap: e.Default,
		})
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

// IsAlive reports whether e is alive.
func (im *Image) IsAlive(e ecs.Entity) bool {
	i := e.Index()
	if int(i) >= len(im.index) {
		return false
	}
	r := int(im.index[i])
	return r < im.Alive && im.Registry[r] == e
}

// Len returns the number of rows, gaps included.
func (c *Component) Len() int { return c.n }

// Members returns the number of entities that have the component.
func (c *Component) Members() int { return c.n - c.gaps }

// Row returns the encoded row i. It shares memory with the image.
func (c *Component) Row(i int) []byte {
	if c.width >= 0 {
		return c.packed[i*c.width : (i+1)*c.width : (i+1)*c.width]
	}
	return c.rows[i]
}

// Value returns row i for people and tools.
func (c *Component) Value(i int) (layout.Value, error) { return c.Layout.Value(c.Row(i)) }

// Find returns the row of e, or -1.
func (c *Component) Find(e ecs.Entity) int {
	i := e.Index()
	if int(i) >= len(c.sparse) {
		return -1
	}
	if r := int(c.sparse[i]); r < len(c.Entities) && c.Entities[r] == e {
		return r
	}
	return -1
}

// Sparse returns the sparse array up to the highest index with a row. Entries
// without a row are -1.
func (c *Component) Sparse() []int {
	var sparse []int
	for r, e := range c.Entities {
		if e == ecs.Vacant {
			continue
		}
		for len(sparse) <= int(e.Index()) {
			sparse = append(sparse, -1)
		}
		sparse[e.Index()] = r
	}
	return sparse
}

// appendRows appends rows [lo, hi), end to end. Pages are appended whole.
func (c *Component) appendRows(dst []byte, lo, hi int) []byte {
	if c.pages != nil {
		for _, page := range c.pages[lo/c.pageRows : (hi+c.pageRows-1)/c.pageRows] {
			dst = append(dst, page...)
		}
		return dst
	}
	if c.width >= 0 {
		return append(dst, c.packed[lo*c.width:hi*c.width]...)
	}
	for _, r := range c.rows[lo:hi] {
		dst = append(dst, r...)
	}
	return dst
}

// resize makes the component n rows long. New rows hold nothing yet.
func (c *Component) resize(n int) {
	if !c.Resource {
		for _, e := range c.Entities[min(n, len(c.Entities)):] {
			c.countGap(e, -1)
		}
		c.Entities = resized(c.Entities, n)
	}
	c.resizeRows(n)
	c.n = n
}

func (c *Component) resizeRows(n int) {
	if c.width >= 0 {
		c.packed = resized(c.packed, n*c.width)
	} else {
		c.rows = resized(c.rows, n)
	}
}

// reserve makes room for n rows.
func (c *Component) reserve(n int) {
	if !c.Resource {
		c.Entities = slices.Grow(c.Entities, n)
	}
	if c.width >= 0 {
		c.packed = slices.Grow(c.packed, n*c.width)
	} else {
		c.rows = slices.Grow(c.rows, n)
	}
}

func resized[T any](s []T, n int) []T {
	if n <= len(s) {
		clear(s[n:])
		return s[:n]
	}
	if n <= cap(s) { // Rows past the length are zero: they are cleared when it falls.
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

// setRows replaces rows from first on by n rows of src, which it checks, and
// returns the rest of src.
func (c *Component) setRows(first, n int, src []byte) (rest []byte, err error) {
	if c.width >= 0 {
		size := n * c.width
		if size > len(src) {
			return nil, errShort
		}
		if err := c.Layout.Check(src[:size], n); err != nil {
			return nil, err
		}
		copy(c.packed[first*c.width:], src[:size])
		return src[size:], nil
	}
	for i := range n {
		row, rest, err := c.Layout.Next(src)
		if err != nil {
			return nil, err
		}
		c.rows[first+i], src = append([]byte(nil), row...), rest
	}
	return src, nil
}

// setEntities makes the entities of rows from first on those encoded in src,
// whose indices must be below indices.
func (c *Component) setEntities(first int, src []byte, indices int) error {
	for row := first; len(src) > 0; row, src = row+1, src[8:] {
		e := ecs.Entity(binary.LittleEndian.Uint64(src))
		c.countGap(c.Entities[row], -1)
		c.countGap(e, 1)
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

// countGap counts the row of e, if it is a gap.
func (c *Component) countGap(e ecs.Entity, by int) {
	if c.Indexed && e == ecs.Vacant {
		c.gaps += by
	}
}

func (c *Component) point(index uint32, row int) {
	if int(index) >= len(c.sparse) {
		c.sparse = append(c.sparse, make([]uint32, max(int(index)+1, 2*len(c.sparse))-len(c.sparse))...)
	}
	c.sparse[index] = uint32(row)
}

// apply makes im the state after t. An error leaves im unusable.
func (im *Image) apply(t *tick, id journal.ID) error {
	if t.parent != im.ID {
		return fmt.Errorf("tick %d continues state %v, not %v", t.tick, t.parent, im.ID)
	}
	if err := im.expect(t.ops); err != nil {
		return err
	}
	if err := im.patch(t); err != nil {
		return err
	}
	if err := im.check.compare(im); err != nil {
		return fmt.Errorf("tick %d: %w", t.tick, err)
	}
	im.Tick, im.ID = t.tick, id
	return nil
}

// patch gives im the rows of t.
func (im *Image) patch(t *tick) error {
	if t.registry != nil {
		if err := im.applyRegistry(t.registry); err != nil {
			return fmt.Errorf("tick %d: entities: %w", t.tick, err)
		}
	}
	for i := range t.storages {
		if err := im.applyStorage(&t.storages[i]); err != nil {
			return fmt.Errorf("tick %d: %w", t.tick, err)
		}
	}
	return nil
}

// dropDead removes what does not rewind from entities that are not alive, as a
// world does when it is put back. A snapshot has it as it was when the snapshot
// was taken, which may be later than the ticks replayed behind it.
func (im *Image) dropDead() {
	for _, c := range im.Components {
		if c.Rewinds || c.Resource {
			continue
		}
		if c.Indexed {
			im.vacateDead(c)
			continue
		}
		n := 0
		for row, e := range c.Entities {
			if im.IsAlive(e) {
				c.move(row, n)
				n++
			}
		}
		c.resize(n)
	}
}

// vacateDead is dropDead for rows at entity indices.
func (im *Image) vacateDead(c *Component) {
	for row, e := range c.Entities {
		if e != ecs.Vacant && !im.IsAlive(e) {
			c.vacate(row)
		}
	}
}

// vacate makes a row of an indexed component a gap.
func (c *Component) vacate(row int) {
	empty := c.emptyRow()
	c.countGap(c.Entities[row], -1)
	c.Entities[row] = ecs.Vacant
	c.gaps++
	if c.width >= 0 {
		copy(c.packed[row*c.width:], empty)
	} else {
		c.rows[row] = empty
	}
}

// emptyRow returns the row that gaps hold.
func (c *Component) emptyRow() []byte {
	if len(c.gap) > 0 {
		return c.gap
	}
	return c.Layout.AppendZero(nil)
}

// move copies a row over an earlier one.
func (c *Component) move(from, to int) {
	c.Entities[to] = c.Entities[from]
	c.point(c.Entities[to].Index(), to)
	if c.width >= 0 {
		copy(c.packed[to*c.width:(to+1)*c.width], c.packed[from*c.width:])
	} else {
		c.rows[to] = c.rows[from]
	}
}

var errRanges = errors.New("ranges and rows differ in length")

func (im *Image) applyRegistry(p *registryPatch) error {
	if p.alive > p.free || p.free > p.total {
		return fmt.Errorf("%d alive, %d with free ones, %d in all", p.alive, p.free, p.total)
	}
	if len(p.rows) != 8*countRows(p.ranges) {
		return errRanges
	}
	if grown := p.total - len(im.Registry); grown > len(p.rows)/8 {
		return fmt.Errorf("%d rows grow to %d, but only %d are given", len(im.Registry), p.total, len(p.rows)/8)
	}
	im.Registry = resized(im.Registry, p.total)
	im.index = resized(im.index, p.total)
	im.Alive, im.Free = p.alive, p.free
	src := p.rows
	for _, r := range p.ranges {
		for row := r.First; row < r.First+r.N; row, src = row+1, src[8:] {
			e := ecs.Entity(binary.LittleEndian.Uint64(src))
			if int(e.Index()) >= p.total {
				return fmt.Errorf("row %d holds %v of %d", row, e, p.total)
			}
			im.Registry[row] = e
			im.index[e.Index()] = uint32(row)
		}
	}
	return nil
}

func (im *Image) applyStorage(p *storagePatch) error {
	if p.number >= len(im.Components) {
		return fmt.Errorf("component number %d of %d", p.number, len(im.Components))
	}
	c := im.Components[p.number]
	if err := c.apply(p, len(im.Registry)); err != nil {
		return fmt.Errorf("component %s: %w", c.Name, err)
	}
	return nil
}

func (c *Component) apply(p *storagePatch, indices int) error {
	if c.Rewinds && p.before != c.n && !(c.Resource && c.n == 0) {
		return fmt.Errorf("continues %d rows, has %d", p.before, c.n)
	}
	if len(p.entities) != 8*countRows(p.entityRanges) || c.Resource && (p.after != 1 || len(p.entities) > 0) {
		return errRanges
	}
	// What the tick claims to have grown by must be there, so that a size from
	// outside allocates no more than a multiple of what was read.
	given := countRows(p.entityRanges)
	if c.Resource {
		given = 1
	}
	if p.after-c.n > given {
		return fmt.Errorf("%d rows grow to %d, but only %d are given", c.n, p.after, given)
	}
	if c.width > 0 && p.after-c.n > len(p.values)/c.width {
		return fmt.Errorf("%d rows grow to %d, but the values have %d bytes", c.n, p.after, len(p.values))
	}
	c.resize(p.after)
	src := p.entities
	for _, r := range p.entityRanges {
		if err := c.setEntities(r.First, src[:8*r.N], indices); err != nil {
			return err
		}
		src = src[8*r.N:]
	}
	return c.setValues(p.valueRanges, p.values)
}

// Digest returns the digest of the world that im is the image of, without what
// is not persistent.
func (im *Image) Digest() ecs.Digest { return im.digests().World }

// digests is [ecs.World.Digests] for the world that im is the image of.
func (im *Image) digests() (d ecs.Digests) {
	registry := sumRows(len(im.Registry), func(dst []byte, lo, hi int) []byte {
		return digest.AppendEntities(dst, im.Registry[lo:hi])
	})
	var parts []digest.Part
	for _, c := range im.Components {
		if c.n > 0 && c.Rewinds {
			parts = append(parts, digest.Part{Name: c.Name, Sum: sumRows(c.n, c.appendPage)})
		}
	}
	d.Registry = ecs.Digest(digest.RegistryOf(registry, im.Alive, im.Free))
	d.World = ecs.Digest(digest.World(im.Tick, uint64(d.Registry), parts)) // It sorts parts.
	for _, p := range parts {
		d.Storages = append(d.Storages, ecs.StorageDigest{Name: p.Name, Digest: ecs.Digest(p.Sum)})
	}
	return d
}

// appendPage appends what is summed of rows [lo, hi).
func (c *Component) appendPage(dst []byte, lo, hi int) []byte {
	if !c.Resource {
		dst = digest.AppendEntities(dst, c.Entities[lo:hi])
	}
	return c.appendRows(dst, lo, hi)
}

// sumRows returns the sum of n rows. appendPage is called for several pages at the
// same time.
func sumRows(n int, appendPage func(dst []byte, lo, hi int) []byte) uint64 {
	sums := make([]uint64, (n+digest.PageRows-1)/digest.PageRows)
	_ = inParallel(context.Background(), len(sums), func(i int) error {
		buf := sumBuffers.Get().(*[]byte)
		defer sumBuffers.Put(buf)
		*buf = appendPage((*buf)[:0], i*digest.PageRows, min((i+1)*digest.PageRows, n))
		sums[i] = xxh3.Hash(*buf)
		return nil
	})
	return digest.Storage(n, sums)
}

// sumBuffers holds buffers for a page.
var sumBuffers = sync.Pool{New: func() any { return new([]byte) }}

// fill makes im, which was read from file and what follows it, the state of w.
func (im *Image) fill(w *ecs.World, file string) error {
	err := w.Load(im.state())
	if errors.Is(err, ecs.ErrState) { // The types fit; see schema.fits.
		return &DamageError{file, -1, 0, err.Error(), ErrCorrupt}
	}
	return err
}

// state returns what [ecs.World.Load] takes. It shares memory with im, which is of no
// use after that.
func (im *Image) state() *ecs.State {
	s := &ecs.State{Tick: im.Tick, Registry: im.Registry, Alive: im.Alive, Free: im.Free, Owned: true}
	for _, c := range im.Components {
		if c.Resource && c.n == 0 {
			continue // Registered, but never journaled or snapshotted.
		}
		rows := c.packed
		if c.width < 0 && c.pages == nil {
			rows = c.appendRows(nil, 0, c.n)
		}
		st := ecs.StorageState{
			Name: c.Name, Version: c.version, Layout: c.Layout, Resource: c.Resource, Indexed: c.Indexed,
			NoRewind: !c.Rewinds, Entities: c.Entities, Rows: rows,
			Pages: c.pages, PageRows: c.pageRows,
		}
		if len(c.gap) > 0 {
			st.Default = c.gap
		}
		s.Storages = append(s.Storages, st)
	}
	return s
}

// stored returns the schema of im.
func (im *Image) stored() *schema {
	s := newSchema()
	for _, c := range im.Components {
		s.add(schemaEntry{c.Name, c.Layout, c.Resource, c.Rewinds, c.Indexed, c.gap, c.version, c.former})
	}
	return s
}

// adopt adds to im the components that s has beyond those of im. The others must
// be the same: numbers are only added.
func (im *Image) adopt(s *schema) error {
	if im.schema == s {
		return nil
	}
	if err := im.stored().differs(s); err != nil {
		return err
	}
	im.extend(s)
	im.schema = s
	return nil
}

// link makes what finds the rows of entities.
func (im *Image) link(ctx context.Context) error {
	return inParallel(ctx, 1+len(im.Components), func(i int) error {
		if i == 0 {
			im.index = make([]uint32, len(im.Registry))
			for row, e := range im.Registry {
				im.index[e.Index()] = uint32(row)
			}
			return nil
		}
		im.Components[i-1].link()
		return nil
	})
}

func (c *Component) link() {
	n := 0
	for _, e := range c.Entities {
		if e != ecs.Vacant {
			n = max(n, int(e.Index())+1)
		}
	}
	c.sparse = make([]uint32, n)
	for row, e := range c.Entities {
		if e != ecs.Vacant {
			c.sparse[e.Index()] = uint32(row)
		}
	}
}

// checkSparse compares a page of the sparse array with what follows from dense. It
// returns how many entries the page has.
func (c *Component) checkSparse(page int, content []byte) (entries int, err error) {
	err = decodeSparsePage(content, func(i int, row uint32, n int) error {
		entries += n
		have := c.Entities[min(int(row), len(c.Entities)):min(int(row)+n, len(c.Entities))]
		first := uint32(page*pageRows + i)
		for k, e := range have {
			if e.Index() != first+uint32(k) {
				have = have[:k]
				break
			}
		}
		if len(have) < n {
			return fmt.Errorf("sparse entry %d names row %d of another entity", int(first)+len(have), int(row)+len(have))
		}
		return nil
	})
	return entries, err
}

// clone returns a copy of im that ticks may be replayed on.
func (im *Image) clone() *Image {
	c := *im
	c.check = opCheck{}
	c.Registry, c.index = slices.Clone(im.Registry), slices.Clone(im.index)
	c.Components = make([]*Component, len(im.Components))
	for i, comp := range im.Components {
		c.Components[i] = comp.clone()
	}
	return &c
}

// settled returns im as a program would see it: without what does not rewind of
// entities that are dead. Ticks may follow im itself, which keeps that.
func (im *Image) settled() *Image {
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
	s.dropDead()
	return &s
}

// clone returns a copy of c that may be changed.
func (c *Component) clone() *Component {
	d := *c
	d.Entities, d.sparse = slices.Clone(c.Entities), slices.Clone(c.sparse)
	d.packed, d.rows = slices.Clone(c.packed), slices.Clone(c.rows) // A row of bytes never changes.
	return &d
}

// World returns a new world in the state of im, none of whose components is known
// to the program: they are rows of bytes that can be saved, journaled and
// digested. It shares nothing with im.
func (im *Image) World(options ecs.Options) (*ecs.World, error) {
	w := ecs.NewWorld(options)
	state := im.state()
	state.Owned = false
	if err := w.Load(state); err != nil {
		return nil, err
	}
	return w, nil
}
