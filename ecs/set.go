package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

const (
	pageBits = track.PageBits
	pageMask = track.PageMask
)

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
	w       *World
	rows    track.Tracker // N: rows. Extra: those of them that are gaps.
	sparse  track.Sparse
	dense   track.Column[Entity]
	kind    Kind
	special bool          // Indexed or Hashed: a new row needs more than a sparse page.
	shared  []*track.Page // Hashed: the pages.

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

func (s *set) init(w *World, kind Kind, exempt bool) {
	s.w = w
	s.rows.Init(&w.clock, exempt, &s.dense)
	s.dense.Init(&w.clock, false)
	s.dense.Moved = func(m track.Run) { s.reorder(int(m.Row), int(m.Row+m.N)) }
	s.kind = kind
	if s.special = kind == Indexed || kind == Hashed; !s.special {
		s.sparse.Init(&w.clock)
		s.rows.Add(&s.sparse)
	}
}

// row returns the row of e, or -1.
func (s *set) row(e Entity) int {
	if p := int(uint32(e) >> pageBits); p < len(s.sparse.Pages) && s.sparse.Pages[p] != nil {
		if r := int(s.sparse.Pages[p].Rows[e&pageMask]); r < s.rows.N && s.dense.Live[r] == e {
			return r
		}
	}
	return -1
}

// Len returns the number of entities that have the component.
func (s *set) Len() int { return s.rows.N - s.rows.Extra }

// Rows returns the number of rows: [set.Len], and the gaps of an [Indexed]
// storage.
func (s *set) Rows() int { return s.rows.N }

// Has reports whether e has the component. Any e may be asked: stale, made up,
// zero.
func (s *set) Has(e Entity) bool { return s.row(e) >= 0 }

// Entities returns the entities that have the component, in dense order, with
// [Vacant] in the gaps of an [Indexed] storage. The slice is valid until the next
// change of the storage and must not be written.
func (s *set) Entities() []Entity { return s.dense.Live[:s.rows.N:s.rows.N] }

// fill makes entities the members of s, which is empty, as dense has them, and
// keeps them. pages is the sparse array that follows from them; nil: it is made. No
// frame may be held.
func (s *set) fill(entities []Entity, pages []*track.Page) {
	if s.dense.Live = s.dense.Live[:0]; len(entities) > 0 {
		s.dense.Live = entities
	}
	s.rows.N = len(entities)
	if pages != nil {
		s.sparse.Pages = pages
	} else {
		s.point()
	}
	s.reorder(0, s.rows.N)
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
		for row, e := range s.dense.Live[:s.rows.N] {
			p := s.sparse.Page(e.Index())
			if p == nil {
				p = s.sparse.Grow(e.Index())
			}
			p.Rows[e.Index()&pageMask] = uint32(row)
		}
	case s.kind == Hashed:
		s.placeAll()
	default:
		s.rows.Extra = 0
		for _, e := range s.dense.Live[:s.rows.N] {
			if e == Vacant {
				s.rows.Extra++
			}
		}
		s.sparse.Pages = s.w.identity((s.rows.N + pageMask) >> pageBits)
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
	if row < s.rows.N && row < s.watched {
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

func (s *set) rewound() {
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
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	s.rows.N, s.rows.Extra = 0, 0
	if s.mask != nil {
		s.mask.discardAll()
	}
	s.w.changes++
	s.version = s.w.changes
	s.lostAt, s.lostBefore, s.removed = s.w.changes, s.lostAt, 0
}
