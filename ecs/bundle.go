package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

// Bundle.Create contains the fast path of put inline, once for each component: a call per
// component would cost as much as its work. The functions below are the parts of that fast path,
// and the compiler inlines them.

// writablePage returns the page of e's entry if the entry is writable without saving. Otherwise it
// returns nil.
func (s *set) writablePage(e Entity) *track.Page {
	if debug {
		s.displace()
	}
	if p := s.sparse.Page(e.Index()); p != nil && s.sparse.Free(p.Rows[e&pageMask]) {
		return p
	}
	return nil
}

// canAppend reports whether the row after the last one is writable without saving, without
// notifying observers and without growing a column. span is the clock's current span.
func (s *set) canAppend(span uint64) bool {
	return s.rows.Span == span && !s.slow && s.rows.N < len(s.dense.Live) && s.dense.Free(s.rows.N)
}

// countAppended counts the row after the last one, which the caller has written, as that of the
// new member e.
func (s *set) countAppended(e Entity, change uint64) {
	s.version = change
	s.note(e)
	s.rows.N++
}

// put is Set for an entity that was just created and for which no hook ran. change is the world's
// count of structural changes. A bundle increases the count once for all of its storages.
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

// putAll is SetAll for entities that were just created.
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
