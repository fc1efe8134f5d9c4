package snap

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A loading reads a snapshot file once with several goroutines. Package pagefile verifies the
// checksums of the blocks. The loading verifies the checksum of each page, decodes the page, and
// puts it in place in the image. It does this while the page is in the processor's cache.
//
// Pages come in any order, in these steps:
//
//	visit      pages of the file itself: put in place, recorded as references, or kept if sparse
//	resolve    references: copies entities that are in place; reads each other file once
//	compare    sparse pages, once all entities are in place; for a bare image also fills them
//	first      returns the first error: a page was bad or missing
//	Link       builds the lookup of rows, unless the image is bare
//	Digest     compares the whole state with the manifest
//
// Load records errors of pages until it has read all pages. So the returned error is the first one
// in the order of the arrays, independent of the goroutines. A damaged block ends the load
// immediately.
type loading struct {
	*Reader
	*Filling
	bare     bool
	table    PageTable       // Guarded by lock.
	progress *progress.Meter // Guarded by lock.
}

// Load verifies the whole file and returns its state. If table is not nil, Load adds the positions
// of the pages to it. A bare image contains only what filling a world needs: it has no access to
// single rows and cannot replay ticks.
func (r *Reader) Load(ctx context.Context, table PageTable, bare bool) (*image.Image, error) {
	m := r.Manifest
	// A bare image has whole pages and no single rows. If a component does not rewind,
	// Image.DropDead needs single rows, so the image cannot be bare.
	bare = bare && m.AllRewind()
	meter := progress.Start(ctx, progress.PhaseLoad, r.File.Info().Size)
	l, err := newLoading(ctx, r, table, bare)
	if err != nil {
		return nil, err
	}
	l.progress = meter
	if err := r.File.ReadAll(ctx, l.visit); err != nil {
		return nil, err
	}
	if err := l.resolve(ctx); err != nil {
		return nil, err
	}
	if err := l.compare(ctx); err != nil {
		return nil, err
	}
	if err := l.first(); err != nil {
		return nil, r.Damage(err)
	}
	if !bare {
		if err := l.Image.Link(ctx); err != nil {
			return nil, err
		}
	}
	if d := l.Image.Digest(); d != m.Digest {
		return nil, r.Damage(fmt.Errorf("digest %v, recorded as %v", d, m.Digest))
	}
	l.progress.Finish()
	return l.Image, ctx.Err()
}

func newLoading(ctx context.Context, r *Reader, table PageTable, bare bool) (*loading, error) {
	f, err := newFilling(ctx, r.Name, r.Manifest, r.room(), bare)
	return &loading{Reader: r, Filling: f, bare: bare, table: table}, err
}

// visit handles a page of the file itself.
func (l *loading) visit(k pagefile.Key, value []byte) error {
	l.advance(len(value))
	p, content, ref, err := l.read(k, value)
	switch {
	case err != nil:
		l.fail(p, k, err)
	case p != nil:
		l.take(p, k, content, ref)
	}
	return nil
}

// advance reports n more bytes as read. Pages of other files do not count, because the total is the
// size of this file.
func (l *loading) advance(n int) {
	if l.progress != nil {
		l.lock.Lock()
		defer l.lock.Unlock()
		l.progress.Add(int64(n))
	}
}

// fail stores the error of a page, unless an earlier page of the part already has an error.
func (l *loading) fail(p *part, k pagefile.Key, err error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	p.met.add(int(k.Page))
	if p.fault == nil || int(k.Page) < p.faulty {
		p.faulty, p.fault = int(k.Page), err
	}
}

// take handles the content of a page. ref is the position of the content, for the table.
func (l *loading) take(p *part, k pagefile.Key, content []byte, ref format.PageRef) {
	if err := l.put(p, int(k.Page), content, ref.CRC); err != nil {
		l.fail(p, k, err)
		return
	}
	if l.table == nil {
		return
	}
	t := tablePage{xxh3.Hash128(content), uint32(len(content)), uint16(p.PageRows), ref}
	if ref.Column != 0 {
		// The page repeats another page of the file, which counts the size of the content.
		t.Size = 0
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.table[k] = t
}

// resolve puts pages in place that are only references in the file, in three steps:
//
//	pages of entities that repeat a page of this file   repeat copies them within the image
//	all other pages                                     one pass over each file, ignores errors
//	pages that are still missing                        one by one, reports errors
func (l *loading) resolve(ctx context.Context) error {
	if err := l.repeat(ctx, l.references[l.Manifest.Number]); err != nil {
		return err
	}
	for number, wanted := range l.references {
		if f, _, err := l.holder(number); err == nil && len(wanted) > 0 {
			_ = f.ReadSome(ctx, func(k pagefile.Key) bool { return wanted[k] != nil }, func(k pagefile.Key, value []byte) error {
				readReferred(wanted[k], value, func(r reference, content []byte) { l.take(r.part, r.key, content, r.ref) })
				return nil
			})
		}
	}
	for _, wanted := range l.references {
		for _, refs := range wanted {
			for _, r := range refs {
				if err := ctx.Err(); err != nil {
					return err
				}
				if !r.met.has(int(r.key.Page)) {
					l.resolveOne(r)
				}
			}
		}
	}
	return nil
}

// repeat handles pages of entities that are references to a page of the same file. The entities of
// that page are in the image already, so repeat copies them. It removes these references from the
// map wanted. It must run before pages of other files are in place.
func (l *loading) repeat(ctx context.Context, wanted map[pagefile.Key][]reference) error {
	var repeats []reference
	maps.DeleteFunc(wanted, func(there pagefile.Key, refs []reference) bool {
		crc, ok := l.crcs[there]
		if ok = ok && refs[0].Kind == format.DenseArray && !slices.ContainsFunc(refs, func(r reference) bool { return r.ref.CRC != crc }); ok {
			repeats = append(repeats, refs...)
		}
		return ok
	})
	return parallel.Do(ctx, len(repeats), func(i int) error {
		r := repeats[i]
		l.take(r.part, r.key, l.placed(l.parts[r.ref.Column].Array, int(r.key.Page)), r.ref)
		return nil
	})
}

// resolveOne handles one page that is stored elsewhere, or records its error.
func (l *loading) resolveOne(r reference) {
	if content, ref, err := l.find(r.key, nil); err != nil {
		l.fail(r.part, r.key, err)
	} else {
		l.take(r.part, r.key, content, ref)
	}
}

// compare compares the sparse arrays with the dense arrays, so that a contradictory file is
// refused.
func (l *loading) compare(ctx context.Context) error {
	l.countGaps()
	if l.bare {
		l.Image.Check()
	}
	return parallel.Do(ctx, len(l.sparse), func(i int) error {
		s := l.sparse[i]
		k := s.Key(s.Page)
		n, err := l.Image.Components[s.Component].CheckSparse(s.Page, s.Content)
		if err != nil {
			l.fail(s.part, k, inPage(k, err))
		}
		l.lock.Lock()
		defer l.lock.Unlock()
		s.entries += n
		return nil
	})
}

// first returns the first error in this order: the registry, then for each component its size,
// entities, sparse array and data.
func (l *loading) first() error {
	if err := l.Manifest.CheckRegistry(); err != nil {
		return fmt.Errorf("entities: %w", err)
	}
	if err := l.parts[format.RegistryColumn].first(); err != nil {
		return fmt.Errorf("entities: %w", err)
	}
	for n := range l.Manifest.Components {
		if err := l.firstOf(n); err != nil {
			return l.InComponent(n, err)
		}
	}
	return nil
}

// firstOf returns the first error of component n.
func (l *loading) firstOf(n int) error {
	if err := claims(l.Manifest, n); err != nil {
		return err
	}
	sparse := l.parts[format.Column(n, format.SparseArray)]
	for _, p := range []*part{l.parts[format.Column(n, format.DenseArray)], sparse} {
		if err := p.first(); err != nil {
			return err
		}
	}
	// compare has checked all entries of the file: each has the row of its entity. The file may
	// still lack entries. It has all of them if their number is the number of entities.
	c := l.Image.Components[n]
	if want := len(c.Entities) - c.Gaps; sparse.entries != want {
		return fmt.Errorf("%d sparse entries for %d entities", sparse.entries, want)
	}
	return l.parts[format.Column(n, format.DataArray)].first()
}

// first returns the error of the first page that is missing or bad. Sparse pages without entries
// are not stored, so first accepts a missing sparse page. firstOf counts the entries to find out
// whether a sparse page was lost.
func (p *part) first() error {
	for page := range p.Pages() {
		switch {
		case p.fault != nil && page == p.faulty:
			return p.fault
		case p.Kind != format.SparseArray && !p.met.has(page):
			return missing(p.Key(page))
		}
	}
	return nil
}
