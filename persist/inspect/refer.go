package inspect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// References to an entity are found without loading the state. Pages of a snapshot are searched
// for the bytes of the encoded entity, and only rows with these bytes are decoded. The ticks after
// the snapshot are read first. The rows that they write are searched directly, and replace the
// older rows of the file.
//
//	ticks      rows written    written, holding, owners
//	snapshot   all other rows  page by page, see searchFile
//
// Two kinds of components still need the whole state: see referrersFrom.

// A Referrer is a value that refers to an entity.
type Referrer struct {
	Entity    ecs.Entity // The entity that has the value; unused for a resource.
	Component string     // Name of the component or resource.
	Resource  bool
	Row       int
	// Fields are the paths of the references in the value: "Target", "Links[3]". The path is ""
	// if the value is an entity itself.
	Fields []string
}

// referrersFrom adds the references in a state to list. It reads a snapshot and the ticks after
// it.
func referrersFrom(ctx context.Context, v *catalog.Catalog, s SnapshotInfo, list *referrers, seq uint64) error {
	return openAt(v, s, seq, func(r *snap.Reader, path []journal.Entry) error {
		searches, err := searches(v, r.Manifest, list.entity, path)
		if err != nil {
			return err
		}
		err = v.Records(ctx, path, func(_ context.Context, rec *catalog.Record) error {
			return searchTick(v, r.Manifest, searches, rec)
		})
		if err != nil {
			return err
		}
		for _, c := range searches {
			// The value of an edited row depends on its old value. In the file of a store, a
			// no-rewind component may have rows of dead entities. View.At drops these rows, so the
			// rows after them have other numbers.
			if c.edited || !c.Rewinds && !c.Resource && !v.IsSave() {
				err = searchWhole(ctx, v, c, list, seq)
			} else {
				err = searchFile(ctx, r, c, list)
			}
			if err != nil {
				return r.Damage(fmt.Errorf("component %s: %w", naming.Shown(c.Name), err))
			}
		}
		return nil
	})
}

// referrers collects the result of Referrers.
type referrers struct {
	entity ecs.Entity
	limit  int
	first  []Referrer
	total  int
}

// A search looks for an entity in the rows of one component. Rows that ticks wrote replace those
// of the snapshot. A tick may remove a written row, or give it another entity without a new
// value. So the values and the entities of rows are recorded separately.
type search struct {
	*format.Entry
	number int
	width  int
	rows   int // Number of rows after the last tick.

	dense, data format.Array // The arrays in the snapshot.

	entity ecs.Entity
	needle []byte // The encoded entity. Only rows with these bytes can refer to the entity.

	// written has the rows that ticks wrote, as bits, 64 rows per element.
	written map[int]uint64
	// holding maps each written row that contains the entity to the paths of the entity in the
	// row.
	holding map[int][]string
	// owners has the entities that ticks assigned to rows.
	owners map[int]ecs.Entity
	// edited says that ticks edited rows. The whole state must then be searched.
	edited bool
}

// searches returns a search for each component that can refer to entities in the last state of
// path. path has no conversion, so components were only added. So the last schema has all
// components of the snapshot. A component that the snapshot does not have gets empty arrays.
func searches(v *catalog.Catalog, m *format.Manifest, e ecs.Entity, path []journal.Entry) ([]*search, error) {
	s, err := lastSchema(v, m, path)
	if err != nil {
		return nil, err
	}
	var list []*search
	for n := range s.Components {
		c := &search{
			Entry: &s.Components[n], number: n, entity: e, width: s.Components[n].Layout.Width(),
			written: map[int]uint64{}, holding: map[int][]string{}, owners: map[int]ecs.Entity{},
			dense: none, data: none,
		}
		if !holdsEntities(c.Layout) {
			continue
		}
		if n < len(m.Components) {
			c.rows, c.dense, c.data = m.Components[n].Rows, m.Array(n, format.DenseArray), m.Array(n, format.DataArray)
		}
		// In values of fixed width, an entity takes 8 bytes. Other values are MessagePack, in
		// which a number has one encoding. The bytes may match by chance, so find decodes the
		// value too.
		c.needle = binary.LittleEndian.AppendUint64(nil, uint64(e))
		if c.width < 0 {
			enc := format.NewEncoder()
			enc.Uint(uint64(e))
			c.needle = enc.Buf
		}
		list = append(list, c)
	}
	return list, nil
}

// lastSchema returns the schema of the last state of path, which begins at the snapshot of m. It
// returns the schema of m unless path adds components.
func lastSchema(v *catalog.Catalog, m *format.Manifest, path []journal.Entry) (*format.Schema, error) {
	if len(path) == 0 {
		return m.Schema, nil
	}
	last, err := v.SchemaAfter(path[len(path)-1], m.ID, func() *format.Schema { return m.Schema })
	if err != nil {
		return nil, err
	}
	if len(last.Components) > len(m.Schema.Components) {
		return last, nil
	}
	return m.Schema, nil
}

// holdsEntities reports whether values of type t can contain entities.
func holdsEntities(t *layout.Type) bool {
	switch {
	case t == nil:
		return false
	case t.Kind == layout.Entity:
		return true
	}
	return holdsEntities(t.Elem) || holdsEntities(t.Key) ||
		slices.ContainsFunc(t.Fields, func(f layout.Field) bool { return holdsEntities(f.Type) })
}

// searchTick advances searches by the tick of r. m is the manifest of the snapshot.
func searchTick(v *catalog.Catalog, m *format.Manifest, searches []*search, r *catalog.Record) error {
	if err := v.Describe(r, m.ID, func() *format.Schema { return m.Schema }); err != nil {
		return err
	}
	for i := range r.Decoded.Storages {
		p := &r.Decoded.Storages[i]
		n := slices.IndexFunc(searches, func(c *search) bool { return c.number == p.Number })
		if n < 0 {
			continue
		}
		if err := searches[n].patch(p); err != nil {
			return v.EntryError(r.Entry, fmt.Errorf("tick %d: component %s: %w", r.Tick, naming.Shown(searches[n].Name), err))
		}
	}
	return nil
}

// patch records what a tick did to the component.
func (c *search) patch(p *format.StoragePatch) error {
	if len(p.Entities) != 8*format.CountRows(p.EntityRanges) {
		return image.ErrRanges
	}
	if c.edited = c.edited || len(p.EditRanges) > 0; c.edited {
		// searchWhole will read the whole state, so the records are not needed.
		return nil
	}
	c.rows = p.After
	eachRow(p.EntityRanges, p.Entities, func(row int, e ecs.Entity) { c.owners[row] = e })
	// Each row takes at least a byte, so the ranges of a damaged patch may have too many rows.
	if format.CountRows(p.ValueRanges) > len(p.Values) {
		return format.ErrShort
	}
	src := p.Values
	// Record every written row, also one without the entity: it replaces the older row of the
	// file.
	for _, r := range p.ValueRanges {
		for row := r.First; row < r.First+r.N; row++ {
			value, rest, err := nextRow(c.Layout, c.width, src)
			if err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			}
			src = rest
			c.written[row>>6] |= 1 << (row & 63)
			// An earlier tick may have added the row to holding.
			delete(c.holding, row)
			if fields, err := c.find(value); err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			} else if len(fields) > 0 {
				c.holding[row] = fields
			}
		}
	}
	return nil
}

// nextRow splits the first row off src. t is the type of the rows, width is their width.
func nextRow(t *layout.Type, width int, src []byte) (row, rest []byte, err error) {
	switch {
	case width < 0:
		return t.Next(src)
	case width > len(src):
		return nil, nil, format.ErrShort
	}
	return src[:width], src[width:], nil
}

// find returns the paths at which a row contains the entity, or nil. It decodes only rows that
// contain the bytes of needle.
func (c *search) find(row []byte) (fields []string, err error) {
	if !bytes.Contains(row, c.needle) {
		return nil, nil
	}
	value, err := c.Layout.Value(row)
	if err != nil {
		return nil, err
	}
	return appendFieldsWith(nil, "", value, c.entity), nil
}

// appendFieldsWith appends the paths of the fields in v that equal e. path is the path of v. A
// pointer has the path of the value that it points to, as in Go. If a map key contains the
// entity, the path is that of the map entry.
func appendFieldsWith(fields []string, path string, v layout.Value, e ecs.Entity) []string {
	switch v.Kind() {
	case layout.Entity:
		if ecs.Entity(v.Uint()) == e {
			fields = append(fields, path)
		}
	case layout.Struct:
		if path != "" {
			path += "."
		}
		for i, f := range v.Type().Fields {
			fields = appendFieldsWith(fields, path+f.Name, v.Index(i), e)
		}
	case layout.Map:
		for i := range v.Len() {
			at := fmt.Sprintf("%s[%v]", path, v.Key(i))
			if len(appendFieldsWith(nil, "", v.Key(i), e)) > 0 {
				fields = append(fields, "key of "+at)
			}
			fields = appendFieldsWith(fields, at, v.Index(i), e)
		}
	case layout.Pointer:
		for i := range v.Len() {
			fields = appendFieldsWith(fields, path, v.Index(i), e)
		}
	case layout.Array, layout.Slice:
		for i := range v.Len() {
			fields = appendFieldsWith(fields, fmt.Sprintf("%s[%d]", path, i), v.Index(i), e)
		}
	}
	return fields
}

// A hit is a row that contains the entity.
type hit struct {
	row    int
	fields []string
}

// searchFile adds the rows of c that contain the entity to list, in the order of rows. It searches
// the pages of the snapshot, and adds the rows that later ticks wrote. Such rows may come after the
// last page.
func searchFile(ctx context.Context, r *snap.Reader, c *search, list *referrers) error {
	owners := &ownerFinder{reader: r, c: c, page: -1}
	ticks := c.hits()
	for page := range c.data.Pages() {
		lo, hi := c.data.Span(page)
		if lo >= c.rows {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		hits, err := searchPage(r, c, page)
		if err != nil {
			return err
		}
		for len(ticks) > 0 && ticks[0].row < hi {
			hits, ticks = append(hits, ticks[0]), ticks[1:]
		}
		slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.row, b.row) })
		if err := list.take(c, hits, owners.owner); err != nil {
			return err
		}
	}
	return list.take(c, ticks, owners.owner)
}

// take adds hits of c to list, except gaps: the row of a gap may still have the bytes of a
// removed value. It counts all hits and stores them up to the limit.
func (l *referrers) take(c *search, hits []hit, owner func(row int) (ecs.Entity, error)) error {
	for _, h := range hits {
		e, err := owner(h.row)
		if err != nil {
			return err
		}
		if e == ecs.Vacant {
			continue
		}
		if l.total++; len(l.first) < l.limit {
			l.first = append(l.first, Referrer{e, c.Name, c.Resource, h.row, h.fields})
		}
	}
	return nil
}

// hits returns the rows that ticks wrote and that contain the entity, by row. It leaves out rows
// past the end, which later ticks have removed.
func (c *search) hits() (hits []hit) {
	for _, row := range slices.Sorted(maps.Keys(c.holding)) {
		if row < c.rows {
			hits = append(hits, hit{row, c.holding[row]})
		}
	}
	return hits
}

// searchPage returns the hits in those rows of a page that no tick wrote. Most pages do not
// contain the bytes, so searchPage does not split them into rows.
func searchPage(r *snap.Reader, c *search, page int) (hits []hit, err error) {
	row, _ := c.data.Span(page)
	content, err := r.Page(c.data, page)
	if err != nil || !bytes.Contains(content, c.needle) {
		return nil, err
	}
	for ; len(content) > 0 && row < c.rows; row++ {
		value, rest, err := nextRow(c.Layout, c.width, content)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		content = rest
		if c.written[row>>6]>>(row&63)&1 == 1 {
			continue
		}
		fields, err := c.find(value)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		if len(fields) > 0 {
			hits = append(hits, hit{row, fields})
		}
	}
	return hits, nil
}

// An ownerFinder returns the entities of rows. It caches one page, so calls should be in the
// order of rows.
type ownerFinder struct {
	reader  *snap.Reader
	c       *search
	page    int // The cached page.
	content []byte
}

// owner returns the entity of a row, or 0 for a resource. The entity is the one that a tick
// assigned last, or the one in the snapshot. If a row has no entity, the file is damaged.
func (o *ownerFinder) owner(row int) (ecs.Entity, error) {
	if o.c.Resource {
		return 0, nil
	}
	if e, ok := o.c.owners[row]; ok {
		return e, nil
	}
	if page := row / o.c.dense.PageRows; page != o.page {
		var err error
		if o.content, err = o.reader.Page(o.c.dense, page); err != nil {
			return 0, err
		}
		o.page = page
	}
	at := row % o.c.dense.PageRows
	if 8*at >= len(o.content) {
		return 0, fmt.Errorf("row %d has no entity", row)
	}
	return format.EntityAt(o.content, at), nil
}

// searchWhole adds the references in the whole state to list.
func searchWhole(ctx context.Context, v *catalog.Catalog, c *search, list *referrers, seq uint64) error {
	im, err := v.At(ctx, seq)
	if err != nil {
		return err
	}
	if c.number >= len(im.Components) {
		return nil
	}
	rows := im.Components[c.number]
	var hits []hit
	for row := range rows.Len() {
		fields, err := c.find(rows.Row(row))
		if err != nil {
			return err
		}
		if len(fields) > 0 {
			hits = append(hits, hit{row, fields})
		}
	}
	return list.take(c, hits, func(row int) (ecs.Entity, error) {
		if c.Resource {
			return 0, nil
		}
		return rows.Entities[row], nil
	})
}
