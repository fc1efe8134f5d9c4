package ecs

import (
	"iter"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// An entity e is a member of a sparse set if
//
//	sparse[e] < n  and  dense[sparse[e]] == e
//
// So stale entries in sparse are harmless, and lowering n removes members. For speed, these
// functions repeat the test. Change it in all of them:
//
//	set.row        with sparse in pages; returns the row
//	Storage.Get    like set.row, but returns the value, and is small enough to be inlined
//	Storage.Set    uses the page again, to write the entry of a new member
//	set.claim      reuses the page of the previous entity, for a batch
//	set.lookUp     for 64 entities of a join; returns their rows
//	Storage.find   for 64 entities to be written; returns the members
//	World.discard  with known pages, to remove the rows of e
//	registry.row   with sparse in one slice: whether e is alive
//	registry.at    without the generation: the entity alive at an index
//
// After these functions, this file has the functions that add and remove members.

// row returns the row of e, or -1.
func (s *set) row(e Entity) int {
	if debug {
		mustBeCurrent(e)
	}
	if pages, p := s.sparse.Pages, int(uint32(e)>>pageBits); p < len(pages) && pages[p] != nil {
		r := uintptr(pages[p].Rows[e&pageMask])
		if int(r) < s.rows.N && *(*Entity)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.dense.Live)), r*unsafe.Sizeof(e))) == e {
			return int(r)
		}
	}
	return -1
}

// Has reports whether e has the component. e may be any value, even a stale entity or [None].
func (s *set) Has(e Entity) bool {
	if debug {
		s.mustBeReadable("Has")
	}
	return s.row(e) >= 0
}

// Row returns the position of e in [Storage.Entities] and [Storage.Values]. The result ok is
// false if e does not have the component. The position is valid until the next change of the
// storage.
func (s *set) Row(e Entity) (row int, ok bool) {
	row = s.row(e)
	return max(row, 0), row >= 0
}

// Get returns the component of e. The result ok is false if e does not have the component.
//
// Slices, maps and pointers in the component belong to the world. They are read-only, and valid
// until the next change of the row. To change them, use [Storage.Mut], or Set with new ones. If the
// program writes to them directly, no checkpoint and no tick has the old value. Only a debug build
// (-tags stetdebug) finds this mistake.
func (s *Storage[T]) Get(e Entity) (v T, ok bool) {
	if debug {
		mustBeCurrent(e)
		s.mustBeReadable("Get")
	}
	if pages, p := s.sparse.Pages, int(uint32(e)>>pageBits); p < len(pages) && pages[p] != nil {
		r := uintptr(pages[p].Rows[e&pageMask])
		if int(r) < s.rows.N && *(*Entity)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.dense.Live)), r*unsafe.Sizeof(e))) == e {
			return *(*T)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.data.Live)), r*unsafe.Sizeof(v))), true
		}
	}
	return v, false
}

// Set gives e the component v, which replaces the current component of e. It returns false and
// changes nothing if e is not alive. Slices, maps and pointers in v then belong to the world.
func (s *Storage[T]) Set(e Entity, v T) bool {
	// The usual case makes no calls. The other cases end with a call, so that the compiler keeps
	// all values in registers.
	if debug {
		s.mustBeWritable("Set", e)
		if s.row(e) < 0 && s.w.entities.alive(e) {
			s.displace()
		}
	}
	p := s.sparse.Page(e.Index())
	if p == nil || s.rows.Span != s.w.clock.Span || s.slow {
		return s.setSlow(e, v)
	}
	r, n := int(p.Rows[e&pageMask]), s.rows.N
	if r < n && s.dense.Live[r] == e {
		if s.data.Unsaved(r) {
			return s.data.Overwrite(r, v)
		}
		s.data.Live[r] = v
		return true
	}
	if n >= len(s.dense.Live) || !s.w.entities.alive(e) {
		return s.setSlow(e, v)
	}
	if s.sparse.Unsaved(p, e.Index()) || s.dense.Unsaved(n) {
		return s.appendFirst(e, v, p)
	}
	p.Rows[e&pageMask] = uint32(n)
	s.dense.Live[n], s.data.Live[n] = e, v
	s.recordMove(e)
	s.rows.N = n + 1
	return true
}

// GetAny is like [Storage.Get], but returns a copy that shares no memory with the world. It returns
// false for a component that the program has not registered; GetJSON can read such components.
func (s *Storage[T]) GetAny(e Entity) (v any, ok bool) {
	row := s.row(e)
	if row < 0 || s.unknown {
		return nil, false
	}
	return s.adapter.copy(s.data.Live[row]), true
}

// SetAny is like [Storage.Set] with a copy of v, which must be a T or a pointer to a T. An error
// says what is wrong with v, and leaves the world unchanged.
func (s *Storage[T]) SetAny(e Entity, v any) error {
	row, err := s.adapter.ofAny(&s.spec, v)
	return s.setChecked(e, row, err)
}

// GetJSON returns the component of e as JSON, in the format of [layout.Value.AppendExact]. It
// returns false if e does not have the component, or if values of T cannot be encoded. In the
// second case, SetJSON returns the reason.
func (s *Storage[T]) GetJSON(e Entity) (src []byte, ok bool) {
	row := s.row(e)
	if row < 0 {
		return nil, false
	}
	return s.adapter.json(&s.spec, row)
}

// SetJSON is like [Storage.Set], but takes JSON in the form that [Storage.GetJSON] returns. Fields
// that src does not contain keep their value, also in nested structs. They are zero if e does not
// have the component. Arrays, slices, maps and pointers are replaced as a whole. An error names the
// field, and leaves the world unchanged.
func (s *Storage[T]) SetJSON(e Entity, src []byte) error {
	row, err := s.adapter.ofJSON(&s.spec, s.row(e), src)
	return s.setChecked(e, row, err)
}

// setChecked gives e the component v, unless err is not nil. The parameter err is the error of
// converting a value to v.
func (s *Storage[T]) setChecked(e Entity, v T, err error) error {
	switch {
	case !s.w.entities.alive(e):
		err = errNotAlive
	case err == nil:
		s.Set(e, v)
	}
	return valueFault(s.name, s.layout, e, false, err)
}

// claim points the sparse entries of entities to consecutive rows after the last row. It stops
// before the first entity that is dead, is already a member, or occurs twice. It returns the number
// of written entries.
func (s *set) claim(entities []Entity) int {
	var page *track.Page
	at := track.NoRow
	n := uint32(s.rows.N)
	for k, e := range entities {
		i := e.Index()
		if !s.w.entities.alive(e) {
			return k
		}
		if i>>pageBits != at {
			page, at = s.page(i), i>>pageBits
		}
		row := page.Rows[i&pageMask]
		if row < n && s.dense.Live[row] == e || row-n < uint32(k) && entities[row-n] == e {
			return k
		}
		if s.sparse.Unsaved(page, i) {
			s.sparse.Save(page, i)
		}
		page.Rows[i&pageMask] = n + uint32(k)
	}
	return len(entities)
}

// row returns the row of e if e is alive, or -1.
func (r *registry) row(e Entity) int {
	if debug {
		mustBeCurrent(e)
	}
	if i := e.Index(); uint(i) < uint(len(r.sparse)) {
		if k := int(r.sparse[i]); k < r.rows.N && r.dense.Live[k] == e {
			return k
		}
	}
	return -1
}

func (r *registry) alive(e Entity) bool { return r.row(e) >= 0 }

// at returns the alive entity with index i. It returns false if no such entity is alive.
func (r *registry) at(i uint32) (Entity, bool) {
	if int64(i) >= int64(r.rows.Total) || int(r.sparse[i]) >= r.rows.N {
		return 0, false
	}
	return r.dense.Live[r.sparse[i]], true
}

// Mut returns a pointer for writing the component of e, or nil if e does not have it. The row
// counts as written.
//
// The pointer is valid until the next Set or Remove in this storage, Destroy, Checkpoint, Commit,
// Restore, Release or Seek. If the storage has an [Index], a look-up in it also invalidates all
// pointers except the newest.
func (s *Storage[T]) Mut(e Entity) *T {
	r := s.row(e)
	if r < 0 {
		return nil
	}
	if debug {
		s.mustBeWritable("Mut", e)
		s.lend()
	}
	s.rows.Open()
	if s.data.Unsaved(r) {
		s.data.Save(r)
	}
	s.pointed = uint32(r)
	return &s.data.Live[r]
}

// MutEach iterates over pointers for writing the components of entities, with the position of each
// entity in the slice. It skips entities without the component. If an entity occurs twice, it is
// visited twice.
//
//	for i, p := range positions.MutEach(hit) {
//		p.X += push[i]
//	}
//
// MutEach is a faster loop of [Storage.Mut]: it looks up and saves 64 rows at a time. If the loop
// ends early, up to 63 more rows count as written. The loop may change the world. A pointer is
// valid as long as a pointer of Mut.
func (s *Storage[T]) MutEach(entities []Entity) iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		var f found
		for first := 0; first < len(entities); first += f.next {
			s.find(entities[first:], &f)
			changes := s.w.changes
			for k := 0; k < f.n; k++ {
				s.pointed = f.rows[k]
				if !yield(first+int(f.at[k]), &s.data.Live[f.rows[k]]) {
					return
				}
				// The rows may have moved, or must be saved again. So call find for the rest.
				if s.w.changes != changes {
					f.next = int(f.at[k]) + 1
					break
				}
			}
		}
	}
}

// A found is the result of find.
type found struct {
	next int        // Number of entities looked up, at most 64.
	n    int        // Number of members among these entities.
	at   [64]uint8  // Position of each member in the slice of entities.
	rows [64]uint32 // Row of each member.
}

// find finds the rows of the first 64 entities, and saves these rows for writing.
//
//go:noinline
func (s *Storage[T]) find(entities []Entity, f *found) {
	f.next = min(64, len(entities))
	pages, dense, n := s.sparse.Pages, s.dense.Live[:s.rows.N], 0
	for i, e := range entities[:f.next] {
		if debug {
			mustBeCurrent(e)
		}
		f.at[n&63] = uint8(i)
		if p := int(uint32(e) >> pageBits); p < len(pages) && pages[p] != nil {
			if r := pages[p].Rows[e&pageMask]; int(r) < len(dense) && dense[r] == e {
				f.rows[n&63] = r
				n++
			}
		}
	}
	f.n = n
	if f.n == 0 {
		return
	}
	if debug {
		s.mustBeWritable("MutEach", 0)
		s.lend()
	}
	s.rows.Open()
	rows := f.rows
	s.data.TouchEach(&rows, f.n)
}

// setSlow is Set without the fast path.
//
//go:noinline
func (s *Storage[T]) setSlow(e Entity, v T) bool {
	if r := s.row(e); r >= 0 {
		s.rows.Open()
		s.data.Touch(r)
		old := s.data.Live[r]
		s.data.Live[r] = v
		for _, f := range s.onSet {
			if s.row(e) < 0 { // A hook removed the component.
				break
			}
			f(e, old, v)
		}
		return true
	}
	if !s.w.entities.alive(e) {
		return false
	}
	s.add(e, v)
	return true
}

// add gives the component v to e. e must be alive and must not have the component.
func (s *Storage[T]) add(e Entity, v T) {
	s.rows.Open()
	if s.set.kind == Indexed {
		s.setIndexed(e, v)
	} else {
		s.append(e, v)
	}
	if s.observed {
		s.notifyAdded(e)
	}
}

// append adds e in a new row at the end. It returns true, as Set does.
func (s *Storage[T]) append(e Entity, v T) bool {
	p := s.sparse.Page(e.Index())
	if p == nil || s.special {
		p = s.newPage(e)
	}
	if n := s.rows.N; n == len(s.dense.Live) {
		s.grow(n + 1)
	}
	return s.appendFirst(e, v, p)
}

// appendFirst adds e in a new row at the end. It first saves the old content of the row, and of the
// sparse entry in page p. The columns must have room.
//
//go:noinline
func (s *Storage[T]) appendFirst(e Entity, v T, p *track.Page) bool {
	n := s.rows.N
	if s.heavy {
		s.saveMember(p, e, n)
	} else {
		track.SaveMember(&s.dense.Log, &s.data.Log, &s.sparse, p, e.Index(), n)
	}
	p.Rows[e&pageMask] = uint32(n)
	s.dense.Live[n], s.data.Live[n] = e, v
	s.recordMove(e)
	s.rows.N = n + 1
	return true
}

// saveMember saves row r and the sparse entry of e in p. Storages whose field heavy is false use
// [track.SaveMember] instead, which is faster.
func (s *Storage[T]) saveMember(p *track.Page, e Entity, r int) {
	if s.dense.Unsaved(r) {
		s.saveRow(r)
	}
	if s.sparse.Unsaved(p, e.Index()) {
		s.sparse.Save(p, e.Index())
	}
}

// saveRow saves row r of dense, and of data if necessary.
//
//go:noinline
func (s *Storage[T]) saveRow(r int) {
	// Save values before entities: copying a value calls Clone, which may panic.
	if s.data.Unsaved(r) {
		s.data.Save(r)
	}
	s.dense.Save(r)
}

// newPage returns a writable page for the sparse entry of e, which must not be a member.
//
//go:noinline
func (s *set) newPage(e Entity) *track.Page {
	if s.kind == Hashed {
		return s.pageFor(e)
	}
	return s.page(e.Index())
}

// Remove removes the component from e. It returns false if e does not have the component. The last
// row moves to the row of e. In an [Indexed] storage, the row of e becomes a gap instead.
func (s *Storage[T]) Remove(e Entity) bool {
	r := s.row(e)
	if r < 0 {
		return false
	}
	if debug {
		s.mustBeWritable("Remove", e)
	}
	if s.observed {
		if r = s.notifyRemoving(e, r); r < 0 {
			return true
		}
	}
	s.discard(e, r)
	return true
}

// discard removes row r of entity e. The last row moves into row r, or row r becomes a gap in an
// Indexed storage. discard updates the mask, but does not notify hooks, group or recorder.
func (s *Storage[T]) discard(e Entity, r int) {
	if debug {
		s.displace()
	}
	last := s.rows.N - 1
	if s.rows.Span != s.w.clock.Span || s.heavy {
		s.discardSlow(e, r)
		return
	}
	if r != last {
		moved := s.dense.Live[last]
		p := s.sparse.Pages[moved.Index()>>pageBits]
		if s.dense.Unsaved(r) || s.sparse.Unsaved(p, moved.Index()) {
			track.SaveMember(&s.dense.Log, &s.data.Log, &s.sparse, p, moved.Index(), r)
		}
		s.dense.Live[r], s.data.Live[r] = moved, s.data.Live[last]
		p.Rows[moved&pageMask] = uint32(r)
	}
	if s.rows.N = last; s.countRemoval() {
		s.noteRemoval(e, r)
	}
}

// discardSlow is discard for the cases that discard does not handle inline.
//
//go:noinline
func (s *Storage[T]) discardSlow(e Entity, r int) {
	s.rows.Open()
	if !s.heavy {
		s.discard(e, r)
		return
	}
	if s.set.kind == Indexed {
		s.makeGap(e, r)
		return
	}
	last := s.rows.N - 1
	if r != last {
		moved, v := s.dense.Live[last], s.data.Live[last]
		p := s.sparse.Page(moved.Index())
		s.saveMember(p, moved, r)
		if s.data.Clone != nil && last < s.rows.Prot {
			v = s.data.Clone(v)
		}
		s.dense.Live[r], s.data.Live[r] = moved, v
		p.Rows[moved&pageMask] = uint32(r)
	}
	if s.rows.N = last; s.countRemoval() {
		s.noteRemoval(e, r)
	}
	if s.mask != nil {
		s.mask.Remove(e.Index())
	}
	if s.pointers {
		s.markVacated(last + 1)
	}
}
