package track

import (
	"slices"
	"unsafe"
)

// A rowsOf is what logs leave to who knows the type of the rows. They themselves keep
// memory for so many rows of a size: so they are compiled once, and not for each type of
// component that a program has.
type rowsOf interface {
	// alloc returns memory for n rows, which are zero.
	alloc(n int) unsafe.Pointer

	// from returns the live row at row. There are as many behind it as it is asked for.
	from(row int) unsafe.Pointer

	// swap exchanges the n live rows from row on and those at p.
	swap(row int, p unsafe.Pointer, n int)

	// move makes the n rows at dst those at src, wipe makes the rows at p zero.
	move(dst, src unsafe.Pointer, n int)
	wipe(p unsafe.Pointer, n int)

	// fit keeps so many live rows at most, and no room behind them.
	fit(rows int)
}

// A slab is memory for so many rows, of which the first n are in use.
type slab struct {
	p    unsafe.Pointer
	n    int
	room int
}

// at returns row i of s, which is in use.
func (s *slab) at(i int, size uintptr) unsafe.Pointer { return unsafe.Add(s.p, uintptr(i)*size) }

const (
	firstChunkRows  = 32       // A log starts small: most frames of most storages write little.
	firstChunkBytes = 256      // That of pieces: a frame may change a few of a large row.
	chunkBytes      = 64 << 10 // A full chunk; large enough that a range is saved in few copies.
	maxChunkRows    = 4096
	fullRung        = 4 // Chunks of a log are four times as large, one behind the other, up to this one.
)

// A chunk holds runs and the saved values of their rows, in the order in which
// they were saved. Chunks are recycled, never grown: values that were saved are
// not copied again.
type chunk struct {
	runs []Run
	rows slab
	rung int // How large it is: see [undoStack.rung].
}

// full is a chunk without room.
var full = new(chunk)

// An undoLog holds what one frame saved, oldest first. A row can be in it more
// than once after two frames were merged; the oldest value is the one that
// counts.
type undoLog struct {
	chunks  []*chunk
	first   [1]*chunk // The memory of chunks while there is one.
	size    int       // Rows in all chunks but the last one.
	kept    int       // Size after the last compaction.
	pared   int       // How many of chunks, the first ones, hold what differs only: see [undoStack.pare].
	repeats bool      // A row may be in it twice.
	bare    bool      // Runs without values: nothing will be restored from it.
}

// gone stands for the logs of records that are removed. It is empty, and nobody writes it.
var gone = new(undoLog)

// rows returns how many rows are in the runs of l.
func (l *undoLog) rows() int {
	if k := len(l.chunks); k > 0 {
		return l.size + l.chunks[k-1].rows.n
	}
	return 0
}

// add makes c the last chunk of l.
func (l *undoLog) add(c *chunk) {
	l.size = l.rows()
	if l.chunks == nil {
		l.chunks = l.first[:0]
	}
	l.chunks = append(l.chunks, c)
}

// cut takes chunks[k:] out of l.
func (l *undoLog) cut(k int) {
	l.size = l.rows()
	for _, c := range l.chunks[max(k-1, 0):] {
		l.size -= c.rows.n
	}
	l.chunks = l.chunks[:k]
}

// An undoStack holds the logs of one column: one for every frame in which the
// column's storage changed, and those of the forward branch.
type undoStack struct {
	logs    []*undoLog // Oldest first; the last one is open.
	forward []*undoLog // Undone by seek; the next one to redo is last.
	top     *undoLog   // The open log, or nil.
	tip     *chunk     // The last chunk of top, if rows were saved in it since pick and that is all there is to do for one; or full.

	rows    rowsOf
	size    uintptr                            // Of a row or, if it is large, of a piece: what runs count.
	put     func(runs []Run, p unsafe.Pointer) // Makes the live rows of runs those that lie at p, behind each other.
	clock   *Clock
	Moving  func(Run) // Told which rows are about to be put back, undone and redone; may be nil.
	Moved   func(Run) // Told which were; may be nil.
	split   uint32    // A run never extends over a row number that has none of these bits.
	wipes   bool      // Rows hold pointers: recycled chunks are zeroed.
	Follows bool      // Rows follow from others: a bare frame notes none.
	Keeps   bool      // A bare frame saves values too: somebody asks what they were.
	readers []*News   // Told which rows are saved and put back.
	saves   uint64    // Rises when rows are added to a log, but for those that are added to tip.
	moves   uint64    // Rises when what logs hold is put back or moved, so that their memory is used for something else.

	spares [][]*chunk // Recycled chunks with room for values, by rung,
	bare   []*chunk   // those without,
	blank  []*undoLog // and logs without chunks.
	used   int64      // Bytes of the chunks in logs,
	most   int64      // the most that these ever were,
	spare  int64      // and bytes of spares and bare.
	pieces int        // Of a row: 1, or more if it is large,
	width  uintptr    // and the size of a row.
}

// push opens a new, empty log. What the one before it belongs to is over. That of a bare frame
// has values if a reader of the past wants them.
func (u *undoStack) push(bare, read bool) {
	u.pare()
	var l *undoLog
	if k := len(u.blank); k > 0 {
		l, u.blank = u.blank[k-1], u.blank[:k-1]
	} else {
		l = new(undoLog)
	}
	l.bare = bare && !u.Keeps && (u.Follows || !read)
	u.logs = append(u.logs, l)
	u.top = l
}

// pick makes the newest log, if there is one, the open one: without it rows are reported
// to readers, and saved nowhere. It returns how many of prot rows are to be saved: none where
// they follow from others and nothing will be put back.
func (u *undoStack) pick(prot int) int {
	u.top, u.tip = nil, full
	if k := len(u.logs); k > 0 {
		u.top = u.logs[k-1]
	}
	if u.Follows && (u.top == nil || u.top.bare) {
		return 0
	}
	return prot
}

// save appends n live rows, which start at row, to the open log.
func (u *undoStack) save(row, n int) {
	row, n = row*u.pieces, n*u.pieces
	u.keep(row, u.rows.from(row), n, u.pieces)
}

// keep appends n rows, which lie at p, to the open log, as those that start at row. Each
// whole of them stay side by side.
func (u *undoStack) keep(row int, p unsafe.Pointer, n, whole int) {
	l := u.top
	if l == nil {
		return
	}
	for at := 0; at < n; {
		c := u.tail(l, whole)
		some := n - at
		if !l.bare {
			if some = min(some, c.rows.room-c.rows.n); whole > 1 {
				some -= some % whole
			}
			u.rows.move(c.rows.at(c.rows.n, u.size), unsafe.Add(p, uintptr(at)*u.size), some)
		}
		u.extend(c, row+at, some)
		at += some
	}
}

// ready reports whether c has room for another row.
func (c *chunk) ready() bool { return c.rows.n < c.rows.room }

// note adds row to the runs of c, which has one: to the last one, if row joins that and is
// behind it. It reports false if there is no room for a run.
func (c *chunk) note(row uint32, joins bool) bool {
	k := len(c.runs)
	last := (*Run)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(c.runs)), uintptr(k-1)*unsafe.Sizeof(Run{})))
	if joins && last.Row+last.N == row {
		last.N++
		return true
	}
	if k < cap(c.runs) {
		c.runs = c.runs[:k+1]
		c.runs[k] = Run{row, 1}
		return true
	}
	return false
}

// next returns where to write the row that was noted.
func (c *chunk) next(size uintptr) unsafe.Pointer {
	n := c.rows.n
	c.rows.n = n + 1
	return c.rows.at(n, size)
}

// placeSlow appends a row to the open log whatever room there is. It returns where to write
// the row, nil if that is nowhere.
//
//go:noinline
func (u *undoStack) placeSlow(row int) unsafe.Pointer {
	l, n := u.top, u.pieces
	if l == nil {
		return nil
	}
	c := u.tail(l, n)
	u.extend(c, row*n, n)
	if l.bare {
		return nil
	}
	if n == 1 && len(u.readers) == 0 && !watching { // What is kept of large rows is for placeSlow alone.
		before := u.bytes(c)
		c.runs = slices.Grow(c.runs, 1)
		u.count(u.bytes(c) - before)
		u.tip = c
	}
	return c.rows.at(c.rows.n-n, u.size)
}

// saveSlow is placeSlow for a plain row, which lies at p.
//
//go:noinline
func (u *undoStack) saveSlow(row int, p unsafe.Pointer) {
	if to := u.placeSlow(row); to != nil {
		copyRow(to, p, u.width)
	}
}

// saveEach appends as many of rows, each a run of its own, as the last chunk of the open
// log has room for. It returns how many, and where to write them, nil if that is nowhere.
func (u *undoStack) saveEach(rows []uint32) (unsafe.Pointer, int) {
	l, n := u.top, len(rows)
	switch {
	case l == nil:
		return nil, n
	case u.pieces > 1:
		return u.placeSlow(int(rows[0])), 1
	}
	c := u.tail(l, 1)
	var p unsafe.Pointer
	if !l.bare {
		n = min(n, c.rows.room-c.rows.n)
		p = c.rows.at(c.rows.n, u.size)
	}
	c.rows.n += n
	before, runs := u.bytes(c), len(c.runs)
	c.runs = slices.Grow(c.runs, n)[:runs+n]
	for i, r := range rows[:n] {
		c.runs[runs+i] = Run{r, 1}
	}
	u.count(u.bytes(c) - before)
	return p, n
}

// tail returns the last chunk of l with room for so many rows at least, for who adds some.
func (u *undoStack) tail(l *undoLog, rows int) *chunk {
	u.saves++
	k := len(l.chunks)
	if k > l.pared {
		if c := l.chunks[k-1]; l.bare || c.rows.room-c.rows.n >= rows {
			return c
		}
	}
	return u.addChunk(l, rows)
}

// addChunk adds a chunk to l, with room for so many rows at least.
func (u *undoStack) addChunk(l *undoLog, rows int) *chunk {
	rung, spares := 0, &u.bare
	if !l.bare {
		rung = u.rung(len(l.chunks)-l.pared, rows)
		spares = u.sparesOf(rung)
	}
	var c *chunk
	if s := len(*spares); s > 0 {
		c, *spares = (*spares)[s-1], (*spares)[:s-1]
		u.spare -= u.bytes(c)
	} else {
		c = &chunk{rung: rung}
		if !l.bare {
			n := u.chunkRows(rung)
			c.rows = slab{p: u.rows.alloc(n), room: n}
		}
		u.giveBack(u.bytes(c))
	}
	u.count(u.bytes(c))
	l.add(c)
	return c
}

// rung returns how large the k-th chunk of a log is that has room for so many rows at least.
func (u *undoStack) rung(k, rows int) int {
	k = min(k, fullRung)
	for u.chunkRows(k) < rows {
		k++
	}
	for k > 0 && u.chunkRows(k-1) == u.chunkRows(k) { // Recycled, it serves for either.
		k--
	}
	return k
}

// chunkRows returns how many rows a chunk of that size holds. That behind the full one is for
// a large row that is more than that.
func (u *undoStack) chunkRows(rung int) int {
	first, full := firstChunkRows, max(1, min(maxChunkRows, chunkBytes/max(1, int(u.size))))
	switch {
	case rung > fullRung:
		return max(full, u.pieces)
	case rung == fullRung:
		return full
	case u.pieces > 1:
		first = max(1, firstChunkBytes/int(u.size))
	}
	return min(full, first<<(2*rung))
}

// bytes returns what c takes.
func (u *undoStack) bytes(c *chunk) int64 { return int64(c.rows.room)*int64(u.size) + room(c.runs) }

// extend adds rows [row, row+n) to the runs of c.
func (u *undoStack) extend(c *chunk, row, n int) {
	c.rows.n += n
	if k := len(c.runs) - 1; k >= 0 {
		if last := &c.runs[k]; last.Row+last.N == uint32(row) && uint32(row)&u.split != 0 {
			last.N += uint32(n)
			return
		}
	}
	if len(c.runs) == cap(c.runs) {
		before := u.bytes(c)
		c.runs = append(c.runs, Run{uint32(row), uint32(n)})
		u.count(u.bytes(c) - before)
		return
	}
	c.runs = append(c.runs, Run{uint32(row), uint32(n)})
}

// putBack restores every row saved in logs[k:] to its oldest value there and
// forgets those logs.
func (u *undoStack) putBack(k int) {
	u.moves++
	u.tell(u.Moving, u.logs[k:]...)
	if logs := u.logs[k:]; len(logs) == 1 && !logs[0].repeats {
		for _, c := range logs[0].chunks {
			u.put(c.runs, c.rows.p)
		}
	} else {
		one := make([]Run, 1)
		u.oldest(k, func(row int, p unsafe.Pointer, n int) {
			one[0] = Run{uint32(row), uint32(n)}
			u.put(one, p)
		})
	}
	u.moved(u.logs[k:]...)
	u.cut(k)
}

// undo exchanges the newest log with the live rows, and moves it to the forward
// branch.
func (u *undoStack) undo() {
	k := len(u.logs) - 1
	l := u.logs[k]
	u.exchange(l, true)
	u.logs, u.top = u.logs[:k], nil
	u.forward = append(u.forward, l)
}

// redo is the inverse of undo.
func (u *undoStack) redo() {
	k := len(u.forward) - 1
	l := u.forward[k]
	u.exchange(l, false)
	u.forward = u.forward[:k]
	u.logs = append(u.logs, l)
}

// exchange swaps the saved values of l with the rows they came from: newest
// first to undo, oldest first to redo. It is its own inverse.
func (u *undoStack) exchange(l *undoLog, undo bool) {
	u.moves++
	u.tell(u.Moving, l)
	for i := range l.chunks {
		if undo {
			i = len(l.chunks) - 1 - i
		}
		c := l.chunks[i]
		from := 0
		if undo {
			from = c.rows.n
		}
		for j := range c.runs {
			if undo {
				j = len(c.runs) - 1 - j
				from -= int(c.runs[j].N)
			}
			r := c.runs[j]
			u.rows.swap(int(r.Row), c.rows.at(from, u.size), int(r.N))
			if !undo {
				from += int(r.N)
			}
		}
	}
	u.moved(l)
}

// tell tells f, if there is one, which rows are in logs.
func (u *undoStack) tell(f func(Run), logs ...*undoLog) {
	for _, l := range logs {
		if f != nil {
			l.eachRun(func(r Run) { f(u.wholeRows(r)) })
		}
	}
}

// moved tells whoever wants to know which rows, those in logs, were put back.
func (u *undoStack) moved(logs ...*undoLog) {
	u.tell(u.Moved, logs...)
	if len(u.readers) > 0 {
		u.tell(func(r Run) { u.report(int(r.Row), int(r.Row+r.N)) }, logs...)
	}
}

// cut forgets logs[k:].
func (u *undoStack) cut(k int) {
	for _, l := range u.logs[k:] {
		u.recycle(l)
	}
	u.logs, u.top = u.logs[:k], nil
}

// drop forgets logs[k].
func (u *undoStack) drop(k int) {
	u.recycle(u.logs[k])
	copy(u.logs[k:], u.logs[k+1:])
	u.logs, u.top = u.logs[:len(u.logs)-1], nil
}

func (u *undoStack) dropForward() {
	for _, l := range u.forward {
		u.recycle(l)
	}
	u.forward = u.forward[:0]
}

// discard forgets logs[k], whose record is removed. Its memory is used for the next one, while
// it is in a cache.
func (u *undoStack) discard(k int) {
	u.recycle(u.logs[k])
	u.logs[k], u.top = gone, nil
}

// squeeze takes out the logs of records that are removed.
func (u *undoStack) squeeze() {
	u.logs = slices.DeleteFunc(u.logs, func(l *undoLog) bool { return l == gone })
	u.top = nil
}

// merge makes logs[k] hold also what logs[at] does, which is older and gone then.
func (u *undoStack) merge(at, k int) {
	u.moves++
	older, newer := u.logs[at], u.logs[k]
	switch {
	case older.rows() == 0 || newer.rows() == 0:
		older.repeats = older.repeats || newer.repeats
		u.concat(older, newer)
	case older.rows() <= 4*newer.rows() && !older.repeats:
		u.fold(older, newer)
	default: // Looking at what older holds costs too much for so little.
		older.repeats = true
		u.concat(older, newer)
		u.tidy(older)
	}
	u.discard(k)
	u.logs[at], u.logs[k] = gone, older
}

// fold adds the rows of newer that older, in which no row repeats, does not hold:
// its values are the older ones.
func (u *undoStack) fold(older, newer *undoLog) {
	older.eachRun(func(r Run) { u.clock.Seen.Add(r, func(uint32, uint32) {}) })
	u.saveUnseen(older, newer.chunks)
	older.eachRun(u.clock.Seen.remove)
	older.kept = older.rows()
}

// again readies the newest log for another span of its frame, which may save
// rows that it holds already.
func (u *undoStack) again() {
	l := u.logs[len(u.logs)-1]
	u.tidy(l)
	l.repeats = l.rows() > 0
}

// tidy compacts l if it has doubled since it was compacted last.
func (u *undoStack) tidy(l *undoLog) {
	if l.repeats && l.rows() > 2*l.kept+1024 {
		u.compact(l)
	}
}

// concat moves what newer holds behind what older holds. Chunks change hands
// whole unless the last one of older has room for all of it.
func (u *undoStack) concat(older, newer *undoLog) {
	k := len(older.chunks)
	room := 0
	if k > older.pared {
		room = older.chunks[k-1].rows.room - older.chunks[k-1].rows.n
	}
	if !older.bare && newer.rows() > room {
		if newer.pared > 0 {
			older.pared = k + newer.pared
		}
		older.size = older.rows() + newer.size
		older.chunks = append(older.chunks, newer.chunks...)
		newer.chunks = newer.chunks[:0]
		return
	}
	for _, c := range newer.chunks {
		at := 0
		for _, r := range c.runs {
			tail := u.tail(older, 1)
			if !older.bare {
				u.rows.move(tail.rows.at(tail.rows.n, u.size), c.rows.at(at, u.size), int(r.N))
				at += int(r.N)
			}
			u.extend(tail, int(r.Row), int(r.N))
		}
	}
}

// compact keeps only the oldest record of each row of l.
func (u *undoStack) compact(l *undoLog) {
	u.moves++
	chunks := slices.Clone(l.chunks)
	l.chunks, l.size, l.pared = nil, 0, 0
	u.saveUnseen(l, chunks)
	l.eachRun(u.clock.Seen.remove)
	for _, c := range chunks {
		u.recycleChunk(c)
	}
	l.kept, l.repeats = l.rows(), false
}

// saveUnseen appends to l those rows of chunks that are not in the scratch set, each
// once, and adds them to it.
func (u *undoStack) saveUnseen(l *undoLog, chunks []*chunk) {
	top := u.top
	u.top = l
	for _, c := range chunks {
		at := uint32(0)
		for _, r := range c.runs {
			u.clock.Seen.Add(r, func(row, n uint32) {
				if l.bare {
					u.extend(u.tail(l, 1), int(row), int(n))
					return
				}
				u.keep(int(row), c.rows.at(int(at+row-r.Row), u.size), int(n), 1)
			})
			at += r.N
		}
	}
	u.top = top
}

func (u *undoStack) recycle(l *undoLog) {
	if l == gone {
		return
	}
	for _, c := range l.chunks {
		u.recycleChunk(c)
	}
	clear(l.chunks)
	*l = undoLog{chunks: l.chunks[:0]}
	u.blank = append(u.blank, l)
}

// saved calls f for what logs[k:], which may be none, hold, oldest first: runs, and
// the rows that they had, behind each other; none in a bare log. The memory is valid
// until f returns.
func (u *undoStack) saved(k int, f func(runs []Run, rows slab)) {
	for ; k < len(u.logs); k++ {
		for _, c := range u.logs[k].chunks {
			f(c.runs, c.rows)
		}
	}
}

// oldest calls f with the oldest rows that logs[k:] hold, n that lie at p, once for each
// row: those that were live when log k was opened.
func (u *undoStack) oldest(k int, f func(row int, p unsafe.Pointer, n int)) {
	logs := u.logs[min(k, len(u.logs)):]
	if len(logs) == 1 && !logs[0].repeats {
		for _, c := range logs[0].chunks {
			at := uint32(0)
			for _, r := range c.runs {
				f(int(r.Row), c.rows.at(int(at), u.size), int(r.N))
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
					f(int(row), c.rows.at(int(at+row-r.Row), u.size), int(n))
				})
				at += r.N
			}
		}
	}
	for _, l := range logs {
		l.eachRun(u.clock.Seen.remove)
	}
}

// logBytes returns what logs[i] holds, or forward[i].
func (u *undoStack) logBytes(i int, undone bool) (n int64) {
	l := u.logs
	if undone {
		l = u.forward
	}
	for _, c := range l[i].chunks {
		n += u.bytes(c)
	}
	return n
}

// memory returns what the logs take, and what recycled memory does.
func (u *undoStack) memory() (undo, spare int64) {
	for _, list := range [2][]*undoLog{u.logs, u.forward} {
		for _, l := range list {
			for _, c := range l.chunks {
				undo += u.bytes(c)
			}
		}
	}
	for _, list := range append(slices.Clone(u.spares), u.bare) {
		for _, c := range list {
			spare += u.bytes(c)
		}
	}
	return undo, spare
}

// eachRun calls f for every run of l, oldest first.
func (l *undoLog) eachRun(f func(Run)) {
	for _, c := range l.chunks {
		for _, r := range c.runs {
			f(r)
		}
	}
}
