package track

import (
	"math"
	"unsafe"
)

// Pages of a [Sparse] have PageSize entries: index i lies in page i>>PageBits, at
// i&PageMask.
const (
	PageBits = 12
	PageSize = 1 << PageBits
	PageMask = PageSize - 1

	// NoRow is an entry that was never written: more than any row, as an int too where that
	// has 32 bits.
	NoRow uint32 = math.MaxUint32 & math.MaxInt
)

// A Page maps 4096 consecutive indices to rows. An entry without a row may hold
// rubbish: whoever reads one asks the row whether it belongs to the index.
type Page struct {
	Rows  [PageSize]uint32
	marks [PageSize / 64]mark
}

// cacheLine is how many bytes the processor reads and writes at once.
const cacheLine = 64

// pageLines is in how many lines pages begin. Were it one, the entries of one index of all
// arrays would lie in the same few places of the cache. The room in front is less than what
// the allocator rounds up.
const pageLines = 4

// noRows are the entries of a new page, with the room in front of it.
var noRows = func() (rows [((pageLines-1)*cacheLine + 4*PageSize) / 8]uint64) {
	for i := range rows {
		rows[i] = uint64(NoRow)<<32 | uint64(NoRow)
	}
	return rows
}()

// NewPage returns a page without rows, for the array with that number.
func NewPage(number int) *Page {
	lead := number % pageLines * cacheLine
	before := noRows[:(lead+4*PageSize)/8]
	memory := make([]uint64, (lead+int(unsafe.Sizeof(Page{})))/8)
	copy(memory, before) // Right behind make, so that Go clears only the marks.
	return (*Page)(unsafe.Pointer(&memory[lead/8]))
}

// A Sparse maps indices to rows of columns, in pages allocated on first use.
//
//	index 0 .. 4095   4096 .. 8191   8192 ..
//	      | page |    |  nil   |     | page |
//
// It is tracked like a column, with one difference: an entry is saved before a
// write only if its old value is below prot. Others cannot name a row that comes
// back. Entries follow from rows that say their index, so a bare frame notes none.
//
// Init makes one.
type Sparse struct {
	Pages []*Page
	span  uint64
	prot  uint32

	number int // Of the array, among those of its clock.
	undoStack
}

// Init readies s, which is empty.
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

// Grow returns the page of index i, allocated if it was not.
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

// Unsaved reports whether the entry of index i, in page p, must be saved before
// it is written. It is inlined.
func (s *Sparse) Unsaved(p *Page, i uint32) bool {
	if p.Rows[i&PageMask] >= s.prot {
		return false
	}
	m := &p.marks[i&PageMask>>6]
	return m.span != s.span || m.rows>>(i&63)&1 == 0
}

// Free reports whether row is one that no frame needs, so that who finds it in an entry
// can write that. Less than Unsaved asks, and sooner.
func (s *Sparse) Free(row uint32) bool { return row >= s.prot }

// Save saves the entry of index i, in page p, which is not saved yet.
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

// markOf returns the mark of the entry of index i for span.
func (p *Page) markOf(i uint32, span uint64) *mark {
	m := &p.marks[i&PageMask>>6]
	if m.span != span {
		*m = mark{span: span}
	}
	return m
}

// open makes the newest log, if there is one, the one that is written under these marks.
func (s *Sparse) open(marks uint64, prot int) {
	s.span, s.prot = marks, uint32(s.pick(prot))
}

// entries are the rows of a sparse array: its entries. A run of them lies in one page.
type entries struct{ *Sparse }

func (s entries) of(i, n int) []uint32 { return s.Pages[i>>PageBits].Rows[i&PageMask:][:n] }

func (s entries) alloc(n int) unsafe.Pointer          { return allocRows[uint32](n) }
func (s entries) from(i int) unsafe.Pointer           { return unsafe.Pointer(&s.of(i, 1)[0]) }
func (s entries) swap(i int, p unsafe.Pointer, n int) { swapRows(s.of(i, n), rowsAt[uint32](p, n)) }
func (s entries) move(dst, src unsafe.Pointer, n int) {
	copy(rowsAt[uint32](dst, n), rowsAt[uint32](src, n))
}
func (s entries) wipe(p unsafe.Pointer, n int) { clear(rowsAt[uint32](p, n)) }

// Memory returns what the pages take, and what the rest does.
func (s *Sparse) Memory() (pages int64, m Memory) {
	m.Undo, m.Spare = s.memory()
	pages = room(s.Pages)
	for _, p := range s.Pages {
		if p != nil {
			pages += int64(unsafe.Sizeof(p.Rows))
			m.Marks += int64(unsafe.Sizeof(p.marks))
		}
	}
	return pages, m
}
