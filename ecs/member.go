package ecs

import (
	"iter"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// Membership is one test. An entity e is a member of a sparse set iff
//
//	sparse[e] < n  and  dense[sparse[e]] == e
//
// so that rubbish in sparse is harmless, and lowering n removes members. It is written
// out where a call would cost; a change of one form is a change of all:
//
//	set.row        with sparse in pages: the row, for whoever wants no more
//	Storage.Get    the same, small enough to be inlined with the value
//	Storage.Set    goes on with the page that it found, to write what is not there
//	set.claim      goes on with the page of the entity before, for a batch
//	set.lookUp     for 64 entities of a join, of which it keeps the rows
//	Storage.find   for 64 entities that are to be written, of which it keeps those that are there
//	World.discard  with pages that are known already, to take the rows of e away
//	registry.row   with sparse in one slice: whether e is alive
//	registry.at    without the generation: which entity is alive at an index
//
// Rows below n exist in dense and data: the first two, which the compiler inlines
// wherever a program looks something up, read them without a check of bounds. How many
// look-ups wait for memory at the same time hangs on how many words each loads, those of
// the set included: a loop over many entities loads these before it.
//
// Below them is what makes members, and unmakes them.

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

// Has reports whether e has the component. Any e may be asked: stale, made up,
// zero.
func (s *set) Has(e Entity) bool { return s.row(e) >= 0 }

// Row returns where the component of e lies in [Storage.Entities] and [Storage.Values], and
// whether e has one. It holds until the next change of the storage.
func (s *set) Row(e Entity) (row int, ok bool) {
	row = s.row(e)
	return max(row, 0), row >= 0
}

// Get returns the component of e, and whether e has one.
//
// Slices, maps and pointers in it are those of the world, to be read only and until the
// next change of the row. To write them use [Storage.Mut], or Set with ones of your own:
// who writes through them and then calls Set or Mut has changed the row before the world
// saves it, so that no checkpoint and no tick has the old value. Only a debug build
// (-tags stetdebug) finds that.
func (s *Storage[T]) Get(e Entity) (v T, ok bool) {
	if debug {
		mustBeCurrent(e)
	}
	if pages, p := s.sparse.Pages, int(uint32(e)>>pageBits); p < len(pages) && pages[p] != nil {
		r := uintptr(pages[p].Rows[e&pageMask])
		if int(r) < s.rows.N && *(*Entity)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.dense.Live)), r*unsafe.Sizeof(e))) == e {
			return *(*T)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.data.Live)), r*unsafe.Sizeof(v))), true
		}
	}
	return v, false
}

// Set gives e the component v, replacing the one it had. It reports whether e is
// alive; if not, nothing changes. Slices, maps and pointers in v are the world's from
// then on: it copies none of them.
func (s *Storage[T]) Set(e Entity, v T) bool {
	// What most calls need is done in a body that calls nothing but, last of all,
	// setSlow: so nothing has to be kept on the stack.
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
	s.bump(e)
	s.rows.N = n + 1
	return true
}

// GetAny is [Storage.Get] of a copy that shares nothing with the world. It finds none of a
// component that the program has not registered; GetJSON does.
func (s *Storage[T]) GetAny(e Entity) (v any, ok bool) {
	row := s.row(e)
	if row < 0 || s.unknown {
		return nil, false
	}
	return s.face.copy(s.data.Live[row]), true
}

// SetAny is [Storage.Set] of a copy of v, which is a T or a pointer to one. After an error,
// which says what is wrong, nothing has changed.
func (s *Storage[T]) SetAny(e Entity, v any) error {
	row, err := s.face.ofAny(&s.spec, v)
	return s.setChecked(e, row, err)
}

// GetJSON returns the component of e as the JSON of [layout.Value.AppendExact], which is
// what exports have. It finds none if values of T cannot be encoded: NoPersist components
// may be such, and SetJSON says why.
func (s *Storage[T]) GetJSON(e Entity) (src []byte, ok bool) {
	row := s.row(e)
	if row < 0 {
		return nil, false
	}
	return s.face.json(&s.spec, row)
}

// SetJSON is [Storage.Set] of what [Storage.GetJSON] returned. Fields that src does not
// name stay as they are, or are zero if e has no component; those of nested structs too,
// but arrays, slices, maps and pointers are replaced as a whole. After an error, which
// names the field, nothing has changed.
func (s *Storage[T]) SetJSON(e Entity, src []byte) error {
	row, err := s.face.ofJSON(&s.spec, s.row(e), src)
	return s.setChecked(e, row, err)
}

// setChecked gives e the component v, which was made with err.
func (s *Storage[T]) setChecked(e Entity, v T, err error) error {
	switch {
	case !s.w.entities.alive(e):
		err = errNotAlive
	case err == nil:
		s.Set(e, v)
	}
	return valueFault(s.name, s.layout, e, false, err)
}

// claim is pointBehind for the first entities, as far as they are alive and not
// members, and no two are the same. It returns how many.
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

// row returns the row of e if it is alive, or -1.
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

// alive reports whether e is in [0, n).
func (r *registry) alive(e Entity) bool { return r.row(e) >= 0 }

// at returns the entity alive at index i, if there is one.
func (r *registry) at(i uint32) (Entity, bool) {
	if int64(i) >= int64(r.rows.Total) || int(r.sparse[i]) >= r.rows.N {
		return 0, false
	}
	return r.dense.Live[r.sparse[i]], true
}

// Mut returns a pointer through which the component of e can be written, or nil
// if e has none. The row counts as written.
//
// The pointer is valid until the next Set or Remove in this storage, Destroy,
// Checkpoint, Commit, Restore, Release or Seek; if the storage has an [Index], also until a
// look-up in it, unless it is the pointer given out last.
func (s *Storage[T]) Mut(e Entity) *T {
	r := s.row(e)
	if r < 0 {
		return nil
	}
	if debug {
		s.mustBeWritable("Mut", e)
		s.lend()
	}
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	if s.data.Unsaved(r) {
		s.data.Save(r)
	}
	s.pointed = uint32(r)
	return &s.data.Live[r]
}

// MutEach iterates over pointers through which the components of entities can be written,
// beside the positions of these in the slice. Entities that have none are left out; one
// that is there twice is visited twice.
//
//	for i, p := range positions.MutEach(hit) {
//		p.X += push[i]
//	}
//
// It is a loop of [Storage.Mut] that looks up and saves 64 rows at a time, before the first
// of them is visited: where rows lie scattered, what they wait for overlaps. So if the loop
// ends early up to 63 rows more count as written. The world may change meanwhile: whoever
// is behind in the slice is looked up again. A pointer is valid as long as that of Mut.
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
				if s.w.changes != changes { // Also where a frame began or ended.
					f.next = int(f.at[k]) + 1
					break
				}
			}
		}
	}
}

// A found is what a storage has of some entities.
type found struct {
	next int        // How many entities were looked at.
	n    int        // How many of them are members.
	at   [64]uint8  // Which ones.
	rows [64]uint32 // Where they lie.
}

// find finds the rows of the first of entities, at most 64, which may then be written.
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
		return // Nothing will be written.
	}
	if debug {
		s.mustBeWritable("MutEach", 0)
		s.lend()
	}
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	rows := f.rows
	s.data.TouchEach(&rows, f.n)
}

// setSlow is Set for all cases.
//
//go:noinline
func (s *Storage[T]) setSlow(e Entity, v T) bool {
	if r := s.row(e); r >= 0 {
		if s.rows.Span != s.w.clock.Span {
			s.rows.Open()
		}
		s.data.Touch(r)
		old := s.data.Live[r]
		s.data.Live[r] = v
		for _, f := range s.onSet {
			if s.row(e) < 0 { // A hook took it away.
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

// add gives e, which is alive and no member, the component v.
func (s *Storage[T]) add(e Entity, v T) {
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	if s.set.kind == Indexed {
		s.setIndexed(e, v)
	} else {
		s.append(e, v)
	}
	if s.observed {
		s.joined(s, e)
	}
}

// append gives e the row behind the last one. It returns true, as Set does that ends with
// it.
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

// appendFirst gives e, whose entry is in p, the row behind the last one, for which there is
// room.
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
	s.bump(e)
	s.rows.N = n + 1
	return true
}

// saveMember saves what e overwrites by coming to row r, with its entry in p, where the
// storage is heavy: [track.SaveMember] is for others.
func (s *Storage[T]) saveMember(p *track.Page, e Entity, r int) {
	if s.dense.Unsaved(r) {
		s.saveRow(r)
	}
	if s.sparse.Unsaved(p, e.Index()) {
		s.sparse.Save(p, e.Index())
	}
}

// saveRow saves row r of dense and data. Every write to dense goes with one to
// data, so a row whose dense part is saved needs no second test.
//
//go:noinline
func (s *Storage[T]) saveRow(r int) {
	if s.data.Unsaved(r) { // First, as a Clone may panic: that dense is saved says that both are.
		s.data.Save(r)
	}
	s.dense.Save(r)
}

// newPage returns the page for the entry of e, which is no member.
//
//go:noinline
func (s *set) newPage(e Entity) *track.Page {
	if s.kind == Hashed {
		return s.pageFor(e)
	}
	return s.page(e.Index())
}

// Remove takes the component away from e and reports whether e had one. The last
// row moves into the hole.
func (s *Storage[T]) Remove(e Entity) bool {
	r := s.row(e)
	if r < 0 {
		return false
	}
	if debug {
		s.mustBeWritable("Remove", e)
	}
	if s.observed {
		if r = s.leaving(s, e, r); r < 0 {
			return true
		}
	}
	s.discard(e, r)
	return true
}

// discard takes row r, which is e's, away: the last row moves into it, or it
// becomes a gap. Nobody is told but the mask.
func (s *Storage[T]) discard(e Entity, r int) {
	if debug {
		s.displace()
	}
	last := s.rows.N - 1 // As in Set, the usual case calls nothing.
	if s.rows.Span != s.w.clock.Span || s.heavy {
		s.discardSlow(e, r)
		return
	}
	if r != last {
		moved := s.dense.Live[last]
		p := s.sparse.Pages[moved.Index()>>pageBits]
		if s.dense.Unsaved(r) || s.sparse.Unsaved(p, moved.Index()) {
			s.discardFirst(e, r)
			return
		}
		s.dense.Live[r], s.data.Live[r] = moved, s.data.Live[last]
		p.Rows[moved&pageMask] = uint32(r)
	}
	if s.rows.N = last; s.lost(e) {
		s.tellLost(e, r)
	}
}

// discardFirst is discard of a row that is not the last one, where not all is saved.
//
//go:noinline
func (s *Storage[T]) discardFirst(e Entity, r int) {
	last := s.rows.N - 1
	moved := s.dense.Live[last]
	p := s.sparse.Pages[moved.Index()>>pageBits]
	track.SaveMember(&s.dense.Log, &s.data.Log, &s.sparse, p, moved.Index(), r)
	s.dense.Live[r], s.data.Live[r] = moved, s.data.Live[last]
	p.Rows[moved&pageMask] = uint32(r)
	if s.rows.N = last; s.lost(e) {
		s.tellLost(e, r)
	}
}

// discardSlow is discard for all cases.
//
//go:noinline
func (s *Storage[T]) discardSlow(e Entity, r int) {
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	if !s.heavy {
		s.discard(e, r)
		return
	}
	if s.set.kind == Indexed {
		s.vacateRow(e, r)
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
	if s.rows.N = last; s.lost(e) {
		s.tellLost(e, r)
	}
	if s.mask != nil {
		s.mask.Remove(e.Index())
	}
	if s.pointers {
		s.vacate(last + 1)
	}
}
