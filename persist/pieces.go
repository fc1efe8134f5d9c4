package persist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/journal"
)

// Pieces are what is left of a snapshot whose file, or one that it refers to, is
// damaged: all pages whose own checksum holds, in an image as long as the snapshot
// was. Rows of the other pages are not known.
//
//	dense   | known ... | ?  ?  ? | known |     by pages, and later
//	data    | known | ?  ? | known ...    |     by what ticks give
type pieces struct {
	manifest *manifest
	im       *Image
	registry knownRows
	entities []knownRows // By component.
	values   []knownRows
	sparse   map[pagefile.Key][]byte // Pages of sparse arrays, as stored.

	// A page that is there twice with different contents is not known.
	crcs  map[pagefile.Key]uint32
	twice map[pagefile.Key]bool

	references map[uint32]map[pagefile.Key]uint32 // By file, with checksums.
}

// knownRows says of each row whether it is known.
type knownRows []bool

func (k knownRows) set(lo, hi int, known bool) {
	for i := lo; i < hi; i++ {
		k[i] = known
	}
}

// unknown returns how many rows are not known.
func (k knownRows) unknown() (n int) {
	for _, known := range k {
		if !known {
			n++
		}
	}
	return n
}

// patched notes that there are n rows now, of which those of ranges were given.
func (k knownRows) patched(n int, ranges []ecs.Range) knownRows {
	k = resized(k, n)
	for _, r := range ranges {
		k.set(r.First, r.First+r.N, true)
	}
	return k
}

// salvagedManifest looks for the manifest of a snapshot file that may be damaged
// anywhere.
func (v *catalog) salvagedManifest(ctx context.Context, name string) (*manifest, error) {
	var found *manifest
	err := pagefile.Salvage(ctx, v.files, name, func(k pagefile.Key, value []byte) {
		if k != key(manifestColumn, 0) || found != nil {
			return
		}
		if content, _, err := decodePage(value); err == nil && content != nil {
			found, _ = decodeManifest(slices.Clone(content))
		}
	})
	if err == nil && found == nil {
		err = &DamageError{name, -1, 0, "no manifest is left in it", ErrCorrupt}
	}
	return found, err
}

// gather looks for the pages of a snapshot in its file and those it refers to.
func (v *catalog) gather(ctx context.Context, name string) (*pieces, error) {
	m, err := v.salvagedManifest(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := v.holds(name, m); err != nil {
		return nil, err
	}
	p := newPieces(m)
	err = pagefile.Salvage(ctx, v.files, name, p.visit)
	if err != nil {
		return nil, err
	}
	for _, number := range slices.Sorted(maps.Keys(p.references)) {
		wanted := p.references[number]
		err := pagefile.Salvage(ctx, v.files, snapshotName(number), func(k pagefile.Key, value []byte) {
			content, ref, err := decodePage(value)
			if crc, ok := wanted[k]; ok && err == nil && content != nil && ref.crc == crc {
				p.take(k, content, crc)
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for k := range p.twice {
		p.place(k, nil)
	}
	p.im.Tick, p.im.ID = m.tick, m.id
	return p, nil
}

// pieceFactor is how many times as many rows as fit into the files a damaged
// snapshot may claim: they may have been cut short.
const pieceFactor = 16

// holds returns an error if m claims more rows than the file, and those it refers to,
// can have held.
func (v *catalog) holds(name string, m *manifest) error {
	room := int64(64 << 10)
	sizes := []string{name}
	for _, f := range m.files {
		sizes = append(sizes, snapshotName(f.number))
	}
	for _, name := range sizes {
		if f, err := v.files.Open(name); err == nil {
			size, _ := f.Size()
			room += pieceFactor * size
			f.Close()
		}
	}
	need := 10 * int64(m.total)
	for n, c := range m.schema.components {
		need += int64(m.components[n].rows) * int64(10+max(c.Layout.Width(), 0))
		if need > room || c.Resource && m.components[n].rows > 1 {
			break
		}
	}
	if need > room || m.alive > m.free || m.free > m.total {
		return &DamageError{name, -1, 0, fmt.Sprintf("its manifest claims %d entities and more rows than the file can hold", m.total), ErrCorrupt}
	}
	return nil
}

func newPieces(m *manifest) *pieces {
	p := &pieces{
		manifest: m, im: newImage(m.schema), registry: make(knownRows, m.total), sparse: map[pagefile.Key][]byte{},
		crcs: map[pagefile.Key]uint32{}, twice: map[pagefile.Key]bool{}, references: map[uint32]map[pagefile.Key]uint32{},
	}
	im := p.im
	im.Registry, im.index, im.Alive, im.Free = make([]ecs.Entity, m.total), make([]uint32, m.total), m.alive, m.free
	for n, c := range im.Components {
		rows := m.components[n].rows
		c.resize(rows)
		entities := make(knownRows, rows)
		if c.Resource {
			entities = nil
		}
		for i := range c.Entities {
			c.Entities[i] = ecs.Vacant
			c.countGap(ecs.Vacant, 1)
		}
		values := make(knownRows, rows)
		if c.width == 0 {
			values.set(0, rows, true)
		}
		p.entities, p.values = append(p.entities, entities), append(p.values, values)
	}
	return p
}

func (p *pieces) visit(k pagefile.Key, value []byte) {
	content, ref, err := decodePage(value)
	switch {
	case err != nil:
	case ref.file == 0:
		p.take(k, content, ref.crc)
	default:
		if p.references[ref.file] == nil {
			p.references[ref.file] = map[pagefile.Key]uint32{}
		}
		p.references[ref.file][k] = ref.crc
	}
}

// take takes a page whose checksum holds.
func (p *pieces) take(k pagefile.Key, content []byte, crc uint32) {
	if before, ok := p.crcs[k]; ok && before != crc {
		p.twice[k] = true
		return
	}
	p.crcs[k] = crc
	p.place(k, content)
}

// place puts a page where it belongs; nil: forget it.
func (p *pieces) place(k pagefile.Key, content []byte) {
	if k.Column == registryColumn {
		p.placePage(k, p.registry, pageRows, func(lo, hi int) bool { return p.placeRegistry(lo, hi, content) })
		return
	}
	n := (int64(k.Column) - firstColumn) / 4
	if k.Column < firstColumn || n >= int64(len(p.im.Components)) {
		return
	}
	c := p.im.Components[n]
	switch (k.Column - firstColumn) % 4 {
	case sparseArray:
		p.sparse[k] = slices.Clone(content)
	case denseArray:
		p.placePage(k, p.entities[n], pageRows, func(lo, hi int) bool { return c.placeKnown(lo, hi, content, p.manifest.total) })
	case dataArray:
		p.placePage(k, p.values[n], p.manifest.components[n].pageRows, func(lo, hi int) bool {
			rest, err := c.setRows(lo, hi-lo, content)
			return err == nil && len(rest) == 0
		})
	}
}

// placePage calls place with the rows of page k and notes in known whether it took
// them.
func (p *pieces) placePage(k pagefile.Key, known knownRows, rows int, place func(lo, hi int) bool) {
	lo := int64(k.Page) * int64(rows)
	if lo >= int64(len(known)) {
		return
	}
	hi := min(int(lo)+rows, len(known))
	known.set(int(lo), hi, place(int(lo), hi))
}

func (p *pieces) placeRegistry(lo, hi int, content []byte) bool {
	return decodeEntities(p.im.Registry[lo:hi], content, p.manifest.total) == nil
}

// placeKnown is setEntities for a page that may be anything.
func (c *Component) placeKnown(lo, hi int, content []byte, indices int) bool {
	if len(content) != 8*(hi-lo) {
		return false
	}
	for i := range hi - lo {
		e := ecs.Entity(binary.LittleEndian.Uint64(content[8*i:]))
		if e == ecs.Vacant && c.Indexed {
			continue
		}
		if int64(e.Index()) >= int64(indices) || c.Indexed && int(e.Index()) != lo+i {
			return false
		}
	}
	return c.setEntities(lo, content, indices) == nil
}

// whole returns the state if it can be had as it was: what is missing follows from the
// rest, and it has the digest that was recorded. Else it returns nil, and p is of no
// use any more.
func (p *pieces) whole() *Image {
	p.mended()
	if p.im.link(context.Background()) != nil || p.im.Digest() != p.manifest.digest {
		return nil
	}
	return p.im
}

// forward applies the ticks of path, as far as they can be read, and returns how many
// those are and what is wrong with the next. What a tick gives is known from then on.
func (p *pieces) forward(ctx context.Context, v *catalog, path []journal.Entry) (n int, err error) {
	for i, e := range path {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		_, t, s, err := v.read(e, p.im)
		if err == nil && t.parent != p.im.ID {
			err = v.entryError(e, fmt.Errorf("tick %d continues state %v, not %v", t.tick, t.parent, p.im.ID))
		}
		if err == nil {
			err = p.adopt(s)
		}
		if err == nil {
			err = p.im.patch(t)
		}
		if err != nil {
			return i, err
		}
		p.patched(t)
		p.im.Tick, p.im.ID = t.tick, e.ID
	}
	return len(path), nil
}

func (p *pieces) adopt(s *schema) error {
	if err := p.im.adopt(s); err != nil {
		return err
	}
	for range p.im.Components[len(p.values):] {
		p.entities, p.values = append(p.entities, nil), append(p.values, nil)
	}
	return nil
}

// patched notes what t gave.
func (p *pieces) patched(t *tick) {
	if r := t.registry; r != nil {
		p.registry = p.registry.patched(r.total, r.ranges)
	}
	for i := range t.storages {
		s := &t.storages[i]
		c := p.im.Components[s.number]
		if !c.Resource {
			p.entities[s.number] = p.entities[s.number].patched(s.after, s.entityRanges)
		}
		p.values[s.number] = p.values[s.number].patched(s.after, s.valueRanges)
		if c.width == 0 {
			p.values[s.number].set(0, s.after, true)
		}
	}
}
