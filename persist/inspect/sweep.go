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

// A sweep visits all live entities in the order of their indices. Several goroutines read their
// values, and each page is read once. A [Span] has the entities of one page of the sparse array,
// which is 4096 indices.
//
// The values of a span can be on any page, and a page can have values of many spans. So pages are
// cached, and each page counts how many of its rows are still needed. Two methods of the cache do
// this:
//
//   - get() returns the page of a row. It reads the page at the first use.
//   - pass() marks the rows of a finished span as passed. It releases a page if all of its rows are
//     passed.
//
// A sweep can begin in the middle. Then it never passes the rows of earlier entities, and their
// pages would stay in memory. If too many pages are in memory, skip() marks these rows as passed.

// A Span is a range of live entities, by index, in a [State.Sweep]. It gives access to their
// values.
type Span struct {
	Entities []ecs.Entity
	Next     int // First index after the span.
	of       []spanColumn
}

// Sweep visits all live entities whose index is at least the argument from. This index must be the
// start of a span: 0 or the Next of another span. Several goroutines compute a result for each
// span. Sweep passes the results to take() in index order. It ends at the first error.
//
// Each goroutine calls asker() once. The function that asker() returns computes the result of a
// span, and is called for each span of that goroutine. It may read the given components of the
// entities in the span. The components must be in the outline of s.
//
// Each page is read once. If most rows are in index order, only a few pages are in memory at a
// time. When few rows of a page remain, only copies of these rows stay in memory. In the worst case
// the whole column is in memory.
func (s *State) Sweep(ctx context.Context, from int, components []*Component, asker func() func(*Span) (any, error), take func(any) error) error {
	if err := s.Count(ctx); err != nil {
		return err
	}
	kept := make([]*sweptPages, len(components))
	for i, c := range components {
		kept[i] = &sweptPages{stateColumn: s.column(c.rows), pages: map[int]*sweptPage{}, from: from}
	}
	// Only worker w uses asks[w] and spans[w], one span after the other. All workers share the
	// pages in kept, which have locks.
	asks, spans := make([]func(*Span) (any, error), parallel.Workers()), make([]*Span, parallel.Workers())
	for i := range asks {
		asks[i], spans[i] = asker(), newSpan(kept)
	}
	// Round up: the given index may be the end of the indices, which need not be a multiple of
	// PageRows.
	first := (from + format.PageRows - 1) / format.PageRows
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

// newSpan returns a span for repeated calls of fill().
func newSpan(kept []*sweptPages) *Span {
	s := &Span{of: make([]spanColumn, len(kept))}
	for n, k := range kept {
		s.of[n].sweptPages = k
	}
	return s
}

// fill loads the live entities of one sparse page, and their rows, into s.
func (s *Span) fill(st *State, page int) (err error) {
	lo := page * format.PageRows
	s.Next = min(lo+format.PageRows, st.indices)
	s.Entities = st.appendAlive(s.Entities[:0], lo, s.Next)
	for n := range s.of {
		of := &s.of[n]
		if of.page = nil; of.Resource || of.inMemory {
			continue
		}
		if of.rows, err = of.readSparse(page, of.rows); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether entity i of the span has component number n of the sweep. It is true for
// every entity if the component is a resource.
func (s *Span) Has(n, i int) bool { return s.of[n].find(s.Entities[i]) >= 0 }

// Row returns the encoded value of component number n of the sweep for entity i of the span, and
// whether the entity has the component. The value is valid until the result of the span is
// computed.
func (s *Span) Row(n, i int) (row []byte, has bool, err error) {
	of := &s.of[n]
	r := of.find(s.Entities[i])
	if r < 0 {
		return nil, false, nil
	}
	if of.inMemory {
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
	// A shrunk page keeps all rows that no span has passed. So another entity has already used this
	// row, and the file is damaged.
	if row = of.page.row(r - of.first); row == nil {
		return nil, false, of.fault(fmt.Errorf("row %d belongs to two entities", r))
	}
	return row, true, nil
}

// pass marks the rows in a page of sparse as passed. A page of values is released when all of its
// rows are passed.
func (s *Span) pass(page int) {
	for i := range s.of {
		of := &s.of[i]
		if of.inMemory || of.Resource || of.data.Rows == 0 {
			continue
		}
		// In an indexed component, the row of an entity is its index. So mark one row for each
		// index of the span, gaps too.
		if of.Indexed {
			lo := page * format.PageRows
			of.pass(lo, min(lo+format.PageRows, of.N))
			continue
		}
		// Pass consecutive rows in one call.
		for lo := 0; lo < len(of.rows); {
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

// spanColumn is a component of the sweep, as read for one span.
type spanColumn struct {
	*sweptPages
	// rows has the row of each index of the span. It is empty if no index has a row, or if the
	// component is in memory.
	rows []int32

	page       *pageRows // The page that was read most recently.
	first, end int       // The page has rows [first, end).
}

// find returns the row of an entity of the span, or -1.
func (c *spanColumn) find(e ecs.Entity) int {
	switch {
	case c.Resource: // A resource has row 0, or no row.
		return c.N - 1
	case c.inMemory:
		return c.Find(e)
	case len(c.rows) == 0:
		return -1
	}
	return int(c.rows[e.Index()%format.PageRows])
}

// sweptPages caches the pages of values of a column during a sweep.
type sweptPages struct {
	*stateColumn
	from int // Index at which the sweep begins.
	mu   sync.Mutex
	// pages has the pages in use, by page number. A page is in use from the first call of get() or
	// pass() for one of its rows, until all of its rows are passed.
	pages map[int]*sweptPage
	few   int // Number of shrunk pages.
}

// A sweptPage is a page of values in use.
//
// Each page has its own lock, so a slow read blocks only goroutines that need this page. If both
// locks are needed, lock sweptPages first.
type sweptPage struct {
	mu   sync.Mutex
	rows *pageRows // nil before the page is read.

	// The lock of sweptPages guards the fields below. n is the number of rows of the page, and left
	// is the number of rows that are not passed yet.
	n, left int
	passed  []uint64 // Passed rows, as bits.
	shrunk  bool
}

// When at most 1/fewRows of a page's rows remain, only these rows stay in memory.
const fewRows = 16

// manyPages returns how many whole pages of a column may be in memory before get() calls skip(). If
// rows are in index order, the goroutines never need that many pages: each one works on one or two
// spans at a time.
func (k *sweptPages) manyPages() int {
	return (2 + 2*parallel.Workers()) * max(1, format.PageRows/k.data.PageRows)
}

// at returns a page in use. It adds the page if it is new.
func (k *sweptPages) at(page int) *sweptPage {
	p := k.pages[page]
	if p == nil {
		lo, hi := k.data.Span(page)
		p = &sweptPage{n: hi - lo, left: hi - lo, passed: make([]uint64, (hi-lo+63)/64)}
		k.pages[page] = p
	}
	return p
}

// get returns the rows of a page. Concurrent callers wait until the page is read.
func (k *sweptPages) get(page int) (*pageRows, error) {
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

// read returns the rows of p, and whether this call read them.
func (k *sweptPages) read(p *sweptPage, page int) (rows *pageRows, read bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows == nil {
		rows, err := k.stateColumn.page(page)
		if err != nil {
			return nil, false, err
		}
		p.rows, read = &rows, true
	}
	return p.rows, read, nil
}

// skip marks the rows of a page as passed whose entities are before the start of the sweep. If the
// entities of some rows cannot be read, these rows stay in memory. This is no error, because the
// sweep may not need them.
func (k *sweptPages) skip(p *sweptPage, page int) {
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
	// Do nothing if another goroutine has released the page in the meantime.
	if k.pages[page] != p {
		return
	}
	left := p.left
	for i, b := range before {
		p.left -= bits.OnesCount64(b &^ p.passed[i])
		p.passed[i] |= b
	}
	k.release(p, page, left)
}

// pass marks rows [lo, hi) as passed.
func (k *sweptPages) pass(lo, hi int) {
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

// release removes a page if all of its rows are passed, or shrinks it if few rows remain. The last
// argument is the number of rows that remained before the caller marked some rows as passed.
func (k *sweptPages) release(p *sweptPage, page, before int) {
	switch few := p.n / fewRows; {
	// A goroutine that still reads rows of the page keeps the memory of the page alive.
	case p.left <= 0:
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

// shrink replaces the page by copies of the rows that are not passed. So a few rows do not keep
// the whole page in memory. It is called once per page.
func (p *sweptPage) shrink() {
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
