package ecs

import (
	"cmp"
	"slices"
)

// SortFunc puts the rows into ascending order, as cmp compares components. Rows
// that compare equal keep their order. cmp must not change the world.
//
// In a storage of a [Group], the members stay in front: they are sorted among
// themselves, and move in all storages of the group alike; the other rows are
// sorted behind them.
//
// Order is state: a restore puts it back and a journal records it. Only rows that
// move count as written, so to sort what is in order changes nothing. It costs
// O(n) comparisons then, otherwise O(n log n), and a write for each row that
// moves. Storages must not be sorted while a query iterates over them, and [Indexed] ones
// not at all. An [Ordered] storage keeps its order of iteration.
func (s *Storage[T]) SortFunc(cmp func(a, b T) int) {
	rows := s.data.Live
	s.arrange(s, func(from []uint32) {
		sortRows(from, func(a, b uint32) int { return cmp(rows[a], rows[b]) })
	})
}

// SortEntities is [Storage.SortFunc] with entities to compare: by index, or by
// what they have in other storages.
func (s *Storage[T]) SortEntities(cmp func(a, b Entity) int) {
	rows := s.dense.Live
	s.arrange(s, func(from []uint32) {
		sortRows(from, func(a, b uint32) int { return cmp(rows[a], rows[b]) })
	})
}

// SortLike puts the entities that other has too in front, in the order that they
// have there; behind them the rest keep their order. A query over both then finds
// long runs, until entities come and go: what stays so is a [Group].
//
// It costs O(rows of both), and a write for each row that moves. The rules are
// those of [Storage.SortFunc]. It panics if other is a resource or in another
// world.
func (s *Storage[T]) SortLike(other AnyStorage) {
	o := other.sparseSet()
	if o == nil || o.w != s.w {
		panic("ecs: SortLike with " + other.Name() + ", which is no component of this world; give it another storage of it")
	}
	s.arrange(s, func(from []uint32) { sortLike(from, &s.set, o) })
}

// arrange moves the rows of s, which is as. plan is given rows in their order, and
// puts them into the one that they shall have: the members of a group, and the
// rest.
func (s *set) arrange(as AnyStorage, plan func(from []uint32)) {
	w := s.w
	if s.kind == Indexed {
		panic("ecs: " + as.Name() + " is Indexed, and its rows cannot move; register it as another kind to sort it")
	}
	changes, packed := w.changes, s.packed()
	from := appendRows(w.from[:0], s.rows.N)
	w.from = nil // A plan that sorts, too, must not get it.
	plan(from[:packed])
	plan(from[packed:])
	if w.changes != changes {
		panic("ecs: the world was changed by a function that compares for a sort; change it before or after")
	}
	if g := s.group; g != nil {
		for _, member := range g.storages {
			w.used = append(w.used[:0], from[:packed]...)
			member.permute(0, w.used)
		}
	}
	as.permute(packed, from[packed:])
	w.from = from
}

// appendRows appends rows [0, n) to dst, which is empty.
func appendRows(dst []uint32, n int) []uint32 {
	dst = slices.Grow(dst, n)[:n]
	for i := range dst {
		dst[i] = uint32(i)
	}
	return dst
}

// sortRows sorts from, which is ascending, by compare and then by row.
func sortRows(from []uint32, compare func(a, b uint32) int) {
	if slices.IsSortedFunc(from, compare) {
		return
	}
	slices.SortFunc(from, func(a, b uint32) int {
		if c := compare(a, b); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
}

// sortLike puts from, which is ascending rows of s without a gap, into the order
// of other.
func sortLike(from []uint32, s, other *set) {
	if len(from) == 0 || likeAlready(from, s, other) {
		return
	}
	lo, hi := int(from[0]), int(from[0])+len(from)
	k := 0
	for _, e := range other.Entities() {
		if r := s.row(e); r >= lo && r < hi {
			from[k] = uint32(r)
			k++
		}
	}
	for r := lo; r < hi; r++ {
		if !other.Has(s.dense.Live[r]) {
			from[k] = uint32(r)
			k++
		}
	}
}

// likeAlready reports whether the entities of rows from lie as in other.
func likeAlready(from []uint32, s, other *set) bool {
	last := uint32(0)
	for _, r := range from {
		at := uint32(other.row(s.dense.Live[r])) // The largest number if it has none.
		if at < last {
			return false
		}
		last = at
	}
	return true
}
