package ecs

import (
	"math/bits"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

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
//
// Sets that are optional are looked up too, but find nothing and exclude
// nothing: an entity that is not in one has no row there, missing. A run has a
// row for each of its entities, or for none.
type join struct {
	w        *World
	sets     []*set // Components first, in the order of the query, then With.
	optional uint32 // Bit i: sets[i] is.
	columns  []joinedColumn
	writes   bool // One of columns is handed out for writing.

	without    []*set
	any        [][]*set // Of each of these, one is enough.
	predicates []predicate

	// What follows from the sets; see settle.
	settled uint64 // The world's count of changes when the rest was known to be right.
	newest  uint64 // The newest version of the sets.
	driver  int
	alone   bool // Every row of the driver is found.
	byWord  bool // Masks are walked.
	masks   []*Mask
	unmasks []*Mask // Of without.

	cached [][]joinBlock // By driver, of its rows;
	words  []joinBlock   // of entity indices.
	saved  uint64        // The world's count of changes when all that is written was saved.

	// A run that no block has as it is. It is read before a loop's body runs, so
	// loops over one query may be nested.
	one [maxSets + 1]uint32
}

const (
	maxSets = 16   // Components and With together.
	maxRun  = 4096 // Rows given out at once; as many as are saved in one copy.

	scattered = 16 // Runs of a block from which on their rows are fetched beforehand.

	missing = track.NoRow // In place of a row in an optional set.
	unknown = ^uint64(0)
)

// A joinBlock holds the runs of one block of driver rows, or of one word of
// entity indices.
type joinBlock struct {
	stamp  uint64   // The world's count of changes when this was known to be right; 0: never.
	word   uint64   // The entity indices looked for.
	rows   int32    // Rows in the block, and how many entities of it
	missed int32    // are in no run.
	runs   []uint32 // Per run: its first row in each set, and its length.

	// The last run together with the blocks that continue it.
	reach   uint32 // Rows in it.
	reached uint64 // The world's count of changes when that was so; 0: not known.
}

// A joinedColumn is a set whose components a join hands out.
type joinedColumn struct {
	name   string
	set    *set
	column interface {
		TouchRuns(runs []uint32, at, stride int)
		FetchRuns(runs []uint32, at, stride int) byte
	}
	write    bool
	optional bool
}

func newJoin(w *World, columns ...joinedColumn) join {
	j := join{w: w, columns: columns}
	for i, c := range columns {
		if k := slices.Index(j.sets, c.set); k >= 0 && (c.write || columns[k].write) {
			panic("ecs: a query writes " + c.name + " and names it twice, so that one pointer writes what the other has; name it once, with Write")
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
	j.sets = append(j.sets, j.here(s))
	j.unsettle()
}

// here returns s, which must be of the join's world.
func (j *join) here(s *set) *set {
	if s.w != j.w {
		panic("ecs: a query joins storages of different worlds; register them in one")
	}
	return s
}

func (j *join) isOptional(i int) bool { return j.optional>>i&1 != 0 }

// unsettle forgets what was found of other sets than the present ones.
func (j *join) unsettle() {
	j.settled, j.newest, j.saved = unknown, unknown, unknown
	j.cached, j.words = make([][]joinBlock, len(j.sets)), nil
}

// settle decides how the sets, as they are now, are walked.
func (j *join) settle() {
	if newest := j.version(); newest != j.newest {
		j.choose()
		j.newest = newest
	}
	j.settled = j.w.changes
}

// version returns the newest version of the sets, which moves whenever one of
// them changes.
func (j *join) version() (newest uint64) {
	for _, s := range j.sets {
		newest = max(newest, s.version)
	}
	for _, s := range j.without {
		newest = max(newest, s.version)
	}
	for _, sets := range j.any {
		for _, s := range sets {
			newest = max(newest, s.version)
		}
	}
	return newest
}

func (j *join) choose() {
	j.driver = j.smallest()
	d := j.sets[j.driver]
	masked := d.mask != nil && j.gatherMasks()
	j.byWord = d.mask != nil && d.byIndex || masked && j.prefersMasks(d.rows.N)
	j.alone = len(j.sets) == 1 && len(j.without)+len(j.any)+len(j.predicates) == 0 && d.gaps() == 0
}

// smallest returns the set with the fewest rows; the first of equals.
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

func (j *join) mustRequire() {
	if j.optional == 1<<len(j.sets)-1 {
		panic("ecs: every component of a query is Optional, so nothing says which entities to find; require one, or a storage with With")
	}
}

// gaps returns how many rows below n hold no entity.
func (s *set) gaps() int { return s.rows.Extra }

// count returns the number of entities in the join.
func (j *join) count() (n int) {
	var c cursor
	c.begin(j, nil)
	for run := c.next(); run != nil; run = c.next() {
		n += int(run[c.stride-1])
	}
	return n
}

// find returns the rows of e if it is in the join, else nil. They are valid
// until the join is used again.
func (j *join) find(e Entity) []uint32 {
	j.mustRequire()
	if !j.probe(-1, 0, e, &j.one) {
		return nil
	}
	for _, p := range j.predicates {
		if p.begin(); !p.keeps(e) {
			return nil
		}
	}
	j.one[len(j.sets)] = 1
	return j.one[:len(j.sets)+1]
}

// get is find, and saves what is written.
func (j *join) get(e Entity) []uint32 {
	run := j.find(e)
	if run != nil {
		j.mark(run, j.columns)
	}
	return run
}

// first returns the first entity and its rows, which are nil if there is none,
// and saves what is written.
func (j *join) first() (e Entity, rows []uint32) {
	var c cursor
	c.begin(j, nil)
	run := c.next()
	if run == nil {
		return 0, nil
	}
	e = c.entities(1)[0]
	rows = j.one[:copy(j.one[:], run)]
	rows[c.stride-1] = 1
	j.mark(rows, j.columns)
	return e, rows
}

// mark saves what is written of runs.
func (j *join) mark(runs []uint32, columns []joinedColumn) {
	if debug && j.writes && columns != nil {
		j.w.mustBeStepped()
	}
	stride := len(j.sets) + 1
	for at, m := range columns {
		if m.write && (!m.optional || anyPresent(runs, at, stride)) {
			if m.set.rows.Span != m.set.w.clock.Span {
				m.set.rows.Open()
			}
			m.column.TouchRuns(runs, at, stride)
		}
	}
}

// anyPresent reports whether one of runs has rows in the optional set at.
func anyPresent(runs []uint32, at, stride int) bool {
	for ; len(runs) > 0; runs = runs[stride:] {
		if runs[at] != missing {
			return true
		}
	}
	return false
}

// probe looks e, which is row of the driver, up in all sets. There may be no
// driver: -1.
func (j *join) probe(driver, row int, e Entity, at *[maxSets + 1]uint32) bool {
	for i, s := range j.sets {
		r := row
		if i != driver {
			r = s.row(e)
		}
		if r < 0 && !j.isOptional(i) {
			return false
		}
		at[i] = uint32(r) & missing // -1 becomes missing.
	}
	return j.passes(e)
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
// are the same, and the runs stay where they are.
func (j *join) stands(block *joinBlock, driver *set, b int) bool {
	return block.stamp != 0 && int(block.rows) == min(64, driver.rows.N-b<<6) &&
		driver.order[b] <= block.stamp && j.stays(block, driver)
}

// stays reports whether the same entities would be found where they were: every
// one looked for was, and nothing moved there. The driver, if any, did not move.
func (j *join) stays(block *joinBlock, driver *set) bool {
	if block.missed > 0 || !j.passesStand(block.stamp) {
		return false
	}
	stride := len(j.sets) + 1
	for runs := block.runs; len(runs) > 0; runs = runs[stride:] {
		for i, s := range j.sets {
			if s == driver || s.version <= block.stamp {
				continue
			}
			if runs[i] == missing || !s.still(int(runs[i]), int(runs[stride-1]), block.stamp) {
				return false
			}
		}
	}
	return true
}

// passesStand reports whether passes says the same as at stamp, for all
// entities.
func (j *join) passesStand(stamp uint64) bool {
	for _, s := range j.without {
		if s.version > stamp {
			return false
		}
	}
	for _, sets := range j.any {
		for _, s := range sets {
			if s.version > stamp {
				return false
			}
		}
	}
	return true
}

// still reports whether rows [lo, lo+n) hold the same entities as at stamp.
func (s *set) still(lo, n int, stamp uint64) bool {
	if lo+n > s.rows.N {
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
	lo, hi := b<<6, min(b<<6+64, d.rows.N)
	block.clear()
	block.rows = int32(hi - lo)
	var at [maxSets + 1]uint32
	for row := lo; row < hi; {
		n := 1
		switch e := d.dense.Live[row]; {
		case e == Vacant:
		case j.probe(driver, row, e, &at):
			n = j.aligned(driver, d.dense.Live[row:hi], &at)
			j.extendRuns(block, &at, n)
		default:
			block.missed++
		}
		row += n
	}
	j.watch(block)
	d.watch(hi)
}

func (b *joinBlock) clear() { *b = joinBlock{runs: b.runs[:0]} }

// aligned returns how many of entities, consecutive ones of the driver, the first
// of which is found at, lie in consecutive rows of every other set too. That is
// most of them, and to compare costs less than to look each one up.
func (j *join) aligned(driver int, entities []Entity, at *[maxSets + 1]uint32) int {
	if len(j.without)+len(j.any) > 0 {
		return 1
	}
	if j.sets[driver].gaps() > 0 {
		if k := slices.Index(entities, Vacant); k > 0 {
			entities = entities[:k]
		}
	}
	for i, s := range j.sets {
		if i == driver {
			continue
		}
		if at[i] == missing {
			return 1
		}
		n := 1
		for rows := s.dense.Live[at[i]:s.rows.N]; n < len(entities) && n < len(rows) && entities[n] == rows[n]; {
			n++
		}
		entities = entities[:n]
	}
	return len(entities)
}

// extendRuns adds n rows from at on to the runs of block.
func (j *join) extendRuns(block *joinBlock, at *[maxSets + 1]uint32, n int) {
	stride := len(j.sets) + 1
	if k := len(block.runs); k > 0 && j.follows(at[:stride-1], block.runs[k-stride:]) {
		block.runs[k-1] += uint32(n)
		return
	}
	at[stride-1] = uint32(n)
	block.runs = append(block.runs, at[:stride]...)
}

// watch makes the sets keep the order of the rows of block.
func (j *join) watch(block *joinBlock) {
	stride := len(j.sets) + 1
	for runs := block.runs; len(runs) > 0; runs = runs[stride:] {
		for i, s := range j.sets {
			if runs[i] != missing {
				s.watch(int(runs[i] + runs[stride-1]))
			}
		}
	}
}

// follows reports whether the rows at are those behind run.
func (j *join) follows(at, run []uint32) bool {
	n := run[len(at)]
	for i, row := range at {
		if row == missing || run[i] == missing { // Of an optional set.
			if row != run[i] {
				return false
			}
		} else if row != run[i]+n {
			return false
		}
	}
	return true
}

// A join whose sets have masks can walk the words that all of them share instead
// of the rows of one set. Its order is then that of the entity indices.
//
//	mask of A      | 1 0 0 1 1 0 0 0 | 0 0 0 0 0 0 0 0 | 0 1 0 0 0 0 0 1 |
//	mask of B      | 0 1 0 1 1 0 0 0 | 1 0 0 0 0 0 0 0 | 0 1 0 0 0 0 0 0 |
//	both           |       3 4       |     (skipped)   |   17            |
//
// Whether it does is decided by what the sets hold, not by what is remembered of
// them, as the order must be a function of the world's state. Rows are worth
// walking if most of them are found, or are few: words are if they are no more
// than the driver's rows and only one in sparseShare of these is found.
const sparseShare = 4

// gatherMasks lists the masks there are, and reports whether every set that
// entities must be in has one.
func (j *join) gatherMasks() bool {
	all := true
	j.masks, j.unmasks = j.masks[:0], j.unmasks[:0]
	for i, s := range j.sets {
		if j.isOptional(i) {
			continue
		}
		if s.mask != nil {
			j.masks = append(j.masks, s.mask)
		} else {
			all = false
		}
	}
	for _, s := range j.without {
		if s.mask != nil {
			j.unmasks = append(j.unmasks, s.mask)
		}
	}
	return all
}

// prefersMasks reports whether the join walks masks, given that all of its sets
// have one and rows is the number of the driver's.
func (j *join) prefersMasks(rows int) bool {
	words := (j.w.entities.rows.Total + 63) / 64
	if words*(len(j.masks)+len(j.unmasks)) > rows {
		return false
	}
	found := 0
	for b := j.nextWord(0); b >= 0; b = j.nextWord(b + 1) {
		if found += bits.OnesCount64(j.word(b)); found > rows/sparseShare {
			return false
		}
	}
	return true
}

// word returns the indices of word b that all masks share.
func (j *join) word(b int) uint64 {
	word := ^uint64(0)
	for _, m := range j.masks {
		word &= m.word(b)
	}
	for _, m := range j.unmasks {
		word &^= m.word(b)
	}
	return word
}

// nextWord returns the first word from b on that may have bits in all masks, or
// -1.
func (j *join) nextWord(b int) int {
	for agreed := 0; agreed < len(j.masks); {
		agreed = 0
		for _, m := range j.masks {
			next := m.nextWord(b)
			if next < 0 {
				return -1
			}
			if next == b {
				agreed++
			}
			b = next
		}
	}
	return b
}

// nextRuns returns the runs of the next word that has any. The cursor's row is an
// entity index here.
func (c *cursor) nextRuns() []uint32 {
	for b := c.j.nextWord(c.row >> 6); b >= 0; b = c.j.nextWord(c.row >> 6) {
		c.row = max(c.row, b<<6)
		word := c.j.word(b) &^ (1<<(uint(c.row)&63) - 1)
		var runs []uint32
		if b == c.slow {
			runs = c.findIndex(b, word)
		} else {
			c.row = (b + 1) << 6
			runs = c.findWord(b, word)
		}
		if len(runs) > 0 {
			return runs
		}
	}
	return nil
}

// findIndex returns the row of the first entity of word, what is left of word b,
// if it is in the join.
func (c *cursor) findIndex(b int, word uint64) []uint32 {
	if word == 0 {
		c.row = (b + 1) << 6
		return nil
	}
	i := b<<6 + bits.TrailingZeros64(word)
	c.row = i + 1
	if !c.j.probe(-1, 0, c.j.w.entities.of(i), &c.j.one) {
		return nil
	}
	c.j.one[c.stride-1] = 1
	return c.j.one[:c.stride]
}

// findWord returns the runs of word b as they are now.
func (c *cursor) findWord(b int, word uint64) []uint32 {
	j := c.j
	if word == 0 {
		return nil
	}
	if b >= len(j.words) {
		j.words = append(j.words, make([]joinBlock, b+1-len(j.words))...)
	}
	block := &j.words[b]
	if block.stamp < c.newest || block.stamp == 0 {
		if block.stamp == 0 || block.word != word || !j.stays(block, nil) {
			j.buildWord(block, b, word)
		}
		block.stamp = j.w.changes
	}
	return block.runs
}

// buildWord finds the runs of word b anew.
func (j *join) buildWord(block *joinBlock, b int, word uint64) {
	block.clear()
	block.word = word
	var at [maxSets + 1]uint32
	for ; word != 0; word &= word - 1 {
		if e := j.w.entities.of(b<<6 + bits.TrailingZeros64(word)); j.probe(-1, 0, e, &at) {
			j.extendRuns(block, &at, 1)
		} else {
			block.missed++
		}
	}
	j.watch(block)
}
