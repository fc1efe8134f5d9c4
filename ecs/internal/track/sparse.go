package track

import (
	"unsafe"
)

// Pages of a [Sparse] have PageSize entries. Index i is entry i&PageMask of page i>>PageBits.
const (
	PageBits = 12
	PageSize = 1 << PageBits
	PageMask = PageSize - 1
)

// A Page maps 4096 consecutive indices to rows. If an index has no row, its entry may have any
// value. So a reader of an entry must check that the row belongs to the index.
type Page struct {
	Rows  [PageSize]uint32
	marks [PageSize / 64]mark
}

// cacheLine is the size of a cache line in bytes.
const cacheLine = 64

// pageLines is the number of different offsets, in cache lines, at which pages of sparse arrays
// start in memory. If all pages started at the same offset, the entries of one index in all arrays
// would compete for the same cache sets. The offset takes no extra memory, because the allocator
// rounds up by more.
const pageLines = 4

// noRows is copied into each new page. It contains NoRow in all entries, and also in the free space
// in front of the page.
var noRows = func() (rows [((pageLines-1)*cacheLine + 4*PageSize) / 8]uint64) {
	for i := range rows {
		rows[i] = uint64(NoRow)<<32 | uint64(NoRow)
	}
	return rows
}()

// NewPage returns an empty page for the sparse array with the given number.
func NewPage(number int) *Page {
	lead := number % pageLines * cacheLine
	before := noRows[:(lead+4*PageSize)/8]
	memory := make([]uint64, (lead+int(unsafe.Sizeof(Page{})))/8)
	// If a copy directly follows make, Go does not clear the memory that copy overwrites. So it
	// clears only the marks, at the end of the page.
	copy(memory, before)
	return (*Page)(unsafe.Pointer(&memory[lead/8]))
}

// A Sparse maps indices to rows of columns. Its pages are allocated on first use.
//
//	index 0 .. 4095   4096 .. 8191   8192 ..
//	      | page |    |  nil   |     | page |
//
// A Sparse is tracked like a column, with two differences:
//
//   - An entry is saved before a write only if it refers to a row below prot. No restore brings
//     back other rows.
//   - A bare frame records no entries. Each row stores its index, so the entries can be computed
//     from the rows.
//
// Init initializes a Sparse.
type Sparse struct {
	Pages []*Page
	span  uint64
	prot  uint32

	// The number of this array among the arrays of its clock.
	number int
	undoStack
}

// Init initializes s, which must be empty.
func (s *Sparse) Init(clock *Clock) {
	s.number, clock.sparse = clock.sparse, clock.sparse+1
	put := func(runs []Run, p unsafe.Pointer) {
		at := uintptr(0)
		for _, r := range runs {
			copy(entries{s}.of(int(r.Row), int(r.N)), rowsAt[uint32](unsafe.Add(p, at*unsafe.Sizeof(NoRow)), int(r.N)))
			at += uintptr(r.N)
		}
	}
	s.undoStack = undoStack{rows: entries{s}, size: unsafe.Sizeof(NoRow), pieces: 1, width: unsafe.Sizeof(NoRow), put: put, clock: clock, split: PageMask, Follows: true}
}

// Page returns the page of index i, or nil.
func (s *Sparse) Page(i uint32) *Page {
	if p := int(i >> PageBits); p < len(s.Pages) {
		return s.Pages[p]
	}
	return nil
}

// Grow returns the page of index i. It allocates the page if needed.
//
//go:noinline
func (s *Sparse) Grow(i uint32) *Page {
	p := int(i >> PageBits)
	for p >= len(s.Pages) {
		s.Pages = append(s.Pages, nil)
	}
	if s.Pages[p] == nil {
		s.Pages[p] = NewPage(s.number)
	}
	return s.Pages[p]
}

// Unsaved reports whether the entry of index i, in page p, must be saved before it is written. It
// is small enough to be inlined.
func (s *Sparse) Unsaved(p *Page, i uint32) bool {
	if p.Rows[i&PageMask] >= s.prot {
		return false
	}
	m := &p.marks[i&PageMask>>6]
	return m.span != s.span || m.rows>>(i&63)&1 == 0
}

// Free reports whether an entry with this row can be written without saving it, because no frame
// needs the row. Free checks less than Unsaved and is faster.
func (s *Sparse) Free(row uint32) bool { return row >= s.prot }

// Save saves the entry of index i, in page p, which is not yet saved.
//
//go:noinline
func (s *Sparse) Save(p *Page, i uint32) {
	p.markOf(i, s.span).rows |= 1 << (i & 63)
	if tip := s.tip; tip.ready() && tip.note(i, i&PageMask != 0) {
		*(*uint32)(tip.next(4)) = p.Rows[i&PageMask]
		return
	}
	s.saveSlow(int(i), unsafe.Pointer(&p.Rows[i&PageMask]))
}

// markOf returns the mark of the block of 64 entries that contains index i, for the given span.
func (p *Page) markOf(i uint32, span uint64) *mark {
	m := &p.marks[i&PageMask>>6]
	if m.span != span {
		*m = mark{span: span}
	}
	return m
}

// open starts a new set of marks and makes the newest log the open log.
func (s *Sparse) open(marks uint64, prot int) {
	s.span, s.prot = marks, uint32(s.pick(prot))
}

// entries implements [rowsOf] for a sparse array. Its rows are the entries of the array. A run of
// entries is within one page.
type entries struct{ *Sparse }

func (s entries) of(i, n int) []uint32 { return s.Pages[i>>PageBits].Rows[i&PageMask:][:n] }

func (s entries) alloc(n int) unsafe.Pointer          { return allocRows[uint32](n) }
func (s entries) from(i int) unsafe.Pointer           { return unsafe.Pointer(&s.of(i, 1)[0]) }
func (s entries) swap(i int, p unsafe.Pointer, n int) { swapRows(s.of(i, n), rowsAt[uint32](p, n)) }
func (s entries) move(dst, src unsafe.Pointer, n int) {
	copy(rowsAt[uint32](dst, n), rowsAt[uint32](src, n))
}
func (s entries) wipe(p unsafe.Pointer, n int) { clear(rowsAt[uint32](p, n)) }

// Memory returns the memory size of the entries in pages, and of the marks and logs.
func (s *Sparse) Memory() (pages int64, m Memory) {
	m.Undo, m.Spare = s.used, s.spare
	pages = room(s.Pages)
	for _, p := range s.Pages {
		if p != nil {
			pages += int64(unsafe.Sizeof(p.Rows))
			m.Marks += int64(unsafe.Sizeof(p.marks))
		}
	}
	return pages, m
}
