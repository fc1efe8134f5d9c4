package snap

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
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A snapshotLoad reads a snapshot file once, by several goroutines: each page is
// checked, decoded and copied to where it belongs while it is in the cache.
//
//	file   | block | block | block | ...   checksums compared (package pagefile)
//	          | page  | page  | ...        checksum compared, decoded
//	image  | Registry | Entities, rows of component 0 | ... , then digest
//
// It only has to tell good files from others: of those that it does not take,
// [Reader.LoadInOrder] says what is wrong.
type snapshotLoad struct {
	*Reader
	im    *image.Image
	bare  bool
	parts []*part // By column; nil: not of this snapshot.

	mu         sync.Mutex // Guards what follows, and gaps.
	table      PageTable
	references map[uint32]map[pagefile.Key]format.PageRef
	progress   *progress.Meter

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

// LoadAtOnce is [Reader.Load] for files with nothing wrong.
func (r *Reader) LoadAtOnce(ctx context.Context, table PageTable, bare bool) (*image.Image, error) {
	if !r.Plausible() {
		return nil, errUnfit
	}
	l := &snapshotLoad{Reader: r, table: table, references: map[uint32]map[pagefile.Key]format.PageRef{}}
	l.progress = progress.Start(ctx, progress.PhaseLoad, r.File.Info().Size)
	l.bare = bare && r.Manifest.AllRewind()
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.File.ReadAll(ctx, l.visit); err != nil {
		return nil, err
	}
	if err := l.resolve(ctx); err != nil {
		return nil, err
	}
	if err := l.finish(ctx); err != nil {
		return nil, err
	}
	l.progress.Finish()
	return l.im, nil
}

// Plausible reports whether the rows that the manifest claims fit into the files
// that hold them, so that there is no harm in making room for all of them.
func (r *Reader) Plausible() bool {
	m := r.Manifest
	room := r.File.Info().Size
	for _, ref := range m.Files {
		if f, err := r.other(ref.Number); err == nil {
			room += f.Info().Size
		}
	}
	need := 8 * int64(m.Total)
	for n, c := range m.Schema.Components {
		width := c.Layout.Width()
		if width < 0 {
			width = 1 // At least.
		}
		if !c.Resource {
			width += 8
		}
		if c.Resource && m.Components[n].Rows > 1 || need > room {
			return false
		}
		need += int64(m.Components[n].Rows) * int64(width)
	}
	return need <= room && m.Alive <= m.Free && m.Free <= m.Total
}

// prepare makes room for all rows.
func (l *snapshotLoad) prepare(ctx context.Context) error {
	m := l.Manifest
	im := image.New(m.Schema)
	im.Tick, im.ID, im.Alive, im.Free = m.Tick, m.ID, m.Alive, m.Free
	l.im, l.parts = im, make([]*part, format.Column(len(im.Components), 0))
	l.add(format.RegistryColumn, m.Total, format.PageRows, l.placeRegistry)
	room := []func(){func() { im.Registry = make([]ecs.Entity, m.Total) }}
	for n, c := range im.Components {
		size := m.Components[n]
		c.N = size.Rows
		if !c.Resource {
			room = append(room, func() { c.Entities = make([]ecs.Entity, c.N) })
			l.add(format.Column(n, format.DenseArray), c.N, format.PageRows, l.placeEntities(c))
		}
		if c.Width == 0 {
			continue
		}
		place := l.placePacked(c)
		switch {
		case c.Width > 0:
			room = append(room, func() { c.Packed = make([]byte, c.N*c.Width) })
		case l.bare && format.PageRows%size.PageRows == 0:
			c.Pages, c.PageRows = make([][]byte, (c.N+size.PageRows-1)/size.PageRows), size.PageRows
			place = l.placePage(c)
		default:
			room = append(room, func() { c.Rows = make([][]byte, c.N) })
			place = l.placeRows(c)
		}
		l.add(format.Column(n, format.DataArray), c.N, size.PageRows, place)
	}
	return parallel.Do(ctx, len(room), func(i int) error { room[i](); return nil })
}

func (l *snapshotLoad) add(column uint32, n, rows int, place func(lo, hi int, content []byte) error) {
	p := &part{n: n, rows: rows, place: place}
	p.left.Store(int64((n + rows - 1) / rows))
	l.parts[column] = p
}

// sparse returns the component whose sparse array is in a column, or nil.
func (l *snapshotLoad) sparse(k pagefile.Key) *image.Component {
	n := (int64(k.Column) - format.FirstColumn) / 4
	if k.Column < format.FirstColumn || k.Column%4 != (format.FirstColumn+format.SparseArray)%4 || n >= int64(len(l.im.Components)) {
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
	content, ref, err := format.DecodePage(value)
	if err != nil {
		return err
	}
	if ref.File != 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.references[ref.File] == nil {
			l.references[ref.File] = map[pagefile.Key]format.PageRef{}
		}
		l.references[ref.File][k] = ref
		return nil
	}
	ref.File = l.Number()
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
		wanted := func(k pagefile.Key) bool { return pages[k].File != 0 }
		err = f.ReadSome(ctx, wanted, func(k pagefile.Key, value []byte) error {
			content, held, err := format.DecodePage(value)
			if err != nil || held.File != 0 || held.CRC != pages[k].CRC {
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
func (l *snapshotLoad) take(k pagefile.Key, content []byte, ref format.PageRef) error {
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
		l.progress.Add(int64(n))
	}
}

// DecodeEntities decodes what src holds into entities, all of which must have an
// index below total.
func DecodeEntities(entities []ecs.Entity, src []byte, total int) error {
	if len(src) != 8*len(entities) {
		return image.ErrRanges
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
	return DecodeEntities(l.im.Registry[lo:hi], content, l.Manifest.Total)
}

func (l *snapshotLoad) placeEntities(c *image.Component) func(lo, hi int, content []byte) error {
	return func(lo, hi int, content []byte) error {
		if c.Indexed {
			return l.placeIndexed(c, lo, hi, content)
		}
		return DecodeEntities(c.Entities[lo:hi], content, l.Manifest.Total)
	}
}

// placeIndexed is placeEntities for rows at entity indices.
func (l *snapshotLoad) placeIndexed(c *image.Component, lo, hi int, content []byte) error {
	if len(content) != 8*(hi-lo) {
		return image.ErrRanges
	}
	gaps := 0
	for row := lo; row < hi; row, content = row+1, content[8:] {
		e := ecs.Entity(binary.LittleEndian.Uint64(content))
		if e == ecs.Vacant {
			gaps++
		} else if int(e.Index()) != row || row >= l.Manifest.Total {
			return errUnfit
		}
		c.Entities[row] = e
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Gaps += gaps
	return nil
}

// placePacked is for rows of fixed width.
func (l *snapshotLoad) placePacked(c *image.Component) func(lo, hi int, content []byte) error {
	return func(lo, hi int, content []byte) error {
		rest, err := c.SetRows(lo, hi-lo, content)
		if err == nil && len(rest) > 0 {
			err = image.ErrRanges
		}
		return err
	}
}

// placePage is for rows that vary, if nobody will ask for them one by one.
func (l *snapshotLoad) placePage(c *image.Component) func(lo, hi int, content []byte) error {
	return func(lo, hi int, content []byte) error {
		c.Pages[lo/c.PageRows] = slices.Clone(content)
		return c.Layout.Check(content, hi-lo)
	}
}

// placeRows is for rows that vary.
func (l *snapshotLoad) placeRows(c *image.Component) func(lo, hi int, content []byte) error {
	return func(lo, hi int, content []byte) error {
		content = slices.Clone(content) // The rows share it.
		for i := lo; i < hi; i++ {
			row, rest, err := c.Layout.Next(content)
			if err != nil {
				return err
			}
			c.Rows[i], content = row, rest
		}
		if len(content) > 0 {
			return image.ErrRanges
		}
		return nil
	}
}

// A sparseContent is a page of a sparse array, kept until all entities are there.
type sparseContent struct {
	c       *image.Component
	page    int
	content []byte
}

func (l *snapshotLoad) keepSparse(c *image.Component, k pagefile.Key, content []byte) error {
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
		if err := l.im.Link(ctx); err != nil {
			return err
		}
	}
	if l.im.Digest() != l.Manifest.Digest {
		return errUnfit
	}
	return ctx.Err()
}

// checkSparse compares the sparse arrays with the ones that follow from dense.
func (l *snapshotLoad) checkSparse(ctx context.Context) error {
	found := make([]int, len(l.sparsePages))
	err := parallel.Do(ctx, len(found), func(i int) (err error) {
		s := l.sparsePages[i]
		found[i], err = s.c.CheckSparse(s.page, s.content)
		return err
	})
	if err != nil {
		return err
	}
	entries := map[*image.Component]int{}
	for i, s := range l.sparsePages {
		entries[s.c] += found[i]
	}
	for _, c := range l.im.Components {
		if entries[c] != len(c.Entities)-c.Gaps {
			return errUnfit
		}
	}
	return nil
}
