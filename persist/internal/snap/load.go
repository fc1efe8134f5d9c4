package snap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A loading reads a snapshot file once, by several goroutines: each page is checked,
// decoded and put where it belongs while it is in the cache.
//
//	file   | block | block | block | ...   checksums compared (package pagefile)
//	          | page  | page  | ...        checksum compared, decoded
//	image  | Registry | Entities, rows of component 0 | ... , then digest
//
// Pages come in any order, in these steps:
//
//	visit      pages of the file itself: put in place, or noted as references, or kept if sparse
//	resolve    references: entities that are in place are copied, each other file is read once
//	compare    sparse pages, now that all entities are in place; those of a bare image are made for its world
//	first      whether a page was bad or never met
//	Link       what finds rows, unless the image is bare
//	Digest     the whole state against the manifest
//
// What is wrong with a page is kept until all were met, so that what is told is the first fault in
// the order of the arrays, however the goroutines ran. A damaged block ends the load at once.
type loading struct {
	*Reader
	*Filling
	bare  bool
	parts map[uint32]*part // By column.

	mu         sync.Mutex // Guards what follows, and what is in parts.
	table      PageTable
	references map[uint32]map[pagefile.Key][]reference // Pages that lie elsewhere: by file, and by where in it.
	progress   *progress.Meter
	sparse     []sparsePage
	sums       map[pagefile.Key]uint32 // The checksums of pages of entities that the file has itself and that are in place.
}

// A part is an array of which pages are met.
type part struct {
	format.Array
	met     pageSet // In place, kept, or known to be bad.
	faulty  int     // The first page that is not good:
	fault   error   // what is wrong with it.
	entries int     // Of a sparse array.
}

// A sparsePage is a page of a sparse array, kept until all entities are in place.
type sparsePage struct {
	*part
	page    int
	content []byte
}

// A reference is a page that lies elsewhere.
type reference struct {
	*part
	key pagefile.Key
	ref format.PageRef
}

// Load checks the whole file and returns the state it holds. It notes in table,
// if that is not nil, where the pages lie. A bare image has only what a world is
// filled with: it cannot be asked for single rows or replay ticks.
func (r *Reader) Load(ctx context.Context, table PageTable, bare bool) (*image.Image, error) {
	m := r.Manifest
	bare = bare && m.AllRewind() // What does not rewind may have to go row by row: see Image.DropDead.
	l := newLoading(r, table, bare)
	l.progress = progress.Start(ctx, progress.PhaseLoad, r.File.Info().Size)
	var err error
	if l.Filling, err = NewFilling(ctx, m, r.room(), bare); err != nil {
		return nil, err
	}
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

func newLoading(r *Reader, table PageTable, bare bool) *loading {
	l := &loading{
		Reader: r, bare: bare, parts: map[uint32]*part{},
		table: table, references: map[uint32]map[pagefile.Key][]reference{}, sums: map[pagefile.Key]uint32{},
	}
	for a := range r.Manifest.Arrays() {
		l.parts[a.Key(0).Column] = &part{Array: a}
	}
	return l
}

// visit takes a page of the file itself.
func (l *loading) visit(k pagefile.Key, value []byte) error {
	l.advance(len(value))
	p := l.part(k)
	if p == nil {
		return nil // The manifest, or of no use.
	}
	content, ref, err := DecodePage(l.Name, k, value)
	if err == nil {
		err = l.settle(k, &ref)
	}
	switch {
	case err != nil:
		l.fail(p, k, err)
	case ref.Elsewhere():
		l.refer(reference{p, k, ref})
	default:
		ref.File = l.Number()
		l.take(p, k, p.kept(content), ref)
	}
	return nil
}

// refer notes a page that lies elsewhere.
func (l *loading) refer(r reference) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.references[r.ref.File] == nil {
		l.references[r.ref.File] = map[pagefile.Key][]reference{}
	}
	there := r.ref.Of(r.key)
	l.references[r.ref.File][there] = append(l.references[r.ref.File][there], r)
}

// part returns the array that the page k is of, or nil.
func (l *loading) part(k pagefile.Key) *part {
	if p := l.parts[k.Column]; p != nil && int64(k.Page) < int64(p.Pages()) {
		return p
	}
	return nil
}

// advance tells of n bytes more that were read. Pages of other files are not counted: what is there to be
// read is taken for the size of this one.
func (l *loading) advance(n int) {
	if l.progress != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.progress.Add(int64(n))
	}
}

// fail notes what is wrong with a page.
func (l *loading) fail(p *part, k pagefile.Key, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.met.add(int(k.Page))
	if p.fault == nil || int(k.Page) < p.faulty {
		p.faulty, p.fault = int(k.Page), err
	}
}

// kept returns a content that may be taken. That of a sparse page is looked at after the bytes it
// lies in are used for another page, so it is copied; others are put in place at once.
func (p *part) kept(content []byte) []byte {
	if p.Kind == format.SparseArray {
		return slices.Clone(content)
	}
	return content
}

// take takes the content of a page, which is kept. ref says where the content lies, for the table.
func (l *loading) take(p *part, k pagefile.Key, content []byte, ref format.PageRef) {
	var err error
	if p.Kind != format.SparseArray {
		err = l.Place(p.Array, int(k.Page), content)
	}
	if err != nil {
		l.fail(p, k, err)
		return
	}
	var t tablePage
	if l.table != nil {
		t = tablePage{xxh3.Hash128(content), uint32(len(content)), uint16(p.PageRows), ref}
		if ref.Column != 0 {
			t.Size = 0 // It is counted where it lies.
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.met.add(int(k.Page))
	if l.table != nil {
		l.table[k] = t
	}
	if p.Kind == format.SparseArray {
		l.sparse = append(l.sparse, sparsePage{p, int(k.Page), content})
	}
	if p.Kind == format.DenseArray && l.Manifest.Repeats && ref.Column == 0 && ref.File == l.Number() {
		l.sums[k] = ref.CRC
	}
}

// resolve takes the pages that lie elsewhere. Entities that the file has itself are in place already
// and are copied from there. Each other file is gone through once, for all of its pages, and what
// goes wrong there is not told yet: a page that was not met is then asked for by itself, which
// tells why.
func (l *loading) resolve(ctx context.Context) error {
	if err := l.repeat(ctx, l.references[l.Number()]); err != nil {
		return err
	}
	for number, wanted := range l.references {
		if f, _, err := l.holder(number); err == nil && len(wanted) > 0 {
			l.resolveIn(ctx, f, wanted)
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

// repeat takes the pages of entities that the file has under another key, and forgets that they were
// wanted.
func (l *loading) repeat(ctx context.Context, wanted map[pagefile.Key][]reference) error {
	var repeats []reference
	maps.DeleteFunc(wanted, func(there pagefile.Key, refs []reference) bool {
		crc, ok := l.sums[there]
		if ok = ok && !slices.ContainsFunc(refs, func(r reference) bool { return r.ref.CRC != crc }); ok {
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

// resolveIn takes the pages that f has, if they are those that were referred to: another
// content under the key has another checksum than the reference, and stays unmet.
func (l *loading) resolveIn(ctx context.Context, f *pagefile.File, wanted map[pagefile.Key][]reference) {
	want := func(k pagefile.Key) bool { return wanted[k] != nil }
	_ = f.ReadSome(ctx, want, func(k pagefile.Key, value []byte) error {
		content, held, err := format.DecodePage(value)
		refs := wanted[k] // All of them of one kind of array: a page repeats only its like.
		content = refs[0].kept(content)
		for _, r := range refs {
			if err == nil && content != nil && held.CRC == r.ref.CRC {
				l.take(r.part, r.key, content, r.ref)
			}
		}
		return nil
	})
}

// resolveOne takes one page that lies elsewhere, or notes why it cannot be had.
func (l *loading) resolveOne(r reference) {
	if content, ref, err := l.find(r.key, nil); err != nil {
		l.fail(r.part, r.key, err)
	} else {
		l.take(r.part, r.key, content, ref)
	}
}

// compare compares sparse arrays with those that follow from the entities of the rows, so that a file
// which contradicts itself is refused. A world keeps them; the image has no use for them.
func (l *loading) compare(ctx context.Context) error {
	l.CountGaps()
	if l.bare {
		l.Image.Check()
	}
	return parallel.Do(ctx, len(l.sparse), func(i int) error {
		s := l.sparse[i]
		k := s.Key(s.page)
		n, err := l.Image.Components[s.Component].CheckSparse(s.page, s.content)
		if err != nil {
			l.fail(s.part, k, inPage(k, err))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		s.entries += n
		return nil
	})
}

// first returns the first fault in the order in which arrays follow from each other: the registry,
// then for each component its size, entities, sparse array and data.
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

// firstOf is first for a component.
func (l *loading) firstOf(n int) error {
	if err := l.claims(n); err != nil {
		return err
	}
	sparse := l.parts[format.Column(n, format.SparseArray)]
	for _, p := range []*part{l.parts[format.Column(n, format.DenseArray)], sparse} {
		if err := p.first(); err != nil {
			return err
		}
	}
	// Each entry names the row of its entity, see compare. So as many entries as entities are all.
	c := l.Image.Components[n]
	if want := len(c.Entities) - c.Gaps; sparse.entries != want {
		return fmt.Errorf("%d sparse entries for %d entities", sparse.entries, want)
	}
	return l.parts[format.Column(n, format.DataArray)].first()
}

// first returns what is wrong with the first page that is missing or not good. A sparse page may
// be missing: those without entries are left out, and firstOf counts the entries.
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
