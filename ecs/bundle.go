package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

// The Create methods of the bundles repeat the fast path of put for each component, because a call
// for each component would double the cost. The compiler inlines the functions below into Create.

// writablePage returns the sparse page of e if its entry can be overwritten without saving the old
// value. Otherwise it returns nil.
func (s *set) writablePage(e Entity) *track.Page {
	if debug {
		s.displace()
	}
	if p := s.sparse.Page(e.Index()); p != nil && s.sparse.Free(p.Rows[e&pageMask]) {
		return p
	}
	return nil
}

// canAppend reports whether a row can be appended on the fast path: without saving an old value,
// without hooks, and without growing a column.
func (s *set) canAppend(span uint64) bool {
	return s.rows.Span == span && !s.slow && s.rows.N < len(s.dense.Live) && s.dense.Free(s.rows.N)
}

// countAppended makes e a member. The caller has written the row of e after the last row.
func (s *set) countAppended(e Entity, change uint64) {
	s.version = change
	s.note(e)
	s.rows.N++
}

// put sets the component of an entity that was just created. The parameter change is the new
// version of the set; a bundle uses the same version for all of its sets.
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
