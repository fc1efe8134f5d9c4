package ecs

import "slices"

// A cursor walks the runs of a join. A run is the first row in each set, and the
// number of rows:
//
//	runs   | a b n | a b n | ...        stride 3 for two sets
type cursor struct {
	j       *join
	columns []joinedColumn
	set     *set // The driver,
	driver  int  // and which it is.
	stride  int  // Numbers that make up a run.
	byWord  bool // Masks are walked.
	alone   bool // Every row of the driver is found.

	runs  []uint32 // Found, and what is written of them saved.
	first int      // The first driver row of the present run.
	row   int      // The first driver row behind runs; the entity index, if masks are walked.
	slow  int      // A block that changed under the cursor: its rows go one by one.

	uncut []uint32 // With predicates: runs of the storages that are not cut yet,
	skip  int      // and how many rows of the first one are.

	hand    int    // Where the world notes what this loop has in hand; 0: nowhere.
	saved   bool   // What is written was saved by a walk before.
	began   uint64 // The world's count of changes when the walk began.
	newest  uint64 // The newest version of the sets,
	since   uint64 // and the world's count of changes, when the sets were looked at,
	changes uint64 // and when what is written was saved.

	group groupCursor
}

// begin readies c to hand out columns, those of the first sets.
func (c *cursor) begin(j *join, columns []joinedColumn) {
	if j.settled != j.w.changes {
		j.settle()
	}
	c.j, c.columns = j, columns
	c.driver, c.set, c.byWord, c.stride = j.driver, j.sets[j.driver], j.byWord, len(j.sets)+1
	c.alone = j.alone
	c.newest, c.since, c.slow = j.newest, j.w.changes, -1
	c.began, c.saved = c.since, j.saved == c.since
	c.noteGroup()
	for _, p := range j.predicates {
		p.begin()
	}
}

// beginAll is begin for a loop that hands out rows without asking whether they
// are missing.
func (c *cursor) beginAll(j *join) {
	if j.optional != 0 {
		panic("ecs: All of a query with an Optional component; use AllOptional, whose rows have nil where it is missing, or Runs")
	}
	c.begin(j, j.columns)
}

// entities returns the entities of the present run, which has n rows.
func (c *cursor) entities(n uint32) []Entity { return c.set.dense.Live[c.first:][:n] }

// next returns the next run, or nil after the last. It holds until the world's
// structure changes; see resume.
func (c *cursor) next() []uint32 {
	if len(c.runs) == 0 {
		if c.runs = c.fill(); len(c.runs) == 0 {
			c.end()
			return nil
		}
		c.ready()
	} else if c.changes != c.j.w.changes { // A checkpoint: marks are stale.
		c.ready()
	}
	run := c.runs[:c.stride]
	c.runs = c.runs[c.stride:]
	c.first = int(run[c.driver])
	return run
}

// end comes after the last run. If the world did not change on the way,
// everything that the join can hand out is saved, and stays so until it does; if
// it did, its count of changes will never be what it was.
func (c *cursor) end() {
	c.leave()
	if c.columns != nil && len(c.j.predicates) == 0 {
		c.j.saved = c.began
	}
}

// ready saves what is written of the runs.
func (c *cursor) ready() {
	c.changes = c.j.w.changes
	if !c.saved || c.changes != c.began {
		c.j.mark(c.runs, c.columns)
	}
	if c.j.writes && c.columns != nil {
		c.hold()
	}
	if len(c.runs) > scattered*c.stride {
		c.fetch()
	}
}

// A hand is what a loop that writes has in hand: the runs that were saved last.
type hand struct {
	j      *join
	runs   []uint32
	newest uint64              // The newest version of the sets. If they have another, rows moved.
	one    [maxSets + 1]uint32 // Room for a run that the join needs again.
}

// hold notes the runs as those that the loop has in hand.
func (c *cursor) hold() {
	w := c.j.w
	if len(w.hands) == maxHands {
		w.dropHands(0)
	}
	if c.hand == 0 {
		c.hand = len(w.hands) + 1
	}
	for len(w.hands) < c.hand {
		w.hands = takeUp(w.hands)
	}
	h := w.hands[c.hand-1].(*hand)
	h.j, h.newest, h.runs = c.j, c.newest, c.runs
	if &c.runs[0] == &c.j.one[0] {
		h.runs = h.one[:copy(h.one[:], c.runs)]
	}
}

// takeUp returns hands with one more, which may be one of before.
func takeUp(hands []inHand) []inHand {
	n := len(hands)
	if n == cap(hands) || hands[:n+1][n] == nil {
		return append(hands, new(hand))
	}
	hands[:n+1][n].(*hand).j = nil
	return hands[:n+1]
}

// leave comes when the loop is over.
func (c *cursor) leave() {
	if c.hand > 0 {
		c.j.w.dropHands(c.hand - 1)
	}
}

func (h *hand) saveAgain() bool {
	if h.j == nil || h.j.version() != h.newest {
		h.j = nil
		return false
	}
	h.j.mark(h.runs, h.j.columns)
	return true
}

// fetch reads of every row that is handed out, but for the driver's, which lie
// in a row.
func (c *cursor) fetch() {
	for at, m := range c.columns {
		if at != c.driver && !m.optional {
			m.column.FetchRuns(c.runs, at, c.stride)
		}
	}
}

// fill returns the runs of the next block that has any.
func (c *cursor) fill() []uint32 {
	if len(c.j.predicates) > 0 {
		return c.keep()
	}
	return c.advance()
}

// advance is fill without the predicates.
func (c *cursor) advance() []uint32 {
	if c.byWord {
		return c.nextRuns()
	}
	for limit := c.limit(); c.row < limit; {
		if runs := c.find(); len(runs) > 0 {
			return runs
		}
	}
	return nil
}

// find returns the runs from c.row on in the block of c.row, if there are any,
// and moves c.row behind them.
func (c *cursor) find() []uint32 {
	if c.alone {
		return c.findAlone()
	}
	b := c.row >> 6
	if b == c.slow {
		return c.findRow()
	}
	block := c.block(b)
	runs := block.runs
	for len(runs) > 0 && runs[c.driver]+runs[c.stride-1] <= uint32(c.row) {
		runs = runs[c.stride:]
	}
	if len(runs) > 0 && runs[c.driver] < uint32(c.row) {
		return c.findRest(runs)
	}
	c.row = (b + 1) << 6
	if len(runs) == c.stride && runs[c.driver]+runs[c.stride-1] == uint32(c.row) && len(c.j.predicates) == 0 {
		return c.extend(block, b, runs)
	}
	return runs
}

// findAlone returns rows of the only set: as many as there may be in a run, or
// the rest of a block after a change within it.
func (c *cursor) findAlone() []uint32 {
	end := c.row + maxRun
	if c.row&63 != 0 {
		end = c.row | 63 + 1
	}
	end = min(end, c.set.rows.N)
	c.j.one[0], c.j.one[1] = uint32(c.row), uint32(end-c.row)
	c.row = end
	return c.j.one[:2]
}

// findRow returns the single row c.row, if its entity is in the join.
func (c *cursor) findRow() []uint32 {
	row := c.row
	c.row++
	e := c.set.dense.Live[row]
	if e == Vacant || !c.j.probe(c.driver, row, e, &c.j.one) {
		return nil
	}
	c.j.one[c.stride-1] = 1
	return c.j.one[:c.stride]
}

// findRest returns the rows from c.row on of the first of runs, which begins
// before it. With predicates it returns the runs: what is before it is cut off.
func (c *cursor) findRest(runs []uint32) []uint32 {
	skip := c.row - int(runs[c.driver])
	if len(c.j.predicates) > 0 {
		c.row, c.skip = c.row|63+1, skip
		return runs
	}
	rest := c.part(runs[:c.stride], skip, int(runs[c.stride-1]))
	c.row += int(rest[c.stride-1])
	return rest
}

// part returns rows [lo, hi) of run.
func (c *cursor) part(run []uint32, lo, hi int) []uint32 {
	part := c.j.one[:c.stride]
	for i, row := range run[:c.stride-1] {
		if part[i] = row; row != missing {
			part[i] += uint32(lo)
		}
	}
	part[c.stride-1] = uint32(hi - lo)
	return part
}

// extend returns the last run of block b together with the blocks that continue
// it, and moves c.row behind it.
func (c *cursor) extend(block *joinBlock, b int, last []uint32) []uint32 {
	run := c.j.one[:c.stride]
	copy(run, last)
	n := &run[c.stride-1]
	if block.reached < c.newest || block.reached == 0 {
		for next := b + 1; *n <= maxRun-64 && next<<6 < c.limit() && next != c.slow; next++ {
			more := c.block(next).runs
			if len(more) != c.stride || !c.j.follows(more[:c.stride-1], run) {
				break
			}
			*n += more[c.stride-1]
		}
		block = c.block(b) // It may have moved.
		block.reach, block.reached = *n, c.j.w.changes
	}
	*n = block.reach
	c.row = int(run[c.driver] + *n)
	return run
}

// block returns block b of the driver with its runs as they are now.
func (c *cursor) block(b int) *joinBlock {
	if blocks := c.j.cached[c.driver]; b < len(blocks) && blocks[b].stamp >= c.newest && c.newest > 0 {
		return &blocks[b]
	}
	return c.j.refresh(c, b)
}

// resume goes on after the world changed while row i of the present run, e, was
// visited. Rows appended are visited; if e was removed, the row that moved into
// its place is; anything else would skip rows or visit them twice, so it panics.
// Where masks are walked, the entities behind e are visited.
func (c *cursor) resume(i int, e Entity) {
	c.mustGoOn(e)
	row := c.follow(c.first+i, e)
	before := c.newest
	c.newest, c.since = c.j.version(), c.j.w.changes
	c.runs, c.uncut, c.skip = nil, nil, 0
	c.alone = c.alone && c.set.gaps() == 0
	c.noteGroup()
	if c.byWord {
		c.row = int(e.Index()) + 1
		c.slow = c.row >> 6
		return
	}
	if c.row = row; row < c.set.rows.N && c.set.dense.Live[row] == e {
		c.row++
	}
	if c.newest != before {
		c.slow = row >> 6
	}
}

// mustBeWhole panics if the rows in hand may have moved: where no entity is visited
// that says how to go on.
func (c *cursor) mustBeWhole() {
	if c.changes != c.j.w.changes && c.j.version() != c.newest {
		panic("ecs: the world's structure changed in a loop over Runs; collect the changes and make them after the loop, or use All")
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

// limit returns the driver's row behind the last one that may be in the join.
func (c *cursor) limit() int {
	if c.group.all && c.set.group.rows.Extra == 1 {
		return c.set.group.rows.N
	}
	return c.set.rows.N
}

// follow goes on after the driver's group moved rows while e, then in row, was
// visited. It returns the row to go on with, unless resume finds e there.
func (c *cursor) follow(row int, e Entity) int {
	if c.byWord {
		return row
	}
	return c.set.follow(row, e, c.since, c.group, func(at int) bool { return c.j.finds(c.driver, at, e) })
}

// finds reports whether e, which is row of the driver, is in the join.
func (j *join) finds(driver, row int, e Entity) bool {
	var at [maxSets + 1]uint32
	return j.probe(driver, row, e, &at)
}
