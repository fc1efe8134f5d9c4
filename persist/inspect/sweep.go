package inspect

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"sync"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A sweep goes over all entities in the order of their indices and reads each page of their
// values once, by several goroutines:
//
//	sparse page i ──▶ Span i: entities [4096 i, 4096 (i+1))
//	                   │ get: pages of data with their rows, read by whoever needs one first
//	                   └ pass: counts these rows off; a page without rows left is let go
//
// A sweep that begins in the middle never comes to the rows of entities before. Where that keeps many pages, the
// holders of their rows are read: skip counts the rows of entities before off.
//
// Rows of one page may belong to spans that are far apart, and spans end in any order. So a page
// lives until all of its rows were passed, whoever did that. Each row is passed exactly once,
// since each has one index.

// A Span is a stretch of the entities alive, by index, and what they have of the components that
// a [State.Sweep] is about.
type Span struct {
	Entities []ecs.Entity
	Next     int // The first index behind it.
	of       []swept
}

// Sweep asks all entities alive whose index is at least from, where a span begins: 0, or the Next of
// one. It goes span by span in the order of their indices, and calls take with what was found in
// each, in this order. It ends with the first error.
//
// Several goroutines ask, each by a function of its own that asker makes. It may read of the
// entities what they have of these components, which are of the outline of s. A page is read
// once, and let go when nearly all of its rows were passed, of which the rest is kept: if most rows
// lie in the order of indices, only a few pages are held, and at worst the column.
func (s *State) Sweep(ctx context.Context, from int, components []*Component, asker func() func(*Span) (any, error), take func(any) error) error {
	if err := s.Count(ctx); err != nil {
		return err
	}
	kept := make([]*keptPages, len(components))
	for i, c := range components {
		kept[i] = &keptPages{stored: s.column(c), pages: map[int]*keptPage{}, from: from}
	}
	// Worker w has asks[w] and spans[w] to itself, for one span after the other; only the kept
	// pages are shared, under their locks.
	asks, spans := make([]func(*Span) (any, error), parallel.Workers()), make([]*Span, parallel.Workers())
	for i := range asks {
		asks[i], spans[i] = asker(), newSpan(kept)
	}
	first := (from + format.PageRows - 1) / format.PageRows // It may be the end, which is no multiple.
	work := func(worker, i int) (found any, err error) {
		span := spans[worker]
		i += first
		if err = span.fill(s, i); err == nil {
			found, err = asks[worker](span)
		}
		if err == nil {
			span.pass(i)
		}
		return found, err
	}
	return parallel.InOrder(ctx, max(0, (s.indices+format.PageRows-1)/format.PageRows-first), work, take)
}

// newSpan returns one that is filled again and again.
func newSpan(kept []*keptPages) *Span {
	s := &Span{of: make([]swept, len(kept))}
	for n, k := range kept {
		s.of[n] = swept{keptPages: k, resource: k.Resource && k.N > 0}
	}
	return s
}

// fill makes s the entities with the indices of a page of sparse.
func (s *Span) fill(st *State, page int) (err error) {
	lo := page * format.PageRows
	s.Next = min(lo+format.PageRows, st.indices)
	s.Entities = st.living(s.Entities[:0], lo, s.Next)
	for n := range s.of {
		of := &s.of[n]
		if of.page = nil; of.Resource || of.settled {
			continue
		}
		if of.rows, err = of.readSparse(page, of.rows); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether entity i of the span has component number n of those that are swept; a
// resource all of them have.
func (s *Span) Has(n, i int) bool { return s.of[n].find(s.Entities[i]) >= 0 }

// Row returns what entity i of the span has of component number n of those that are swept,
// encoded, and whether it has it. It is valid until ask returns.
func (s *Span) Row(n, i int) (row []byte, has bool, err error) {
	of := &s.of[n]
	r := of.find(s.Entities[i])
	if r < 0 {
		return nil, false, nil
	}
	if of.settled {
		return of.Component.Row(r), true, nil
	}
	if of.Width == 0 {
		return nil, true, nil
	}
	if of.page == nil || r < of.first || r >= of.end {
		page := r / of.data.PageRows
		if of.page, err = of.get(page); err != nil {
			return nil, false, err
		}
		of.first, of.end = of.data.Span(page)
	}
	// A page may have been shrunk to rows that nobody passed. One that is missing was passed by
	// another span, so two sparse entries name it: the file lies.
	if row = of.page.row(r - of.first); row == nil {
		return nil, false, of.fault(fmt.Errorf("row %d belongs to two entities", r))
	}
	return row, true, nil
}

// pass lets go of the pages whose rows were all in this page of sparse, or in others before.
func (s *Span) pass(page int) {
	for i := range s.of {
		of := &s.of[i]
		if of.settled || of.Resource || of.data.Rows == 0 {
			continue
		}
		if of.Indexed { // Row and index are one, and gaps have no entry.
			lo := page * format.PageRows
			of.pass(lo, min(lo+format.PageRows, of.N))
			continue
		}
		for lo := 0; lo < len(of.rows); { // Rows that follow each other are passed at once.
			hi := lo + 1
			for hi < len(of.rows) && of.rows[hi] == of.rows[hi-1]+1 && of.rows[lo] >= 0 {
				hi++
			}
			if row := int(of.rows[lo]); row >= 0 {
				of.pass(row, row+hi-lo)
			}
			lo = hi
		}
	}
}

// swept is a component of a span.
type swept struct {
	*keptPages
	resource bool
	rows     []int32 // Of the indices of the span; empty: none, or in memory.

	page       *pageRows // Read last,
	first, end int       // and its rows.
}

// find returns the row of an entity of the span, or -1.
func (c *swept) find(e ecs.Entity) int {
	switch {
	case c.resource:
		return 0
	case c.settled && !c.Resource:
		return c.Find(e)
	case len(c.rows) == 0:
		return -1
	}
	return int(c.rows[e.Index()%format.PageRows])
}

// keptPages are the pages of values of a column while it is swept.
type keptPages struct {
	*stored
	from  int // The index that the sweep begins with.
	mu    sync.Mutex
	pages map[int]*keptPage // Those of which some row was asked for or passed, but not all were passed.
	few   int               // How many of them were shrunk.
}

// A keptPage is a page until all of its rows were passed.
//
// It has a lock of its own so that reading it, which takes long, keeps only those waiting who
// want this page. Where both locks are held, that of keptPages was taken first.
type keptPage struct {
	mu   sync.Mutex
	rows *pageRows // nil: nobody asked for it.

	// Guarded by that of keptPages.
	n, left int
	passed  []uint64 // Rows, as bits.
	shrunk  bool
}

// fewRows is how many rows of a page are kept without the others: one of so many.
const fewRows = 16

// manyPages returns how many whole pages of a column are kept before the holders of their rows are read. If the
// rows lie in the order of indices, a sweep keeps fewer: those of one or two spans for each goroutine.
func (k *keptPages) manyPages() int {
	return (2 + 2*parallel.Workers()) * max(1, format.PageRows/k.data.PageRows)
}

// at returns a page, which is kept from now on.
func (k *keptPages) at(page int) *keptPage {
	p := k.pages[page]
	if p == nil {
		lo, hi := k.data.Span(page)
		p = &keptPage{n: hi - lo, left: hi - lo, passed: make([]uint64, (hi-lo+63)/64)}
		k.pages[page] = p
	}
	return p
}

// get returns the rows of a page. Those who ask for it while it is read wait.
func (k *keptPages) get(page int) (*pageRows, error) {
	k.mu.Lock()
	p := k.at(page)
	many := k.from > 0 && len(k.pages)-k.few > k.manyPages()
	k.mu.Unlock()
	rows, read, err := k.read(p, page)
	if read && many && !k.Indexed {
		k.skip(p, page)
	}
	return rows, err
}

// read returns the rows of p, and whether it read them.
func (k *keptPages) read(p *keptPage, page int) (rows *pageRows, read bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows == nil {
		rows, err := k.stored.page(page)
		if err != nil {
			return nil, false, err
		}
		p.rows, read = &rows, true
	}
	return p.rows, read, nil
}

// skip counts the rows of entities off that lie before the sweep. If a page of holders cannot be read, its rows
// are kept. That is no error, as the sweep did not ask for that page.
func (k *keptPages) skip(p *keptPage, page int) {
	first, end := k.data.Span(page)
	before := make([]uint64, len(p.passed))
	for lo := first; lo < end; {
		at := lo / k.dense.PageRows
		hi := min(end, (at+1)*k.dense.PageRows)
		if holders, err := k.state.reader.Page(k.dense, at); err == nil {
			for row := lo; row < hi; row++ {
				if int(format.EntityAt(holders, row%k.dense.PageRows).Index()) < k.from {
					mark(before, row-first, row-first+1)
				}
			}
		}
		lo = hi
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pages[page] != p { // It was let go meanwhile.
		return
	}
	left := p.left
	for i, b := range before {
		p.left -= bits.OnesCount64(b &^ p.passed[i])
		p.passed[i] |= b
	}
	k.release(p, page, left)
}

// pass counts rows [lo, hi) as passed.
func (k *keptPages) pass(lo, hi int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for lo < hi {
		page := lo / k.data.PageRows
		end := min(hi, (page+1)*k.data.PageRows)
		p := k.at(page)
		before := p.left
		mark(p.passed, lo-page*k.data.PageRows, end-page*k.data.PageRows)
		p.left -= end - lo
		lo = end
		k.release(p, page, before)
	}
}

// release lets go of a page, or of most of its rows, if none or few are left to pass. before is how many were
// left.
func (k *keptPages) release(p *keptPage, page, before int) {
	switch few := p.n / fewRows; {
	case p.left <= 0: // A reader of its rows still has the slice.
		if delete(k.pages, page); p.shrunk {
			k.few--
		}
	case before > few && p.left <= few:
		p.shrunk = true
		k.few++
		p.shrink()
	}
}

// mark sets bits [lo, hi).
func mark(bits []uint64, lo, hi int) {
	for lo < hi {
		n := min(hi-lo, 64-lo%64)
		bits[lo/64] |= math.MaxUint64 >> (64 - n) << (lo % 64)
		lo += n
	}
}

// shrink keeps only the rows that were not passed: one straggler shall not hold a whole page.
// They are copied, so that the page itself can be collected. It happens once for a page.
func (p *keptPage) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows == nil {
		return
	}
	few := make(map[int][]byte, p.left)
	for i := range p.n {
		if p.passed[i/64]>>(i%64)&1 == 0 {
			few[i] = bytes.Clone(p.rows.row(i))
		}
	}
	p.rows = &pageRows{few: few}
}
