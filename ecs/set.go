package ecs

import (
	"math/bits"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

const (
	pageBits = track.PageBits
	pageMask = track.PageMask
)

// A set has the members of a storage, without the values: a sparse set of the entities that have
// the component.
//
//	entity index    0   1   2   3   4
//	              +---+---+---+---+---+
//	sparse        | 1 | . | 0 | . | 2 |    entity index -> row, in pages
//	              +---+---+---+---+---+
//	dense         | 2 | 0 | 4 | 0 | ..     row -> entity; rows from n on are old
//	              +---+---+---+
//	                          n = 3
type set struct {
	_ noCopy

	w      *World
	rows   track.Tracker // N is the number of rows, Extra that of gaps.
	sparse track.Sparse
	dense  track.Column[Entity]
	kind   Kind
	// The kind is Indexed or Hashed.
	special bool
	shared  []*track.Page // The sparse pages of a Hashed storage.

	lent lending //nolint:unused // Used only in a debug build.
	// The set has a group, hooks, a mask or a recorder.
	observed bool
	// The method Set needs its slow path: the set is observed or special.
	slow bool
	// The storage is Indexed or has a mask, or its type has pointers or a Clone. Saves and removals
	// then use slower functions.
	heavy bool
	mask  *Mask  // The indices of the members, if the storage has a mask.
	group *Group // The group of the storage, or nil.
	hooks *setHooks

	// For the caches of queries.
	version uint64   // World.changes at the last structural change of the set.
	ring    []Entity // The newest notes. Nil if no query needs them.
	notes   uint64   // Number of notes so far, including dropped ones.

	// The row moves, for running loops.
	log        moveLog
	arrangedAt uint64 // World.changes when the rows were last rearranged.
	arrangedBy string // What happened to the rows: "restored", "sorted", "packed" or "loaded".
	rowsMoved  bool   // The current restore has moved entities.

	// The indexes of the storage, and the rows that the program may write through pointers. Indexes
	// read these rows again at each look-up.
	indexes []follower
	pointed uint32 // Row of the newest pointer for writing, or track.NoRow.
	// The program has pointers to all rows, from MutValues. They are valid only as long as the
	// clock span is pointedIn and the version of the set is pointedAt.
	pointedAll bool
	pointedIn  uint64 // clock.Span when pointedAll was set.
	pointedAt  uint64 // Version of the set when pointedAll was set.

	byIndex bool    // Queries driven by this set visit entities in index order.
	sorting scratch // Buffer for sorting.

	storage componentRows
}

// A scratch is a ranking of any type of values.
type scratch interface{ room() int64 }

func (s *set) init(w *World, storage componentRows, kind Kind, exempt bool) {
	s.w, s.storage, s.pointed = w, storage, track.NoRow
	s.rows.Init(&w.clock, exempt, &s.dense.Log)
	s.dense.Init(&w.clock, false)
	s.dense.Log.Moving = func(m track.Run) { s.noteRows(int(m.Row), int(m.Row+m.N)) }
	s.dense.Log.Moved = func(m track.Run) {
		s.rowsMoved = true
		s.noteRows(int(m.Row), int(m.Row+m.N))
	}
	s.kind = kind
	if s.special = kind == Indexed || kind == Hashed; !s.special {
		s.sparse.Init(&w.clock)
		s.rows.Add(&s.sparse)
	}
}

// setMembers makes entities the members of s, which must be empty. It takes ownership of the slice.
// If pages is nil, it builds the sparse array. The world must have no frames.
func (s *set) setMembers(entities []Entity, pages []*track.Page) {
	if s.dense.Live = s.dense.Live[:0]; len(entities) > 0 {
		s.dense.Take(entities)
	}
	s.rows.N = len(entities)
	if pages != nil {
		s.sparse.Pages = pages
	} else {
		s.buildSparse()
	}
	s.w.paged++
	s.dropNotes()
	s.w.changes++
	s.rearrange("loaded")
	if s.mask != nil {
		s.mask.fill(entities)
	}
}

// buildSparse creates the sparse array from dense.
func (s *set) buildSparse() {
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

// sparsePages builds a sparse array in which the row of entities[i] is i.
func sparsePages(entities []Entity) []*track.Page {
	a := track.Sparse{Pages: []*track.Page{}}
	for row, e := range entities {
		p := a.Page(e.Index())
		if p == nil {
			p = a.Grow(e.Index())
		}
		p.Rows[e&pageMask] = uint32(row)
	}
	return a.Pages
}

// A follower is an index that reads the writes to a set.
type follower interface {
	refresh()
	bytes() int64
}

// refreshIndexes updates all indexes of w.
func (w *World) refreshIndexes() {
	for _, s := range w.sets {
		for _, x := range s.indexes {
			x.refresh()
		}
	}
}

// pointToAll records that the program has pointers to all rows, until the members change or a
// boundary follows.
func (s *set) pointToAll() {
	s.pointedAll, s.pointedIn, s.pointedAt = true, s.w.clock.Span, s.version
}

// A note records that an entity was added to a set, removed from it or moved in it. Before an
// iteration, a query looks up only the entities of new notes. The set keeps the newest notes in a
// ring buffer. If a query has missed notes, it looks up all entities.

// note adds a note for the entity e.
func (s *set) note(e Entity) {
	if last := len(s.ring) - 1; last >= 0 {
		s.ring[s.notes&uint64(last)] = e
		s.notes++
	}
}

// noted returns the entity of note i. The note must still be in the ring.
func (s *set) noted(i uint64) Entity { return s.ring[i&uint64(len(s.ring)-1)] }

// noteRows adds notes for the entities in rows lo to hi-1. The rows may have been removed.
func (s *set) noteRows(lo, hi int) {
	if hi = min(hi, len(s.dense.Live)); hi-lo > len(s.ring) {
		s.dropNotes()
		return
	}
	for row := lo; row < hi; row++ {
		s.note(s.dense.Live[row])
	}
}

// dropNotes makes all notes stale.
func (s *set) dropNotes() { s.notes += uint64(len(s.ring)) + 1 }

// minNotes is the minimum length of the ring.
const minNotes = 64

// keepNotes makes the set keep notes, in a ring with room for at least an eighth of its rows. After
// more changes than that, looking up all entities is faster.
func (s *set) keepNotes() {
	if s.rows.N>>3 <= len(s.ring) && s.ring != nil {
		return
	}
	s.ring = make([]Entity, max(minNotes, 1<<bits.Len(uint(s.rows.N>>3))))
	s.dropNotes()
}

// recordMove records that e was added to the set, or moved in it.
func (s *set) recordMove(e Entity) {
	s.w.changes++
	s.version = s.w.changes
	s.note(e)
}

// recordRemoval records that e was removed from the given row. Another entity may have moved to
// that row.
func (s *set) recordRemoval(e Entity, row int) {
	if s.countRemoval() {
		s.noteRemoval(e, row)
	}
}

// countRemoval counts a removal. If it returns true, the caller must call noteRemoval. The two
// functions are separate because the compiler then inlines countRemoval.
func (s *set) countRemoval() bool {
	s.w.changes++
	s.version = s.w.changes
	return debug || s.ring != nil || s.log.loops > 0
}

// noteRemoval adds notes for e, which was removed from the given row, and for the entity that moved
// to that row. It logs the removal for running loops.
//
//go:noinline
func (s *set) noteRemoval(e Entity, row int) {
	var moved Entity
	if s.note(e); row < s.rows.N {
		moved = s.dense.Live[row]
		s.note(moved)
	}
	if s.log.loops > 0 && s.kind != Indexed {
		s.logMove(rowMove{a: e, b: moved, i: uint32(row), j: uint32(s.rows.N)})
	}
	if debug {
		s.w.spoil()
	}
}

// logMove logs m for the running loops over s. If the log is long and no loop is running, it
// empties the log.
func (s *set) logMove(m rowMove) {
	l := &s.log
	if n := len(l.moves); n >= longLog && n&(n-1) == 0 {
		s.w.longLogs = true
		if runningLoops() == 0 {
			l.reset()
			return
		}
	}
	l.moves = append(l.moves, m)
}

// afterRewind records a restore of s. The parameter before has the old lengths. It does nothing if
// the restore changed only values.
func (s *set) afterRewind(before track.Lengths) {
	if !s.rowsMoved && s.rows.Lengths == before {
		return
	}
	s.noteRows(min(before.N, s.rows.N), max(before.N, s.rows.N))
	s.rowsMoved = false
	if s.kind == Hashed {
		s.placeAll()
	}
	s.w.changes++
	s.rearrange("restored")
}

// rearrange records that the rows of s have a new order. A loop over s then panics. The parameter
// by says what happened to the rows.
func (s *set) rearrange(by string) {
	s.version, s.arrangedAt, s.arrangedBy = s.w.changes, s.w.changes, by
	s.recordCaller()
}

// clear removes all members.
func (s *set) clear() {
	if debug {
		s.displace()
	}
	s.rows.Open()
	s.rows.N, s.rows.Extra = 0, 0
	s.dropNotes()
	if s.mask != nil {
		s.mask.Clear()
	}
	s.w.changes++
	s.version = s.w.changes
	if s.log.loops > 0 {
		s.logMove(rowMove{})
	}
	if debug {
		s.w.spoil()
	}
}

// In an Indexed storage, the row of an entity is its index, and rows never move. A row without an
// entity is a gap. Here n is the number of rows, and m the number of gaps:
//
//	entity index    0   1   2   3   4
//	dense         | 0 | - | 2 | - | 4 |    n = 5, m = 2
//	data          | a | d | c | d | e |    d: the default
//
// The sparse array maps each index to itself. All Indexed storages of a world share its pages,
// which are never written or saved.

// identity returns the first pages of the sparse array that maps every index to itself.
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

// setIndexed gives the component v to e. e must be alive and must not have the component.
//
//go:noinline
func (s *Storage[T]) setIndexed(e Entity, v T) {
	r := int(e.Index())
	s.extendTo(r + 1)
	if s.dense.Unsaved(r) {
		s.saveRow(r)
	}
	s.dense.Live[r], s.data.Live[r] = e, v
	s.rows.Extra--
	s.recordMove(e)
}

// extendTo extends s to at least n rows. New rows are gaps.
func (s *Storage[T]) extendTo(n int) {
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

// fillGaps sets rows, which are all gaps, to the default value, so that equal worlds have equal
// rows.
func (s *Storage[T]) fillGaps(rows []T) {
	switch {
	case s.adapter.gap == nil:
		clear(rows)
	case s.data.Clone != nil:
		for r := range rows {
			rows[r] = s.data.Clone(*s.adapter.gap)
		}
	default:
		fill(rows, *s.adapter.gap)
	}
}

// makeGap makes row r, which belongs to e, a gap.
func (s *Storage[T]) makeGap(e Entity, r int) {
	if s.dense.Unsaved(r) {
		s.saveRow(r)
	}
	s.dense.Live[r] = Vacant
	s.fillGaps(s.data.Live[r : r+1])
	s.rows.Extra++
	if s.mask != nil {
		s.mask.Remove(e.Index())
	}
	s.recordRemoval(e, r)
}

// withGaps inserts gaps, so that the row of each entity is its index.
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

// withoutGaps removes gaps and keeps the order of entities.
func withoutGaps[T any](entities []Entity, values []T) ([]Entity, []T) {
	rows, data := make([]Entity, 0, len(entities)), make([]T, 0, len(entities))
	for i, e := range entities {
		if e != Vacant {
			rows, data = append(rows, e), append(data, values[i])
		}
	}
	return rows, data
}

// The sparse array of a Hashed storage consists of blocks of 4096 indices. Several blocks can share
// a page, unless two members need the same entry of the page. If a new member needs an entry in
// use, its block moves to another page. (Row displacement: Tarjan and Yao, Storing a sparse table,
// 1979.)
//
//	block    0  1  2  3  4  5
//	page     A  A  -  A  B  A       blocks 0, 1, 3 and 5 share page A; block 2 has no page
//
// A look-up compares the entity in dense, so entries of other blocks are harmless.
//
// The array costs 8 bytes for each block of the world, and about 10 bytes for each member. In the
// worst case, the indices of all members are equal modulo 4096. Then each member needs a page. The
// array is not saved. A restore rebuilds it from dense.

// hashedTries is the number of pages that roomFor tries, from the newest page on.
const hashedTries = 8

// pageFor returns a page in which the entry of e is free. It moves the block of e to another page
// if necessary.
func (s *set) pageFor(e Entity) *track.Page {
	i := e.Index()
	page := s.sparse.Page(i)
	if page != nil && !s.collides(page, i) {
		return page
	}
	for int(i>>pageBits) >= len(s.sparse.Pages) {
		s.sparse.Pages = append(s.sparse.Pages, nil)
	}
	var block []Entity // Members that move together with e.
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

// collides reports whether another member uses the entry of index i in page.
func (s *set) collides(page *track.Page, i uint32) bool {
	r := int(page.Rows[i&pageMask])
	if r >= s.rows.N {
		return false
	}
	x := s.dense.Live[r].Index()
	return x != i && x&pageMask == i&pageMask
}

// membersOf returns the members of the block, whose sparse entries are in page.
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

// roomFor returns a page in which the entries of all members are free.
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

// placeAll writes the sparse entries of all members.
func (s *set) placeAll() {
	for r, e := range s.dense.Live[:s.rows.N] {
		s.pageFor(e).Rows[e&pageMask] = uint32(r)
	}
}

// A candidate is a storage that may have entities of a sparse page.
type candidate struct {
	*set
	page   *track.Page
	values track.RawRows
	data   *track.Log
}

// componentRows is a [Storage] of any type, but not a resource.
type componentRows interface {
	AnyStorage
	rawRows() (track.RawRows, *track.Log)
	// discard removes a row without recording an operation.
	discard(e Entity, row int)
	discardAll()
	discardEach(entities []Entity)
	dropDead()
	swapRows(i, j int)
	permute(lo int, from []uint32)
}

// discard removes all components of e. For speed, it repeats the usual case of [Storage.discard]
// inline.
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
		if s.rows.N = last; s.countRemoval() {
			s.noteRemoval(e, row)
		}
	}
}

// pageCandidates has the candidates for one page, in the order of registration. The list is valid
// as long as World.paged is unchanged.
type pageCandidates struct {
	at  uint64
	all []candidate
}

// candidatesFor returns the storages that may have e, because they have a sparse page for its
// index. So a removal is fast even with thousands of component types.
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
	for _, s := range w.sets {
		if p < len(s.sparse.Pages) && s.sparse.Pages[p] != nil {
			values, data := s.storage.rawRows()
			known.all = append(known.all, candidate{s, s.sparse.Pages[p], values, data})
		}
	}
	return known.all
}

// page returns the page of index i. It creates the page if necessary.
func (s *set) page(i uint32) *track.Page {
	if s.sparse.Page(i) == nil {
		s.w.paged++
	}
	return s.sparse.Grow(i)
}

// gaps returns the number of rows below N without an entity.
func (s *set) gaps() int { return s.rows.Extra }
