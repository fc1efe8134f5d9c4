package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

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
func (w *World) identity(pages int) []*track.Page {
	for p := len(w.identityPages); p < pages; p++ {
		page := new(track.Page)
		for i := range page.Rows {
			page.Rows[i] = uint32(p<<pageBits + i)
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
	if s.dense.Unsaved(r) {
		s.saveRow(r)
	}
	s.dense.Live[r], s.data.Live[r] = e, v
	s.rows.Extra--
	s.bump(r)
}

// stretch makes s at least n rows long. New rows are gaps.
func (s *Storage[T]) stretch(n int) {
	from := s.rows.N
	if n <= from {
		return
	}
	if pages := (n + pageMask) >> pageBits; pages > len(s.sparse.Pages) {
		s.sparse.Pages = s.w.identity(pages)
	}
	if kept := min(n, len(s.dense.Live)); from < kept {
		s.dense.TouchRange(from, kept)
		s.data.TouchRange(from, kept)
	}
	s.dense.Live = lengthened(s.dense.Live, n)
	s.data.Live = lengthened(s.data.Live, n)
	fill(s.dense.Live[from:n], Vacant)
	s.empty(from, n)
	s.rows.N, s.rows.Extra = n, s.rows.Extra+n-from
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
		clear(s.data.Live[lo:hi])
	case s.clone != nil:
		for r := lo; r < hi; r++ {
			s.data.Live[r] = s.clone(*s.gap)
		}
	default:
		fill(s.data.Live[lo:hi], *s.gap)
	}
}

// vacateRow makes row r, which is e's, a gap.
func (s *Storage[T]) vacateRow(e Entity, r int) {
	if s.dense.Unsaved(r) {
		s.saveRow(r)
	}
	s.dense.Live[r] = Vacant
	s.empty(r, r+1)
	s.rows.Extra++
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
