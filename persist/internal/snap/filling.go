package snap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A Filling is the image of a state while its pages are put in place, in any order:
//
//	page   | registry | dense of component 0 | data of component 0 | ...
//	Image  | Registry | Entities             | Packed, or Rows     | ...
//
// The image has no sparse arrays, because they follow from the dense ones. The lookup of rows by
// entity is built later: see [image.Image.Link].
type Filling struct {
	Image    *image.Image
	manifest *format.Manifest
}

// NewFilling returns the image of the state that m describes. It allocates at most room bytes for
// rows. If m claims more rows, Place fails for the first page without room. bare is the argument of
// [Reader.Load].
func NewFilling(ctx context.Context, m *format.Manifest, room int64, bare bool) (*Filling, error) {
	alloc := func(n int) []byte { return make([]byte, n) }
	if bare { // Load returns a bare image only if no page is missing, so each byte is written.
		alloc = unzeroed
	}
	im := image.New(m.Schema)
	im.Tick, im.ID, im.Alive, im.Free = m.Tick, m.ID, m.Alive, m.Free
	var rooms []func() // Zeroing large arrays takes long, so they are allocated in parallel.
	for a := range m.Arrays() {
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
			// Do not split the pages if a group of 4096 rows consists of whole pages. The digest
			// sums such groups, and AppendRows can only append whole pages. The page size in the
			// manifest may be unsuitable.
			c.Pages, c.PageRows = make([][]byte, (n+a.PageRows-1)/a.PageRows), a.PageRows
		default:
			rooms = append(rooms, func() { c.Rows = make([][]byte, n) })
		}
	}
	err := parallel.Do(ctx, len(rooms), func(i int) error { rooms[i](); return nil })
	return &Filling{im, m}, err
}

// unzeroed returns n bytes with arbitrary contents and no extra capacity. Zeroing bytes that are
// overwritten next would take half as long as writing them.
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

// fitting returns how many rows of the array a fit into room, and subtracts their minimum size from
// room. So for a wrong manifest, the caller allocates no more than files of that size could
// contain. For rows of varying width, fitting allows one more page: only the page's bytes show
// whether it is too short.
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

// Place checks a page of the array a and puts it in place. a is not a sparse array. It may be
// called for several pages at the same time.
func (f *Filling) Place(a format.Array, page int, content []byte) error {
	if err := fits(&a, page, content); err != nil {
		return err
	}
	lo, hi := a.Span(page)
	total := f.manifest.Total
	if a.Component < 0 {
		if row, e := place(f.Image.Registry, lo, content, total, false); row >= 0 {
			return fmt.Errorf("row %d holds %v of %d", row, e, total)
		}
		return nil
	}
	c, err := f.Image.Components[a.Component], error(nil)
	if a.Kind == format.DataArray {
		err = placeRows(c, lo, hi, content)
	} else if row, e := place(c.Entities, lo, content, total, c.Indexed); row >= 0 {
		// Tools also show the readable part of a damaged state. Remove all entities of the page, so
		// that no row belongs to an impossible entity.
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

// place puts a page of entities, 8 bytes each, into the rows that begin with lo. It returns the
// first row without room or with an invalid entity, or -1. The index of a valid entity is below
// total. An indexed row is vacant, or its entity has the index of the row.
func place(rows []ecs.Entity, lo int, content []byte, total int, indexed bool) (int, ecs.Entity) {
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

// CountGaps counts the gaps of indexed components after all entities are in place. It runs at the
// end, because several goroutines put pages in place and may remove a damaged page again.
func (f *Filling) CountGaps() {
	for _, c := range f.Image.Components {
		if c.Gaps = 0; !c.Indexed {
			continue
		}
		for _, e := range c.Entities {
			c.CountGap(e, 1)
		}
	}
}
