package ecs

// In an Indexed storage the row of an entity is its index. Rows below n that
// belong to no entity are gaps; m counts them. Nothing but the extent n follows
// from order, and no row ever moves.
//
//	entity index    0   1   2   3   4
//	dense         | 0 | - | 2 | - | 4 |    n = 5, m = 2
//	data          | a | d | c | d | e |    d: the default
//
// The sparse array is the identity, so all such storages of a world share its
// pages, and nothing of it is ever written or saved.

// identity returns the first pages of the sparse array that maps every index to
// itself.
func (w *World) identity(pages int) []*sparsePage {
	for p := len(w.identityPages); p < pages; p++ {
		page := new(sparsePage)
		for i := range page.rows {
			page.rows[i] = uint32(p<<pageBits + i)
		}
		w.identityPages = append(w.identityPages, page)
	}
	return w.identityPages[:pages:pages]
}

// setIndexed gives e, which is alive and no member, the component v.
//
//go:noinline
func (s *Storage[T]) setIndexed(e Entity, v T) {
	r := int(e.Index())
	s.stretch(r + 1)
	if s.dense.unsaved(r) {
		s.saveRow(r)
	}
	s.dense.live[r], s.data.live[r] = e, v
	s.m--
	s.bump(r)
}

// stretch makes s at least n rows long. New rows are gaps.
func (s *Storage[T]) stretch(n int) {
	from := s.n
	if n <= from {
		return
	}
	if pages := (n + pageMask) >> pageBits; pages > len(s.sparse.pages) {
		s.sparse.pages = s.w.identity(pages)
	}
	if kept := min(n, len(s.dense.live)); from < kept {
		s.dense.touchRange(from, kept)
		s.data.touchRange(from, kept)
	}
	s.dense.live = lengthened(s.dense.live, n)
	s.data.live = lengthened(s.data.live, n)
	fill(s.dense.live[from:n], Vacant)
	s.empty(from, n)
	s.n, s.m = n, s.m+n-from
}

func lengthened[T any](rows []T, n int) []T {
	if n <= len(rows) {
		return rows
	}
	return append(rows, make([]T, n-len(rows))...)
}

func fill[T any](rows []T, v T) {
	for i := range rows {
		rows[i] = v
	}
}

// empty gives the gaps [lo, hi) the default, so that equal worlds have equal
// rows.
func (s *Storage[T]) empty(lo, hi int) {
	switch {
	case s.tag:
	case s.gap == nil:
		clear(s.data.live[lo:hi])
	case s.clone != nil:
		for r := lo; r < hi; r++ {
			s.data.live[r] = s.clone(*s.gap)
		}
	default:
		fill(s.data.live[lo:hi], *s.gap)
	}
}

// vacateRow makes row r, which is e's, a gap.
func (s *Storage[T]) vacateRow(e Entity, r int) {
	if s.dense.unsaved(r) {
		s.saveRow(r)
	}
	s.dense.live[r] = Vacant
	s.empty(r, r+1)
	s.m++
	if s.mask != nil {
		s.mask.exclude(e.Index())
	}
	s.shrunk(e, r)
}

// withGaps returns entities and values with each at the row of its index.
func (s *Storage[T]) withGaps(entities []Entity, values []T) ([]Entity, []T) {
	n := 0
	for _, e := range entities {
		n = max(n, int(e.Index())+1)
	}
	rows, data := make([]Entity, n), make([]T, n)
	fill(rows, Vacant)
	for i := range data {
		if s.gap != nil {
			data[i] = *s.gap
			if s.clone != nil {
				data[i] = s.clone(*s.gap)
			}
		}
	}
	for i, e := range entities {
		rows[e.Index()], data[e.Index()] = e, values[i]
	}
	return rows, data
}

// withoutGaps returns entities and values without the gaps, in the same order.
func withoutGaps[T any](entities []Entity, values []T) ([]Entity, []T) {
	rows, data := make([]Entity, 0, len(entities)), make([]T, 0, len(entities))
	for i, e := range entities {
		if e != Vacant {
			rows, data = append(rows, e), append(data, values[i])
		}
	}
	return rows, data
}
