package persist

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/pagefile"
)

// A snapshotLoad reads a snapshot file once, by several goroutines: each page is
// checked, decoded and copied to where it belongs while it is in the cache.
//
//	file   | block | block | block | ...   checksums compared (package pagefile)
//	          | page  | page  | ...        checksum compared, decoded
//	image  | Registry | Entities, rows of component 0 | ... , then digest
//
// It only has to tell good files from others: of those that it does not take,
// [snapshotReader.loadInOrder] says what is wrong.
type snapshotLoad struct {
	*snapshotReader
	im    *Image
	bare  bool
	parts []*part // By column; nil: not of this snapshot.

	mu         sync.Mutex // Guards what follows, and gaps.
	table      pageTable
	references map[uint32]map[pagefile.Key]pageRef
	progress   *progress

	sparsePages []sparseContent
}

// A part is one array of a snapshot, in pages.
type part struct {
	n, rows int          // Rows in all and in a page.
	left    atomic.Int64 // Pages that are not in place yet.

	// place puts the rows [lo, hi) where they belong. It is called for different
	// pages at the same time.
	place func(lo, hi int, content []byte) error
}

// errUnfit says that a file cannot be read at once.
var errUnfit = errors.New("persist: pages and manifest differ")

// loadAtOnce is load for files with nothing wrong.
func (r *snapshotReader) loadAtOnce(ctx context.Context, table pageTable, bare bool) (*Image, error) {
	if !r.plausible() {
		return nil, errUnfit
	}
	l := &snapshotLoad{snapshotReader: r, table: table, references: map[uint32]map[pagefile.Key]pageRef{}}
	l.progress = startProgress(ctx, PhaseLoad, r.file.Info().Size)
	l.bare = bare && r.manifest.allRewind()
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.file.ReadAll(ctx, l.visit); err != nil {
		return nil, err
	}
	if err := l.resolve(ctx); err != nil {
		return nil, err
	}
	if err := l.finish(ctx); err != nil {
		return nil, err
	}
	l.progress.finish()
	return l.im, nil
}

// plausible reports whether the rows that the manifest claims fit into the files
// that hold them, so that there is no harm in making room for all of them.
func (r *snapshotReader) plausible() bool {
	m := r.manifest
	room := r.file.Info().Size
	for _, ref := range m.files {
		if f, err := r.other(ref.number); err == nil {
			room += f.Info().Size
		}
	}
	need := 8 * int64(m.total)
	for n, c := range m.schema.components {
		width := c.Layout.Width()
		if width < 0 {
			width = 1 // At least.
		}
		if !c.Resource {
			width += 8
		}
		if c.Resource && m.components[n].rows > 1 || need > room {
			return false
		}
		need += int64(m.components[n].rows) * int64(width)
	}
	return need <= room && m.alive <= m.free && m.free <= m.total
}

// prepare makes room for all rows.
func (l *snapshotLoad) prepare(ctx context.Context) error {
	m := l.manifest
	im := newImage(m.schema)
	im.Tick, im.ID, im.Alive, im.Free = m.tick, m.id, m.alive, m.free
	l.im, l.parts = im, make([]*part, column(len(im.Components), 0))
	l.add(registryColumn, m.total, pageRows, l.placeRegistry)
	room := []func(){func() { im.Registry = make([]ecs.Entity, m.total) }}
	for n, c := range im.Components {
		size := m.components[n]
		c.n = size.rows
		if !c.Resource {
			room = append(room, func() { c.Entities = make([]ecs.Entity, c.n) })
			l.add(column(n, denseArray), c.n, pageRows, l.placeEntities(c))
		}
		if c.width == 0 {
			continue
		}
		place := l.placePacked(c)
		switch {
		case c.width > 0:
			room = append(room, func() { c.packed = make([]byte, c.n*c.width) })
		case l.bare && pageRows%size.pageRows == 0:
			c.pages, c.pageRows = make([][]byte, (c.n+size.pageRows-1)/size.pageRows), size.pageRows
			place = l.placePage(c)
		default:
			room = append(room, func() { c.rows = make([][]byte, c.n) })
			place = l.placeRows(c)
		}
		l.add(column(n, dataArray), c.n, size.pageRows, place)
	}
	return inParallel(ctx, len(room), func(i int) error { room[i](); return nil })
}

func (l *snapshotLoad) add(column uint32, n, rows int, place func(lo, hi int, content []byte) error) {
	p := &part{n: n, rows: rows, place: place}
	p.left.Store(int64((n + rows - 1) / rows))
	l.parts[column] = p
}

// sparse returns the component whose sparse array is in a column, or nil.
func (l *snapshotLoad) sparse(k pagefile.Key) *Component {
	n := (int64(k.Column) - firstColumn) / 4
	if k.Column < firstColumn || k.Column%4 != (firstColumn+sparseArray)%4 || n >= int64(len(l.im.Components)) {
		return nil
	}
	return l.im.Components[n]
}

// visit takes a page of the file itself.
func (l *snapshotLoad) visit(k pagefile.Key, value []byte) error {
	l.advance(len(value))
	if int(k.Column) >= len(l.parts) || l.parts[k.Column] == nil && l.sparse(k) == nil {
		return nil // The manifest, or of no use.
	}
	content, ref, err := decodePage(value)
	if err != nil {
		return err
	}
	if ref.file != 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.references[ref.file] == nil {
			l.references[ref.file] = map[pagefile.Key]pageRef{}
		}
		l.references[ref.file][k] = ref
		return nil
	}
	ref.file = l.number()
	return l.take(k, content, ref)
}

// resolve takes the pages that other files hold.
func (l *snapshotLoad) resolve(ctx context.Context) error {
	for number, pages := range l.references {
		f, err := l.other(number)
		if err != nil {
			return err
		}
		var met atomic.Int64
		wanted := func(k pagefile.Key) bool { return pages[k].file != 0 }
		err = f.ReadSome(ctx, wanted, func(k pagefile.Key, value []byte) error {
			content, held, err := decodePage(value)
			if err != nil || held.file != 0 || held.crc != pages[k].crc {
				return errUnfit
			}
			met.Add(1)
			return l.take(k, content, pages[k])
		})
		if err != nil || int(met.Load()) != len(pages) {
			return errors.Join(errUnfit, err)
		}
	}
	return nil
}

// take puts the content of a page where it belongs.
func (l *snapshotLoad) take(k pagefile.Key, content []byte, ref pageRef) error {
	if l.table != nil {
		sum := xxh3.Hash128(content)
		l.mu.Lock()
		l.table[k] = tablePage{sum, uint32(len(content)), ref}
		l.mu.Unlock()
	}
	p := l.parts[k.Column]
	if p == nil {
		return l.keepSparse(l.sparse(k), k, content)
	}
	lo := int64(k.Page) * int64(p.rows)
	if lo >= int64(p.n) {
		return errUnfit
	}
	p.left.Add(-1)
	return p.place(int(lo), min(int(lo)+p.rows, p.n), content)
}

func (l *snapshotLoad) advance(n int) {
	if l.progress != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.progress.add(int64(n))
	}
}

// decodeEntities decodes what src holds into entities, all of which must have an
// index below total.
func decodeEntities(entities []ecs.Entity, src []byte, total int) error {
	if len(src) != 8*len(entities) {
		return errRanges
	}
	for i := range entities {
		e := ecs.Entity(binary.LittleEndian.Uint64(src[8*i:]))
		if int(e.Index()) >= total {
			return errUnfit
		}
		entities[i] = e
	}
	return nil
}

func (l *snapshotLoad) placeRegistry(lo, hi int, content []byte) error {
	return decodeEntities(l.im.Registry[lo:hi], content, l.manifest.total)
}

func (l *snapshotLoad) placeEntities(c *Component) func(lo, hi int, content []byte) error {
	return func(lo, hi int, content []byte) error {
		if c.Indexed {
			return l.placeIndexed(c, lo, hi, content)
		}
		return decodeEntities(c.Entities[lo:hi], content, l.manifest.total)
	}
}

// placeIndexed is placeEntities for rows at entity indices.
func (l *snapshotLoad) placeIndexed(c *Component, lo, hi int, content []byte) error {
	if len(content) != 8*(hi-lo) {
		return errRanges
	}
	gaps := 0
	for row := lo; row < hi; row, content = row+1, content[8:] {
		e := ecs.Entity(binary.LittleEndian.Uint64(content))
		if e == ecs.Vacant {
			gaps++
		} else if int(e.Index()) != row || row >= l.manifest.total {
			return errUnfit
		}
		c.Entities[row] = e
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.gaps += gaps
	return nil
}

// placePacked is for rows of fixed width.
func (l *snapshotLoad) placePacked(c *Component) func(lo, hi int, content []byte) error {
	return func(lo, hi int, content []byte) error {
		rest, err := c.setRows(lo, hi-lo, content)
		if err == nil && len(rest) > 0 {
			err = errRanges
		}
		return err
	}
}

// placePage is for rows that vary, if nobody will ask for them one by one.
func (l *snapshotLoad) placePage(c *Component) func(lo, hi int, content []byte) error {
	return func(lo, hi int, content []byte) error {
		c.pages[lo/c.pageRows] = slices.Clone(content)
		return c.Layout.Check(content, hi-lo)
	}
}

// placeRows is for rows that vary.
func (l *snapshotLoad) placeRows(c *Component) func(lo, hi int, content []byte) error {
	return func(lo, hi int, content []byte) error {
		content = slices.Clone(content) // The rows share it.
		for i := lo; i < hi; i++ {
			row, rest, err := c.Layout.Next(content)
			if err != nil {
				return err
			}
			c.rows[i], content = row, rest
		}
		if len(content) > 0 {
			return errRanges
		}
		return nil
	}
}

// A sparseContent is a page of a sparse array, kept until all entities are there.
type sparseContent struct {
	c       *Component
	page    int
	content []byte
}

func (l *snapshotLoad) keepSparse(c *Component, k pagefile.Key, content []byte) error {
	s := sparseContent{c, int(k.Page), slices.Clone(content)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sparsePages = append(l.sparsePages, s)
	return nil
}

// finish checks what is known only when all pages are in place.
func (l *snapshotLoad) finish(ctx context.Context) error {
	for _, p := range l.parts {
		if p != nil && p.left.Load() != 0 {
			return errUnfit
		}
	}
	if err := l.checkSparse(ctx); err != nil {
		return err
	}
	if !l.bare {
		if err := l.im.link(ctx); err != nil {
			return err
		}
	}
	if l.im.Digest() != l.manifest.digest {
		return errUnfit
	}
	return ctx.Err()
}

// checkSparse compares the sparse arrays with the ones that follow from dense.
func (l *snapshotLoad) checkSparse(ctx context.Context) error {
	found := make([]int, len(l.sparsePages))
	err := inParallel(ctx, len(found), func(i int) (err error) {
		s := l.sparsePages[i]
		found[i], err = s.c.checkSparse(s.page, s.content)
		return err
	})
	if err != nil {
		return err
	}
	entries := map[*Component]int{}
	for i, s := range l.sparsePages {
		entries[s.c] += found[i]
	}
	for _, c := range l.im.Components {
		if entries[c] != len(c.Entities)-c.gaps {
			return errUnfit
		}
	}
	return nil
}
