package ecs

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
	s.version = change
	s.note(e)
	s.rows.N = n + 1
}

// putAll is SetAll for entities that were just created.
func (s *Storage[T]) putAll(entities []Entity, v T) {
	if s.special || s.mask != nil || s.w.watched {
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
