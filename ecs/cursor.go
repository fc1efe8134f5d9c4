package ecs

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// A span is a batch of positions of the driver, the storage that the cursor goes through. It has
// one of two forms. In the first form, n is 1:
//
//   - words has a bit for each position i. The bit is 1 for a match.
//   - rows[k][i] + base[k] is the row of position i in column k.
//   - order[i] + from is the row of position i in the driver.
//
// In the second form, n consecutive rows match in the driver and in every column. The span then has
// a single position 0, which stands for the first of these rows.
type span struct {
	rows  [maxColumns][]uint32
	base  [maxColumns]int
	words []uint64
	order []uint32
	from  int
	n     int // Number of consecutive rows for each position.
}

// hasAny reports whether any entity of the span has the optional component of column k.
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

// A cursor iterates over the result of a join, span by span. The join reuses finished cursors.
type cursor struct {
	word int    // Index of the current element of words.
	rest uint64 // Bits of the current word whose positions are not visited yet.
	at   int    // from + at is the driver's row of the current position.

	j       *join
	idle    *cursor // Next element in the list of finished cursors.
	columns []joinedColumn
	// 1 + the position of this cursor in World.activeCursors, or 0.
	activeAt int
	began    uint64 // World.changes when the iteration began.
	*matchCache
	writes bool
	// The previous iteration found a single run of consecutive rows. The span still has this run.
	oneRun bool
	// The iteration reuses the run of the previous iteration, without a search.
	repeating bool

	// Pointers to the first elements of the current word, for access without bounds checks.
	wordOrder *uint32
	// Rows of one column, in which length() first looks for the end of a run. The column is not
	// that of the driver, if there is another one.
	wordRows *uint32
	entities *Entity
	addrs    [maxColumns]struct {
		row   *uint32
		first unsafe.Pointer
	}

	// Backing array of words for spans of at most one word.
	part [1]uint64
	// The result of nextRun: the first row of each column, the first row of the driver, and the
	// number of rows. A span with consecutive rows also uses this memory for rows and order.
	run [maxColumns + 2]uint32

	span

	start int // First position of the span.
	row   int // First position after the span.
	step  int // Maximum number of positions of the next span.

	singleSet bool // Every row of the driver is a match.
	saved     bool // The old values of the rows that the loop writes are already saved.

	// Newest version of the joined sets at the last validation.
	newest uint64
	since  uint64 // World.changes at the last validation.
	// World.changes when the cursor last saved old values.
	changes uint64

	progress progress
	// All matches are members of the driver's group.
	membersOnly bool

	selected selection
	kept     []uint64 // A bit for each position that the predicates keep.
	packed   []uint32 // The positions that the predicates keep, if they are few.
}

// walk begins an iteration and returns its cursor. columns is j.columns, or nil for a loop that
// uses entities only.
func (j *join) walk(columns []joinedColumn) *cursor {
	if c := j.idle; c.repeats(columns) {
		c.repeat()
		return c
	}
	return j.startWalk(columns)
}

// walkAll does the same as walk(), for the method All. It panics if the join has an optional
// column, because the loop body of All cannot test for a missing component.
func (j *join) walkAll() *cursor {
	if c := j.idle; j.optional == 0 && c.repeats(j.columns) {
		c.repeat()
		return c
	}
	if j.optional != 0 {
		panic("ecs: All of a query with an Optional component; use AllOptional, whose rows have nil where it is missing, or Runs")
	}
	return j.startWalk(j.columns)
}

// repeats reports whether an iteration can reuse the result of c. This requires that c found a
// single run and that the world has not changed since. c may be nil.
func (c *cursor) repeats(columns []joinedColumn) bool {
	return c != nil && c.oneRun && c.began == c.j.w.changes && c.matchCache == c.j.matches && len(c.columns) == len(columns)
}

// repeat starts an iteration over the run of the previous iteration.
func (c *cursor) repeat() {
	c.j.idle = c.idle
	c.word, c.rest = 0, 1
	c.repeating = true
	if c.columns != nil {
		c.j.visited += uint64(c.n)
	}
	c.progress.begin(c.set)
	if debug {
		c.mustBeInPlace()
		lendWritten(c.columns)
	}
	if debug && c.j.w.system != nil {
		c.j.w.mustBeReadable(c.j.uses())
	}
	if c.writes {
		c.register()
	}
}

// mustBeInPlace panics if the rows of the span have moved in memory.
func (c *cursor) mustBeInPlace() {
	c.mustExist()
	entities, lie := c.entities, c.addrs
	c.locate()
	if c.entities != entities || c.addrs != lie || c.changes != c.began {
		panic("ecs: rows of a query moved without a change of the world's counter; this is a defect of the package")
	}
}

// startWalk begins an iteration that cannot repeat the last run.
func (j *join) startWalk(columns []joinedColumn) *cursor {
	if debug && j.w.system != nil {
		j.w.mustBeReadable(j.uses())
	}
	if j.validAt != j.w.changes {
		j.validate()
	}
	c := j.idle
	if c == nil {
		c = &cursor{j: j}
	}
	j.idle = c.idle
	c.columns, c.writes = columns, j.writes && columns != nil
	c.oneRun, c.repeating = false, false
	c.matchCache, c.singleSet = j.matches, j.singleSet
	c.newest, c.since, c.step = j.newest, j.w.changes, maxRun
	c.began, c.saved = c.since, j.saved == c.since
	c.row, c.words, c.rest, c.n = 0, nil, 0, 0
	c.membersOnly = c.set.group != nil && j.requiresAll(c.set.group.sets)
	c.progress.begin(c.set)
	if len(j.predicates) > 0 {
		c.begin()
	}
	return c
}

// next moves c to the next span with at least one match. It returns false after the last span.
// After a structural change of the world, the caller calls resume() before next().
func (c *cursor) next() bool {
	for c.advance() {
		if c.step *= 2; c.step > maxRun {
			c.step = maxRun
		}
		if len(c.j.predicates) == 0 && c.progress.ahead == nil || c.keep() {
			c.prepare()
			return true
		}
	}
	c.end()
	return false
}

// more reports whether there is another match. If not, the iteration ends.
func (c *cursor) more() bool { return c.rest != 0 || c.nextWord() }

// nextWord moves to the next word with at least one match, also in a later span. It returns false
// after the last word.
func (c *cursor) nextWord() bool {
	if c.repeating {
		c.finish()
		return false
	}
	for {
		for c.word++; c.word < len(c.words); c.word++ {
			if c.rest = c.words[c.word]; c.rest != 0 {
				c.wordOrder = &c.order[c.word<<6]
				c.wordRows = c.wordOrder
				for k := range c.j.columns {
					if c.addrs[k].row = &c.rows[k][c.word<<6]; k != c.driver {
						c.wordRows = c.addrs[k].row
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

// nextFetched is nextWord for loops over Runs. It also prefetches the rows of a nearly full word in
// columns that are too long for a cache.
func (c *cursor) nextFetched() bool {
	if !c.nextWord() {
		return false
	}
	if c.n == 1 && bits.OnesCount64(c.rest) >= prefetchMin {
		for k := range c.j.columns {
			if m := &c.j.columns[k]; k != c.driver && m.set.rows.N > prefetchRows && !m.optional {
				m.column.FetchRows(c.rows[k][c.word<<6:][:64])
			}
		}
	}
	return true
}

// takeNext removes the first remaining position from the word, and returns it.
func (c *cursor) takeNext() int {
	i := bits.TrailingZeros64(c.rest | 1<<63)
	c.rest &= c.rest - 1
	c.at = int(*rowAfter(c.wordOrder, i))
	return i
}

// advance moves c to the next span, without testing the predicates. The loop body may move an
// unvisited entity to a row that the loop has already passed. advance visits such entities at the
// end.
func (c *cursor) advance() bool {
	c.progress.back = false
	return c.advanceAhead() || c.progress.behind != nil && c.advanceBehind()
}

// advanceBehind sets the span to an unvisited entity whose row is now behind the loop's position.
// It returns false if there is no such entity.
func (c *cursor) advanceBehind() bool {
	for e, row := c.progress.takeBehind(c.set); row >= 0; e, row = c.progress.takeBehind(c.set) {
		var at [maxSets]uint32
		if c.j.probe(c.driver, row, e, &at) {
			c.progress.next, c.progress.back = c.row, true
			copy(c.run[:], at[:len(c.j.columns)])
			c.setRun(row, 1)
			c.row = c.progress.next
			return true
		}
	}
	return false
}

// advanceAhead sets the span to rows that the loop has not reached.
func (c *cursor) advanceAhead() bool {
	for limit := c.limit(); c.skip() && c.row < limit; {
		if c.singleSet {
			c.run[0] = uint32(c.row)
			c.setRun(c.row, min(c.step, limit-c.row))
			return true
		}
		b := c.row >> chunkBits
		base, end := b<<chunkBits, min((b+1)<<chunkBits, limit)
		chunk := c.j.chunk(c.matchCache, b)
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
				c.run[k] = chunk.at[k] + uint32(lo)
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

// advanceIn sets the span to positions of chunk, and moves the cursor past the span. The span has
// at most the positions base+lo to base+hi-1. The parameter base is the first position of chunk.
// advanceIn returns false if the span has no match.
func (c *cursor) advanceIn(chunk *chunk, base, lo, hi int) bool {
	w := lo >> 6
	if n := chunk.wholeFrom(c.j, lo, hi); n > 0 {
		for k := range c.j.columns {
			if rows := chunk.rows[k]; rows != nil {
				c.run[k] = rows[lo]
			} else {
				c.run[k] = uint32(c.row)
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
		together = maxRun / 64
	}
	last := min((hi-1)>>6, w+together-1)
	if next := bits.TrailingZeros64(chunk.whole >> w &^ 1); w+next <= last {
		last = w + next - 1
	}
	words := chunk.words[w : last+1]
	if last<<6+64 > hi && words[last-w]>>(hi&63) != 0 && last > w {
		// The last word is only partly in the range, so it becomes a separate span.
		words = words[:last-w]
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

// advanceList is advanceIn for a chunk with a list of matches. It returns false if the list has no
// more positions below hi.
func (c *cursor) advanceList(chunk *chunk, base, hi int) bool {
	lo, behind := chunk.before(c.row-base), chunk.before(hi)
	n := min(behind-lo, c.step)
	if n <= 0 {
		return false
	}
	if c.words = c.part[:]; n < 64 {
		c.part[0] = firstBits(n)
	} else {
		c.words = fullWords[:min(n>>6, maxWords)]
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

// wholeFrom counts the positions from lo to hi-1 that match and whose rows are consecutive. It
// counts whole words only.
func (c *chunk) wholeFrom(j *join, lo, hi int) (n int) {
	if lo&63 != 0 {
		return 0
	}
	for at := lo; at+64 <= hi && c.whole>>(at>>6)&1 != 0; at += 64 {
		if n > 0 && !c.contiguousAt(j, at) {
			break
		}
		n += 64
	}
	return n
}

// contiguousAt reports whether, in every column, the row at position i follows the row at position
// i-1.
func (c *chunk) contiguousAt(j *join, i int) bool {
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

// setRun sets the span to n consecutive rows, and moves the cursor past them. The first row in
// column k is c.run[k]. The first row in the driver is the parameter first.
func (c *cursor) setRun(first, n int) {
	run, m := &c.run, len(c.j.columns)
	for k := range m {
		c.rows[k], c.base[k] = run[k:k+1], 0
		if run[k] != missing {
			// Panic if a row does not exist, because loops read these rows without a bounds check.
			_ = c.j.columns[k].set.dense.Live[run[k]:][:n]
		}
	}
	run[m] = uint32(first)
	c.order, c.from = run[m:m+1], 0
	c.part[0] = 1
	c.words, c.n = c.part[:], n
	c.word, c.rest = -1, 0
	c.start = c.row
	c.row += n
}

// rowAt returns the driver's row at position i of the span.
func (c *cursor) rowAt(i int) int { return c.from + int(c.order[i]) }

// nextRun returns the next run of consecutive rows, or nil after the last run. Its elements are the
// first row of each column, the first row of the driver, and the number of rows.
func (c *cursor) nextRun() []uint32 {
	if !c.more() {
		return nil
	}
	i, m := c.takeNext(), len(c.j.columns)
	run := c.run[:m+2]
	first, n := c.from+c.at, c.length(i)
	for k := range m {
		if run[k] = *rowAfter(c.addrs[k].row, i); run[k] != missing {
			run[k] += uint32(c.base[k])
		}
	}
	run[m], run[m+1] = uint32(first), uint32(n)
	return run
}

// length returns the number of consecutive rows that begin at position i, and marks their positions
// as visited.
func (c *cursor) length(i int) int {
	if c.rest>>(i&63)>>1&1 == 0 || *rowAfter(c.wordRows, i+1)-*rowAfter(c.wordRows, i) > 1 {
		return c.n
	}
	return c.extendRun(i)
}

// extendRun is the slow path of length(): position i+1 has a match as well.
func (c *cursor) extendRun(i int) int {
	for n := 1; ; n++ {
		next := c.rest & -c.rest
		if next != 1<<((i+n)&63) || !c.contiguousAt(i+n) {
			return n
		}
		c.rest &^= next
	}
}

// contiguousAt reports whether, in the driver and every column, the row at position i of the
// current word follows the row at position i-1.
func (c *cursor) contiguousAt(i int) bool {
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

// entitiesOf returns the entities of a run that nextRun returned.
func (c *cursor) entitiesOf(run []uint32) []Entity {
	m := len(c.j.columns)
	return c.set.dense.Live[run[m]:][:run[m+1]]
}

// end runs after the last span. The loop has now saved all rows that it may write, unless the query
// has predicates. end records this, so that the next loop need not save them again if the world has
// not changed.
func (c *cursor) end() {
	c.finish()
	if len(c.j.predicates) > 0 {
		return
	}
	if c.columns != nil {
		c.j.saved = c.began
	}
	c.oneRun = c.start == 0 && c.row == c.n && c.n > 1
}

// prepare saves the old values of the rows that the loop writes, and computes the addresses of the
// rows. Loops read these rows without bounds checks, until the world changes.
func (c *cursor) prepare() {
	c.changes = c.j.w.changes
	if debug {
		c.mustExist()
		lendWritten(c.columns)
	}
	c.locate()
	if !c.saved || c.changes != c.began {
		c.j.mark(&c.span, c.columns)
	}
	if c.columns != nil {
		c.j.visited += uint64(c.positions(0) * c.n)
	}
	if c.writes {
		c.register()
	}
}

// positions counts the matches of the span in words[w:].
func (s *span) positions(w int) (n int) {
	for _, word := range s.words[min(w, len(s.words)):] {
		n += bits.OnesCount64(word)
	}
	return n
}

// skipRest runs when a loop leaves a span early. It subtracts from j.visited the rows of the span
// that the loop did not reach.
func (c *cursor) skipRest() {
	if c.columns != nil {
		c.j.visited -= uint64((bits.OnesCount64(c.rest) + c.positions(c.word+1)) * c.n)
	}
}

// locate computes the addresses of the span's first rows.
func (c *cursor) locate() {
	c.entities = rowAfter(unsafe.SliceData(c.set.dense.Live), c.from)
	for k := range c.columns {
		c.addrs[k].first = c.columns[k].rows.At(c.base[k])
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

// register adds c to the active cursors of the world, unless it is one already. A checkpoint or the
// end of a tick saves the rows of active cursors again, because the loop body may still write them.
func (c *cursor) register() {
	w := c.j.w
	if w.parallel { // No checkpoint or end of a tick can occur while other goroutines run.
		return
	}
	if c.activeAt > 0 && c.activeAt <= len(w.activeCursors) && w.activeCursors[c.activeAt-1] == c {
		return
	}
	if c.activeAt == 0 {
		if len(w.activeCursors) >= maxActiveCursors {
			w.activeCursors.dropStale()
		}
		w.activeCursors = append(w.activeCursors, c)
		c.activeAt = len(w.activeCursors)
		return
	}
	for len(w.activeCursors) < c.activeAt {
		w.activeCursors = append(w.activeCursors, nil)
	}
	w.activeCursors[c.activeAt-1] = c
}

// saveAgain saves the rows that the loop writes, after a checkpoint or the end of a tick. It
// returns false if rows of the sets have moved.
func (c *cursor) saveAgain() bool {
	if c.j.version() != c.newest {
		return false
	}
	c.j.mark(&c.span, c.j.columns)
	return true
}

// finish ends the loop, and makes the cursor available for the next loop.
func (c *cursor) finish() {
	if c.rest != 0 || c.word+1 < len(c.words) {
		c.skipRest()
	}
	if last := c.activeAt - 1; last >= 0 {
		c.activeAt = 0
		// A fast path for the usual case: this is the last active cursor.
		if w := c.j.w; last == len(w.activeCursors)-1 && w.activeCursors[last] == activeCursor(c) {
			w.activeCursors[last] = nil
			w.activeCursors = w.activeCursors[:last]
		} else {
			w.activeCursors.release(last, c)
		}
	}
	c.progress.end(c.set)
	c.idle, c.j.idle = c.j.idle, c
}

// resume continues the iteration after the loop body changed the world while it visited e. The row
// of e in the driver is c.from+c.at+r. The parameter r is the offset of e in a run of consecutive
// rows. resume panics if the rows were restored or sorted.
func (c *cursor) resume(r int, e Entity) {
	for _, s := range c.j.sets {
		s.mustKeepOrder(c.j.text, e, c.since)
	}
	c.progress.mustFollow(c.set, c.from+c.at+r, c.j.text, e)
	c.skipRest()
	c.j.visited -= uint64(c.n - 1 - r)
	c.newest, c.since, c.step = c.j.version(), c.j.w.changes, 1
	c.rest, c.word, c.repeating = 0, len(c.words), false
	c.selected.on = c.selected.on && c.selected.version == c.set.version
	if c.singleSet = c.singleSet && c.set.gaps() == 0; !c.singleSet {
		c.j.update(c.matchCache)
	}
	if c.row = c.progress.next; c.set.byIndex {
		c.row = int(e.Index()) + 1
	}
}

// resumeRuns continues a loop over Runs at position i of the word, after the loop body changed the
// world. It panics if rows were added, removed or moved.
func (c *cursor) resumeRuns(i int) {
	if c.j.version() != c.newest {
		panic(fmt.Sprintf("ecs: %s in a loop over Runs of %s; collect such changes and make them after the loop, or use All", c.change(), c.j.text()))
	}
	c.skipRest()
	i += c.word << 6
	c.rest, c.word, c.repeating = 0, len(c.words), false
	switch {
	case c.n > 1:
		c.row = c.start + i
	case c.set.byIndex:
		c.row = int(c.set.dense.Live[c.rowAt(i-1)].Index()) + 1
	default:
		c.row = c.rowAt(i-1) + 1
	}
}

// requiresAll reports whether every match of the join is in each of the sets.
func (j *join) requiresAll(sets []*set) bool {
	return !slices.ContainsFunc(sets, func(s *set) bool { return !j.requires(s) })
}

// requires reports whether every match of the join is in s.
func (j *join) requires(s *set) bool {
	k := slices.Index(j.sets, s)
	return k >= 0 && !j.isOptional(k)
}

// limit returns an upper bound of the positions at which the join can have a match.
func (c *cursor) limit() int {
	switch {
	case c.set.byIndex:
		return c.j.w.entities.rows.Total
	case c.membersOnly && c.set.group.rows.Extra == 1:
		return c.set.group.rows.N
	}
	return c.set.rows.N
}
