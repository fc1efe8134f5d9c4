package repair

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// pieces holds those pages of a damaged snapshot whose own checksum is correct. Pages may also be
// found in files that the snapshot refers to. The pages fill an image of the original size; rows
// of all other pages are unknown.
//
//	dense   | known ... | ?  ?  ? | known |     by pages, and later
//	data    | known | ?  ? | known ...    |     by the rows that ticks write
//
// The pages are found by a search in the bytes of the files. The tree of keys is not used, since
// it may be damaged. So anything that looks like a page and has a correct checksum counts as a
// page. If two copies of a page differ, neither is used.
type pieces struct {
	*snap.Filling
	manifest *format.Manifest
	im       *inspect.Image // The image to fill.
	registry knownRows
	entities []knownRows // Rows whose entity is known, by component.
	values   []knownRows
	sparse   map[pagefile.Key][]byte // Pages of sparse arrays, as stored.

	// crcs has the checksum of each page that was found. twice has the pages that were found with
	// different contents; their rows count as unknown.
	crcs  map[pagefile.Key]uint32
	twice map[pagefile.Key]bool

	// references has the pages to read from another file or key, by that file and key.
	references map[uint32]map[pagefile.Key][]lostPage
}

// A lostPage is a page that is stored under another key or in another file, with its checksum.
type lostPage struct {
	key pagefile.Key
	crc uint32
}

// knownRows says for each row whether its content is known.
type knownRows []bool

// set sets rows [lo, hi) to known or unknown.
func (k knownRows) set(lo, hi int, known bool) {
	for i := lo; i < hi; i++ {
		k[i] = known
	}
}

// unknown returns the number of unknown rows.
func (k knownRows) unknown() (n int) {
	for _, known := range k {
		if !known {
			n++
		}
	}
	return n
}

// patched resizes k to n rows, and marks the rows of ranges as known.
func (k knownRows) patched(n int, ranges []raw.Range) knownRows {
	k = image.Resized(k, n)
	for _, r := range ranges {
		k.set(r.First, r.First+r.N, true)
	}
	return k
}

// salvagedManifest searches a snapshot file for its manifest. The file may be damaged anywhere.
func salvagedManifest(ctx context.Context, v *catalog.Catalog, name string) (*format.Manifest, error) {
	var found *format.Manifest
	err := pagefile.Salvage(ctx, v.Files, name, func(k pagefile.Key, value []byte) {
		if k != format.Key(format.ManifestColumn, 0) || found != nil {
			return
		}
		if content, _, err := format.DecodePage(value); err == nil && content != nil {
			found, _ = format.DecodeManifest(slices.Clone(content))
		}
	})
	if err == nil && found == nil {
		err = &format.DamageError{File: name, Offset: -1, Length: 0, Reason: "no manifest is left in it", Err: format.ErrCorrupt}
	}
	return found, err
}

// gather collects the pages of a snapshot from its file and the files that it refers to. If a
// file or page is missing, its rows stay unknown. A page from another file must have the checksum
// in the reference, because another page may now be stored under that key.
func gather(ctx context.Context, v *catalog.Catalog, name string) (*pieces, error) {
	m, err := salvagedManifest(ctx, v, name)
	if err != nil {
		return nil, err
	}
	if err := holds(ctx, v, name, m); err != nil {
		return nil, err
	}
	p, err := newPieces(ctx, m)
	if err != nil {
		return nil, err
	}
	if err := pagefile.Salvage(ctx, v.Files, name, p.visit); err != nil {
		return nil, err
	}
	for _, number := range slices.Sorted(maps.Keys(p.references)) {
		wanted, file := p.references[number], name
		if number != m.Number {
			file = catalog.SnapshotName(number)
		}
		err := pagefile.Salvage(ctx, v.Files, file, func(k pagefile.Key, value []byte) {
			content, ref, err := format.DecodePage(value)
			for _, lost := range wanted[k] {
				if err == nil && content != nil && ref.CRC == lost.crc {
					p.take(lost.key, content, lost.crc)
				}
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for k := range p.twice {
		p.place(k, nil)
	}
	p.CountGaps()
	return p, nil
}

// pieceFactor bounds how many rows a damaged snapshot may claim: a multiple of the rows that fit
// into the files, which may have been truncated. The bound stops a false manifest from allocating
// any amount of memory.
const pieceFactor = 16

// holds returns an error if m claims more rows than fit into the file and the files that it
// refers to, times pieceFactor.
func holds(ctx context.Context, v *catalog.Catalog, name string, m *format.Manifest) error {
	room := int64(64 << 10)
	sizes := []string{name}
	for _, f := range m.Files {
		sizes = append(sizes, catalog.SnapshotName(f.Number))
	}
	for _, name := range sizes {
		if f, err := v.Files.Open(name); err == nil {
			size, _ := f.Size()
			room += pieceFactor * m.Room(size)
			f.Close()
		}
	}
	if m.Repeats {
		_ = pagefile.Salvage(ctx, v.Files, name, func(_ pagefile.Key, value []byte) {
			if len(value) <= format.MaxReference {
				room += pieceFactor * format.MaxRepeated
			}
		})
	}
	// In memory, each row of the registry takes about 10 bytes: its entity and its bits in
	// knownRows. A row of a component takes the size of its value in addition.
	need := 10 * int64(m.Total)
	for n, c := range m.Schema.Components {
		need += int64(m.Components[n].Rows) * int64(10+max(c.Layout.Width(), 0))
		if need > room || c.Resource && m.Components[n].Rows > 1 {
			break
		}
	}
	if need > room || m.Alive > m.Free || m.Free > m.Total {
		return &format.DamageError{File: name, Offset: -1, Length: 0, Reason: fmt.Sprintf("its manifest claims %d entities and more rows than the file can hold", m.Total), Err: format.ErrCorrupt}
	}
	return nil
}

// newPieces returns pieces of which only the numbers of rows are known. Rows without bytes count
// as known from the start.
func newPieces(ctx context.Context, m *format.Manifest) (*pieces, error) {
	f, err := snap.NewFilling(ctx, m, math.MaxInt64, false)
	p := &pieces{
		Filling: f, manifest: m, im: f.Image, registry: make(knownRows, m.Total), sparse: map[pagefile.Key][]byte{},
		crcs: map[pagefile.Key]uint32{}, twice: map[pagefile.Key]bool{}, references: map[uint32]map[pagefile.Key][]lostPage{},
	}
	p.im.Index = make([]uint32, m.Total)
	for _, c := range p.im.Components {
		for i := range c.Entities {
			// No entity is known yet.
			c.Entities[i] = ecs.Vacant
		}
		values := make(knownRows, c.N)
		if c.Width == 0 {
			values.set(0, c.N, true)
		}
		p.entities, p.values = append(p.entities, make(knownRows, len(c.Entities))), append(p.values, values)
	}
	return p, err
}

// visit processes a page of the snapshot's own file. If the value is a reference, visit records
// where the page is stored. A reference consists of the file (0: the same file) and the key and
// checksum of the page in that file.
func (p *pieces) visit(k pagefile.Key, value []byte) {
	content, ref, err := format.DecodePage(value)
	switch {
	case err != nil:
	case !ref.Elsewhere():
		p.take(k, content, ref.CRC)
	case ref.Column != 0 && !format.MayRepeat(k.Column, ref.Column):
	default:
		if ref.File == 0 {
			ref.File = p.manifest.Number
		}
		if p.references[ref.File] == nil {
			p.references[ref.File] = map[pagefile.Key][]lostPage{}
		}
		there := ref.Of(k)
		p.references[ref.File][there] = append(p.references[ref.File][there], lostPage{k, ref.CRC})
	}
}

// take adds a page whose checksum is correct. If another copy differs, it marks the page as found
// twice.
func (p *pieces) take(k pagefile.Key, content []byte, crc uint32) {
	if before, ok := p.crcs[k]; ok && before != crc {
		p.twice[k] = true
		return
	}
	p.crcs[k] = crc
	p.place(k, content)
}

// place puts a page into the image if the page is valid. If content is nil, it makes the rows of
// the page unknown again.
func (p *pieces) place(k pagefile.Key, content []byte) {
	a, ok := p.manifest.ArrayOf(k)
	known := p.registry
	switch {
	case !ok:
		return
	// Without the page, it is unknown which of its indices have rows.
	case a.Kind == format.SparseArray && content == nil:
		delete(p.sparse, k)
		return
	// pointBack uses the entries once all pages are found.
	case a.Kind == format.SparseArray:
		p.sparse[k] = slices.Clone(content)
		return
	case a.Kind == format.DataArray:
		known = p.values[a.Component]
	case a.Component >= 0:
		known = p.entities[a.Component]
	}
	lo, hi := a.Span(int(k.Page))
	known.set(lo, hi, p.Place(a, int(k.Page), content) == nil)
}

// restored returns the original state if the pages are enough to restore it. The recorded digest
// is the proof: nothing else is checked. Otherwise restored returns nil, and p is unusable.
func (p *pieces) restored() *inspect.Image {
	p.mended()
	if p.im.Link(context.Background()) != nil || p.im.Digest() != p.manifest.Digest {
		return nil
	}
	return p.im
}

// forward applies the ticks of path until a tick cannot be read or applied. It returns the number
// of applied ticks and the error of the next one. Rows that a tick writes become known.
func (p *pieces) forward(ctx context.Context, v *catalog.Catalog, path []journal.Entry) (n int, err error) {
	for i, e := range path {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		r := v.Record(e)
		err := v.Describe(r, p.im.ID, p.im.Stored)
		if err == nil && r.Decoded.Parent != p.im.ID {
			err = v.EntryError(e, fmt.Errorf("tick %d continues state %v, not %v", e.Tick, r.Decoded.Parent, p.im.ID))
		}
		if err == nil {
			err = p.adopt(r.Schema)
		}
		if err == nil {
			err = p.im.Patch(p.editable(r.Decoded))
		}
		if err != nil {
			return i, err
		}
		p.patched(r.Decoded)
		p.im.Tick, p.im.ID = e.Tick, e.ID
	}
	return len(path), nil
}

// adopt adds the components of s that the image does not have. Added components have no rows, so
// no row of them is unknown.
func (p *pieces) adopt(s *format.Schema) error {
	if err := p.im.Adopt(s); err != nil {
		return err
	}
	for range p.im.Components[len(p.values):] {
		p.entities, p.values = append(p.entities, nil), append(p.values, nil)
	}
	return nil
}

// editable returns t without the edits of unknown rows. An edit contains the bytes that it
// replaces, so it would fail on a row with other bytes.
func (p *pieces) editable(t *format.Tick) *format.Tick {
	known := *t
	known.Storages = slices.Clone(t.Storages)
	for i, s := range known.Storages {
		if s.Number < len(p.values) && len(s.EditRanges) > 0 {
			values := p.values[s.Number]
			known.Storages[i] = s.EditingOnly(func(row int) bool { return row < len(values) && values[row] })
		}
	}
	return &known
}

// patched marks the rows that t wrote as known. When an array grows, its new rows are unknown
// until the tick writes them. A valid tick writes all of them.
func (p *pieces) patched(t *format.Tick) {
	if r := t.Registry; r != nil {
		p.registry = p.registry.patched(r.Total, r.Ranges)
	}
	for i := range t.Storages {
		s := &t.Storages[i]
		c := p.im.Components[s.Number]
		if !c.Resource {
			p.entities[s.Number] = p.entities[s.Number].patched(s.After, s.EntityRanges)
		}
		p.values[s.Number] = p.values[s.Number].patched(s.After, s.ValueRanges)
		if c.Width == 0 {
			p.values[s.Number].set(0, s.After, true)
		}
	}
}
