package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

// The methods named Create of the bundles contain the fast path of put inline, once for each
// component. A call per component would double the cost. The functions below are steps of that fast
// path, and the compiler inlines them.

// writablePage returns the sparse page with the entry of e if the entry needs no save before a
// write. Otherwise it returns nil.
func (s *set) writablePage(e Entity) *track.Page {
	if debug {
		s.displace()
	}
	if p := s.sparse.Page(e.Index()); p != nil && s.sparse.Free(p.Rows[e&pageMask]) {
		return p
	}
	return nil
}

// canAppend reports whether the row after the last one can be written without a save, a hook or a
// larger column. span is the clock's current span.
func (s *set) canAppend(span uint64) bool {
	return s.rows.Span == span && !s.slow && s.rows.N < len(s.dense.Live) && s.dense.Free(s.rows.N)
}

// countAppended makes e a member. The caller has written the row of e after the last row.
func (s *set) countAppended(e Entity, change uint64) {
	s.version = change
	s.note(e)
	s.rows.N++
}

// put sets the component of an entity that was just created, before any hook ran for the entity.
// change is the world's count of structural changes. A bundle increases the count once for all of
// its storages.
func (s *Storage[T]) put(e Entity, v T, change uint64) {
	p, n := s.sparse.Page(e.Index()), s.rows.N
	if p == nil || s.rows.Span != s.w.clock.Span || s.slow ||
		n >= len(s.dense.Live) || s.sparse.Unsaved(p, e.Index()) || s.dense.Unsaved(n) {
		s.setSlow(e, v)
		return
	}
	p.Rows[e&pageMask] = uint32(n)
	s.dense.Live[n], s.data.Live[n] = e, v
	s.countAppended(e, change)
}

// putAll gives v to entities that were just created.
func (s *Storage[T]) putAll(entities []Entity, v T) {
	if s.special || s.mask != nil || s.w.hooked {
		s.SetAll(entities, v)
		return
	}
	s.appendRows(entities, v)
}

// mustBundle panics if the storages cannot form a bundle.
func mustBundle(storages ...AnyStorage) {
	for i, s := range storages {
		mustNonNilFilter("a bundle", s)
		if s.sparseSet().w != storages[0].sparseSet().w {
			panic("ecs: a bundle of storages of different worlds; register them in one")
		}
		for _, other := range storages[:i] {
			if s == other {
				panic("ecs: a bundle with " + s.Name() + " twice; name each component once")
			}
		}
	}
}
