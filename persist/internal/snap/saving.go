package snap

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// A Saving writes a world or an image to a file in one go. It copies nothing: its pages are
// functions that append rows of the world while the file is written. So it needs memory for a few
// batches of pages, and for the sparse arrays of components that are being encoded.
//
// A save refers to no other file. Components with the same order of entities share their dense and
// sparse arrays. To find such components, a Saving first computes checksums of the entities.
type Saving struct {
	pageList
	err error // Set if a row is too large for a file.
}

// savedRows are the rows of the registry, a component or a resource.
type savedRows struct {
	entities []ecs.Entity // Nil for a resource.
	n        int
	append   func(dst []byte, lo, hi int) []byte // Appends the values of rows [lo, hi) to dst.
	// Maximum size of the values in 4096 rows, if they vary in width.
	largest int
}

// pageRows returns the number of rows in a page. width is the width of a row.
func (r *savedRows) pageRows(width int) (int, error) {
	rows := format.DataPageRows(width)
	switch {
	case width >= 0 && r.n > 0:
		return rows, format.CheckRow(0, width)
	case width >= 0 || format.Fits(r.largest):
		return rows, nil
	}
	var row []byte
	sizes := make([]int, r.n)
	for i := range sizes {
		row = r.append(row[:0], i, i+1)
		sizes[i] = len(row)
		if err := format.CheckRow(i, len(row)); err != nil {
			return 0, err
		}
	}
	return format.FewerRows(sizes, rows), nil
}

// Saved returns a Saving of w. w must not change until the Saving is written.
func Saved(w *ecs.World) *Saving {
	rows, alive, free := w.Raw().Registry()
	schema := format.SchemaOf(w)
	registry := image.SumRows(len(rows), func(p *image.Page, lo, hi int) { p.Entities(raw.As[ecs.Entity](rows[lo:hi])) })
	stored := make([]savedRows, len(schema.Components))
	var parts []digest.Part
	for _, st := range w.Raw().Storages() {
		if !st.Persistent() {
			continue
		}
		rows := savedRows{entities: raw.As[ecs.Entity](st.Entities()), n: st.Rows(), append: st.AppendRows}
		if rewinds := schema.Rewinds(st); st.Rows() > 0 && (rewinds || st.Layout().Width() < 0) {
			sum, largest := sumStorage(st)
			if rows.largest = largest; rewinds {
				parts = append(parts, digest.Part{Name: st.Name(), Sum: sum})
			}
		}
		stored[schema.Number(st)] = rows
	}
	m := format.Manifest{Tick: w.Tick(), Schema: schema, Alive: alive, Free: free, Total: len(rows)}
	// The order of parts does not matter, because digest.World sorts them.
	m.Digest = ecs.Digest(digest.World(w.Tick(), digest.RegistryOf(registry, alive, free), parts))
	return newSaving(m, raw.As[ecs.Entity](rows), stored)
}

// SavedImage returns a Saving of im, under the schema of im.
func SavedImage(im *image.Image) *Saving {
	stored := make([]savedRows, len(im.Components))
	for n, c := range im.Components {
		stored[n] = savedRows{entities: c.Entities, n: c.N, append: c.AppendRows}
		for rows := range slices.Chunk(c.Rows, format.PageRows) {
			bytes := 0
			for _, row := range rows {
				bytes += len(row)
			}
			stored[n].largest = max(stored[n].largest, bytes)
		}
	}
	return newSaving(format.Manifest{
		ID: im.ID, Tick: im.Tick, Schema: im.Stored(), Digest: im.Digest(), Alive: im.Alive, Free: im.Free, Total: len(im.Registry),
	}, im.Registry, stored)
}

// sumStorage returns the checksum of st, and the maximum size of a group of 4096 rows in bytes.
func sumStorage(st raw.Storage) (sum uint64, largest int) {
	entities := raw.As[ecs.Entity](st.Entities())
	sizes := make([]int, (st.Rows()+format.PageRows-1)/format.PageRows)
	sum = image.SumRows(st.Rows(), func(p *image.Page, lo, hi int) {
		if entities != nil {
			p.Entities(entities[lo:hi])
		}
		p.Rows(lo, hi, func(dst []byte, lo, hi int) []byte {
			dst = st.AppendRows(dst, lo, hi)
			sizes[lo/format.PageRows] += len(dst)
			return dst
		})
	})
	return sum, slices.Max(sizes)
}

// newSaving returns the Saving of a registry and of the stored components, by number.
func newSaving(m format.Manifest, registry []ecs.Entity, stored []savedRows) *Saving {
	s := &Saving{pageList: pageList{Manifest: m}}
	for n := range stored {
		entry := &m.Schema.Components[n]
		pageRows, err := stored[n].pageRows(entry.Layout.Width())
		if err != nil {
			s.err = fmt.Errorf("component %s: %w", naming.Shown(entry.Name), err)
			return s
		}
		s.Manifest.Components = append(s.Manifest.Components, format.ComponentSize{Rows: stored[n].n, PageRows: pageRows})
	}
	orders := ordersOf(registry, stored)
	for a := range s.Manifest.Arrays() {
		rows := savedRows{entities: registry}
		if a.Component >= 0 {
			rows = stored[a.Component]
		}
		o := orders[a.Component+1]
		appendRows := rows.append
		switch a.Kind {
		case format.SparseArray:
			sparse := sync.OnceValue(func() []uint32 { return format.SparseOf(rows.entities, a.Rows) })
			appendRows = func(dst []byte, lo, hi int) []byte {
				dst, _ = format.AppendSparsePage(dst, sparse()[lo:hi])
				return dst
			}
		case format.DenseArray:
			appendRows = func(dst []byte, lo, hi int) []byte { return digest.AppendEntities(dst, rows.entities[lo:hi]) }
		}
		for number := range a.Pages() {
			lo, hi := a.Span(number)
			// Size is only used for progress, so it can be an estimate.
			p := page{key: a.Key(number), append: func(dst []byte) []byte { return appendRows(dst, lo, hi) }}
			size := 0
			switch a.Kind {
			case format.SparseArray:
				// Components with the same entities have the same sparse pages. So the checksum of
				// all entities identifies the page.
				p.sum, size = o.sum, 8*rows.n
			case format.DenseArray:
				p.sum, size = o.pages[number], 8*(hi-lo)
				p.Size = uint32(size)
			case format.DataArray:
				// Only used for progress, so an estimate is enough.
				p.Size = uint32(max(a.Width, 1) * (hi - lo))
			}
			s.add(a.Kind, size, p)
		}
	}
	return s
}

// An order is the order of the entities in the rows of a component or of the registry. Components
// with the same order share their dense and sparse arrays. Components whose orders differ may share
// single dense pages, but no sparse pages.
type order struct {
	entities []ecs.Entity
	pages    []xxh3.Uint128 // Checksums of the pages of the dense array.
	sum      xxh3.Uint128   // Checksum of all pages.
}

// ordersOf returns the order of the registry, followed by those of the components.
func ordersOf(registry []ecs.Entity, stored []savedRows) []order {
	orders := make([]order, 1+len(stored))
	var parts []func()
	for i := range orders {
		o := &orders[i]
		if o.entities = registry; i > 0 {
			o.entities = stored[i-1].entities
		}
		for page := range slices.Chunk(o.entities, format.PageRows) {
			at := len(o.pages)
			o.pages = append(o.pages, xxh3.Uint128{})
			parts = append(parts, func() { o.pages[at] = sumEntities(page) })
		}
	}
	_ = parallel.Do(context.Background(), len(parts), func(i int) error { parts[i](); return nil })
	for i := range orders {
		o := &orders[i]
		var all []byte
		for _, sum := range o.pages {
			bytes := sum.Bytes()
			all = append(all, bytes[:]...)
		}
		o.sum = xxh3.Hash128(all)
	}
	return orders
}

// sumEntities returns the checksum of a page of entities, computed over its content.
func sumEntities(entities []ecs.Entity) xxh3.Uint128 {
	e := encodedPages.Get().(*encodedPage)
	defer encodedPages.Put(e)
	e.buf = digest.AppendEntities(e.buf[:0], entities)
	return xxh3.Hash128(e.buf)
}

// Compress makes Create compress the pages that shrink. Only a program that calls Compress links
// the encoder of Zstandard, which adds 0.5 MB to a program in a browser.
func (s *Saving) Compress() {
	s.Manifest.Compressed, s.compress = true, format.CompressedHead
}

// Create writes the file.
func (s *Saving) Create(ctx context.Context, files disk.FS, name string) (pagefile.Info, error) {
	info, err := pagefile.Info{}, s.err
	if err == nil {
		info, err = s.write(ctx, files, name, pagefile.Options{})
	}
	if err != nil {
		return info, fmt.Errorf("persist: save of tick %d: %w", s.Manifest.Tick, err)
	}
	return info, nil
}
