package ecs

import (
	"math/bits"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A join finds the entities that are members of every required set and of no excluded set. It
// iterates over the smallest required set, the driver. It looks up each entity of the driver in the
// other sets. Optional sets exclude no entity; the join only looks up the rows in them.
//
// The join caches the result for each row of the driver. In this example, all entities except c
// match:
//
//	driver    a b c d e f     the entities in the rows of the driver
//	found     1 1 0 1 1 1     1 if the entity matches
//	other     2 3 . 9 0 1     the row of the entity in another set
//
// A set records every entity that is added, removed or moved: see [set.note]. Before an iteration,
// the join looks up only these entities again.
type join struct {
	w        *World
	optional uint32      // Bit i is set if sets[i] is optional.
	writes   bool        // The query writes at least one column.
	matches  *matchCache // Matches of the current driver. Nil before the first iteration.
	idle     *cursor     // Finished cursors for reuse, one per nested loop over the query.
	columns  []joinedColumn
	visited  uint64 // The number of rows that loops over the query have visited.
	sets     []*set // The component sets of the query, then the sets of With.

	without    []*set
	any        [][]*set // An entity matches only if it is in at least one set of each list.
	allSets    []*set   // All sets above.
	predicates []predicate

	// validate() computes the fields below.
	validAt   uint64 // World.changes at the last call of validate().
	newest    uint64 // The newest version of the sets.
	driver    int
	singleSet bool // Every row of the driver matches.

	caches []matchCache // One for each driver.
	// World.changes at the start of the last iteration that saved all rows that the query writes.
	// If World.changes is still the same, the next iteration saves nothing.
	saved uint64

	// Result of the last call of find().
	at [maxColumns]uint32
	// Memory for the words of a span with one entity.
	part [1]uint64
}

const (
	maxSets = 16 // The maximum number of components and With storages together.
	// The maximum number of rows in a span.
	maxRun = 4096

	// The number of rows above which Runs prefetches the rows of a column.
	prefetchRows = 50_000
	prefetchMin  = 48 // The minimum number of matches in a word for a prefetch.

	unknown = ^uint64(0)
)

// A joinedColumn is a set whose components a join returns.
type joinedColumn struct {
	name   string
	set    *set
	column interface {
		TouchRange(lo, hi int)
		TouchRows(words []uint64, rows []uint32, base int)
		FetchRows(rows []uint32) byte
	}
	rows     track.RawRows
	write    bool
	optional bool
}

func newJoin(w *World, columns ...joinedColumn) join {
	n := len(columns)
	sets := make([]*set, 2*n)
	j := join{w: w, columns: columns, sets: sets[:0:n], allSets: sets[n:n]}
	for i, c := range columns {
		if k := slices.Index(j.sets, c.set); k >= 0 && (c.write || columns[k].write) {
			panic("ecs: a query writes " + c.name + " and names it twice, so two pointers refer to the same component; name it once, with Write")
		}
		j.include(c.set)
		j.writes = j.writes || c.write
		if c.optional {
			j.optional |= 1 << i
		}
	}
	return j
}

func (j *join) include(s *set) {
	if len(j.sets) == maxSets {
		panic("ecs: a query joins more than 16 storages; test the rarer ones with Has in the loop")
	}
	j.sets = append(j.sets, j.use(s))
	j.invalidate()
}

// use adds s to allSets and returns s. It panics if s belongs to another world.
func (j *join) use(s *set) *set {
	if s.w != j.w {
		panic("ecs: a query joins storages of different worlds; register them in one")
	}
	j.allSets = append(j.allSets, s)
	return s
}

func (j *join) isOptional(i int) bool { return j.optional>>i&1 != 0 }

// invalidate drops all caches, after a set was added to the join.
func (j *join) invalidate() {
	j.validAt, j.newest, j.saved, j.matches = unknown, unknown, unknown, nil
	j.caches = nil
}

// validate chooses the driver and updates its matches, if any set has changed.
func (j *join) validate() {
	if newest := j.version(); newest != j.newest {
		defer j.w.clock.Lock()()
		j.choose()
		j.newest = newest
		if !j.singleSet {
			j.update(j.matches)
		}
	}
	j.validAt = j.w.changes
}

// version returns the newest version of the sets. It increases whenever a set changes.
func (j *join) version() (newest uint64) {
	for _, s := range j.allSets {
		newest = max(newest, s.version)
	}
	return newest
}

func (j *join) choose() {
	j.driver = j.smallest()
	if j.caches == nil {
		j.caches = make([]matchCache, len(j.sets))
	}
	j.matches = &j.caches[j.driver]
	j.matches.driver, j.matches.set = j.driver, j.sets[j.driver]
	d := j.sets[j.driver]
	j.singleSet = len(j.sets) == 1 && len(j.without)+len(j.any)+len(j.predicates) == 0 && d.gaps() == 0 && !d.byIndex
}

// smallest returns the position of the required set with the fewest rows. If several sets have the
// fewest rows, it returns the first position.
func (j *join) smallest() int {
	j.mustRequire()
	d := -1
	for i, s := range j.sets {
		if !j.isOptional(i) && (d < 0 || s.rows.N < j.sets[d].rows.N) {
			d = i
		}
	}
	return d
}

// count returns the number of entities in the join.
func (j *join) count() (n int) {
	c := j.walk(nil)
	for c.more() {
		n += bits.OnesCount64(c.rest) * c.n
		c.rest = 0
	}
	return n
}

// find returns the rows of e in the columns, or nil if e is not in the join. The slice is valid
// until the next use of the join.
func (j *join) find(e Entity) []uint32 {
	if debug && j.w.system != nil {
		j.w.mustBeReadable(j.uses())
	}
	j.mustRequire()
	var rows [maxSets]uint32
	if !j.probe(-1, 0, e, &rows) {
		return nil
	}
	for _, p := range j.predicates {
		if p.begin(); !p.keeps(e) {
			return nil
		}
	}
	return j.at[:copy(j.at[:], rows[:len(j.columns)])]
}

// get is like find(), but also saves the rows that the caller may write.
func (j *join) get(e Entity) []uint32 {
	rows := j.find(e)
	if rows != nil {
		j.markRows(rows)
	}
	return rows
}

// first returns the first entity and its rows, and saves the rows that the caller may write. The
// rows are nil if the join is empty.
func (j *join) first() (e Entity, rows []uint32) {
	c := j.walk(nil)
	c.step = 1
	run := c.nextRun()
	if run == nil {
		return 0, nil
	}
	c.finish()
	e, rows = c.entitiesOf(run)[0], run[:len(j.columns)]
	j.markRows(rows)
	return e, rows
}

// markRows saves the rows in the columns that the query writes.
func (j *join) markRows(rows []uint32) {
	s := span{n: 1}
	s.words = j.part[:]
	j.part[0] = 1
	for k := range rows {
		s.rows[k] = rows[k : k+1]
	}
	j.mark(&s, j.columns)
	for k, m := range j.columns {
		if m.write && rows[k] != missing {
			m.set.pointed = rows[k]
		}
	}
}

// mark saves the rows of the span s, in the columns that the query writes.
func (j *join) mark(s *span, columns []joinedColumn) {
	if debug && j.writes && columns != nil {
		lendWritten(columns)
	}
	for k, m := range columns {
		if !m.write || m.optional && !s.hasAny(k) {
			continue
		}
		m.set.rows.Open()
		if s.n > 1 {
			row := s.base[k] + int(s.rows[k][0])
			m.column.TouchRange(row, row+s.n)
		} else {
			m.column.TouchRows(s.words, s.rows[k], s.base[k])
		}
	}
}

// probe reports whether e matches, and sets at[i] to the row of e in j.sets[i] for each i. A caller
// that knows the row of e in one set passes the position of this set in j.sets as driver, and the
// row. Otherwise driver is -1.
func (j *join) probe(driver, row int, e Entity, at *[maxSets]uint32) bool {
	for i, s := range j.sets {
		r := row
		if i != driver {
			r = s.row(e)
		}
		if r < 0 && !j.isOptional(i) {
			return false
		}
		at[i] = uint32(r) & missing // If r is -1, at[i] becomes missing.
	}
	return j.passes(e)
}

// A matchCache has the cached matches of a join for one driver. A position is a row of the driver,
// or an entity index if the driver is in index order.
type matchCache struct {
	driver int
	set    *set
	chunks []chunk
	// The current epoch, from 1 after the first update. A chunk with another epoch is stale and
	// must be built again. New chunks have epoch 0.
	epoch     uint64
	readNotes []uint64 // Number of notes that update() has read, for each of allSets.
}

// update looks up all entities again that the sets have noted since the last update. If a set has
// overwritten some of these notes, all chunks become stale.
func (j *join) update(f *matchCache) {
	if f.readNotes == nil {
		f.readNotes = make([]uint64, len(j.allSets))
	}
	known := f.epoch > 0
	for i, s := range j.allSets {
		known = known && s.notes-f.readNotes[i] <= uint64(len(s.ring))
	}
	if !known {
		f.epoch++
	}
	for i, s := range j.allSets {
		for ; known && f.readNotes[i] != s.notes; f.readNotes[i]++ {
			j.rematch(f, s.noted(f.readNotes[i]))
		}
	}
	for _, s := range j.allSets {
		s.keepNotes()
	}
	for i, s := range j.allSets {
		f.readNotes[i] = s.notes
	}
}

// rematch looks up e again and updates its match.
func (j *join) rematch(f *matchCache, e Entity) {
	if e == Vacant {
		return
	}
	d, driver := f.set, f.driver
	p := int(e.Index())
	switch {
	case d.byIndex:
		e, _ = j.w.entities.at(e.Index())
		driver = -1
	case d.kind == Indexed:
		if p >= d.rows.N {
			return
		}
		e = d.dense.Live[p]
	default:
		if p = d.row(e); p < 0 {
			return
		}
	}
	b := p >> chunkBits
	if b >= len(f.chunks) || f.chunks[b].epoch != f.epoch {
		return
	}
	var at [maxSets]uint32
	found := e != 0 && e != Vacant && j.probe(driver, p, e, &at)
	j.setMatch(f, &f.chunks[b], p, found, &at)
}

// setMatch records in chunk c whether the entity at position p matches. The parameter at has its
// rows.
func (j *join) setMatch(f *matchCache, c *chunk, p int, found bool, at *[maxSets]uint32) {
	i := p & (chunkRows - 1)
	if c.list {
		if c.updateList(i, found, at[:]) {
			return
		}
		j.listToWords(f, c)
	}
	if c.run {
		switch {
		case found && i <= c.n && j.continuesRun(c, i, at):
			c.n = max(c.n, i+1)
			return
		case !found && i >= c.n:
			return
		}
		j.runToWords(f, c)
	}
	j.growChunk(f, c, i+1)
	w, bit := i>>6, uint64(1)<<(i&63)
	if !found {
		c.words[w] &^= bit
		c.whole &^= 1 << w
		return
	}
	c.words[w] |= bit
	for k := range j.columns {
		if c.rows[k] != nil {
			c.rows[k][i] = at[k]
		}
	}
	if c.order != nil {
		c.order[i] = at[f.driver]
	}
	j.setWhole(c, w)
}

// continuesRun reports whether chunk c stays a run if the entity at position i has the rows in the
// parameter at.
func (j *join) continuesRun(c *chunk, i int, at *[maxSets]uint32) bool {
	for k := range j.columns {
		if at[k] != c.at[k]+uint32(i) {
			return false
		}
	}
	return true
}

// runToWords converts a run to a chunk of words.
func (j *join) runToWords(f *matchCache, c *chunk) {
	n := c.n
	c.run, c.n = false, 0
	j.growChunk(f, c, n)
	for i := range c.words {
		c.words[i] = firstBits(n - i<<6)
	}
	c.whole = 1<<(n>>6) - 1
	for k := range j.columns {
		if rows := c.rows[k]; rows != nil {
			for i := range rows[:n] {
				rows[i] = c.at[k] + uint32(i)
			}
		}
	}
}

// listToWords converts a list to a chunk of words.
func (j *join) listToWords(f *matchCache, c *chunk) {
	s := *c
	c.reset()
	j.growChunk(f, c, s.n)
	for n, i := range s.order[:s.many] {
		c.words[i>>6] |= 1 << (i & 63)
		for k, rows := range s.rows {
			if rows != nil {
				c.rows[k][i] = rows[n]
			}
		}
	}
}

// growChunk makes room for n positions in c.
func (j *join) growChunk(f *matchCache, c *chunk, n int) {
	if n <= c.n {
		return
	}
	c.n = n
	n = (n + 63) &^ 63
	if c.words == nil {
		j.alloc(f, c, n)
		return
	}
	c.words = longer(c.words, n>>6)
	for k := range j.columns {
		if f.set.byIndex || k != f.driver {
			c.rows[k] = longer(c.rows[k], n)
		}
	}
	if f.set.byIndex {
		c.order = longer(c.order, n)
	}
}

// alloc allocates the slices of c for n positions. c must have no slices. n is a multiple of 64.
func (j *join) alloc(f *matchCache, c *chunk, n int) {
	c.words = make([]uint64, n>>6)
	columns := j.cachedColumns(f)
	if f.set.byIndex {
		columns++
	}
	room := make([]uint32, columns*n)
	for k := range j.columns {
		if f.set.byIndex || k != f.driver {
			c.rows[k], room = cut(room, n)
		}
	}
	if f.set.byIndex {
		c.order, _ = cut(room, n)
	}
}

// setWhole sets bit w of c.whole to 1 if all 64 positions of word w match and their rows are
// consecutive in each column. Otherwise it sets the bit to 0.
func (j *join) setWhole(c *chunk, w int) {
	c.whole &^= 1 << w
	if c.words[w] != ^uint64(0) {
		return
	}
	for k := range j.columns {
		if c.rows[k] != nil && !consecutive(c.rows[k][w<<6:][:64]) {
			return
		}
	}
	if c.order != nil && !consecutive(c.order[w<<6:][:64]) {
		return
	}
	c.whole |= 1 << w
}

// chunk returns chunk b of f, after building it if it is stale.
func (j *join) chunk(f *matchCache, b int) *chunk {
	if b >= len(f.chunks) {
		all := max(b+1, (f.set.rows.N+chunkRows-1)>>chunkBits)
		f.chunks = append(slices.Grow(f.chunks, all-len(f.chunks)), make([]chunk, b+1-len(f.chunks))...)
	}
	c := &f.chunks[b]
	if c.epoch != f.epoch {
		if f.set.byIndex {
			j.buildByIndex(f, c, b)
		} else {
			j.build(f, c, b)
		}
		c.epoch = f.epoch
	}
	return c
}

// build finds the matches in chunk b of the driver's rows. It first tries the form run, then the
// form list, and then uses the form bits. It tries a list only if c is new or was a list before. If
// there is a previous chunk, that chunk must be a list too.
func (j *join) build(f *matchCache, c *chunk, b int) {
	d := f.set
	entities := d.dense.Live[b<<chunkBits : min((b+1)<<chunkBits, d.rows.N)]
	fresh := c.epoch == 0 || c.list
	c.reset()
	if j.buildRun(f, c, b, entities) {
		return
	}
	// Goroutines must not share the buffer of buildList.
	if fresh && (b == 0 || f.chunks[b-1].list) && !j.w.parallel {
		if j.buildList(f, c, entities) {
			return
		}
	}
	j.growChunk(f, c, len(entities))
	j.buildWords(f, c, entities)
}

// buildList makes c a list of the entities that match. It returns false if they are too many for a
// list, or if 64 of them have consecutive rows.
func (j *join) buildList(f *matchCache, c *chunk, entities []Entity) bool {
	l := j.listing(f)
	many, most := 0, len(entities)/listRatio
	for w := 0; w<<6 < len(entities); w++ {
		j.buildWord(f, &l.word, 0, entities[w<<6:min(w<<6+64, len(entities))])
		word := l.word.words[0]
		n := bits.OnesCount64(word)
		// Stop early if the first words have too many matches for a list.
		if many+n > min(most, w<<6/listRatio+64) || l.word.whole != 0 {
			return false
		}
		if n > 0 {
			l.add(many, n, w, word)
			many += n
		}
	}
	c.n, c.list, c.many = len(entities), true, many
	n := listRoom(many)
	room := make([]uint32, (1+j.cachedColumns(f))*n)
	c.order, room = cut(room, n)
	copy(c.order, l.order[:many])
	for k := range j.columns {
		if l.word.rows[k] != nil {
			c.rows[k], room = cut(room, n)
			copy(c.rows[k], l.rows[k][:many])
		}
	}
	return true
}

// listing returns the buffer for a new list.
func (j *join) listing(f *matchCache) *listBuffer {
	l := j.w.finding
	if l == nil {
		l = &listBuffer{word: chunk{words: make([]uint64, 1)}}
		j.w.finding = l
	}
	// Remove slices of the previous query: all queries share the buffer.
	l.word.rows = [maxColumns][]uint32{}
	for k := range j.columns {
		if k != f.driver {
			l.rows[k] = longer(l.rows[k], len(l.order)+64)
			l.word.rows[k] = l.rows[k][len(l.order):]
		}
	}
	return l
}

// cachedColumns returns the number of columns for which f caches rows.
func (j *join) cachedColumns(f *matchCache) (n int) {
	for k := range j.columns {
		if f.set.byIndex || k != f.driver {
			n++
		}
	}
	return n
}

// cut splits room after the first n elements.
func cut(room []uint32, n int) (first, rest []uint32) { return room[:n:n], room[n:] }

// buildWords finds the matches among entities, which are at the positions of chunk c.
func (j *join) buildWords(f *matchCache, c *chunk, entities []Entity) {
	for w := range c.words[:(len(entities)+63)>>6] {
		j.buildWord(f, c, w, entities[w<<6:min(w<<6+64, len(entities))])
	}
}

// buildRun makes chunk b a run if the entities match and their rows are consecutive in each set.
// Otherwise it returns false.
func (j *join) buildRun(f *matchCache, c *chunk, b int, entities []Entity) bool {
	if len(j.without)+len(j.any) > 0 || f.set.gaps() > 0 || len(entities) == 0 {
		return false
	}
	for k, s := range j.sets {
		row := b << chunkBits
		if k != f.driver {
			if row = s.row(entities[0]); row < 0 || s.aligned(row, entities) < len(entities) {
				return false
			}
		}
		if k < len(j.columns) {
			c.at[k] = uint32(row)
		}
	}
	c.n, c.run = len(entities), true
	return true
}

// buildWord finds the matches among entities, which are at the positions of word w.
func (j *join) buildWord(f *matchCache, c *chunk, w int, entities []Entity) {
	word := firstBits(len(entities))
	if f.set.gaps() > 0 {
		for i, e := range entities {
			if e == Vacant {
				word &^= 1 << i
			}
		}
	}
	var scratch [64]uint32
	for k, s := range j.sets {
		if k == f.driver {
			continue
		}
		rows := scratch[:]
		if k < len(j.columns) {
			rows = c.rows[k][w<<6:][:64]
		}
		found := s.lookUp(entities, word, rows)
		if !j.isOptional(k) {
			if word &= found; word == 0 {
				break
			}
			continue
		}
		for rest := word &^ found; rest != 0; rest &= rest - 1 {
			rows[bits.TrailingZeros64(rest)] = missing
		}
	}
	if len(j.without)+len(j.any) > 0 {
		for rest := word; rest != 0; rest &= rest - 1 {
			if i := bits.TrailingZeros64(rest); !j.passes(entities[i]) {
				word &^= 1 << i
			}
		}
	}
	c.words[w] = word
	j.setWhole(c, w)
}

// lookUp finds the rows of the entities whose bits are set in the parameter word. The result has
// the bits of the members among them. There are at most 64 entities.
func (s *set) lookUp(entities []Entity, word uint64, rows []uint32) (members uint64) {
	pages, dense := s.sparse.Pages, s.dense.Live[:s.rows.N]
	rows = rows[:64]
	if len(entities) > 64 {
		return 0 // Never happens. The test removes bounds checks.
	}
	if row := s.row(entities[0]); row >= 0 && word == ^uint64(0) && s.aligned(row, entities) == 64 {
		for i := range rows {
			rows[i] = uint32(row + i)
		}
		return word
	}
	// If all bits are set, a loop over all entities is faster than a loop over bits.
	if word == firstBits(len(entities)) {
		for i, e := range entities {
			if p := int(uint32(e) >> pageBits); p < len(pages) && pages[p] != nil {
				if r := pages[p].Rows[e&pageMask]; int(r) < len(dense) && dense[r] == e {
					rows[i] = r
					members |= 1 << i
				}
			}
		}
		return members
	}
	for rest := word; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest) & 63
		e := entities[i]
		if p := int(uint32(e) >> pageBits); p < len(pages) && pages[p] != nil {
			if r := pages[p].Rows[e&pageMask]; int(r) < len(dense) && dense[r] == e {
				rows[i] = r
				members |= 1 << i
			}
		}
	}
	return members
}

// buildByIndex finds the matches in chunk b of the entity indices. The driver's mask has the
// candidates.
func (j *join) buildByIndex(f *matchCache, c *chunk, b int) {
	c.reset()
	var at [maxSets]uint32
	for w := range chunkRows / 64 {
		for word := f.set.mask.word(b<<6 + w); word != 0; word &= word - 1 {
			p := b<<chunkBits + w<<6 + bits.TrailingZeros64(word)
			if j.probe(-1, 0, j.w.entities.of(p), &at) {
				j.setMatch(f, c, p, true, &at)
			}
		}
	}
}
