package ecs

import (
	"slices"
	"unsafe"
)

// SortFunc sorts the rows in ascending order, as defined by cmp. Rows that compare equal keep their
// order. cmp must not change the world. Do not sort a storage inside a loop over it.
//
// In a storage of a [Group], the members stay in front. SortFunc sorts the members and moves their
// rows in all storages of the group. It sorts the other rows separately.
//
// The order of rows is state: a restore restores it, and a journal records it. Only rows that move
// count as written. SortFunc costs O(n log n) comparisons, or O(n) if the rows are already sorted.
// It panics for an [Indexed] storage. An [Ordered] storage keeps its order of iteration.
func (s *Storage[T]) SortFunc(cmp func(a, b T) int) {
	rows := s.data.Live
	s.arrange(func(from []uint32) {
		switch {
		case sorted(from, rows, cmp):
		case unsafe.Sizeof(*new(T)) > maxRanked:
			sortRows(&s.set, from, func(row uint32) *T { return &rows[row] }, func(a, b *T) int { return cmp(*a, *b) })
		default:
			sortRows(&s.set, from, func(row uint32) T { return rows[row] }, cmp)
		}
	})
}

// SortEntities is like [Storage.SortFunc], but takes a function that compares entities, by index or
// by their components in other storages.
func (s *Storage[T]) SortEntities(cmp func(a, b Entity) int) {
	rows := s.dense.Live
	s.arrange(func(from []uint32) {
		if !sorted(from, rows, cmp) {
			sortRows(&s.set, from, func(row uint32) Entity { return rows[row] }, cmp)
		}
	})
}

// SortLike moves the entities that are also in another storage to the front, in the same order as
// in that storage. The remaining entities follow in their previous order. A query over both
// storages then finds long runs, until entities are added or removed. A [Group] keeps this order
// permanently.
//
// It costs O(rows of both), and a write for each row that moves. The rules are those of
// [Storage.SortFunc]. SortLike panics if the argument other is a resource or belongs to another
// world.
func (s *Storage[T]) SortLike(other AnyStorage) {
	o := s.w.mustBeComponent("SortLike", other)
	s.arrange(func(from []uint32) { sortLike(from, &s.set, o) })
}

// Align moves the entities that are in all given storages to the front of each storage, in the
// order of the first storage:
//
//	positions     | x | a | b | y | c |         | a | b | c | y | x |
//	velocities    | c | w | b | a |        →    | a | b | c | w |
//
// A query over some of these components then finds consecutive rows, and visits them at the speed
// of a loop over slices. Later changes scatter the rows again, unlike in a [Group], and cost no
// more than before. Call Align at a time when a delay does no harm, such as behind a loading
// screen.
//
// It costs O(rows of all storages), and a write for each row that moves. Rows that are already in
// place are not written. Pass the storage whose order should stay as the first argument. The last
// of several calls determines the order of a storage.
//
// The order of rows is state, as with [Storage.SortFunc]: a restore restores it, and a journal
// records it. Peers that must stay equal must make the same call in the same tick. A running loop
// over one of the storages panics if its rows move.
//
// In a storage of a group, the group's members stay in front. An [Ordered] storage keeps its order
// of iteration. A NoRewind storage is not restored together with the others. Align panics and moves
// nothing if a given storage is [Indexed], is a resource, or belongs to another world.
func (w *World) Align(storages ...AnyStorage) {
	w.align(w.mustAlign(make([]*set, 0, 8), storages))
}

// mustAlign appends the sets of storages to sets. It panics if the rows of a storage cannot move.
func (w *World) mustAlign(sets []*set, storages []AnyStorage) []*set {
	for _, s := range storages {
		if sets = append(sets, w.mustBeComponent("Align", s)); s.Kind() == Indexed {
			panic("ecs: Align with " + s.Name() + ", which is Indexed, and its rows cannot move; leave it out, or register it as another kind")
		}
	}
	return sets
}

// align moves the entities that all sets have to the front of each set, in the same order.
func (w *World) align(sets []*set) {
	if len(sets) < 2 {
		return
	}
	common := w.batch[:0]
	for _, e := range sets[0].members() {
		if !slices.ContainsFunc(sets[1:], func(s *set) bool { return !s.Has(e) }) {
			common = append(common, e)
		}
	}
	w.batch = common
	for _, s := range sets {
		s.arrange(func(from []uint32) { s.bringForward(from, common) })
	}
}

// arrange moves the rows of s into a new order. It passes row numbers to the function plan, which
// must sort them into this order. arrange calls plan twice: for the rows of group members, which
// stay in front, and for all other rows.
func (s *set) arrange(plan func(from []uint32)) {
	w := s.w
	if debug {
		s.mustBeWritable("a sort", 0)
	}
	if s.kind == Indexed {
		panic("ecs: " + s.storage.Name() + " is Indexed, and its rows cannot move; register it as another kind to sort it")
	}
	changes, packed := w.changes, s.packed()
	from := appendRows(w.from[:0], s.rows.N)
	w.from = nil // A sort inside of plan() needs its own buffer.
	plan(from[:packed])
	plan(from[packed:])
	if w.changes != changes {
		panic("ecs: the comparison function of a sort changed the world; change it before or after the sort")
	}
	if g := s.group; g != nil {
		for _, member := range g.sets {
			w.used = append(w.used[:0], from[:packed]...)
			member.storage.permute(0, w.used)
		}
	}
	s.storage.permute(packed, from[packed:])
	w.from = from
}

// appendRows appends the numbers 0 to n-1 to dst, which must be empty.
func appendRows(dst []uint32, n int) []uint32 {
	dst = slices.Grow(dst, n)[:n]
	for i := range dst {
		dst[i] = uint32(i)
	}
	return dst
}

// maxRanked is the maximum size in bytes of values that a sort copies. For larger values, it copies
// pointers.
const maxRanked = 32

// A ranked is a row in a sort, with a copy of the compared value. Comparing copies is faster than
// looking up the values.
type ranked[V any] struct {
	by  V
	row uint32
}

// A ranking is a buffer for sorting rows.
type ranking[V any] struct{ rows, half []ranked[V] }

// sorted reports whether the values of the given rows are in order. from: the row numbers, which
// are consecutive.
func sorted[V any](from []uint32, values []V, compare func(a, b V) int) bool {
	return len(from) == 0 || slices.IsSortedFunc(values[from[0]:][:len(from)], compare)
}

// sortRows sorts rows by the value that the function at() returns for each row. Rows with equal
// values keep their order. from: the row numbers, ascending before the call.
func sortRows[V any](s *set, from []uint32, at func(row uint32) V, compare func(a, b V) int) {
	k, _ := s.sorting.(*ranking[V])
	if k == nil {
		k = new(ranking[V])
	}
	// A sort inside of compare() needs its own buffer.
	s.sorting = nil
	k.rows = slices.Grow(k.rows[:0], len(from))
	for _, r := range from {
		k.rows = append(k.rows, ranked[V]{at(r), r})
	}
	k.half = slices.Grow(k.half[:0], len(from)/2)[:len(from)/2]
	mergeSort(k.rows, k.half, compare)
	for i := range k.rows {
		from[i] = k.rows[i].row
	}
	clear(k.rows) // Frees the memory that the values point to.
	clear(k.half)
	s.sorting = k
}

// mergeSort sorts rows. Rows with equal values keep their order. The buffer half has half the
// length of rows. mergeSort makes fewer comparisons than slices.SortFunc.
func mergeSort[V any](rows, half []ranked[V], compare func(a, b V) int) {
	if len(rows) <= 12 {
		for i := 1; i < len(rows); i++ {
			x, k := rows[i], i
			for ; k > 0 && compare(x.by, rows[k-1].by) < 0; k-- {
				rows[k] = rows[k-1]
			}
			rows[k] = x
		}
		return
	}
	n := len(rows) / 2
	mergeSort(rows[:n], half, compare)
	mergeSort(rows[n:], half, compare)
	if compare(rows[n].by, rows[n-1].by) >= 0 {
		return
	}
	left := half[:copy(half, rows[:n])]
	// Merge the slice left with the second half of rows.
	k, i, j := 0, 0, n
	for i < len(left) && j < len(rows) {
		if compare(rows[j].by, left[i].by) < 0 {
			rows[k] = rows[j]
			j++
		} else {
			rows[k] = left[i]
			i++
		}
		k++
	}
	copy(rows[k:], left[i:])
}

// sortLike sorts the row numbers in from, which are consecutive before the call. Afterwards, the
// entities in these rows of s are in the order of the set other. Entities that other does not have
// come last.
func sortLike(from []uint32, s, other *set) {
	if len(from) == 0 || likeAlready(from, s, other) {
		return
	}
	lo, hi := int(from[0]), int(from[0])+len(from)
	k := 0
	for _, e := range other.members() {
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

// likeAlready reports whether rows of s already have the same order of entities as the parameter
// other. from: the row numbers.
func likeAlready(from []uint32, s, other *set) bool {
	last := uint32(0)
	for _, r := range from {
		// Entities that other does not have must come last. Their row is -1, which is the maximum
		// as a uint32.
		at := uint32(other.row(s.dense.Live[r]))
		if at < last {
			return false
		}
		last = at
	}
	return true
}

// bringForward reorders the row numbers in from, which are consecutive before the call. The rows of
// the given entities come first, in the order of these entities. Each row that was in front moves
// to the old place of one of them. For example, 0 1 2 3 4 becomes 3 1 2 0 4 if the entities have
// the rows 3 and 1.
//
// Entities whose rows are not in from are ignored.
func (s *set) bringForward(from []uint32, entities []Entity) {
	if len(from) == 0 {
		return
	}
	lo, n := int(from[0]), 0
	// comes[k] is 1 if row lo+k moves forward.
	comes := slices.Grow(s.w.used[:0], len(from))[:len(from)]
	clear(comes)
	for _, e := range entities {
		if r := s.row(e) - lo; r >= 0 && r < len(from) {
			from[n] = uint32(lo + r)
			comes[r] = 1
			n++
		}
	}
	// The search for the next row that must move backward begins at row lo+next.
	next := 0
	for k := n; k < len(from); k++ {
		if comes[k] == 0 {
			continue
		}
		for comes[next] == 1 {
			next++
		}
		from[k] = uint32(lo + next)
		next++
	}
	s.w.used = comes
}

// Groups and sorting move rows without changing the members of a set. They save and note each moved
// row like any other write.

// swapRows swaps rows i and j, which must be below N.
func (s *Storage[T]) swapRows(i, j int) {
	if i == j {
		return
	}
	if debug {
		s.displace()
	}
	s.rows.Open()
	if s.dense.Unsaved(i) {
		s.saveRow(i)
	}
	if s.dense.Unsaved(j) {
		s.saveRow(j)
	}
	e, v := s.dense.Live[i], s.data.Live[i]
	s.place(i, s.dense.Live[j], s.data.Live[j])
	s.place(j, e, v)
	s.recordMove(s.dense.Live[i])
	s.recordMove(e)
	if i, j = min(i, j), max(i, j); s.log.loops > 0 {
		s.logMove(rowMove{a: s.dense.Live[j], b: s.dense.Live[i], i: uint32(i), j: uint32(j), swapped: true})
	}
	if debug {
		s.w.spoil()
	}
}

// place writes e and v to a row, and the sparse entry of e. The caller has saved the row, and must
// overwrite the old row of e, because two rows must not share the memory of v.
func (s *Storage[T]) place(row int, e Entity, v T) {
	s.dense.Live[row], s.data.Live[row] = e, v
	p := s.sparse.Page(e.Index())
	if s.sparse.Unsaved(p, e.Index()) {
		s.sparse.Save(p, e.Index())
	}
	p.Rows[e&pageMask] = uint32(row)
}

// permute moves row from[k] to row lo+k for each k. The slice from is a permutation of the row
// numbers that begin with lo. permute writes only rows that move. It overwrites the slice.
func (s *Storage[T]) permute(lo int, from []uint32) {
	k := moving(from, lo, 0)
	if k == len(from) {
		return
	}
	if debug {
		s.displace()
	}
	s.rows.Open()
	for k < len(from) {
		end := staying(from, lo, k)
		s.data.TouchRange(lo+k, lo+end)
		s.dense.TouchRange(lo+k, lo+end)
		s.noteRows(lo+k, lo+end)
		k = moving(from, lo, end)
	}
	for k := range from {
		s.rotate(lo, k, from)
	}
	s.w.changes++
	s.rearrange("sorted")
	if debug {
		s.w.spoil()
	}
}

// moving returns the position of the first row that moves, at or after position k. Without such a
// row, it returns the length of the slice.
func moving(from []uint32, lo, k int) int {
	for k < len(from) && int(from[k]) == lo+k {
		k++
	}
	return k
}

// staying returns the position of the first row that stays, at or after position k. Without such a
// row, it returns the length of the slice.
func staying(from []uint32, lo, k int) int {
	for k < len(from) && int(from[k]) != lo+k {
		k++
	}
	return k
}

// rotate moves all rows of the cycle that contains row lo+k, and marks them as moved in the slice
// from.
func (s *Storage[T]) rotate(lo, k int, from []uint32) {
	first := lo + k
	if int(from[k]) == first {
		return
	}
	e, v := s.dense.Live[first], s.data.Live[first]
	row := first
	for {
		next := int(from[row-lo])
		from[row-lo] = uint32(row)
		if next == first {
			s.place(row, e, v)
			return
		}
		s.place(row, s.dense.Live[next], s.data.Live[next])
		row = next
	}
}
