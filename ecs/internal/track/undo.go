package track

import "unsafe"

const (
	firstChunkRows = 32       // A log starts small: most frames of most storages write little.
	chunkBytes     = 64 << 10 // A full chunk; large enough that a range is saved in few copies.
	maxChunkRows   = 4096
)

// A chunk holds runs and the saved values of their rows, in the order in which
// they were saved. Chunks are recycled, never grown: values that were saved are
// not copied again.
type chunk[T any] struct {
	runs []Run
	rows []T
}

// An undoLog holds what one frame saved, oldest first. A row can be in it more
// than once after two frames were merged; the oldest value is the one that
// counts.
type undoLog[T any] struct {
	chunks  []*chunk[T]
	size    int  // Rows in all runs.
	kept    int  // Size after the last compaction.
	repeats bool // A row may be in it twice.
	bare    bool // Runs without values: nothing will be restored from it.
}

// An undoStack holds the logs of one column: one for every frame in which the
// column's storage changed, and those of the forward branch.
type undoStack[T any] struct {
	logs    []*undoLog[T] // Oldest first; the last one is open.
	forward []*undoLog[T] // Undone by seek; the next one to redo is last.
	top     *undoLog[T]   // The open log, or nil.

	clock   *Clock
	Moved   func(Run) // Told which rows were put back, undone and redone; may be nil.
	split   uint32    // A run never extends over a row number that has none of these bits.
	clear   bool      // T holds pointers: recycled chunks are zeroed.
	Follows bool      // Rows follow from others: a bare frame notes none.

	spares []*chunk[T]   // Recycled chunks with room for values,
	bare   []*chunk[T]   // those without,
	blank  []*undoLog[T] // and logs without chunks.
}

// push opens a new, empty log.
func (u *undoStack[T]) push(bare bool) {
	var l *undoLog[T]
	if k := len(u.blank); k > 0 {
		l, u.blank = u.blank[k-1], u.blank[:k-1]
	} else {
		l = new(undoLog[T])
	}
	l.bare = bare
	u.logs = append(u.logs, l)
	u.top = l
}

// pick makes the newest log, if there is one, the open one. It returns how many of
// prot rows are to be saved: none where they follow from others and nothing will be
// put back.
func (u *undoStack[T]) pick(prot int) int {
	u.top = nil
	if k := len(u.logs); k > 0 {
		u.top = u.logs[k-1]
	}
	if u.Follows && u.top != nil && u.top.bare {
		return 0
	}
	return prot
}

// save appends rows, which start at row, to the open log.
func (u *undoStack[T]) save(row int, rows []T) {
	l := u.top
	l.size += len(rows)
	for len(rows) > 0 {
		c := u.tail(l)
		n := len(rows)
		if !l.bare {
			n = min(n, cap(c.rows)-len(c.rows))
		}
		u.extend(c, row, n)
		if !l.bare {
			c.rows = append(c.rows, rows[:n]...)
		}
		row += n
		rows = rows[n:]
	}
}

// saveOne is save for a single row, the common case of scattered writes.
func (u *undoStack[T]) saveOne(row int, v *T) {
	l := u.top
	l.size++
	if k := len(l.chunks) - 1; k >= 0 && !l.bare { // The fast path calls nothing.
		c := l.chunks[k]
		if n, m := len(c.rows), len(c.runs)-1; n < cap(c.rows) && m >= 0 {
			last := &c.runs[m]
			if last.Row+last.N == uint32(row) && uint32(row)&u.split != 0 {
				last.N++
				c.rows = c.rows[:n+1]
				c.rows[n] = *v
				return
			}
			if m++; m < cap(c.runs) {
				c.runs = c.runs[:m+1]
				c.runs[m] = Run{uint32(row), 1}
				c.rows = c.rows[:n+1]
				c.rows[n] = *v
				return
			}
		}
	}
	c := u.tail(l)
	u.extend(c, row, 1)
	if !l.bare {
		c.rows = append(c.rows, *v)
	}
}

// tail returns the last chunk of l with room for at least one row.
func (u *undoStack[T]) tail(l *undoLog[T]) *chunk[T] {
	k := len(l.chunks)
	if k > 0 {
		if c := l.chunks[k-1]; l.bare || len(c.rows) < cap(c.rows) {
			return c
		}
	}
	return u.addChunk(l, k)
}

func (u *undoStack[T]) addChunk(l *undoLog[T], k int) *chunk[T] {
	spares := &u.spares
	if l.bare {
		spares = &u.bare
	}
	var c *chunk[T]
	if s := len(*spares); s > 0 {
		c, *spares = (*spares)[s-1], (*spares)[:s-1]
	} else {
		c = new(chunk[T])
		if !l.bare {
			c.rows = make([]T, 0, chunkRows[T](k))
		}
	}
	u.clock.bytes.Add(c.bytes())
	l.chunks = append(l.chunks, c)
	return c
}

// chunkRows returns how many rows the k-th chunk of a log holds.
func chunkRows[T any](k int) int {
	var zero T
	full := max(firstChunkRows, min(maxChunkRows, chunkBytes/max(1, int(unsafe.Sizeof(zero)))))
	if k > 4 {
		return full
	}
	return min(full, firstChunkRows<<(2*k))
}

func (c *chunk[T]) bytes() int64 {
	return room(c.rows) + room(c.runs)
}

// extend adds rows [row, row+n) to the runs of c.
func (u *undoStack[T]) extend(c *chunk[T], row, n int) {
	if k := len(c.runs) - 1; k >= 0 {
		if last := &c.runs[k]; last.Row+last.N == uint32(row) && uint32(row)&u.split != 0 {
			last.N += uint32(n)
			return
		}
	}
	if len(c.runs) == cap(c.runs) {
		before := c.bytes()
		c.runs = append(c.runs, Run{uint32(row), uint32(n)})
		u.clock.bytes.Add(c.bytes() - before)
		return
	}
	c.runs = append(c.runs, Run{uint32(row), uint32(n)})
}

// undo exchanges the newest log with the rows, which at returns, and moves it to
// the forward branch.
func (u *undoStack[T]) undo(at func(row, n int) []T) {
	k := len(u.logs) - 1
	l := u.logs[k]
	u.exchange(l, true, at)
	u.logs, u.top = u.logs[:k], nil
	u.forward = append(u.forward, l)
}

// redo is the inverse of undo.
func (u *undoStack[T]) redo(at func(row, n int) []T) {
	k := len(u.forward) - 1
	l := u.forward[k]
	u.exchange(l, false, at)
	u.forward = u.forward[:k]
	u.logs = append(u.logs, l)
}

// exchange swaps the saved values of l with the rows they came from: newest
// first to undo, oldest first to redo. It is its own inverse.
func (u *undoStack[T]) exchange(l *undoLog[T], undo bool, at func(row, n int) []T) {
	for i := range l.chunks {
		if undo {
			i = len(l.chunks) - 1 - i
		}
		c := l.chunks[i]
		from := 0
		if undo {
			from = len(c.rows)
		}
		for j := range c.runs {
			if undo {
				j = len(c.runs) - 1 - j
				from -= int(c.runs[j].N)
			}
			r := c.runs[j]
			swapRows(at(int(r.Row), int(r.N)), c.rows[from:from+int(r.N)])
			if !undo {
				from += int(r.N)
			}
		}
	}
	u.tell(l)
}

func swapRows[T any](a, b []T) {
	b = b[:len(a)]
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
}

// tell says which rows were written from l.
func (u *undoStack[T]) tell(l *undoLog[T]) {
	if u.Moved != nil {
		l.eachRun(u.Moved)
	}
}

// cut forgets logs[k:].
func (u *undoStack[T]) cut(k int) {
	for _, l := range u.logs[k:] {
		u.recycle(l)
	}
	u.logs, u.top = u.logs[:k], nil
}

// drop forgets logs[k].
func (u *undoStack[T]) drop(k int) {
	u.recycle(u.logs[k])
	copy(u.logs[k:], u.logs[k+1:])
	u.logs, u.top = u.logs[:len(u.logs)-1], nil
}

func (u *undoStack[T]) dropForward() {
	for _, l := range u.forward {
		u.recycle(l)
	}
	u.forward = u.forward[:0]
}

// discard forgets what logs[k] holds.
func (u *undoStack[T]) discard(k int) {
	l := u.logs[k]
	u.recycleChunks(l)
	*l = undoLog[T]{chunks: l.chunks[:0], bare: l.bare}
	u.top = nil
}

// squeeze takes out the logs, which are empty, of the records that are gone.
func (u *undoStack[T]) squeeze(recs []record) {
	kept := u.logs[:0]
	for i, l := range u.logs {
		if recs[i].removed {
			u.recycle(l)
		} else {
			kept = append(kept, l)
		}
	}
	u.logs, u.top = kept, nil
}

// merge makes logs[k] hold also what the older one does, which is empty then.
func (u *undoStack[T]) merge(at, k int) {
	older, newer := u.logs[at], u.logs[k]
	switch {
	case older.size == 0 || newer.size == 0:
		older.repeats = older.repeats || newer.repeats
		u.concat(older, newer)
	case older.size <= 4*newer.size && !older.repeats:
		u.fold(older, newer)
	default: // Looking at what older holds costs too much for so little.
		older.repeats = true
		u.concat(older, newer)
		u.tidy(older)
	}
	u.discard(k)
	u.logs[at], u.logs[k] = newer, older
}

// fold adds the rows of newer that older, in which no row repeats, does not hold:
// its values are the older ones.
func (u *undoStack[T]) fold(older, newer *undoLog[T]) {
	older.eachRun(func(r Run) { u.clock.Seen.Add(r, func(uint32, uint32) {}) })
	u.saveUnseen(older, newer.chunks)
	older.eachRun(u.clock.Seen.remove)
	older.kept = older.size
}

// again readies the newest log for another span of its frame, which may save
// rows that it holds already.
func (u *undoStack[T]) again() {
	l := u.logs[len(u.logs)-1]
	u.tidy(l)
	l.repeats = l.size > 0
}

// tidy compacts l if it has doubled since it was compacted last.
func (u *undoStack[T]) tidy(l *undoLog[T]) {
	if l.repeats && l.size > 2*l.kept+1024 {
		u.compact(l)
	}
}

// concat moves what newer holds behind what older holds. Chunks change hands
// whole unless the last one of older has room for all of it.
func (u *undoStack[T]) concat(older, newer *undoLog[T]) {
	k := len(older.chunks)
	room := 0
	if k > 0 {
		room = cap(older.chunks[k-1].rows) - len(older.chunks[k-1].rows)
	}
	if !older.bare && newer.size > room {
		older.chunks = append(older.chunks, newer.chunks...)
		older.size += newer.size
		newer.chunks = newer.chunks[:0]
		return
	}
	for _, c := range newer.chunks {
		at := 0
		for _, r := range c.runs {
			tail := u.tail(older)
			u.extend(tail, int(r.Row), int(r.N))
			if !older.bare {
				tail.rows = append(tail.rows, c.rows[at:at+int(r.N)]...)
				at += int(r.N)
			}
		}
	}
	older.size += newer.size
}

// compact keeps only the oldest record of each row of l.
func (u *undoStack[T]) compact(l *undoLog[T]) {
	chunks := l.chunks
	l.chunks, l.size = nil, 0
	u.saveUnseen(l, chunks)
	l.eachRun(u.clock.Seen.remove)
	for _, c := range chunks {
		u.recycleChunk(c)
	}
	l.kept, l.repeats = l.size, false
}

// saveUnseen appends to l those rows of chunks that are not in the scratch set, each
// once, and adds them to it.
func (u *undoStack[T]) saveUnseen(l *undoLog[T], chunks []*chunk[T]) {
	top := u.top
	u.top = l
	for _, c := range chunks {
		at := uint32(0)
		for _, r := range c.runs {
			u.clock.Seen.Add(r, func(row, n uint32) {
				if l.bare {
					l.size += int(n)
					u.extend(u.tail(l), int(row), int(n))
					return
				}
				from := at + row - r.Row
				u.save(int(row), c.rows[from:from+n])
			})
			at += r.N
		}
	}
	u.top = top
}

func (u *undoStack[T]) recycle(l *undoLog[T]) {
	u.recycleChunks(l)
	*l = undoLog[T]{chunks: l.chunks[:0]}
	u.blank = append(u.blank, l)
}

func (u *undoStack[T]) recycleChunks(l *undoLog[T]) {
	for _, c := range l.chunks {
		u.recycleChunk(c)
	}
	clear(l.chunks)
}

func (u *undoStack[T]) recycleChunk(c *chunk[T]) {
	u.clock.bytes.Add(-c.bytes())
	if u.clear {
		clear(c.rows)
	}
	c.rows, c.runs = c.rows[:0], c.runs[:0]
	if cap(c.rows) > 0 {
		u.spares = append(u.spares, c)
	} else {
		u.bare = append(u.bare, c)
	}
}

// Saved calls f for what logs[k:], which may be none, hold, oldest first: runs, and
// behind each other the values that their rows had; no values in a bare log. The
// slices are valid until f returns.
func (u *undoStack[T]) Saved(k int, f func(runs []Run, values []T)) {
	for ; k < len(u.logs); k++ {
		for _, c := range u.logs[k].chunks {
			f(c.runs, c.rows)
		}
	}
}

// Oldest calls f with the oldest values that logs[k:] hold of rows, once for each
// row: those that they had when log k was opened.
func (u *undoStack[T]) Oldest(k int, f func(row int, values []T)) {
	logs := u.logs[min(k, len(u.logs)):]
	if len(logs) == 1 && !logs[0].repeats {
		for _, c := range logs[0].chunks {
			at := uint32(0)
			for _, r := range c.runs {
				f(int(r.Row), c.rows[at:at+r.N])
				at += r.N
			}
		}
		return
	}
	for _, l := range logs {
		for _, c := range l.chunks {
			at := uint32(0)
			for _, r := range c.runs {
				u.clock.Seen.Add(r, func(row, n uint32) {
					from := at + row - r.Row
					f(int(row), c.rows[from:from+n])
				})
				at += r.N
			}
		}
	}
	for _, l := range logs {
		l.eachRun(u.clock.Seen.remove)
	}
}

// memory returns what the logs take, and what recycled memory does.
// logBytes returns what logs[i] holds.
func (u *undoStack[T]) logBytes(i int) (n int64) {
	for _, c := range u.logs[i].chunks {
		n += c.bytes()
	}
	return n
}

func (u *undoStack[T]) memory() (undo, spare int64) {
	for _, list := range [2][]*undoLog[T]{u.logs, u.forward} {
		for _, l := range list {
			for _, c := range l.chunks {
				undo += c.bytes()
			}
		}
	}
	for _, list := range [2][]*chunk[T]{u.spares, u.bare} {
		for _, c := range list {
			spare += c.bytes()
		}
	}
	return undo, spare
}

// eachRun calls f for every run of l, oldest first.
func (l *undoLog[T]) eachRun(f func(Run)) {
	for _, c := range l.chunks {
		for _, r := range c.runs {
			f(r)
		}
	}
}
