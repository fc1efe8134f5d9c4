package track

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/internal/deep"
)

var depth = flag.Int("depth", deep.Or(5, 6), "operations in the sequences that the exhaustive model tries")

// A tile is a large row of five pieces. It is computed from the value of its row: a new value
// changes two pieces.
type tile [40]uint64

func tileOf(v []int) (t tile) {
	t[uint(v[0])%40] = uint64(v[0])
	t[39] |= uint64(v[0]) / 10
	return t
}

// A table has all kinds of columns of the package. It has keys, values that share memory when
// copied, large rows computed from the values, and a sparse array from keys to rows. A world has
// many such tables.
type table struct {
	rows   Tracker
	keys   Column[uint32]
	values Column[[]int]
	tiles  Column[tile]
	sparse Sparse
}

func (a *table) init(c *Clock) {
	a.keys.Init(c, false)
	a.tiles.Init(c, false)
	a.values.Init(c, true)
	a.values.Clone = slices.Clone[[]int]
	a.sparse.Init(c)
	a.rows.Init(c, false, &a.keys.Log, &a.sparse)
	a.rows.Add(&a.values.Log)
	a.rows.Add(&a.tiles.Log)
	a.rows.Settle = a.settle
}

// settle clears the values in rows that neither a restore nor a redo can bring back. A storage does
// the same.
func (a *table) settle() {
	if lo := max(a.rows.N, a.rows.Prot); lo < len(a.values.Live) && !a.rows.clock.Undone {
		clear(a.values.Live[lo:])
	}
}

func (a *table) find(key uint32) int {
	if p := a.sparse.Page(key); p != nil {
		if r := int(p.Rows[key&PageMask]); r < a.rows.N && a.keys.Live[r] == key {
			return r
		}
	}
	return -1
}

func (a *table) point(key uint32, row int) {
	p := a.sparse.Grow(key)
	if a.sparse.Unsaved(p, key) {
		a.sparse.Save(p, key)
	}
	p.Rows[key&PageMask] = uint32(row)
}

func (a *table) add(key uint32, v int) {
	a.rows.Open()
	n := a.rows.N
	if n < len(a.keys.Live) {
		a.keys.Touch(n)
		a.values.TouchRange(n, n+1)
		a.tiles.Touch(n)
	} else {
		a.keys.Live, a.values.Live = append(a.keys.Live, 0), append(a.values.Live, nil)
		a.tiles.Live = append(a.tiles.Live, tile{})
	}
	a.point(key, n)
	a.keys.Live[n], a.values.Live[n] = key, []int{v}
	a.tiles.Live[n] = tileOf(a.values.Live[n])
	a.rows.N++
}

func (a *table) remove(row int) {
	a.rows.Open()
	last := a.rows.N - 1
	if row < last {
		a.keys.Touch(row)
		a.values.Touch(row)
		a.tiles.TouchEach(&[64]uint32{uint32(row)}, 1)
		a.tiles.Live[row] = a.tiles.Live[last]
		a.keys.Live[row], a.values.Live[row] = a.keys.Live[last], slices.Clone(a.values.Live[last])
		a.point(a.keys.Live[row], row)
	}
	a.rows.N = last
}

func (a *table) write(row int) {
	a.rows.Open()
	a.values.Touch(row)
	// Write in place. A saved value that shared the slice would change, too.
	a.values.Live[row][0]++
	a.tiles.Touch(row)
	a.tiles.Live[row] = tileOf(a.values.Live[row])
}

func (a *table) writeAll() {
	a.rows.Open()
	a.values.TouchRange(0, a.rows.N)
	a.tiles.TouchRange(0, a.rows.N)
	for row, v := range a.values.Live[:a.rows.N] {
		v[0] += 10
		a.tiles.Live[row] = tileOf(v)
	}
}

func (a *table) clear() {
	a.rows.Open()
	a.rows.N = 0
}

// A tableCopy is a copy of a table.
type tableCopy struct {
	keys   []uint32
	values [][]int
	tiles  []tile
}

func (a *table) copyRows() (c tableCopy) {
	for row := range a.rows.N {
		c.keys, c.values = append(c.keys, a.keys.Live[row]), append(c.values, slices.Clone(a.values.Live[row]))
	}
	c.tiles = slices.Clone(a.tiles.Live[:a.rows.N])
	return c
}

// String returns the keys, the values, and the tiles that do not match their values.
func (c tableCopy) String() string {
	s := fmt.Sprint(c.keys, c.values)
	for row, t := range c.tiles {
		if t != tileOf(c.values[row]) {
			s += fmt.Sprint(" tile ", row, " is ", t)
		}
	}
	return s
}

// A timeline is a list of frames over two tables. It uses the trackers like the history of a world
// does.
type timeline struct {
	clock   Clock
	tables  [2]table
	frames  []*Frame
	states  [][2]tableCopy // The tables at the start of each frame.
	forward []*Frame
	undone  [][2]tableCopy // The tables at the end of each undone frame.
	now     [2]tableCopy   // The expected content of the tables.
	id      uint64
	bare    bool
	read    bool // Set once a pastTable was created.
	past    *pastTable
}

// A pastTable reads table 0 in its state at the start of frame id.
type pastTable struct {
	id     uint64
	keys   *Old
	values *Old
	tiles  *Old
	want   tableCopy
}

func newTimeline(bare bool) *timeline {
	l := &timeline{bare: bare}
	l.clock.Span, l.clock.End = 1, l.end
	for i := range l.tables {
		l.tables[i].init(&l.clock)
	}
	return l
}

func (l *timeline) end() {
	l.clock.Undone = false
	for _, f := range l.forward {
		for _, t := range f.Touched {
			t.DropForward()
		}
	}
	l.forward, l.undone = nil, nil
}

func (l *timeline) top() *Frame {
	if len(l.frames) == 0 {
		return nil
	}
	return l.frames[len(l.frames)-1]
}

func (l *timeline) renew() {
	l.clock.Span++
	l.clock.Frame = l.top()
	if p := l.past; p != nil && (l.top() == nil || l.top().ID < p.id) {
		l.releasePast()
	}
}

func (l *timeline) releasePast() {
	l.past.keys.Release()
	l.past.values.Release()
	l.past.tiles.Release()
	l.past = nil
	l.tables[0].rows.Unprotect()
}

// absorb adds the rows that the open frame saved to the pastTable.
func (l *timeline) absorb() {
	if l.past == nil {
		return
	}
	if k, _, changed := l.tables[0].rows.Since(l.top().ID); changed {
		l.past.keys.Absorb(k)
		l.past.values.Absorb(k)
		l.past.tiles.Absorb(k)
	}
}

func (l *timeline) push() bool {
	l.absorb()
	l.id++
	l.frames = append(l.frames, &Frame{ID: l.id, Bare: l.bare})
	l.states = append(l.states, l.now)
	l.renew()
	return true
}

func (l *timeline) restore(k int) bool {
	if k >= len(l.frames) || l.bare {
		return false
	}
	l.absorb()
	// If the restore changes the state, the undone frames no longer follow it. Drop them.
	if k < len(l.frames)-1 || fmt.Sprint(l.states[k]) != fmt.Sprint(l.now) {
		l.end()
	}
	f := l.frames[k]
	for _, g := range l.frames[k:] {
		for _, t := range g.Touched {
			t.PutBack(f.ID)
		}
	}
	f.Touched = nil
	l.frames, l.states = l.frames[:k+1], l.states[:k+1]
	l.now = l.states[k]
	l.renew()
	return true
}

func (l *timeline) release(k int) bool {
	if k >= len(l.frames) {
		return false
	}
	l.absorb()
	if len(l.frames) == 1 {
		l.end()
	}
	f := l.frames[k]
	for _, t := range f.Touched {
		if k == 0 {
			t.Drop(f.ID)
		} else {
			t.Release(f, l.frames[k-1])
		}
	}
	l.frames, l.states = slices.Delete(l.frames, k, k+1), slices.Delete(l.states, k, k+1)
	l.renew()
	return true
}

func (l *timeline) undo() bool {
	k := len(l.frames) - 2
	if k < 0 || l.bare || len(l.frames[k+1].Touched) > 0 {
		return false
	}
	f := l.frames[k]
	l.clock.Undone = true
	undone := &Frame{ID: f.ID, Touched: f.Touched}
	if n := len(l.forward); n > 0 {
		undone.ID = l.forward[n-1].ID - 1
	}
	for _, t := range f.Touched {
		t.Undo(undone.ID)
	}
	l.forward, l.undone = append(l.forward, undone), append(l.undone, l.now)
	l.now = l.states[k]
	l.frames, l.states = l.frames[:k], l.states[:k]
	l.id++
	l.frames, l.states = append(l.frames, &Frame{ID: l.id}), append(l.states, l.now)
	if p := l.past; p != nil && p.id == f.ID {
		p.id = l.id
	} else if p != nil && p.id > f.ID {
		l.releasePast()
	}
	l.renew()
	return true
}

func (l *timeline) redo() bool {
	k := len(l.forward) - 1
	if k < 0 || len(l.top().Touched) > 0 {
		return false
	}
	for _, t := range l.forward[k].Touched {
		t.Redo(l.top().ID)
	}
	l.top().Touched = l.forward[k].Touched
	l.now = l.undone[k]
	l.forward, l.undone = l.forward[:k], l.undone[:k]
	l.clock.Undone = k > 0
	return l.push()
}

func (l *timeline) pin() bool {
	if l.past != nil || l.bare || l.top() == nil || len(l.top().Touched) > 0 {
		return false
	}
	a := &l.tables[0]
	l.past = &pastTable{l.top().ID, Pin(&a.keys, a.rows.N), Pin(&a.values, a.rows.N), Pin(&a.tiles, a.rows.N), l.now[0]}
	l.read = true
	a.rows.Protect(a.rows.Lengths)
	// A new span makes every tracker call Reopen before its next change. Reopen then protects the
	// pinned rows.
	l.clock.Span++
	return true
}

// change applies f to table i and records the result as the expected content.
func (l *timeline) change(i int, f func(a *table) bool) bool {
	if !f(&l.tables[i]) {
		return false
	}
	l.now[i] = l.tables[i].copyRows()
	return true
}

func (l *timeline) check() error {
	for i := range l.tables {
		a := &l.tables[i]
		if got := a.copyRows(); got.String() != l.now[i].String() {
			return fmt.Errorf("table %d is %v, want %v", i, got, l.now[i])
		}
		for row, key := range a.keys.Live[:a.rows.N] {
			if a.find(key) != row {
				return fmt.Errorf("table %d: key %d is at %d, want %d", i, key, a.find(key), row)
			}
		}
		for k := range l.frames {
			if err := l.checkSince(a, k, l.states[k][i]); err != nil {
				return fmt.Errorf("table %d, frame %d: %w", i, k, err)
			}
		}
		for k := range l.forward {
			if err := checkThen(a, l.forward[k].ID, true, l.undone[k][i]); err != nil {
				return fmt.Errorf("table %d, undone frame %d: %w", i, k, err)
			}
		}
	}
	l.clock.Seen.Drain(func(lo, hi int) { panic(fmt.Sprint("scratch has rows ", lo, " to ", hi)) })
	return l.checkTrackers()
}

// checkSince reads an older state of a table from its logs, as deltas do, and compares it with
// want.
func (l *timeline) checkSince(a *table, k int, want tableCopy) error {
	from, before, changed := a.rows.Since(l.frames[k].ID)
	if !changed {
		before = a.rows.Lengths
	}
	if before.N != len(want.keys) {
		return fmt.Errorf("the old state has %d rows, want %d", before.N, len(want.keys))
	}
	now := min(before.N, a.rows.N)
	wrote := map[uint32]bool{}
	a.values.Log.SavedRuns(from, func(runs []Run) {
		for _, r := range runs {
			for row := range r.N {
				wrote[r.Row+row] = true
			}
		}
	})
	for row := range now {
		if !wrote[uint32(row)] && fmt.Sprint(a.values.Live[row]) != fmt.Sprint(want.values[row]) {
			return fmt.Errorf("row %d was %v and is %v, and no log has the row", row, want.values[row], a.values.Live[row])
		}
	}
	if l.bare {
		return nil
	}
	var was tableCopy
	was.keys, was.values, was.tiles = slices.Clone(a.keys.Live[:before.N]), slices.Clone(a.values.Live[:before.N]), slices.Clone(a.tiles.Live[:before.N])
	var spans Spans
	spans.Read(&a.keys.Log, from)
	for i := range spans.Len() {
		copy(was.keys[min(int(spans.At(i).Row), before.N):], a.keys.Old(spans.At(i)))
	}
	spans.Reset()
	spans.Read(&a.values.Log, from)
	for i := range spans.Len() {
		copy(was.values[min(int(spans.At(i).Row), before.N):], a.values.Old(spans.At(i)))
	}
	spans.Reset()
	spans.Read(&a.tiles.Log, from)
	for i := range spans.Len() {
		copy(was.tiles[min(int(spans.At(i).Row), before.N):], a.tiles.Old(spans.At(i)))
	}
	if err := checkThen(a, l.frames[k].ID, false, want); err != nil {
		return err
	}
	if was.String() != want.String() {
		return fmt.Errorf("the old state is %v by the logs, want %v", was, want)
	}
	return nil
}

// checkThen reads table a through an AsOf at the start of frame id, and compares the rows with
// want. If ahead is set, the frame is undone, and checkThen reads the end of the frame.
func checkThen(a *table, id uint64, ahead bool, want tableCopy) error {
	then := NewAsOf(&a.rows, &a.values.Log, &a.tiles.Log)
	then.CatchUp(id, ahead)
	if then.N != len(want.values) {
		return fmt.Errorf("the AsOf has %d rows, want %d", then.N, len(want.values))
	}
	for row, v := range want.values {
		if got, tile := *RowAsOf(&a.values, &then.Columns[0], row), *RowAsOf(&a.tiles, &then.Columns[1], row); !slices.Equal(got, v) || tile != tileOf(v) {
			return fmt.Errorf("the AsOf has %[2]v %[3]v in row %[1]d, want %[4]v", row, got, tile, v)
		}
	}
	return nil
}

func (l *timeline) checkTrackers() error {
	var bytes int64
	for i := range l.tables {
		t := &l.tables[i].rows
		undone := 0
		for _, f := range l.forward {
			if slices.Contains(f.Touched, t) {
				undone++
			}
		}
		n, err := t.Check(func(id uint64) *Frame {
			for _, f := range l.frames {
				if f.ID == id && slices.Contains(f.Touched, t) {
					return f
				}
			}
			return nil
		}, undone, l.read)
		if err != nil {
			return fmt.Errorf("table %d: %w", i, err)
		}
		bytes += n
	}
	if bytes != l.clock.Bytes() {
		return fmt.Errorf("logs hold %d bytes, the clock counts %d", bytes, l.clock.Bytes())
	}
	if p := l.past; p != nil {
		l.absorb()
		var got tableCopy
		n := len(p.want.keys)
		a := &l.tables[0]
		got.keys = RowsAsOf(&a.keys, p.keys, 0, make([]uint32, n))
		got.values = RowsAsOf(&a.values, p.values, 0, make([][]int, n))
		got.tiles = RowsAsOf(&a.tiles, p.tiles, 0, make([]tile, n))
		if got.String() != p.want.String() {
			return fmt.Errorf("the past is %v, want %v", got, p.want)
		}
	}
	return nil
}

// An operation returns false if it has no effect in the current state.
type operation struct {
	name string
	do   func(l *timeline) bool
}

func operations(keys []uint32, frames int) (list []operation) {
	next := 0
	op := func(name string, do func(l *timeline) bool) { list = append(list, operation{name, do}) }
	for i, key := range keys {
		op(fmt.Sprint("add ", key), func(l *timeline) bool {
			return l.change(0, func(a *table) bool {
				if a.find(key) >= 0 {
					return false
				}
				next++
				a.add(key, next)
				return true
			})
		})
		op(fmt.Sprint("remove row ", i), func(l *timeline) bool {
			return l.change(0, func(a *table) bool {
				if i >= a.rows.N {
					return false
				}
				a.remove(i)
				return true
			})
		})
	}
	op("write row 0", func(l *timeline) bool {
		return l.change(0, func(a *table) bool {
			if a.rows.N == 0 {
				return false
			}
			a.write(0)
			return true
		})
	})
	op("write all", func(l *timeline) bool {
		return l.change(0, func(a *table) bool {
			if a.rows.N <= 1 { // The operation "write row 0" covers this case.
				return false
			}
			a.writeAll()
			return true
		})
	})
	op("clear", func(l *timeline) bool {
		return l.change(0, func(a *table) bool {
			if a.rows.N == 0 {
				return false
			}
			a.clear()
			return true
		})
	})
	op("add elsewhere", func(l *timeline) bool {
		return l.change(1, func(a *table) bool { a.add(uint32(a.rows.N), 0); return true })
	})
	op("frame", (*timeline).push)
	for k := range frames {
		op(fmt.Sprint("restore ", k), func(l *timeline) bool { return l.restore(k) })
		op(fmt.Sprint("release ", k), func(l *timeline) bool { return l.release(k) })
	}
	op("undo", (*timeline).undo)
	op("redo", (*timeline).redo)
	op("pin", (*timeline).pin)
	return list
}

// The keys include the last key of a page and the first key of the next page.
var keys = []uint32{1, PageSize - 1, PageSize}

func TestTracker_EveryCallSequence(t *testing.T) {
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprint("bare ", bare), func(t *testing.T) {
			t.Parallel()
			all := operations(keys, 2)
			tried := 0
			var extend func(sequence []operation, n int)
			extend = func(sequence []operation, n int) {
				for _, o := range all {
					l := newTimeline(bare)
					l.tables[0].add(keys[0], -1)
					l.tables[0].add(keys[1], -2)
					l.now[0] = l.tables[0].copyRows()
					l.push()
					for _, before := range sequence {
						before.do(l)
					}
					if !o.do(l) {
						continue
					}
					tried++
					longer := append(slices.Clip(sequence), o)
					if err := l.check(); err != nil {
						t.Fatalf("%v: %v", names(longer), err)
					}
					if n > 1 {
						extend(longer, n-1)
					}
				}
			}
			extend(nil, *depth-1)
			t.Logf("%d sequences", tried)
		})
	}
}

func names(sequence []operation) (list []string) {
	for _, o := range sequence {
		list = append(list, o.name)
	}
	return list
}

// frequentOps lists operations to run more often, because they enable other operations.
var frequentOps = []string{"frame", "frame", "undo", "redo", "pin", "clear", "release 0"}

func TestTracker_RandomCallSequences(t *testing.T) {
	t.Parallel()
	many := make([]uint32, 200) // Enough rows for several marks, runs and chunks.
	for i := range many {
		many[i] = uint32(i * 43)
	}
	all := operations(many, 5)
	for seed := range uint64(deep.Or(60, 600)) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := newTimeline(seed%5 == 4)
		var done []operation
		for range 400 {
			o := all[r.IntN(len(all))]
			if r.IntN(3) == 0 {
				// Pick an operation that neither adds nor removes rows.
				o = all[len(all)-15+r.IntN(15)]
			}
			if name := frequentOps[r.IntN(len(frequentOps))]; r.IntN(4) == 0 {
				o = all[slices.IndexFunc(all, func(o operation) bool { return o.name == name })]
			}
			if !o.do(l) {
				continue
			}
			done = append(done, o)
			if err := l.check(); err != nil {
				t.Fatalf("seed %d, after %d operations, the last ones %v: %v", seed, len(done), names(done[max(0, len(done)-8):]), err)
			}
		}
	}
}
