package snap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// A Filling is the image of a state while its pages are put in place, in any order. The kind of a
// page determines its field in the image:
//
//	page of the registry             Registry
//	dense page of a component        Entities
//	data page of a component         Packed, or Rows
//
// The image has no sparse arrays, because they follow from the dense ones. So pages of sparse
// arrays are kept as they are stored. The lookup of rows by entity is built later: see
// [image.Image.Link].
//
// [Reader.Load] takes all pages of a file, and [Salvage] takes the readable pages of a damaged one.
// Both first put the pages in place whose content is in the file. Other pages of the file are only
// references to a page of another file or column, so their content is read afterwards. Rows of
// pages that were not found are missing in the image.
type Filling struct {
	Image    *image.Image
	name     string // Name of the file, for errors.
	manifest *format.Manifest
	parts    map[uint32]*part // The parts by the number of their column.

	lock sync.Mutex // Guards the fields below, and the parts.
	// References, by the number of the file with the content, then by key in that file.
	references map[uint32]map[pagefile.Key][]reference
	sparse     []SparsePage
	crcs       map[pagefile.Key]uint32 // Checksums of the pages that are in place.
}

// A part is an array of the state, with the set of its pages that were read.
type part struct {
	format.Array
	// Pages that were handled: put in place, kept if the array is sparse, or recorded as bad.
	met     pageSet
	faulty  int   // The first bad page.
	fault   error // The error of the first bad page.
	entries int   // Number of entries of a sparse array that were compared.
}

// A SparsePage is a page of a sparse array.
type SparsePage struct {
	*part
	Page    int
	Content []byte
}

// A reference is a page whose content is in another file, or under another key.
type reference struct {
	*part
	key pagefile.Key
	ref format.PageRef
}

// newFilling returns the image of the state that m describes, without pages. It allocates at most
// the given number of bytes for rows. If m claims more rows, put() fails for the first page without
// room. The parameter bare is the argument of [Reader.Load].
func newFilling(ctx context.Context, name string, m *format.Manifest, room int64, bare bool) (*Filling, error) {
	alloc := func(n int) []byte { return make([]byte, n) }
	// A bare image has all pages, so each byte is overwritten and need not be zero.
	if bare {
		alloc = unzeroed
	}
	im := image.New(m.Schema)
	im.Tick, im.ID, im.Alive, im.Free = m.Tick, m.ID, m.Alive, m.Free
	f := &Filling{
		Image: im, name: name, manifest: m, parts: map[uint32]*part{},
		references: map[uint32]map[pagefile.Key][]reference{}, crcs: map[pagefile.Key]uint32{},
	}
	var rooms []func() // Zeroing large arrays takes long, so they are allocated in parallel.
	for a := range m.Arrays() {
		f.parts[a.Key(0).Column] = &part{Array: a}
		n := fitting(&a, &room)
		if a.Component < 0 {
			rooms = append(rooms, func() { im.Registry = entitiesOf(alloc(8 * n)) })
			continue
		}
		c := im.Components[a.Component]
		c.N = m.Components[a.Component].Rows
		switch {
		case n == 0:
		case a.Kind == format.DenseArray:
			rooms = append(rooms, func() { c.Entities = entitiesOf(alloc(8 * n)) })
		case a.Width > 0:
			rooms = append(rooms, func() { c.Packed = alloc(n * a.Width) })
		case bare && format.PageRows%a.PageRows == 0:
			// Keep whole pages, and do not split them into rows. 4096 must be a multiple of the
			// rows in a page. The reason is that the digest reads groups of 4096 rows, and
			// AppendRows appends whole pages only.
			c.Pages, c.PageRows = make([][]byte, (n+a.PageRows-1)/a.PageRows), a.PageRows
		default:
			rooms = append(rooms, func() { c.Rows = make([][]byte, n) })
		}
	}
	err := parallel.Do(ctx, len(rooms), func(i int) error { rooms[i](); return nil })
	return f, err
}

// plausible reports whether room bytes are enough for the rows that m claims.
func plausible(m *format.Manifest, room int64) bool {
	for a := range m.Arrays() {
		if fitting(&a, &room) < a.Rows && a.Kind != format.SparseArray {
			return false
		}
		if a.Component >= 0 && claims(m, a.Component) != nil {
			return false
		}
	}
	return m.CheckRegistry() == nil
}

// claims returns an error if m claims an impossible row count for component number n.
func claims(m *format.Manifest, n int) error {
	if rows := m.Components[n].Rows; rows > 1 && m.Schema.Components[n].Resource {
		return fmt.Errorf("resource of %d rows", rows)
	}
	return nil
}

// unzeroed returns n bytes with arbitrary contents and no extra capacity. The caller overwrites the
// bytes. Zeroing them first would take half as long as writing them.
func unzeroed(n int) []byte {
	if n == 0 {
		return nil
	}
	var b strings.Builder // In the standard library only strings.Builder allocates without zeroing.
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// entitiesOf returns b as a slice of entities.
func entitiesOf(b []byte) []ecs.Entity {
	return unsafe.Slice((*ecs.Entity)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// fitting returns how many rows of the array a fit into *room bytes, and subtracts their minimum
// size from *room. So a wrong manifest cannot make the caller allocate more than the files can
// contain. For rows of varying width, fitting allows one more page.
func fitting(a *format.Array, room *int64) int {
	if a.Kind == format.SparseArray {
		return 0
	}
	width := int64(max(a.Width, 1))
	n := min(int64(a.Rows), *room/width)
	*room -= n * width
	if a.Width < 0 && n > 0 {
		n = min(int64(a.Rows), n+int64(a.PageRows))
	}
	return int(n)
}

// read decodes the value of a page of the file itself. There are three cases:
//
//   - The page has content: read() returns the arguments for put().
//   - The page is a reference: read() records the reference and returns a nil part.
//   - The page is the manifest, or unused: read() returns a nil part.
func (f *Filling) read(k pagefile.Key, value []byte) (p *part, content []byte, ref format.PageRef, err error) {
	if p = f.parts[k.Column]; p == nil || int64(k.Page) >= int64(p.Pages()) {
		return nil, nil, ref, nil // The page is the manifest, or unused.
	}
	content, ref, err = DecodePage(f.name, k, value)
	if err == nil {
		err = settle(f.name, f.manifest, k, &ref)
	}
	if err == nil && ref.Elsewhere() {
		f.refer(reference{p, k, ref})
		return nil, nil, ref, nil
	}
	ref.File = f.manifest.Number
	return p, p.kept(content), ref, err
}

// refer adds a page that is stored elsewhere to the references.
func (f *Filling) refer(r reference) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.references[r.ref.File] == nil {
		f.references[r.ref.File] = map[pagefile.Key][]reference{}
	}
	there := r.ref.Of(r.key)
	f.references[r.ref.File][there] = append(f.references[r.ref.File][there], r)
}

// readReferred calls the function take for each reference in refs. All of them refer to one page,
// and value is the value of that page. take gets the content of the page. readReferred skips a
// reference if its checksum is not that of the page. If the page has no content, it skips all
// references.
func readReferred(refs []reference, value []byte, take func(r reference, content []byte)) {
	content, held, err := format.DecodePage(value)
	if len(refs) == 0 || err != nil || content == nil {
		return
	}
	// The result of kept() depends on the kind of array. All references have the same kind, because
	// a page refers only to a page of its own kind.
	content = refs[0].kept(content)
	for _, r := range refs {
		if held.CRC == r.ref.CRC {
			take(r, content)
		}
	}
}

// kept returns the given content in a form that put() may keep. It copies a page of a sparse array,
// because the page is needed after its buffer is reused.
func (p *part) kept(content []byte) []byte {
	if p.Kind == format.SparseArray {
		return slices.Clone(content)
	}
	return content
}

// put checks a page and puts it in place. It keeps the content of a page of a sparse array. Several
// goroutines may call put().
func (f *Filling) put(p *part, page int, content []byte, crc uint32) error {
	if p.Kind != format.SparseArray {
		if err := f.place(p.Array, page, content); err != nil {
			return err
		}
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	p.met.add(page)
	f.crcs[p.Key(page)] = crc
	if p.Kind == format.SparseArray {
		f.sparse = append(f.sparse, SparsePage{p, page, content})
	}
	return nil
}

// place checks a page of the array a and puts it in place. a is not a sparse array.
func (f *Filling) place(a format.Array, page int, content []byte) error {
	if err := fits(&a, page, content); err != nil {
		return err
	}
	lo, hi := a.Span(page)
	total := f.manifest.Total
	if a.Component < 0 {
		if row, e := placeEntities(f.Image.Registry, lo, content, total, false); row >= 0 {
			return fmt.Errorf("row %d holds %v of %d", row, e, total)
		}
		return nil
	}
	c, err := f.Image.Components[a.Component], error(nil)
	if a.Kind == format.DataArray {
		err = placeRows(c, lo, hi, content)
	} else if row, e := placeEntities(c.Entities, lo, content, total, c.Indexed); row >= 0 {
		// No row may belong to an impossible entity, even in the image of a damaged file. So remove
		// all entities of the page.
		for i := lo; i < min(hi, len(c.Entities)); i++ {
			c.Entities[i] = ecs.Vacant
		}
		err = fmt.Errorf("row %d belongs to %v of %d", row, e, total)
	}
	if err != nil {
		return inPage(a.Key(page), err)
	}
	return nil
}

// placeEntities puts a page of entities, 8 bytes each, into the rows that begin with lo. It returns
// the first row without room or with an invalid entity, or -1. The index of a valid entity is below
// total. An indexed row is vacant, or its entity has the index of the row.
func placeEntities(rows []ecs.Entity, lo int, content []byte, total int, indexed bool) (int, ecs.Entity) {
	n := len(content) / 8
	to := rows[min(lo, len(rows)):min(lo+n, len(rows))]
	for k := range to {
		e := format.EntityAt(content, k)
		if i := int(e.Index()); (i >= total || indexed && i != lo+k) && !(indexed && e == ecs.Vacant) {
			return lo + k, e
		}
		to[k] = e
	}
	if len(to) < n {
		return lo + len(to), format.EntityAt(content, len(to))
	}
	return -1, 0
}

// placed returns the content of a page of entities that is in place. It may share memory with the
// image.
func (f *Filling) placed(a format.Array, page int) []byte {
	rows := f.Image.Registry
	if a.Component >= 0 {
		rows = f.Image.Components[a.Component].Entities
	}
	lo, hi := a.Span(page)
	return digest.EntityBytes(rows[lo:hi])
}

// placeRows puts a page of values at rows [lo, hi) of c. It checks all values, so users of the
// image decode rows without errors.
func placeRows(c *image.Component, lo, hi int, content []byte) error {
	switch {
	case c.Width > 0 && hi*c.Width > len(c.Packed), c.Width < 0 && c.Pages == nil && hi > len(c.Rows):
		return format.ErrShort
	case c.Width > 0:
		copy(c.Packed[lo*c.Width:], content)
		return c.Layout.Check(content, hi-lo)
	case c.Pages == nil:
		// The rows share the copied page.
		return image.CutRows(c.Layout, c.Rows[lo:hi], slices.Clone(content))
	case c.Layout.Check(content, hi-lo) == nil:
		c.Pages[lo/c.PageRows] = slices.Clone(content)
		return nil
	}
	return image.CutRows(c.Layout, make([][]byte, hi-lo), content)
}

// countGaps counts the gaps of indexed components. It must run after all entities are in place.
func (f *Filling) countGaps() {
	for _, c := range f.Image.Components {
		if c.Gaps = 0; !c.Indexed {
			continue
		}
		for _, e := range c.Entities {
			c.CountGap(e, 1)
		}
	}
}

// Known returns one element for each row of an array: whether the row is in place.
func (f *Filling) Known(a format.Array) []bool {
	known := make([]bool, a.Rows)
	for page := range a.Pages() {
		if lo, hi := a.Span(page); f.parts[a.Key(0).Column].met.has(page) {
			for row := lo; row < hi; row++ {
				known[row] = true
			}
		}
	}
	return known
}

// SparsePages returns the pages of sparse arrays, ordered by key.
func (f *Filling) SparsePages() []SparsePage {
	return slices.SortedFunc(slices.Values(f.sparse), func(a, b SparsePage) int { return a.Key(a.Page).Compare(b.Key(b.Page)) })
}
