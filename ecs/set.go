package ecs

import (
	"math/bits"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

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
type set struct {
	w       *World
	rows    track.Tracker // N: rows. Extra: those of them that are gaps.
	sparse  track.Sparse
	dense   track.Column[Entity]
	kind    Kind
	special bool          // Indexed or Hashed: a new row needs more than a sparse page.
	shared  []*track.Page // Hashed: the pages.

	lent     lending //nolint:unused // Of a debug build.
	observed bool    // A group, hooks, a mask or a recorder are to be told of members.
	slow     bool    // Set has more to do than write rows: observed or special.
	heavy    bool    // So has the removal of a row.
	mask     *Mask   // The indices of the members, if the storage is Masked.
	group    *Group  // The only one that it is in, or nil.
	hooks    *setHooks

	// For queries, which keep what they found.
	version uint64   // The world's count of structural changes at the last one here.
	ring    []Entity // The newest notes, if somebody heeds them; see note.
	notes   uint64   // How many there were since.

	// For iteration: the world's count of structural changes when a member was
	// lost last and when before that, which one it was last, and the same count
	// when the set was put back last.
	lostAt, lostBefore uint64
	removed            Entity
	rewoundAt          uint64
	moved              bool // Being put back: entities moved.

	// For indexes: who they are, and what a program has pointers to, so that it may write
	// it at any time.
	indexes    []follower
	pointed    uint32 // The row to which it was given one last; track.NoRow: none.
	pointedAll bool   // It has them to all rows, if this is still
	pointedIn  uint64 // the world's span and
	pointedAt  uint64 // the version of the set.

	byIndex bool    // A query that this set drives walks its mask.
	sorting scratch // In which it was last sorted.
}

func (s *set) init(w *World, kind Kind, exempt bool) {
	s.w, s.pointed = w, track.NoRow
	s.rows.Init(&w.clock, exempt, &s.dense.Log)
	s.dense.Init(&w.clock, false)
	s.dense.Log.Moving = func(m track.Run) { s.noteRows(int(m.Row), int(m.Row+m.N)) }
	s.dense.Log.Moved = func(m track.Run) {
		s.moved = true
		s.noteRows(int(m.Row), int(m.Row+m.N))
	}
	s.kind = kind
	if s.special = kind == Indexed || kind == Hashed; !s.special {
		s.sparse.Init(&w.clock)
		s.rows.Add(&s.sparse)
	}
}

// fill makes entities the members of s, which is empty, as dense has them, and
// keeps them. pages is the sparse array that follows from them; nil: it is made. No
// frame may be held.
func (s *set) fill(entities []Entity, pages []*track.Page) {
	if s.dense.Live = s.dense.Live[:0]; len(entities) > 0 {
		s.dense.Take(entities)
	}
	s.rows.N = len(entities)
	if pages != nil {
		s.sparse.Pages = pages
	} else {
		s.point()
	}
	s.w.paged++
	s.forget()
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
		s.sparse.Pages = sparsePages(s.dense.Live)
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

// A follower is an index: it follows what is written to a set.
type follower interface {
	look()
	bytes() int64
}

// look makes all indexes right.
func (w *World) look() {
	for _, s := range w.sets {
		for _, x := range s.indexes {
			x.look()
		}
	}
}

// pointToAll notes that all rows can be written, as long as nobody comes or goes and no
// boundary is set.
func (s *set) pointToAll() {
	s.pointedAll, s.pointedIn, s.pointedAt = true, s.w.clock.Span, s.version
}

// A note is an entity that came to a set, left it or moved in it. Queries look it up
// again before they next walk. The newest notes are kept in a ring as long as a query
// heeds them; who comes too late finds everything anew.

// note notes e, who came, left or moved.
func (s *set) note(e Entity) {
	if last := len(s.ring) - 1; last >= 0 {
		s.ring[s.notes&uint64(last)] = e
		s.notes++
	}
}

// noted returns the entity of note i, which the ring has.
func (s *set) noted(i uint64) Entity { return s.ring[i&uint64(len(s.ring)-1)] }

// noteRows notes the entities of rows [lo, hi), whether or not they are below n.
func (s *set) noteRows(lo, hi int) {
	if hi = min(hi, len(s.dense.Live)); hi-lo > len(s.ring) {
		s.forget()
		return
	}
	for row := lo; row < hi; row++ {
		s.note(s.dense.Live[row])
	}
}

// forget lets go of all notes: too much changed for them.
func (s *set) forget() { s.notes += uint64(len(s.ring)) + 1 }

// minRing is the least number of notes that are kept.
const minRing = 64

// watch makes the set keep its notes from now on: of an eighth of its rows, as more
// of them are not worth being looked up one by one.
func (s *set) watch() {
	if s.rows.N>>3 <= len(s.ring) && s.ring != nil {
		return
	}
	s.ring = make([]Entity, max(minRing, 1<<bits.Len(uint(s.rows.N>>3))))
	s.forget()
}

// bump notes that e came to the set, or moved in it.
func (s *set) bump(e Entity) {
	s.w.changes++
	s.version = s.w.changes
	s.note(e)
}

// shrunk notes that e is no longer a member, and that row, if it is below n,
// holds another entity than before.
func (s *set) shrunk(e Entity, row int) {
	if s.lost(e) {
		s.tellLost(e, row)
	}
}

// lost counts that e is no longer a member, and reports whether tellLost is to follow. It
// is inlined where shrunk would be a call too many.
func (s *set) lost(e Entity) bool {
	s.w.changes++
	s.version = s.w.changes
	s.lostAt, s.lostBefore, s.removed = s.version, s.lostAt, e
	return debug || s.ring != nil
}

// tellLost notes e, who left row, and who is there now.
//
//go:noinline
func (s *set) tellLost(e Entity, row int) {
	if s.note(e); row < s.rows.N {
		s.note(s.dense.Live[row])
	}
	if debug {
		s.w.spoil()
	}
}

// rewound notes that s was put back, whose lengths were those before. If that was only
// values, all entities are where they were.
func (s *set) rewound(before track.Lengths) {
	if !s.moved && s.rows.Lengths == before {
		return
	}
	s.noteRows(min(before.N, s.rows.N), max(before.N, s.rows.N))
	s.moved = false
	if s.kind == Hashed {
		s.placeAll()
	}
	s.w.changes++
	s.version = s.w.changes
	s.rewoundAt = s.w.changes
}

// clear removes all members.
func (s *set) clear() {
	if debug {
		s.displace()
	}
	if s.rows.Span != s.w.clock.Span {
		s.rows.Open()
	}
	s.rows.N, s.rows.Extra = 0, 0
	s.forget()
	if s.mask != nil {
		s.mask.Clear()
	}
	s.w.changes++
	s.version = s.w.changes
	s.lostAt, s.lostBefore, s.removed = s.w.changes, s.lostAt, 0
	if debug {
		s.w.spoil()
	}
}

// In an Indexed storage the row of an entity is its index. Rows below n that
// belong to no entity are gaps; m counts them. Nothing but the extent n follows
// from order, and no row ever moves.
//
//	entity index    0   1   2   3   4
//	dense         | 0 | - | 2 | - | 4 |    n = 5, m = 2
//	data          | a | d | c | d | e |    d: the default
//
// The sparse array is the identity, so all such storages of a world share its
// pages, and nothing of it is ever written or saved.

// identity returns the first pages of the sparse array that maps every index to
// itself.
func (w *World) identity(pages int) []*track.Page {
	for p := len(w.identityPages); p < pages; p++ {
		page := new(track.Page)
		for i := range page.Rows {
			page.Rows[i] = uint32(p<<pageBits + i)
		}
		w.identityPages = append(w.identityPages, page)
	}
	return w.identityPages[:pages:pages]
}

// setIndexed gives e, which is alive and no member, the component v.
//
//go:noinline
func (s *Storage[T]) setIndexed(e Entity, v T) {
	r := int(e.Index())
	s.stretch(r + 1)
	if s.dense.Unsaved(r) {
		s.saveRow(r)
	}
	s.dense.Live[r], s.data.Live[r] = e, v
	s.rows.Extra--
	s.bump(e)
}

// stretch makes s at least n rows long. New rows are gaps.
func (s *Storage[T]) stretch(n int) {
	from := s.rows.N
	if n <= from {
		return
	}
	if pages := (n + pageMask) >> pageBits; pages > len(s.sparse.Pages) {
		s.sparse.Pages = s.w.identity(pages)
		s.w.paged++
	}
	if kept := min(n, len(s.dense.Live)); from < kept {
		s.data.TouchRange(from, kept)
		s.dense.TouchRange(from, kept)
	}
	s.grow(n)
	fill(s.dense.Live[from:n], Vacant)
	s.fillGaps(s.data.Live[from:n])
	s.rows.N, s.rows.Extra = n, s.rows.Extra+n-from
}

func fill[T any](rows []T, v T) {
	for i := range rows {
		rows[i] = v
	}
}

// fillGaps gives rows that are gaps the default, so that equal worlds have equal rows.
func (s *Storage[T]) fillGaps(rows []T) {
	switch {
	case s.face.gap == nil:
		clear(rows)
	case s.data.Clone != nil:
		for r := range rows {
			rows[r] = s.data.Clone(*s.face.gap)
		}
	default:
		fill(rows, *s.face.gap)
	}
}

// vacateRow makes row r, which is e's, a gap.
func (s *Storage[T]) vacateRow(e Entity, r int) {
	if s.dense.Unsaved(r) {
		s.saveRow(r)
	}
	s.dense.Live[r] = Vacant
	s.fillGaps(s.data.Live[r : r+1])
	s.rows.Extra++
	if s.mask != nil {
		s.mask.Remove(e.Index())
	}
	s.shrunk(e, r)
}

// withGaps returns entities and values with each at the row of its index.
func (s *Storage[T]) withGaps(entities []Entity, values []T) ([]Entity, []T) {
	n := 0
	for _, e := range entities {
		n = max(n, int(e.Index())+1)
	}
	rows, data := make([]Entity, n), make([]T, n)
	fill(rows, Vacant)
	s.fillGaps(data)
	for i, e := range entities {
		rows[e.Index()], data[e.Index()] = e, values[i]
	}
	return rows, data
}

// withoutGaps returns entities and values without the gaps, in the same order.
func withoutGaps[T any](entities []Entity, values []T) ([]Entity, []T) {
	rows, data := make([]Entity, 0, len(entities)), make([]T, 0, len(entities))
	for i, e := range entities {
		if e != Vacant {
			rows, data = append(rows, e), append(data, values[i])
		}
	}
	return rows, data
}

// The sparse array of a Hashed storage is cut into blocks like that of a Sparse
// one, but several blocks can have the same page as long as no two members need
// the same entry of it: a hash table whose hash is the low part of the index, and
// in which a collision moves one block to another page (row displacement: Tarjan
// and Yao, Storing a sparse table, 1979).
//
//	blocks   0  1  2  3  4  5
//	         A  A  -  A  B  A       A: entries of blocks 0, 1, 3 and 5
//
// That works because membership asks dense back: an entry that belongs to
// another block's entity is rubbish like any other. It costs 8 bytes for 4096
// indices of the world and about 10 for a member, where a page for each block
// would be 17 KB for a single one. At worst, if the indices of all members are
// equal modulo 4096, each of them needs a page, as in a Sparse storage.
//
// Nothing of it is saved: entries follow from dense, and are made again for all
// rows when the storage is put back.

// hashedTries is how many of the newest pages are tried for a block.
const hashedTries = 8

// pageFor returns the page in which the entry of e can be written.
func (s *set) pageFor(e Entity) *track.Page {
	i := e.Index()
	page := s.sparse.Page(i)
	if page != nil && !s.collides(page, i) {
		return page
	}
	for int(i>>pageBits) >= len(s.sparse.Pages) {
		s.sparse.Pages = append(s.sparse.Pages, nil)
	}
	var block []Entity // The members that move along.
	if page != nil {
		block = s.membersOf(page, i>>pageBits)
	}
	page = s.roomFor(append(block, e))
	for _, m := range block {
		page.Rows[m&pageMask] = s.sparse.Pages[i>>pageBits].Rows[m&pageMask]
	}
	s.sparse.Pages[i>>pageBits] = page
	s.w.paged++
	return page
}

// collides reports whether the entry of index i in page belongs to a member with
// another index.
func (s *set) collides(page *track.Page, i uint32) bool {
	r := int(page.Rows[i&pageMask])
	if r >= s.rows.N {
		return false
	}
	x := s.dense.Live[r].Index()
	return x != i && x&pageMask == i&pageMask
}

// membersOf returns the members of a block, which page holds.
func (s *set) membersOf(page *track.Page, block uint32) (members []Entity) {
	for i, r := range page.Rows {
		if int(r) < s.rows.N {
			if e := s.dense.Live[r]; e.Index() == block<<pageBits+uint32(i) {
				members = append(members, e)
			}
		}
	}
	return members
}

// roomFor returns a page in which none of members collides.
func (s *set) roomFor(members []Entity) *track.Page {
next:
	for k := len(s.shared) - 1; k >= max(0, len(s.shared)-hashedTries); k-- {
		for _, e := range members {
			if s.collides(s.shared[k], e.Index()) {
				continue next
			}
		}
		return s.shared[k]
	}
	page := track.NewPage(len(s.shared))
	s.shared = append(s.shared, page)
	return page
}

// placeAll makes the entries of all rows anew.
func (s *set) placeAll() {
	for r, e := range s.dense.Live[:s.rows.N] {
		s.pageFor(e).Rows[e&pageMask] = uint32(r)
	}
}

// A candidate is a storage that may have members among the entities of one sparse page.
type candidate struct {
	*set
	page    *track.Page
	storage componentRows
	values  track.RawRows
	data    *track.Log
}

// componentRows is what only the storages of components have.
type componentRows interface {
	rawRows() (track.RawRows, *track.Log)
	discard(e Entity, row int)
}

// discard takes away the rows of e. What is usual, as [Storage.discard] has it, is done
// here for all storages, without a call for each.
func (w *World) discard(e Entity) {
	all, span, entry := w.candidatesFor(e), w.clock.Span, e&pageMask
	for i := range all {
		c := &all[i]
		s := c.set
		row, last := int(c.page.Rows[entry]), s.rows.N-1
		if row > last || s.dense.Live[row] != e {
			continue
		}
		if debug {
			s.displace()
		}
		if s.rows.Span != span || s.heavy {
			c.storage.discard(e, row)
			continue
		}
		if row != last {
			moved := s.dense.Live[last]
			p := s.sparse.Pages[moved.Index()>>pageBits]
			if s.dense.Unsaved(row) || s.sparse.Unsaved(p, moved.Index()) {
				track.SaveMember(&s.dense.Log, c.data, &s.sparse, p, moved.Index(), row)
			}
			s.dense.Live[row] = moved
			c.values.Move(row, last)
			p.Rows[moved&pageMask] = uint32(row)
		}
		if s.rows.N = last; s.lost(e) {
			s.tellLost(e, row)
		}
	}
}

// pageCandidates are the candidates of one page, in the order of registration, as long as
// World.paged is at.
type pageCandidates struct {
	at  uint64
	all []candidate
}

// candidatesFor returns the storages that may have e: those whose sparse set has a page for
// its index. So what is destroyed is looked for where it can be, also if thousands of
// types are registered, most of which have nothing there.
func (w *World) candidatesFor(e Entity) []candidate {
	p := int(e.Index() >> pageBits)
	if p >= len(w.candidates) || w.candidates[p].at != w.paged {
		return w.findCandidates(p)
	}
	return w.candidates[p].all
}

//go:noinline
func (w *World) findCandidates(p int) []candidate {
	for p >= len(w.candidates) {
		w.candidates = append(w.candidates, pageCandidates{})
	}
	known := &w.candidates[p]
	clear(known.all)
	known.at, known.all = w.paged, known.all[:0]
	for i, s := range w.sets {
		if p < len(s.sparse.Pages) && s.sparse.Pages[p] != nil {
			rows := w.storages[i].(componentRows)
			values, data := rows.rawRows()
			known.all = append(known.all, candidate{s, s.sparse.Pages[p], rows, values, data})
		}
	}
	return known.all
}

// page returns the page of index i, which it makes if there is none.
func (s *set) page(i uint32) *track.Page {
	if s.sparse.Page(i) == nil {
		s.w.paged++
	}
	return s.sparse.Grow(i)
}
