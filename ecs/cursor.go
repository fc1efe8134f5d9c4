package ecs

import (
	"math/bits"
	"slices"
	"unsafe"
)

// A span is what a cursor hands out at once: some positions of the driver that are
// found, and where their rows are.
//
//	words   | 1 0 1 1 |     a bit a position; the first one of a run
//	rows    | 4 . 7 5 |     for each column, less its base
//	order   | 0 1 2 3 |     for the driver, less from
type span struct {
	rows  [maxColumns][]uint32
	base  [maxColumns]int
	words []uint64
	order []uint32
	from  int
	n     int // Rows side by side at each position: 1, or those of a run.
}

// hasAny reports whether one of s has rows in the optional column k.
func (s *span) hasAny(k int) bool {
	for w, word := range s.words {
		for ; word != 0; word &= word - 1 {
			if s.rows[k][w<<6|bits.TrailingZeros64(word)] != missing {
				return true
			}
		}
	}
	return false
}

// A cursor walks what a join finds, span by span. The join keeps it for later walks, as
// to make one takes longer than to walk a few rows. What a walk over a known run needs
// lies side by side in front, so that it is in few lines of the cache.
type cursor struct {
	word int    // The word of the span whose positions are taken,
	rest uint64 // what is left of it,
	at   int    // and the driver's row at the position taken last, less from.

	j       *join
	idle    *cursor // While it is kept: the next one.
	columns []joinedColumn
	hand    int       // Which of the world's hands this loop is, from 1; 0: none.
	began   uint64    // The world's count of changes when the walk began.
	found   *findings // Of the driver.
	holds   bool      // What it hands out is written.
	whole   bool      // The walk ended, and one run, which the span still is, was all that it found.
	again   bool      // The walk is over that run.

	// Where rows and order have the positions of the word, and the rows lie that they are
	// counted from.
	place    *uint32
	sample   *uint32 // Those of a column that is not the driver, if there is one.
	entities *Entity
	lie      [maxColumns]struct {
		row   *uint32
		first unsafe.Pointer
	}

	// A run, or a part of a word, that is nowhere as it is.
	part [1]uint64
	last [1]uint32              // The driver's row.
	one  [maxColumns]uint32     // The rows of the columns.
	run  [maxColumns + 2]uint32 // What nextRun returns.

	span

	start int // The first position of the span,
	row   int // and the first one behind it.
	step  int // How many positions the next one may have.

	set    *set // The driver,
	driver int  // and which it is.
	alone  bool // Every row of the driver is found.
	saved  bool // What is written was saved by a walk before.

	newest  uint64 // The newest version of the sets,
	since   uint64 // and the world's count of changes, when the sets were looked at,
	changes uint64 // and when what is written was saved.

	group groupCursor

	selected selection // With predicates: whom they keep,
	kept     []uint64  // which positions of the span,
	packed   []uint32  // and where these are, if they are few.
}

// walk returns a cursor that hands out columns, those of the first sets.
func (j *join) walk(columns []joinedColumn) *cursor {
	if c := j.idle; c.repeats(columns) {
		c.repeat()
		return c
	}
	return j.walkAnew(columns)
}

// walkAll is walk for a loop that hands out rows without asking whether they
// are missing.
func (j *join) walkAll() *cursor {
	if c := j.idle; j.optional == 0 && c.repeats(j.columns) {
		c.repeat()
		return c
	}
	if j.optional != 0 {
		panic("ecs: All of a query with an Optional component; use AllOptional, whose rows have nil where it is missing, or Runs")
	}
	return j.walkAnew(j.columns)
}

// repeats reports whether a walk that hands out columns is over the run that c, which may
// be nil, found.
func (c *cursor) repeats(columns []joinedColumn) bool {
	return c != nil && c.whole && c.began == c.j.w.changes && c.found == c.j.current && len(c.columns) == len(columns)
}

// repeat begins to walk that run again. It is saved, nothing else is to be looked for, and
// while the world's count of changes is the same rows lie where they lay.
func (c *cursor) repeat() {
	c.j.idle = c.idle
	c.word, c.rest = 0, 1
	c.again = true
	if debug {
		c.mustLie()
		lendWritten(c.columns)
	}
	if c.holds {
		c.hold()
	}
}

// mustLie panics if the rows of the span lie elsewhere than they did.
func (c *cursor) mustLie() {
	c.mustExist()
	entities, lie := c.entities, c.lie
	c.locate()
	if c.entities != entities || c.lie != lie || c.changes != c.began {
		panic("ecs: rows of a query moved, and the world did not count it; this is a defect of the package")
	}
}

// walkAnew is walk where something has changed.
func (j *join) walkAnew(columns []joinedColumn) *cursor {
	if j.settled != j.w.changes {
		j.settle()
	}
	c := j.idle
	if c == nil {
		c = &cursor{j: j}
	}
	j.idle = c.idle
	c.columns, c.holds = columns, j.writes && columns != nil
	c.whole, c.again = false, false
	c.driver, c.set, c.found, c.alone = j.driver, j.sets[j.driver], j.current, j.alone
	c.newest, c.since, c.step = j.newest, j.w.changes, maxRun
	c.began, c.saved = c.since, j.saved == c.since
	c.row, c.words, c.rest, c.n = 0, nil, 0, 0
	if c.group.all = false; c.set.group != nil {
		c.noteGroup()
	}
	if len(j.predicates) > 0 {
		c.begin()
	}
	return c
}

// next makes c's span the next one that has any positions, and reports whether there
// is one. It holds until the world's structure changes; see resume.
func (c *cursor) next() bool {
	for c.advance() {
		if c.step *= 2; c.step > maxRun {
			c.step = maxRun
		}
		if len(c.j.predicates) == 0 || c.keep() {
			c.ready()
			return true
		}
	}
	c.end()
	return false
}

// more reports whether there is another position. If there is none, the walk is over.
func (c *cursor) more() bool { return c.rest != 0 || c.nextWord() }

// nextWord goes on with the next word that has any positions, of this span or one behind
// it, and reports whether there is one.
func (c *cursor) nextWord() bool {
	if c.again {
		c.leave()
		return false
	}
	for {
		for c.word++; c.word < len(c.words); c.word++ {
			if c.rest = c.words[c.word]; c.rest != 0 {
				c.place = &c.order[c.word<<6]
				c.sample = c.place
				for k := range c.j.columns {
					if c.lie[k].row = &c.rows[k][c.word<<6]; k != c.driver {
						c.sample = c.lie[k].row
					}
				}
				return true
			}
		}
		if !c.next() {
			return false
		}
	}
}

// nextFetched is nextWord for Runs, whose steps are long: the processor does not see the next
// rows. Of columns too long for a cache it reads them, if nearly all of the word are found.
func (c *cursor) nextFetched() bool {
	if !c.nextWord() {
		return false
	}
	if c.n == 1 && bits.OnesCount64(c.rest) >= most {
		for k := range c.j.columns {
			if m := &c.j.columns[k]; k != c.driver && m.set.rows.N > far && !m.optional {
				m.column.FetchRows(c.rows[k][c.word<<6:][:64])
			}
		}
	}
	return true
}

// take takes the next position of the word, which there is.
func (c *cursor) take() int {
	i := bits.TrailingZeros64(c.rest | 1<<63) // Never 0, which the compiler would ask for.
	c.rest &= c.rest - 1
	c.at = int(*beside(c.place, i))
	return i
}

// advance makes c's span the next one, without the predicates.
func (c *cursor) advance() bool {
	for limit := c.limit(); c.skip() && c.row < limit; {
		if c.alone {
			c.one[0] = uint32(c.row)
			c.setRun(c.row, min(c.step, limit-c.row))
			return true
		}
		b := c.row >> chunkBits
		base, end := b<<chunkBits, min((b+1)<<chunkBits, limit)
		chunk := c.j.chunk(c.found, b)
		if chunk.list {
			if c.advanceList(chunk, base, min(end-base, chunk.n)) {
				return true
			}
			c.row = end
			continue
		}
		lo, hi := c.row-base, min(end-base, chunk.n, c.row-base+c.step)
		if lo >= hi {
			c.row = end
			continue
		}
		if chunk.run {
			for k := range c.j.columns {
				c.one[k] = chunk.at[k] + uint32(lo)
			}
			c.setRun(c.row, hi-lo)
			return true
		}
		if c.advanceIn(chunk, base, lo, hi) {
			return true
		}
	}
	return false
}

// advanceIn makes the span one of positions [lo, hi) of chunk, the first of which is
// base, and moves behind it. It reports whether there are any.
func (c *cursor) advanceIn(chunk *chunk, base, lo, hi int) bool {
	w := lo >> 6
	if n := chunk.wholeFrom(c.j, lo, hi); n > 0 {
		for k := range c.j.columns {
			if rows := chunk.rows[k]; rows != nil {
				c.one[k] = rows[lo]
			} else {
				c.one[k] = uint32(c.row)
			}
		}
		first := c.row
		if chunk.order != nil {
			first = int(chunk.order[lo])
		}
		c.setRun(first, n)
		return true
	}
	together := maxWords
	if c.selected.on {
		together = maxRun / 64 // Few rows may be left.
	}
	last := min((hi-1)>>6, w+together-1)
	if next := bits.TrailingZeros64(chunk.whole >> w &^ 1); w+next <= last {
		last = w + next - 1
	}
	words := chunk.words[w : last+1]
	if last<<6+64 > hi && words[last-w]>>(hi&63) != 0 && last > w {
		words = words[:last-w] // The last one, of which not all is asked for, comes by itself.
		last--
	}
	hi = min(hi, last<<6+64)
	c.start, c.row = base+w<<6, base+hi
	if lo&63 != 0 || hi < last<<6+64 && words[0]>>(hi&63) != 0 && last == w {
		c.part[0] = words[0] &^ firstBits(lo&63) & firstBits(hi-w<<6)
		words, c.row = c.part[:], base+min(hi, w<<6+64)
	}
	c.words, c.n = words, 1
	for k := range c.j.columns {
		if rows := chunk.rows[k]; rows != nil {
			c.rows[k], c.base[k] = rows[w<<6:], 0
		} else {
			c.rows[k], c.base[k] = identity[:], base+w<<6
		}
	}
	if chunk.order != nil {
		c.order, c.from = chunk.order[w<<6:], 0
	} else {
		c.order, c.from = identity[:], base+w<<6
	}
	c.word, c.rest = -1, 0
	return slices.ContainsFunc(words, func(word uint64) bool { return word != 0 })
}

// advanceList makes the span one of positions in front of hi in the list chunk, the first
// position of which is base, and moves behind it. It reports whether there are any.
func (c *cursor) advanceList(chunk *chunk, base, hi int) bool {
	lo, behind := chunk.before(c.row-base), chunk.before(hi)
	n := min(behind-lo, c.step)
	if n <= 0 {
		return false
	}
	if c.words = c.part[:]; n < 64 {
		c.part[0] = firstBits(n)
	} else {
		c.words = full[:min(n>>6, maxWords)]
		n = len(c.words) << 6
	}
	c.n = 1
	c.order, c.from = chunk.order[lo:], base
	for k := range c.j.columns {
		if rows := chunk.rows[k]; rows != nil {
			c.rows[k], c.base[k] = rows[lo:], 0
		} else {
			c.rows[k], c.base[k] = c.order, base
		}
	}
	c.word, c.rest = -1, 0
	if c.start, c.row = c.row, base+hi; lo+n < behind {
		c.row = c.rowAt(n-1) + 1
	}
	return true
}

// wholeFrom returns how many positions from lo on, up to hi, are whole words whose rows
// lie side by side.
func (c *chunk) wholeFrom(j *join, lo, hi int) (n int) {
	if lo&63 != 0 {
		return 0
	}
	for at := lo; at+64 <= hi && c.whole>>(at>>6)&1 != 0; at += 64 {
		if n > 0 && !c.goesOn(j, at) {
			break
		}
		n += 64
	}
	return n
}

// goesOn reports whether the rows at position i are those behind the ones before it.
func (c *chunk) goesOn(j *join, i int) bool {
	for k := range j.columns {
		if rows := c.rows[k]; rows != nil && !followsRow(rows[i-1], rows[i]) {
			return false
		}
	}
	return c.order == nil || c.order[i] == c.order[i-1]+1
}

func followsRow(before, row uint32) bool {
	return row == before+1 && before != missing || row == missing && before == missing
}

// setRun makes the span the run of n rows whose first ones are those in c.one, for the
// columns, and first, for the driver. It moves behind it.
func (c *cursor) setRun(first, n int) {
	one := &c.one
	for k := range c.j.columns {
		c.rows[k], c.base[k] = one[k:k+1], 0
		if one[k] != missing {
			_ = c.j.columns[k].set.dense.Live[one[k]:][:n] // They are there: loops do not ask again.
		}
	}
	c.last[0] = uint32(first)
	c.order, c.from = c.last[:], 0
	c.part[0] = 1
	c.words, c.n = c.part[:], n
	c.word, c.rest = -1, 0
	c.start = c.row
	c.row += n
}

// rowAt returns the driver's row at position i of the span.
func (c *cursor) rowAt(i int) int { return c.from + int(c.order[i]) }

// nextRun returns the next run, or nil after the last: its rows in the columns, the one
// in the driver, and how many there are.
func (c *cursor) nextRun() []uint32 {
	if !c.more() {
		return nil
	}
	i, m := c.take(), len(c.j.columns)
	run := c.run[:m+2]
	first, n := c.from+c.at, c.length(i)
	for k := range m {
		if run[k] = *beside(c.lie[k].row, i); run[k] != missing {
			run[k] += uint32(c.base[k])
		}
	}
	run[m], run[m+1] = uint32(first), uint32(n)
	return run
}

// length returns how many rows lie side by side from position i of the word on, which
// was taken last, and takes their positions.
func (c *cursor) length(i int) int {
	if c.rest>>(i&63)>>1&1 == 0 || *beside(c.sample, i+1)-*beside(c.sample, i) > 1 {
		return c.n
	}
	return c.stretch(i)
}

// stretch is length for a position with one behind it in its word.
func (c *cursor) stretch(i int) int {
	for n := 1; ; n++ {
		next := c.rest & -c.rest
		if next != 1<<((i+n)&63) || !c.adjoins(i+n) {
			return n
		}
		c.rest &^= next
	}
}

// adjoins reports whether the rows at position i of the word are those behind the ones
// at the position before.
func (c *cursor) adjoins(i int) bool {
	i += c.word << 6
	if c.order[i] != c.order[i-1]+1 {
		return false
	}
	for k := range c.j.columns {
		if !followsRow(c.rows[k][i-1], c.rows[k][i]) {
			return false
		}
	}
	return true
}

// entitiesOf returns the entities of run.
func (c *cursor) entitiesOf(run []uint32) []Entity {
	m := len(c.j.columns)
	return c.set.dense.Live[run[m]:][:run[m+1]]
}

// end comes after the last run. If the world did not change on the way,
// everything that the join can hand out is saved, and stays so until it does; if
// it did, its count of changes will never be what it was.
func (c *cursor) end() {
	c.leave()
	if len(c.j.predicates) > 0 {
		return
	}
	if c.columns != nil {
		c.j.saved = c.began
	}
	c.whole = c.start == 0 && c.row == c.n && c.n > 1
}

// ready saves what is written of the span, and finds where its rows lie. Loops read them
// without asking whether they exist: the join knows that they do, as long as the world does
// not change.
func (c *cursor) ready() {
	c.changes = c.j.w.changes
	if debug {
		c.mustExist()
		lendWritten(c.columns)
	}
	c.locate()
	if !c.saved || c.changes != c.began {
		c.j.mark(&c.span, c.columns)
	}
	if c.holds {
		c.hold()
	}
}

// locate finds where the rows lie that those of the span are counted from.
func (c *cursor) locate() {
	c.entities = beside(unsafe.SliceData(c.set.dense.Live), c.from)
	for k := range c.columns {
		c.lie[k].first = c.columns[k].rows.At(c.base[k])
	}
}

// mustExist panics if a row of the span does not exist.
func (c *cursor) mustExist() {
	for w, word := range c.words {
		for ; word != 0; word &= word - 1 {
			i := w<<6 | bits.TrailingZeros64(word)
			_ = c.set.dense.Live[:c.set.rows.N][c.rowAt(i):][:c.n]
			for k, m := range c.columns {
				if row := c.rows[k][i]; row != missing {
					_ = m.set.dense.Live[:m.set.rows.N][c.base[k]+int(row):][:c.n]
				}
			}
		}
	}
}

// hold notes in the world that c has its span in hand.
func (c *cursor) hold() {
	w := c.j.w
	if c.hand > 0 && c.hand <= len(w.hands) && w.hands[c.hand-1] == c {
		return
	}
	if c.hand == 0 {
		if len(w.hands) >= maxHands {
			w.hands.crowded()
		}
		w.hands = append(w.hands, c)
		c.hand = len(w.hands)
		return
	}
	for len(w.hands) < c.hand {
		w.hands = append(w.hands, nil)
	}
	w.hands[c.hand-1] = c
}

// saveAgain saves anew what is written of the span that c has in hand. It reports
// whether it still has: no more, if the sets have another version, as rows moved.
func (c *cursor) saveAgain() bool {
	if c.j.version() != c.newest {
		return false
	}
	c.j.mark(&c.span, c.j.columns)
	return true
}

// leave comes when the loop is over.
func (c *cursor) leave() {
	if last := c.hand - 1; last >= 0 {
		c.hand = 0
		if w := c.j.w; last == len(w.hands)-1 && w.hands[last] == inHand(c) { // The usual case calls nothing.
			w.hands[last] = nil
			w.hands = w.hands[:last]
		} else {
			w.hands.release(last, c)
		}
	}
	c.idle, c.j.idle = c.j.idle, c
}

// resume goes on after the world changed while e was visited, the r-th row from the
// position taken last on. Rows appended are visited; if e was removed, the row that
// moved into its place is; anything else would skip rows or visit them twice, so it
// panics. By index, the entities behind e are visited.
func (c *cursor) resume(r int, e Entity) {
	c.mustGoOn(e)
	row := c.follow(c.from+c.at+r, e)
	c.newest, c.since, c.step = c.j.version(), c.j.w.changes, 1
	c.rest, c.word, c.again = 0, len(c.words), false
	c.selected.on = c.selected.on && c.selected.version == c.set.version
	if c.alone = c.alone && c.set.gaps() == 0; !c.alone {
		c.j.catchUp(c.found)
	}
	c.noteGroup()
	if c.set.byIndex {
		c.row = int(e.Index()) + 1
		return
	}
	if c.row = row; row < c.set.rows.N && c.set.dense.Live[row] == e {
		c.row++
	}
}

// goOn goes on at position i of the word after the world changed in a loop over Runs. It
// panics if the structure did, as no entity is visited that says how to go on.
func (c *cursor) goOn(i int) {
	if c.j.version() != c.newest {
		panic("ecs: the world's structure changed in a loop over Runs; collect the changes and make them after the loop, or use All")
	}
	i += c.word << 6
	c.rest, c.word, c.again = 0, len(c.words), false
	switch {
	case c.n > 1:
		c.row = c.start + i
	case c.set.byIndex:
		c.row = int(c.set.dense.Live[c.rowAt(i-1)].Index()) + 1
	default:
		c.row = c.rowAt(i-1) + 1
	}
}

// mustGoOn panics if the sets lost another entity than e, or more.
func (c *cursor) mustGoOn(e Entity) {
	for k, s := range c.j.sets {
		s.mustStay(e, c.since, c.j.isOptional(k))
	}
}

// noteGroup remembers what the driver's group looks like.
func (c *cursor) noteGroup() {
	g := c.set.group
	if g == nil {
		return
	}
	c.group, c.group.all = g.cursor(), true
	for _, s := range g.sets {
		c.group.all = c.group.all && c.j.requires(s)
	}
}

// requires reports whether all entities of the join are in s.
func (j *join) requires(s *set) bool {
	k := slices.Index(j.sets, s)
	return k >= 0 && !j.isOptional(k)
}

// limit returns the position behind the last one that may be in the join.
func (c *cursor) limit() int {
	switch {
	case c.set.byIndex:
		return c.j.w.entities.rows.Total
	case c.group.all && c.set.group.rows.Extra == 1:
		return c.set.group.rows.N
	}
	return c.set.rows.N
}

// follow goes on after the driver's group moved rows while e, then in row, was
// visited. It returns the row to go on with, unless resume finds e there.
func (c *cursor) follow(row int, e Entity) int {
	if c.set.byIndex {
		return row
	}
	return c.set.follow(row, e, c.since, c.group, func(at int) bool { return c.j.finds(c.driver, at, e) })
}

// finds reports whether e, which is row of the driver, is in the join.
func (j *join) finds(driver, row int, e Entity) bool {
	var at [maxSets]uint32
	return j.probe(driver, row, e, &at)
}
