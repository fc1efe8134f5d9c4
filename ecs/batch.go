package ecs

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A batch applies one operation to many entities. The result is the same as that of a loop over the
// entities. A batch is faster: it writes many rows at once, and removes the last rows by lowering a
// count.
//
// A batch that removes rows goes from the last entity to the first:
//
//   - Entities that were added last are then in the last rows. Removing the last row moves no other
//     row.
//   - If a batch created the entities, the next batch gets their indices in the same order.
//   - A removal changes no row before the removed row. So the argument may be a slice that the
//     storage or the world returned.

// destroyBatch destroys entities, a slice that uses the buffer w.batch. A hook may begin another
// batch, which must not overwrite the slice. So w.batch is nil while destroyBatch runs.
func (w *World) destroyBatch(entities []Entity) (n int) {
	w.batch = nil
	if w.watched {
		n = w.destroyOneByOne(entities)
	} else {
		n = w.destroyAll(entities)
	}
	w.batch = entities
	return n
}

func (w *World) destroyOneByOne(entities []Entity) int {
	hooks, restores := w.hasDestroyHooks(), w.restores
	if hooks && !w.entities.allAlive(entities) {
		return w.destroyCounting(entities)
	}
	before, n := w.entities.rows.N, 0
	for _, e := range slices.Backward(entities) {
		if w.Destroy(e) {
			n++
		}
	}
	switch {
	case w.restores == restores && (n == len(entities) || !hooks && n == before-w.entities.rows.N):
		// Each destroyed entity was destroyed by its own call of Destroy, so n is correct.
		return n
	// All entities were alive before the loop, so count those that are dead now.
	case hooks:
		return w.countDistinct(entities, func(e Entity) bool { return !w.entities.alive(e) })
	}
	return w.countDistinct(entities, func(e Entity) bool { return w.entities.freed(e, before) })
}

// destroyCounting destroys entities, some of which may be dead. It returns the number of entities
// that it destroyed.
func (w *World) destroyCounting(entities []Entity) (n int) {
	alive := w.spare.take()
	defer w.spare.drop(alive)
	for _, e := range entities {
		if w.entities.alive(e) {
			alive.add(e)
		}
	}
	for _, e := range slices.Backward(entities) {
		w.Destroy(e)
	}
	for _, e := range alive.added {
		if !w.entities.alive(e) {
			n++
		}
	}
	return n
}

// countDistinct returns the number of distinct entities for which f returns true.
func (w *World) countDistinct(entities []Entity, f func(e Entity) bool) int {
	found := w.spare.take()
	defer w.spare.drop(found)
	for _, e := range entities {
		if f(e) {
			found.add(e)
		}
	}
	return len(found.added)
}

// destroyAll is destroyOneByOne for a world without observers.
func (w *World) destroyAll(entities []Entity) (n int) {
	if debug {
		w.mustBeWritable("DestroyAll")
	}
	n = w.entities.destroyAll(entities)
	for _, s := range w.sets {
		switch {
		case s.rows.N == 0:
		// discardAll is not used for Indexed storages: it would remove their gaps.
		case w.entities.rows.N == 0 && s.kind != Indexed:
			s.storage.discardAll()
		default:
			s.storage.discardEach(entities)
		}
	}
	if debug {
		w.spoil()
	}
	return n
}

// noteAll records one operation for each entity, in the order of the slice.
func (w *World) noteAll(kind raw.OpKind, s raw.Storage, entities []Entity) {
	if w.ops == nil {
		return
	}
	for _, e := range entities {
		w.note(kind, s, e)
	}
}

// DestroyAll destroys entities, from the last to the first. It returns how many of them were alive
// before and are dead afterwards. The argument may be a slice that w or a storage returned.
func (w *World) DestroyAll(entities []Entity) int {
	// Copy the slice: it may show the rows of a storage, which move during the destruction.
	return w.destroyBatch(append(w.batch[:0], entities...))
}

// destroyTogether destroys distinct entities. If a policy refuses, all stay alive and the result is
// false.
func (w *World) destroyTogether(entities []Entity) bool {
	if w.relations != nil {
		return w.relations.destroyTogether(entities)
	}
	w.DestroyAll(entities)
	return true
}

// CreateN creates n entities without components and appends them to dst, which may be nil. The
// result is that of n calls of [World.Create]. The world does not keep the slice.
func (w *World) CreateN(dst []Entity, n int) []Entity {
	if n <= 0 {
		return dst
	}
	if debug {
		w.mustBeWritable("World.CreateN")
	}
	from := len(dst)
	dst = w.entities.createN(dst, n)
	w.noteAll(raw.OpCreate, nil, dst[from:])
	if len(w.hooks.create) > 0 {
		for _, e := range dst[from:] {
			w.runCreateHooks(e)
		}
	}
	return dst
}

// SetAll gives each of the entities a copy of v, with the same result as a loop of [Storage.Set].
// It returns the number of alive entities. The world does not take ownership of v.
func (s *Storage[T]) SetAll(entities []Entity, v T) int {
	return s.setAll(entities, batchValues[T]{same: v, clone: s.data.Clone})
}

// SetEach gives entities[i] the value values[i], with the same result as a loop of [Storage.Set].
// It returns the number of alive entities. The world takes ownership of the memory that values
// point to. SetEach panics if the slices have different lengths.
func (s *Storage[T]) SetEach(entities []Entity, values []T) int {
	if len(entities) != len(values) {
		panic("ecs: SetEach needs one value for each entity; slice the longer one to the length of the other")
	}
	return s.setAll(entities, batchValues[T]{each: values, differ: true})
}

// A batchValues provides the values of a batch: one value for each row, or copies of a single
// value.
type batchValues[T any] struct {
	differ bool
	each   []T
	same   T
	clone  func(T) T
}

// value returns the value of the i-th entity.
func (f *batchValues[T]) value(i int) T {
	switch {
	case f.differ:
		return f.each[i]
	case f.clone != nil:
		return f.clone(f.same)
	}
	return f.same
}

// write writes the values of the i-th entity and the following entities to rows.
func (f *batchValues[T]) write(rows []T, i int) {
	switch {
	case f.differ:
		copy(rows, f.each[i:])
	case f.clone != nil:
		for k := range rows {
			rows[k] = f.clone(f.same)
		}
	default:
		v := f.same
		for k := range rows {
			rows[k] = v
		}
	}
}

// setAll gives entities the values of f. It returns the number of alive entities.
func (s *Storage[T]) setAll(entities []Entity, f batchValues[T]) (n int) {
	if debug {
		s.mustBeWritable("SetAll", 0)
	}
	// Special kinds, masks, groups and hooks need a call of Set for each entity.
	if s.special || s.mask != nil || s.group != nil || s.hooks != nil {
		for i, e := range entities {
			if s.Set(e, f.value(i)) {
				n++
			}
		}
		return n
	}
	for i := 0; i < len(entities); {
		k := 1
		row := s.row(entities[i])
		switch {
		case row < 0:
			if k = s.addSome(entities, i, &f); k == 0 {
				i++
				continue
			}
		case i+1 < len(entities) && row+1 < s.rows.N && s.dense.Live[row+1] == entities[i+1]:
			k = s.setAligned(entities, i, row, &f)
		default:
			s.rows.Open()
			if s.data.Unsaved(row) {
				s.data.Save(row)
			}
			s.data.Live[row] = f.value(i)
		}
		n += k
		i += k
	}
	return n
}

// addSome adds entities[i] and the entities after it to s. It stops before an entity that is dead
// or already in s. It returns the number of added entities.
func (s *Storage[T]) addSome(entities []Entity, i int, f *batchValues[T]) int {
	if !s.w.entities.alive(entities[i]) {
		return 0
	}
	s.rows.Open()
	k := s.claim(entities[i:])
	f.write(s.extend(entities[i:i+k]), i)
	return k
}

// setAligned writes values to the longest run of consecutive rows that starts with entities[i] in
// the given row. It returns the number of written rows.
func (s *Storage[T]) setAligned(entities []Entity, i, row int, f *batchValues[T]) int {
	s.rows.Open()
	k := s.aligned(row, entities[i:])
	s.data.TouchRange(row, row+k)
	f.write(s.data.Live[row:row+k], i)
	return k
}

// appendRows gives each of the entities a copy of v. The entities must be alive, distinct, and
// without the component. s must be Sparse or a Tag. A recorder is the only observer that s may
// have.
func (s *Storage[T]) appendRows(entities []Entity, v T) {
	if len(entities) == 0 {
		return
	}
	s.rows.Open()
	s.pointBehind(entities)
	f := batchValues[T]{same: v, clone: s.data.Clone}
	f.write(s.extend(entities), 0)
}

// RemoveAll removes the component from entities, from the last to the first. It returns the number
// of entities that had the component before. The argument may be the slice that [Storage.Entities]
// returns.
func (s *Storage[T]) RemoveAll(entities []Entity) (n int) {
	if debug {
		s.mustBeWritable("RemoveAll", 0)
	}
	if !s.observed {
		before := s.Len()
		s.discardEach(entities)
		return before - s.Len()
	}
	if s.group != nil || s.hooks != nil { // A group or a hook may move any row.
		entities = slices.Clone(entities)
	}
	if s.removesOneByOne() { // A hook may remove a later component first.
		n = s.w.countDistinct(entities, s.Has)
		for _, e := range slices.Backward(entities) {
			s.Remove(e)
		}
		return n
	}
	for _, e := range slices.Backward(entities) {
		if s.Remove(e) {
			n++
		}
	}
	return n
}

// extend adds entities as members after the last row, and returns the new rows. The sparse entries
// of the entities must already point to these rows. The caller writes the values.
func (s *Storage[T]) extend(entities []Entity) []T {
	if debug {
		s.displace()
	}
	lo, hi := s.rows.N, s.rows.N+len(entities)
	s.data.TouchRange(lo, hi)
	s.dense.TouchRange(lo, hi)
	s.grow(hi)
	copy(s.dense.Live[lo:hi], entities)
	s.noteRows(lo, hi)
	s.w.changes++
	s.version = s.w.changes
	s.rows.N = hi
	s.w.noteAll(raw.OpAdd, s.Raw(), entities)
	return s.data.Live[lo:hi]
}

// discardEach removes the rows of entities, from the last to the first. It records no operations.
func (s *Storage[T]) discardEach(entities []Entity) {
	for len(entities) > 0 {
		last := len(entities) - 1
		if k := s.tail(entities); k > 0 && s.mask == nil && s.set.kind != Indexed {
			s.dropTail(k)
			entities = entities[:len(entities)-k]
			continue
		}
		if r := s.row(entities[last]); r >= 0 {
			s.discard(entities[last], r)
		}
		entities = entities[:last]
	}
}

// dropTail removes the last k rows.
func (s *Storage[T]) dropTail(k int) {
	if debug {
		s.displace()
	}
	s.rows.Open()
	n := s.rows.N
	s.rows.N -= k
	s.recordRemoval(s.dense.Live[s.rows.N], s.rows.N)
	s.noteRows(s.rows.N+1, n)
	if s.log.loops > 0 {
		for row := s.rows.N + 1; row < n; row++ {
			s.logMove(rowMove{a: s.dense.Live[row], i: uint32(row), j: uint32(row)})
		}
	}
	if s.pointers {
		s.markVacated(n)
	}
}

// tail returns how many of the last entities are in the last rows of s, in the same order.
func (s *set) tail(entities []Entity) (k int) {
	rows := s.dense.Live[:s.rows.N]
	for k < len(rows) && k < len(entities) && rows[len(rows)-1-k] == entities[len(entities)-1-k] {
		k++
	}
	return k
}

// aligned returns how many of the first entities are in consecutive rows that start at the given
// row.
func (s *set) aligned(row int, entities []Entity) (k int) {
	rows := s.dense.Live[row:s.rows.N]
	for k < len(rows) && k < len(entities) && rows[k] == entities[k] {
		k++
	}
	return k
}

// pointBehind writes the sparse entries for entities that are about to be appended. The first
// entity gets row N, the next one row N+1, and so on.
func (s *set) pointBehind(entities []Entity) {
	var page *track.Page
	at := track.NoRow
	row := uint32(s.rows.N)
	for _, e := range entities {
		i := e.Index()
		if i>>pageBits != at {
			page, at = s.page(i), i>>pageBits
		}
		if s.sparse.Unsaved(page, i) {
			s.sparse.Save(page, i)
		}
		page.Rows[i&pageMask] = row
		row++
	}
}

// createN creates n entities and appends them to dst.
func (r *registry) createN(dst []Entity, n int) []Entity {
	r.rows.Open()
	dst = slices.Grow(dst, n)
	for end := len(dst) + n; len(dst) < end; {
		before, want := r.rows.N, end-len(dst)
		switch {
		case r.rows.N < r.rows.Extra:
			r.recycle(want)
		case r.rows.Extra == r.rows.Total && want <= maxIndices-r.rows.Total:
			r.extend(want)
		}
		// create handles the other cases: used-up generations, retired indices, and too many
		// entities.
		if r.rows.N == before {
			r.create()
		}
		dst = append(dst, r.dense.Live[before:r.rows.N]...)
	}
	return dst
}

// recycle creates up to n entities from the first free indices. It stops at an index whose
// generations are used up.
func (r *registry) recycle(n int) {
	rows := r.dense.Live[r.rows.N:min(r.rows.N+n, r.rows.Extra)]
	for k, e := range rows {
		if e.Generation() == r.maxGeneration {
			rows = rows[:k]
			break
		}
	}
	r.dense.TouchRange(r.rows.N, r.rows.N+len(rows))
	for k := range rows {
		rows[k] += 1 << 32
	}
	r.rows.N += len(rows)
}

// extend creates n entities with new indices. The registry must have no free or retired index.
func (r *registry) extend(n int) {
	lo, hi := r.rows.Total, r.rows.Total+n
	r.grow(hi)
	dense, sparse := r.dense.Live[lo:hi], r.sparse[lo:hi]
	for k := range dense {
		dense[k], sparse[k] = NewEntity(uint32(lo+k), 1), uint32(lo+k)
	}
	r.rows.N, r.rows.Extra, r.rows.Total = hi, hi, hi
}

// destroyAll destroys entities, from the last to the first. It returns the number of entities
// that were alive.
func (r *registry) destroyAll(entities []Entity) int {
	before := r.rows.N
	for len(entities) > 0 {
		last := len(entities) - 1
		e := entities[last]
		entities = entities[:last]
		if r.destroy(e) && r.w.ops != nil {
			r.w.note(raw.OpDestroy, nil, e)
		}
	}
	return before - r.rows.N
}
