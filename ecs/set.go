package ecs

// A set is what all storages share: the sparse set of entities that have the
// component, without the values.
//
//	entity index    0   1   2   3   4
//	              +---+---+---+---+---+
//	sparse        | 1 | . | 0 | . | 2 |    entity index -> row, in pages
//	              +---+---+---+---+---+
//	dense         | 2 | 0 | 4 | 0 | ..     row -> entity; rows past n are kept
//	              +---+---+---+
//	                          n = 3
//
// An entity e is a member iff sparse[e] < n and dense[sparse[e]] == e. So
// rubbish in sparse is harmless, and lowering n removes members.
type set struct {
	tracker
	sparse  sparseArray
	dense   column[Entity]
	kind    Kind
	special bool          // Indexed or Hashed: a new row needs more than a sparse page.
	shared  []*sparsePage // Hashed: the pages.

	observed bool   // A group, hooks, a mask or a recorder are to be told of members.
	slow     bool   // Set has more to do than write rows: observed or special.
	heavy    bool   // So has the removal of a row.
	mask     *Mask  // The indices of the members, if the storage is Masked.
	group    *Group // The only one that it is in, or nil.
	hooks    *setHooks

	// For queries that cache how this set lies beside others.
	version uint64   // The world's count of structural changes at the last one here.
	order   []uint64 // Per block of 64 rows: the same for the order of its rows,
	watched int      // kept for rows below watched.

	// For iteration: the world's count of structural changes when a member was
	// lost last and when before that, which one it was last, and the same count
	// when the set was put back last.
	lostAt, lostBefore uint64
	removed            Entity
	rewoundAt          uint64

	byIndex bool // A query that this set drives walks its mask.
}

func (s *set) init(w *World, owner trackerOwner, kind Kind, exempt bool) {
	s.w, s.owner, s.exempt = w, owner, exempt
	s.sparse = newSparseArray(w)
	s.dense = newColumn[Entity](w)
	s.dense.moved = func(m run) { s.reorder(int(m.row), int(m.row+m.n)) }
	s.columns = []trackedColumn{&s.dense}
	s.kind = kind
	if s.special = kind == Indexed || kind == Hashed; !s.special {
		s.columns = append(s.columns, &s.sparse)
	}
}

// row returns the row of e, or -1.
func (s *set) row(e Entity) int {
	if p := int(uint32(e) >> pageBits); p < len(s.sparse.pages) && s.sparse.pages[p] != nil {
		if r := int(s.sparse.pages[p].rows[e&pageMask]); r < s.n && s.dense.live[r] == e {
			return r
		}
	}
	return -1
}

// Len returns the number of entities that have the component.
func (s *set) Len() int { return s.n - s.m }

// Rows returns the number of rows: [set.Len], and the gaps of an [Indexed]
// storage.
func (s *set) Rows() int { return s.n }

// Has reports whether e has the component. Any e may be asked: stale, made up,
// zero.
func (s *set) Has(e Entity) bool { return s.row(e) >= 0 }

// Entities returns the entities that have the component, in dense order, with
// [Vacant] in the gaps of an [Indexed] storage. The slice is valid until the next
// change of the storage and must not be written.
func (s *set) Entities() []Entity { return s.dense.live[:s.n:s.n] }

// fill makes entities the members of s, which is empty, as dense has them, and
// keeps them. pages is the sparse array that follows from them; nil: it is made. No
// frame may be held.
func (s *set) fill(entities []Entity, pages []*sparsePage) {
	if s.dense.live = s.dense.live[:0]; len(entities) > 0 {
		s.dense.live = entities
	}
	s.n = len(entities)
	if pages != nil {
		s.sparse.pages = pages
	} else {
		s.point()
	}
	s.reorder(0, s.n)
	s.w.changes++
	s.version = s.w.changes
	if s.mask != nil {
		s.mask.fill(entities)
	}
}

// point makes the sparse array follow from dense.
func (s *set) point() {
	switch {
	case !s.special:
		for row, e := range s.dense.live[:s.n] {
			p := s.sparse.page(e.Index())
			if p == nil {
				p = s.sparse.grow(e.Index())
			}
			p.rows[e.Index()&pageMask] = uint32(row)
		}
	case s.kind == Hashed:
		s.placeAll()
	default:
		s.m = 0
		for _, e := range s.dense.live[:s.n] {
			if e == Vacant {
				s.m++
			}
		}
		s.sparse.pages = s.w.identity((s.n + pageMask) >> pageBits)
	}
}

// bump notes that row holds another entity than before.
func (s *set) bump(row int) {
	s.w.changes++
	s.version = s.w.changes
	if row < s.watched {
		s.order[row>>6] = s.version
	}
}

// shrunk notes that e is no longer a member, and that row, if it is below n,
// holds another entity than before.
func (s *set) shrunk(e Entity, row int) {
	s.w.changes++
	s.version = s.w.changes
	if row < s.n && row < s.watched {
		s.order[row>>6] = s.version
	}
	s.lostAt, s.lostBefore, s.removed = s.w.changes, s.lostAt, e
}

// reorder notes that rows [lo, hi) may hold other entities than before.
func (s *set) reorder(lo, hi int) {
	for row := lo; row < min(hi, s.watched); row = row | 63 + 1 {
		s.order[row>>6] = s.w.changes + 1
	}
}

func (s *set) rewound(lengths) {
	if s.kind == Hashed {
		s.placeAll()
	}
	s.w.changes++
	s.version = s.w.changes
	s.rewoundAt = s.w.changes
}

// watch makes the set keep the order of rows below n.
func (s *set) watch(n int) {
	if n <= s.watched {
		return
	}
	for len(s.order) < (n+63)/64 {
		s.order = append(s.order, s.w.changes)
	}
	s.watched = len(s.order) * 64
}

// clear removes all members.
func (s *set) clear() {
	if s.span != s.w.span {
		s.open()
	}
	s.n, s.m = 0, 0
	if s.mask != nil {
		s.mask.discardAll()
	}
	s.w.changes++
	s.version = s.w.changes
	s.lostAt, s.lostBefore, s.removed = s.w.changes, s.lostAt, 0
}
