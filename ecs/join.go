package ecs

// A join finds the entities that are in all of some sets and in none of others.
// It walks the smallest set, the driver, and looks the entities up in the
// others. What it finds are runs: consecutive rows of the driver whose entities
// lie in consecutive rows of every other set too.
//
//	driver    | a b c d | e f |         runs (driver, other, length):
//	           \ \ \ \    \ \             (0, 2, 4) (4, 7, 2)
//	other    | x y a b c d z e f |
//
// Runs are kept per block of 64 driver rows and found anew only for blocks that
// may have changed. Which set drives follows from the sets alone, so iteration
// order is a function of the world's state.
type join struct {
	w       *World
	sets    []*set // Components first, in the order of the query, then With.
	without []*set
	columns []joinedColumn
	cached  [][]joinBlock // By driver.

	// A run that no block has as it is. It is read before a loop's body runs, so
	// loops over one query may be nested.
	one [maxSets + 1]uint32
}

const (
	maxSets = 8    // Components and With together.
	maxRun  = 4096 // Rows given out at once; as many as are saved in one copy.

	scattered = 16 // Runs of a block from which on their rows are fetched beforehand.
)

// A joinBlock holds the runs of one block of driver rows.
type joinBlock struct {
	stamp uint64   // The world's count of changes when this was known to be right; 0: never.
	rows  int32    // Rows in the block.
	found int32    // Rows in the runs.
	runs  []uint32 // Per run: its first row in each set, and its length.

	// The last run together with the blocks that continue it.
	reach   uint32 // Rows in it.
	reached uint64 // The world's count of changes when that was so; 0: not known.
}

// A joinedColumn is a set whose components a join hands out.
type joinedColumn struct {
	set    *set
	column interface {
		touchRuns(runs []uint32, at, stride int)
		fetchRuns(runs []uint32, at, stride int) byte
	}
	write bool
}

func newJoin(w *World, columns ...joinedColumn) join {
	j := join{w: w, columns: columns}
	for _, c := range columns {
		j.include(c.set)
	}
	return j
}

func (j *join) include(s *set) {
	j.mustBeHere(s)
	if len(j.sets) == maxSets {
		panic("ecs: a query joins more than 8 storages; test the rarer ones with Has")
	}
	j.sets = append(j.sets, s)
	j.cached = make([][]joinBlock, len(j.sets))
}

func (j *join) mustBeHere(s *set) {
	if s.w != j.w {
		panic("ecs: a query joins storages of different worlds; register them in one")
	}
}

func (j *join) with(filters []AnyStorage) {
	for _, f := range filters {
		j.include(filterSet(f))
	}
}

func (j *join) exclude(filters []AnyStorage) {
	for _, f := range filters {
		s := filterSet(f)
		j.mustBeHere(s)
		j.without = append(j.without, s)
	}
	clear(j.cached)
}

func filterSet(f AnyStorage) *set {
	s := f.sparseSet()
	if s == nil {
		panic("ecs: a query cannot filter by the resource " + f.Name() + "; it belongs to no entity")
	}
	return s
}

// driver returns which set is the smallest; the first of equals.
func (j *join) driver() int {
	d := 0
	for i, s := range j.sets {
		if s.n < j.sets[d].n {
			d = i
		}
	}
	return d
}

// count returns the number of entities in the join.
func (j *join) count() (n int) {
	c := j.begin(nil)
	for run := c.next(); run != nil; run = c.next() {
		n += int(run[c.stride-1])
	}
	return n
}

// A cursor walks the runs of a join. A run is the first row in each set, and the
// number of rows:
//
//	runs   | a b n | a b n | ...        stride 3 for two sets
type cursor struct {
	j       *join
	columns []joinedColumn
	driver  int      // Which set drives,
	set     *set     // and the set itself.
	stride  int      // Numbers that make up a run.
	runs    []uint32 // Found, and what is written of them saved.
	first   int      // The first driver row of the present run.
	row     int      // The first driver row behind runs.
	slow    int      // A block that changed under the cursor: its rows go one by one.
	newest  uint64   // The newest version of the sets,
	changes uint64   // and the world's when what is written was saved.

	removals [maxSets]uint64
	rewinds  [maxSets]uint64
	group    groupCursor
}

// begin returns a cursor that hands out columns, those of the first sets.
func (j *join) begin(columns []joinedColumn) cursor {
	d := j.driver()
	c := cursor{j: j, columns: columns, driver: d, set: j.sets[d], stride: len(j.sets) + 1, slow: -1}
	c.note()
	return c
}

// note remembers what the sets look like.
func (c *cursor) note() {
	c.newest = 0
	for i, s := range c.j.sets {
		c.newest = max(c.newest, s.version)
		c.removals[i], c.rewinds[i] = s.removals, s.rewinds
	}
	for _, s := range c.j.without {
		c.newest = max(c.newest, s.version)
	}
	c.noteGroup()
}

// entities returns the entities of the present run, which has n rows.
func (c *cursor) entities(n uint32) []Entity { return c.set.dense.live[c.first:][:n] }

// next returns the next run, or nil after the last. It holds until the world's
// structure changes; see resume.
func (c *cursor) next() []uint32 {
	if len(c.runs) == 0 {
		if c.runs = c.fill(); len(c.runs) == 0 {
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

// fill returns the runs of the next block that has any.
func (c *cursor) fill() []uint32 {
	for c.row < c.end() {
		if runs := c.find(); len(runs) > 0 {
			return runs
		}
	}
	return nil
}

// ready saves what is written of the runs.
func (c *cursor) ready() {
	for at, m := range c.columns {
		if m.write {
			if m.set.span != m.set.w.span {
				m.set.open()
			}
			m.column.touchRuns(c.runs, at, c.stride)
		}
		if len(c.runs) > scattered*c.stride && at != c.driver {
			m.column.fetchRuns(c.runs, at, c.stride)
		}
	}
	c.changes = c.j.w.changes
}

// find returns the runs from c.row on in the block of c.row, if there are any,
// and moves c.row behind them.
func (c *cursor) find() []uint32 {
	if c.stride == 2 && len(c.j.without) == 0 {
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
	if len(runs) == c.stride && runs[c.driver]+runs[c.stride-1] == uint32(c.row) {
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
	end = min(end, c.set.n)
	c.j.one[0], c.j.one[1] = uint32(c.row), uint32(end-c.row)
	c.row = end
	return c.j.one[:2]
}

// findRow returns the single row c.row, if its entity is in the join.
func (c *cursor) findRow() []uint32 {
	row := c.row
	c.row++
	if !c.j.probe(c.driver, row, c.set.dense.live[row], &c.j.one) {
		return nil
	}
	c.j.one[c.stride-1] = 1
	return c.j.one[:c.stride]
}

// findRest returns the rows from c.row on of a run that begins before it.
func (c *cursor) findRest(run []uint32) []uint32 {
	skip := uint32(c.row) - run[c.driver]
	for i := range c.j.sets {
		c.j.one[i] = run[i] + skip
	}
	c.j.one[c.stride-1] = run[c.stride-1] - skip
	c.row += int(c.j.one[c.stride-1])
	return c.j.one[:c.stride]
}

// extend returns the last run of block b together with the blocks that continue
// it, and moves c.row behind it.
func (c *cursor) extend(block *joinBlock, b int, last []uint32) []uint32 {
	run := c.j.one[:c.stride]
	copy(run, last)
	n := &run[c.stride-1]
	if block.reached < c.newest || block.reached == 0 {
		for next := b + 1; *n <= maxRun-64 && next<<6 < c.end() && next != c.slow; next++ {
			more := c.block(next).runs
			if len(more) != c.stride || !follows(more[:c.stride-1], run) {
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
func (c *cursor) resume(i int, e Entity) {
	for k, s := range c.j.sets {
		if s.rewinds != c.rewinds[k] {
			panic("ecs: the world was restored while a query was iterating, or rows of it were sorted or packed; end the loop first")
		}
		if s.removals != c.removals[k] && (s.removals != c.removals[k]+1 || s.removed != e) {
			panic("ecs: another entity than the one visited, " + e.String() +
				", lost a component of the query or was destroyed; collect such entities and change them after the loop")
		}
	}
	row := c.follow(c.first+i, e)
	c.runs = nil
	if c.row = row; row < c.set.n && c.set.dense.live[row] == e {
		c.row++
	}
	before := c.newest
	c.note()
	if c.newest != before {
		c.slow = row >> 6
	}
}

// probe looks e, which is row of the driver, up in all sets.
func (j *join) probe(driver, row int, e Entity, at *[maxSets + 1]uint32) bool {
	for i, s := range j.sets {
		r := row
		if i != driver {
			r = s.row(e)
		}
		if r < 0 {
			return false
		}
		at[i] = uint32(r)
	}
	for _, s := range j.without {
		if s.row(e) >= 0 {
			return false
		}
	}
	return true
}

// refresh returns block b of the driver after finding out whether its runs still
// stand.
func (j *join) refresh(c *cursor, b int) *joinBlock {
	blocks := j.cached[c.driver]
	if b >= len(blocks) {
		blocks = append(blocks, make([]joinBlock, b+1-len(blocks))...)
		j.cached[c.driver] = blocks
	}
	block := &blocks[b]
	if block.stamp < c.newest || block.stamp == 0 {
		if !j.stands(block, c.set, b) {
			j.build(block, c.driver, b)
		}
		block.stamp = j.w.changes
	}
	return block
}

// stands reports whether the runs of a block are still right: the driver's rows
// are the same, every row was found, and where they were found nothing moved.
func (j *join) stands(block *joinBlock, driver *set, b int) bool {
	if block.stamp == 0 || int(block.rows) != min(64, driver.n-b<<6) ||
		driver.order[b] > block.stamp || block.found != block.rows {
		return false
	}
	for _, s := range j.without {
		if s.version > block.stamp {
			return false
		}
	}
	stride := len(j.sets) + 1
	for runs := block.runs; len(runs) > 0; runs = runs[stride:] {
		for i, s := range j.sets {
			if s != driver && s.version > block.stamp && !s.still(int(runs[i]), int(runs[stride-1]), block.stamp) {
				return false
			}
		}
	}
	return true
}

// still reports whether rows [lo, lo+n) hold the same entities as at stamp.
func (s *set) still(lo, n int, stamp uint64) bool {
	if lo+n > s.n {
		return false
	}
	for b := lo >> 6; b <= (lo+n-1)>>6; b++ {
		if s.order[b] > stamp {
			return false
		}
	}
	return true
}

// build finds the runs of block b anew.
func (j *join) build(block *joinBlock, driver, b int) {
	d := j.sets[driver]
	stride := len(j.sets) + 1
	runs := block.runs[:0]
	lo, hi := b<<6, min(b<<6+64, d.n)
	found := 0
	var at [maxSets + 1]uint32
	for row := lo; row < hi; row++ {
		if !j.probe(driver, row, d.dense.live[row], &at) {
			continue
		}
		found++
		if len(runs) > 0 && follows(at[:stride-1], runs[len(runs)-stride:]) {
			runs[len(runs)-1]++
			continue
		}
		at[stride-1] = 1
		runs = append(runs, at[:stride]...)
	}
	block.rows, block.found, block.runs = int32(hi-lo), int32(found), runs
	for ; len(runs) > 0; runs = runs[stride:] {
		for i, s := range j.sets {
			s.watch(int(runs[i] + runs[stride-1]))
		}
	}
	d.watch(hi)
}

// follows reports whether the rows at are those behind run.
func follows(at, run []uint32) bool {
	n := run[len(at)]
	for i, row := range at {
		if row != run[i]+n {
			return false
		}
	}
	return true
}
