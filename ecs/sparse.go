package ecs

const (
	pageBits = 12
	pageSize = 1 << pageBits // Entries of a sparse page.
	pageMask = pageSize - 1

	noRow = ^uint32(0)
)

// A sparsePage maps 4096 consecutive entity indices to rows. An entry without a
// row may hold rubbish: membership is decided by asking the dense array back.
type sparsePage struct {
	rows  [pageSize]uint32
	marks [pageSize / 64]mark
}

// A sparseArray maps entity indices to rows, in pages allocated on first use.
//
//	index 0 .. 4095   4096 .. 8191   8192 ..
//	      | page |    |  nil   |     | page |
//
// It is tracked like a column, with one difference: an entry is saved before a
// write only if its old value is below prot. Others cannot name a row that a
// restore brings back.
type sparseArray struct {
	pages []*sparsePage
	span  uint64
	prot  uint32
	undoStack[uint32]
	seen *rowSet
}

func newSparseArray(w *World) sparseArray {
	return sparseArray{undoStack: undoStack[uint32]{split: pageMask, held: &w.undoBytes}, seen: &w.seen}
}

// page returns the page of entity index i, or nil.
func (s *sparseArray) page(i uint32) *sparsePage {
	if p := int(i >> pageBits); p < len(s.pages) {
		return s.pages[p]
	}
	return nil
}

// grow allocates the page of entity index i.
//
//go:noinline
func (s *sparseArray) grow(i uint32) *sparsePage {
	p := int(i >> pageBits)
	for p >= len(s.pages) {
		s.pages = append(s.pages, nil)
	}
	if s.pages[p] == nil {
		s.pages[p] = newSparsePage()
	}
	return s.pages[p]
}

func newSparsePage() *sparsePage {
	page := new(sparsePage)
	for i := range page.rows {
		page.rows[i] = noRow
	}
	return page
}

// unsaved reports whether the entry of index i, in page p, must be saved before
// it is written. It is inlined.
func (s *sparseArray) unsaved(p *sparsePage, i uint32) bool {
	if p.rows[i&pageMask] >= s.prot {
		return false
	}
	m := &p.marks[i&pageMask>>6]
	return m.span != s.span || m.rows>>(i&63)&1 == 0
}

// save saves the entry of index i, in page p.
//
//go:noinline
func (s *sparseArray) save(p *sparsePage, i uint32) {
	m := &p.marks[i&pageMask>>6]
	if m.span != s.span {
		*m = mark{span: s.span}
	}
	m.rows |= 1 << (i & 63)
	s.saveOne(int(i), &p.rows[i&pageMask])
}

// The methods below are what a tracker asks of each of its columns.

func (s *sparseArray) open(span uint64, prot int) {
	s.span, s.prot, s.top = span, uint32(prot), nil
	if k := len(s.logs); k > 0 {
		s.top = s.logs[k-1]
		if s.top.bare { // The entries follow from dense; nothing will be restored.
			s.prot = 0
		}
	}
}

func (s *sparseArray) putBack(k int) {
	s.undoStack.putBack(k, s.seen, func(i int, values []uint32) { copy(s.rows(i, len(values)), values) })
	s.cut(k)
}

func (s *sparseArray) undo() { s.undoStack.undo(s.rows) }
func (s *sparseArray) redo() { s.undoStack.redo(s.rows) }

func (s *sparseArray) rows(i, n int) []uint32 {
	return s.pages[i>>pageBits].rows[i&pageMask : i&pageMask+n]
}

func (s *sparseArray) again()             { s.undoStack.again(s.seen) }
func (s *sparseArray) merge(older, k int) { s.undoStack.merge(older, k, s.seen) }
