package ecs

import (
	"iter"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A Storage holds the components of type T: a sparse set with one row for each
// entity that has one. [Register] makes it.
//
// A type of size 0 is a tag: membership is all there is, and rows take no
// memory.
type Storage[T any] struct {
	set
	data track.Column[T]
	spec
	face rawStorage[T]

	top int // With pointers: rows at or past it are zero.
}

// A spec is what is known of a component or resource, whatever its type.
type spec struct {
	name       string
	layout     *layout.Type // nil if values cannot be encoded.
	tag        bool         // Size 0.
	pointers   bool
	noRewind   bool
	noPersist  bool
	masked     bool
	unknown    bool // Loaded, but not registered by the program.
	kind       Kind
	refs       *references // Where values hold entities; found when first asked for.
	*evolution             // nil: it was never different.
}

// A typedSpec is what is known of a component or resource of type T.
type typedSpec[T any] struct {
	spec
	codec rowCodec[T]
	clone func(T) T
	gap   *T // What gaps of an Indexed storage hold; nil: the zero value.
}

// A rowCodec turns rows into their canonical bytes and back.
type rowCodec[T any] interface {
	append(dst []byte, rows []T) []byte
	appendRanges(dst []byte, rows []T, ranges []raw.Range) []byte
	decode(src []byte, rows []T) error
	adopt(src []byte, n int) (rows []T, ok bool) // Keeps src.
}

func newStorage[T any](w *World, s typedSpec[T]) *Storage[T] {
	st := &Storage[T]{spec: s.spec}
	st.face = rawStorage[T]{st, &st.data, s.codec, s.gap}
	st.set.init(w, s.kind, s.noRewind)
	st.rows.Rewound = st.rewound
	if s.masked {
		st.mask = newMask(w, s.noRewind)
		st.byIndex = s.kind == Ordered
	}
	st.heavy = s.kind == Indexed || s.masked || s.pointers || s.clone != nil
	st.data.Init(&w.clock, s.pointers)
	st.data.Clone = s.clone
	if s.pointers {
		st.rows.Settle = st.settle
		st.data.Moved = func(r track.Run) { st.top = max(st.top, int(r.Row+r.N)) }
	}
	if !s.tag {
		st.rows.Add(&st.data)
	}
	return st
}

// Get returns the component of e, and whether e has one.
func (s *Storage[T]) Get(e Entity) (v T, ok bool) {
	// The body of row, written out to be small enough for inlining.
	if p := int(uint32(e) >> pageBits); p < len(s.sparse.Pages) && s.sparse.Pages[p] != nil {
		if r := int(s.sparse.Pages[p].Rows[e&pageMask]); r < s.rows.N && s.dense.Live[r] == e {
			return s.data.Live[r], true
		}
	}
	return v, false
}

// Mut returns a pointer through which the component of e can be written, or nil
// if e has none. The row counts as written.
//
// The pointer is valid until the next Set or Remove in this storage, Destroy,
// Checkpoint, Commit, Restore, Release or Seek.
func (s *Storage[T]) Mut(e Entity) *T {
	r := s.row(e)
	if r < 0 {
		return nil
	}
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	if s.data.Unsaved(r) {
		s.data.Save(r)
	}
	return &s.data.Live[r]
}

// Set gives e the component v, replacing the one it had. It reports whether e is
// alive; if not, nothing changes.
func (s *Storage[T]) Set(e Entity, v T) bool {
	// What most calls need is done in a body that calls nothing but, last of all,
	// setSlow: so nothing has to be kept on the stack.
	p := s.sparse.Page(e.Index())
	if p == nil || s.rows.Span != s.w.clock.Span || s.slow {
		return s.setSlow(e, v)
	}
	r, n := int(p.Rows[e&pageMask]), s.rows.N
	if r < n && s.dense.Live[r] == e {
		if s.data.Unsaved(r) {
			return s.setSlow(e, v)
		}
		s.data.Live[r] = v
		return true
	}
	if n >= len(s.dense.Live) || s.sparse.Unsaved(p, e.Index()) || s.dense.Unsaved(n) || !s.w.entities.alive(e) {
		return s.setSlow(e, v)
	}
	p.Rows[e&pageMask] = uint32(n)
	s.dense.Live[n], s.data.Live[n] = e, v
	s.bump(n)
	s.rows.N = n + 1
	return true
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
		s.data.Live[r] = v
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

// append gives e the row behind the last one.
func (s *Storage[T]) append(e Entity, v T) {
	p := s.sparse.Page(e.Index())
	if p == nil || s.special {
		p = s.newPage(e)
	}
	if s.sparse.Unsaved(p, e.Index()) {
		s.sparse.Save(p, e.Index())
	}
	n := s.rows.N
	p.Rows[e&pageMask] = uint32(n)
	if n < len(s.dense.Live) {
		if s.dense.Unsaved(n) {
			s.saveRow(n)
		}
		s.dense.Live[n], s.data.Live[n] = e, v
	} else {
		s.grow(e, v)
	}
	s.bump(n)
	s.rows.N = n + 1
}

// saveRow saves row r of dense and data. Every write to dense goes with one to
// data, so a row whose dense part is saved needs no second test.
//
//go:noinline
func (s *Storage[T]) saveRow(r int) {
	s.dense.Save(r)
	if s.data.Unsaved(r) {
		s.data.Save(r)
	}
}

// newPage returns the page for the entry of e, which is no member.
//
//go:noinline
func (s *set) newPage(e Entity) *track.Page {
	if s.kind == Hashed {
		return s.pageFor(e)
	}
	return s.sparse.Grow(e.Index())
}

//go:noinline
func (s *Storage[T]) grow(e Entity, v T) {
	s.dense.Live = append(s.dense.Live, e)
	s.data.Live = append(s.data.Live, v)
}

// Remove takes the component away from e and reports whether e had one. The last
// row moves into the hole.
func (s *Storage[T]) Remove(e Entity) bool {
	r := s.row(e)
	if r < 0 {
		return false
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
	last := s.rows.N - 1 // As in Set, the usual case calls nothing.
	if s.rows.Span != s.w.clock.Span || s.heavy {
		s.discardSlow(e, r)
		return
	}
	if r != last {
		moved := s.dense.Live[last]
		p := s.sparse.Pages[moved.Index()>>pageBits]
		if s.dense.Unsaved(r) || s.sparse.Unsaved(p, moved.Index()) {
			s.discardSlow(e, r)
			return
		}
		s.dense.Live[r], s.data.Live[r] = moved, s.data.Live[last]
		p.Rows[moved&pageMask] = uint32(r)
	}
	s.rows.N = last
	s.shrunk(e, r)
}

// discardSlow is discard for all cases.
//
//go:noinline
func (s *Storage[T]) discardSlow(e Entity, r int) {
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	if s.set.kind == Indexed {
		s.vacateRow(e, r)
		return
	}
	last := s.rows.N - 1
	if r != last {
		if s.dense.Unsaved(r) {
			s.saveRow(r)
		}
		moved, v := s.dense.Live[last], s.data.Live[last]
		if s.data.Clone != nil && last < s.rows.Prot {
			v = s.data.Clone(v)
		}
		s.dense.Live[r], s.data.Live[r] = moved, v
		p := s.sparse.Page(moved.Index())
		if s.sparse.Unsaved(p, moved.Index()) {
			s.sparse.Save(p, moved.Index())
		}
		p.Rows[moved&pageMask] = uint32(r)
	}
	s.rows.N = last
	s.shrunk(e, r)
	if s.mask != nil {
		s.mask.Remove(e.Index())
	}
	if s.pointers {
		s.vacate(last + 1)
	}
}

// Clear removes the component from all entities.
//
// It costs O(1): it lowers the count and leaves the rows, so that a restore only
// raises it again. Rows that hold pointers and that no frame protects are zeroed
// for the garbage collector, which is O(rows).
func (s *Storage[T]) Clear() {
	if s.observed && s.emptying(s) {
		return
	}
	s.discardAll()
}

// All iterates over the entities and components in dense order; those of an
// [Ordered] storage in the order of indices. Components are copies; to write them,
// use a query. The storage must not change meanwhile.
func (s *Storage[T]) All() iter.Seq2[Entity, T] {
	if s.byIndex {
		return s.inOrder
	}
	return func(yield func(Entity, T) bool) {
		for r, e := range s.Entities() {
			if e != Vacant && !yield(e, s.data.Live[r]) {
				return
			}
		}
	}
}

// inOrder is All in the order of indices.
func (s *Storage[T]) inOrder(yield func(Entity, T) bool) {
	for i := range s.mask.Indices() {
		r := s.sparse.Page(i).Rows[i&pageMask]
		if !yield(s.dense.Live[r], s.data.Live[r]) {
			return
		}
	}
}

// Values returns the components in dense order, beside [Storage.Entities], with
// the default in the gaps of an [Indexed] storage. The slice is valid until the
// next change of the storage and must not be written.
func (s *Storage[T]) Values() []T { return s.data.Live[:s.rows.N:s.rows.N] }

// MutValues returns the components in dense order for writing, beside
// [Storage.Entities]. All rows count as written. What is written to the gaps of an
// [Indexed] storage stays there until an entity comes.
//
// The slice is valid until the next change of the storage, Checkpoint, Commit,
// Restore, Release or Seek. It costs O(rows) once in a frame.
func (s *Storage[T]) MutValues() []T {
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	s.data.TouchRange(0, s.rows.N)
	return s.Values()
}

// vacate notes that rows below top, past the present ones, may hold pointers.
func (s *Storage[T]) vacate(top int) {
	s.top = max(s.top, top)
	s.settle()
}

// settle zeroes the rows that nothing can bring back, if they may hold pointers.
func (s *Storage[T]) settle() {
	if !s.pointers || s.w.clock.Undone {
		return
	}
	if lo := max(s.rows.N, s.rows.Prot); lo < s.top {
		clear(s.data.Live[lo:s.top])
		s.top = lo
	}
}

func (s *Storage[T]) rewound(before track.Lengths) {
	s.set.rewound()
	s.top = max(s.top, before.N)
}

func (s *Storage[T]) discardAll() {
	if s.rows.N > 0 {
		n := s.rows.N
		s.clear()
		s.vacate(n)
	}
}

// dropDead removes the rows of entities that are not alive: those of a NoRewind
// component whose entities were undone.
func (s *Storage[T]) dropDead() {
	for r := s.rows.N - 1; r >= 0; r-- {
		if e := s.dense.Live[r]; e != Vacant && !s.w.entities.alive(e) {
			s.discard(e, r)
		}
	}
}
