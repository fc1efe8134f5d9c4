package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

// Create of a bundle has the usual case of put written out for each component: a call for
// each would cost as much as what it does. What follows are its parts, which are inlined.

// freePage returns the page of e's entry if that can be written with nothing to be saved,
// or nil.
func (s *set) freePage(e Entity) *track.Page {
	if debug {
		s.displace()
	}
	if p := s.sparse.Page(e.Index()); p != nil && s.sparse.Free(p.Rows[e&pageMask]) {
		return p
	}
	return nil
}

// appends reports whether the row behind the last one can be written with nothing to be
// saved or told, and no room to be made. span is the clock's.
func (s *set) appends(span uint64) bool {
	return s.rows.Span == span && !s.slow && s.rows.N < len(s.dense.Live) && s.dense.Free(s.rows.N)
}

// came makes the row behind the last one that of a member, e, which is written.
func (s *set) came(e Entity, change uint64) {
	s.version = change
	s.note(e)
	s.rows.N++
}

// put is Set for an entity that was just created and that nobody was told of.
// change is the world's count of structural changes, which a bundle raises once
// for all of its storages.
func (s *Storage[T]) put(e Entity, v T, change uint64) {
	p, n := s.sparse.Page(e.Index()), s.rows.N
	if p == nil || s.rows.Span != s.w.clock.Span || s.slow ||
		n >= len(s.dense.Live) || s.sparse.Unsaved(p, e.Index()) || s.dense.Unsaved(n) {
		s.setSlow(e, v)
		return
	}
	p.Rows[e&pageMask] = uint32(n)
	s.dense.Live[n], s.data.Live[n] = e, v
	s.came(e, change)
}

// putAll is SetAll for entities that were just created.
func (s *Storage[T]) putAll(entities []Entity, v T) {
	if s.special || s.mask != nil || s.w.hooked {
		s.SetAll(entities, v)
		return
	}
	s.appendRows(entities, v)
}

// mustBundle panics if storages cannot be those of a bundle.
func mustBundle(storages ...AnyStorage) {
	for i, s := range storages {
		mustBeThere("a bundle", s)
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
