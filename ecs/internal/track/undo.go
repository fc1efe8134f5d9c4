package track

import (
	"slices"
	"sync"
	"unsafe"
)

// A rowsOf performs the few operations of a log that depend on the type of the rows. All other code
// of logs handles rows as untyped memory of a known size. So Go compiles that code once, and not
// once for every component type.
type rowsOf interface {
	// alloc returns zeroed memory for n rows.
	alloc(n int) unsafe.Pointer

	// from returns the address of the live row with this number. The next live rows follow it in
	// memory.
	from(row int) unsafe.Pointer

	// swap exchanges n live rows with the n rows at p, starting with the given live row.
	swap(row int, p unsafe.Pointer, n int)

	// move copies the n rows at src to dst.
	move(dst, src unsafe.Pointer, n int)
	wipe(p unsafe.Pointer, n int)

	// fit frees the spare capacity of the live rows, and all rows above the given number.
	fit(rows int)
}

// A slab is memory for rows. It has space for room rows, of which the first n are in use.
type slab struct {
	p    unsafe.Pointer
	n    int
	room int
}

// at returns the address of row i of s.
func (s *slab) at(i int, size uintptr) unsafe.Pointer { return unsafe.Add(s.p, uintptr(i)*size) }

const (
	// Number of rows in the first chunk of a log. A log starts small, because most frames of most
	// storages write little.
	firstChunkRows = 32
	// Size of the first chunk of a log of pieces. It is small, because a frame may change few
	// pieces of a large row.
	firstChunkBytes = 256
	// The size of a full chunk. It is large enough to save a range of rows in few copies.
	chunkBytes   = 64 << 10
	maxChunkRows = 4096
	// The size class of a full chunk. Each chunk of a log is four times as large as the chunk
	// before it, until the chunks have this size class.
	fullSizeClass = 4
)

// A chunk holds runs and the saved values of their rows, in the order in which they were saved.
// Chunks are recycled and never grow, so saved values are not copied again.
type chunk struct {
	runs []Run
	rows slab
	// The size class: see [undoStack.sizeClass].
	rung int
}

// noRoom is a chunk without free space. If the field tip of an undoStack is noRoom, every save
// takes the slow path.
var noRoom = new(chunk)

// An undoLog holds the rows that one frame saved, oldest first. After a merge of two frames, a row
// can occur more than once. A restore then uses its oldest value.
type undoLog struct {
	chunks []*chunk
	// The array behind the field chunks while the log has one chunk.
	first [1]*chunk
	// Number of rows in all chunks except the last.
	size int
	// Number of rows after the last compaction. When the log has more than twice as many rows,
	// [undoStack.tidy] compacts it again.
	kept int
	// Number of chunks at the start of the log that [undoStack.dropUnchanged] has already
	// processed. No rows are appended to these chunks.
	pared int
	// Set if a row may occur more than once.
	repeats bool
	// Set if the log has runs without values, because no restore will use the log.
	bare bool
}

// tombstone replaces the logs of removed records. It is empty and is never written.
var tombstone = new(undoLog)

// rows returns the number of rows in the runs of l.
func (l *undoLog) rows() int {
	if k := len(l.chunks); k > 0 {
		return l.size + l.chunks[k-1].rows.n
	}
	return 0
}

// add appends c to the chunks of l.
func (l *undoLog) add(c *chunk) {
	l.size = l.rows()
	if l.chunks == nil {
		l.chunks = l.first[:0]
	}
	l.chunks = append(l.chunks, c)
}

// cut removes chunks[k:] from l.
func (l *undoLog) cut(k int) {
	l.size = l.rows()
	for _, c := range l.chunks[max(k-1, 0):] {
		l.size -= c.rows.n
	}
	l.chunks = l.chunks[:k]
}

// An undoStack holds the logs of one column. It has one log for every frame in which the storage of
// the column changed. It also has the logs of undone frames.
type undoStack struct {
	logs    []*undoLog // Oldest first. The last log is open.
	forward []*undoLog // Undone logs. A redo starts with the last log.
	top     *undoLog   // The open log, or nil.
	// The chunk to which the fast path of saves appends rows. It is the last chunk of the field
	// top. It is noRoom while every save must take the slow path.
	tip *chunk

	rows rowsOf
	// Size of a row, or of a piece if rows are large. Runs count rows of this size.
	size uintptr
	// put copies the consecutive rows at p to the live rows of runs.
	put   func(runs []Run, p unsafe.Pointer)
	clock *Clock
	// Called with rows before they are restored, undone or redone. May be nil.
	Moving func(Run)
	// Called with rows after they were restored, undone or redone. May be nil.
	Moved func(Run)
	// A mask of row numbers. A row that has none of these bits begins a new run. A sparse array
	// uses PageMask, so each run ends with its page.
	split uint32
	// Set if rows hold pointers. Recycled chunks are then zeroed.
	wipes bool
	// Set if the rows can be computed from other columns, like the entries of a sparse array. Such
	// rows are called derived. A bare frame does not record derived rows.
	Follows bool
	// Set if a reader needs the old values of this column. Bare frames then save values too.
	Keeps bool
	// Readers that are notified of rows that are saved or restored.
	readers []*DirtySet
	// Increases when a save takes the slow path. A reader that must notice the next save disables
	// the fast path: see [AsOf.CatchUp].
	saves uint64
	// Increases when saved values are restored or moved. Pointers to saved values are then invalid,
	// because their memory is reused.
	moves uint64

	// Recycled chunks with memory for values, by size class.
	spares [][]*chunk
	// Recycled chunks without memory for values.
	bare []*chunk
	// Recycled logs without chunks.
	blank []*undoLog
	// Bytes of the chunks in logs.
	used int64
	// The highest value of used so far.
	most int64
	// Bytes of the chunks in the fields spares and bare.
	spare int64
	// Number of pieces per row: 1, or more if rows are large.
	pieces int
	// Size of a whole row, even if the row has several pieces.
	width uintptr
	// Released Olds that Pin can reuse.
	pins sync.Pool
}

// push opens a new, empty log. Before that, it drops unchanged pieces of large rows from the last
// log. The parameter bare asks for a log without values. The parameter read says that as-of readers
// exist. The log stores values anyway in two cases: if Keeps is set, or if read is set and the rows
// are not derived.
func (u *undoStack) push(bare, read bool) {
	u.dropUnchanged()
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

// pick makes the newest log the open log, and returns the number of rows to protect. This number is
// prot. But it is 0 for derived rows if the open log stores no values. If the column has no log, a
// save reports the row to readers and stores nothing.
func (u *undoStack) pick(prot int) int {
	u.top, u.tip = nil, noRoom
	if k := len(u.logs); k > 0 {
		u.top = u.logs[k-1]
	}
	if u.Follows && (u.top == nil || u.top.bare) {
		return 0
	}
	return prot
}

// save appends n live rows to the open log, starting with the given row.
func (u *undoStack) save(row, n int) {
	row, n = row*u.pieces, n*u.pieces
	u.keep(row, u.rows.from(row), n, u.pieces)
}

// keep appends n rows to the open log, beginning with the given row. Their values are at p. In a
// log of pieces, n counts pieces. If whole is the number of pieces of a row, keep puts all pieces
// of a row into one chunk. Otherwise whole is 1.
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

// ready reports whether c has space for another value.
func (c *chunk) ready() bool { return c.rows.n < c.rows.room }

// note adds a row number to the runs of c, which has at least one run. If joins is set and the row
// directly follows the last run, note extends that run. Otherwise it adds a new run. It returns
// false if c has no space for a new run.
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

// next returns the address for the value of the row that the last call of note() recorded.
func (c *chunk) next(size uintptr) unsafe.Pointer {
	n := c.rows.n
	c.rows.n = n + 1
	return c.rows.at(n, size)
}

// placeSlow appends a row to the open log and allocates a chunk if needed. It returns the address
// for the value of the row, or nil if the log stores no value.
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
	// Enable the fast path. It cannot handle large rows, readers and debug hooks.
	if n == 1 && len(u.readers) == 0 && !watching {
		before := u.bytes(c)
		c.runs = slices.Grow(c.runs, 1)
		u.count(u.bytes(c) - before)
		u.tip = c
	}
	return c.rows.at(c.rows.n-n, u.size)
}

// saveSlow appends the row at p to the open log by placeSlow. The row must not need Clone.
//
//go:noinline
func (u *undoStack) saveSlow(row int, p unsafe.Pointer) {
	if to := u.placeSlow(row); to != nil {
		copyRow(to, p, u.width)
	}
}

// saveEach appends rows to the open log, each as a separate run, until the last chunk is full. It
// returns the address for their values and the number of rows appended. The address is nil if the
// log stores no values.
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

// tail returns the last chunk of l. If that chunk has no space for the given number of rows, tail
// adds a new chunk and returns it.
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

// addChunk appends a chunk to l with space for at least the given number of rows.
func (u *undoStack) addChunk(l *undoLog, rows int) *chunk {
	rung, spares := 0, &u.bare
	if !l.bare {
		rung = u.sizeClass(len(l.chunks)-l.pared, rows)
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

// sizeClass returns the size class of the k-th chunk of a log. The chunk has space for at least the
// given number of rows.
func (u *undoStack) sizeClass(k, rows int) int {
	k = min(k, fullSizeClass)
	for u.chunkRows(k) < rows {
		k++
	}
	// If two classes have the same size, use the smaller class, so that they share recycled chunks.
	for k > 0 && u.chunkRows(k-1) == u.chunkRows(k) {
		k--
	}
	return k
}

// chunkRows returns the number of rows that a chunk of a size class holds. For large rows, it
// returns the number of pieces. All pieces of a large row must fit into one chunk. So a chunk above
// fullSizeClass has space for at least one large row, whatever its size.
func (u *undoStack) chunkRows(rung int) int {
	first, full := firstChunkRows, max(1, min(maxChunkRows, chunkBytes/max(1, int(u.size))))
	switch {
	case rung > fullSizeClass:
		return max(full, u.pieces)
	case rung == fullSizeClass:
		return full
	case u.pieces > 1:
		first = max(1, firstChunkBytes/int(u.size))
	}
	return min(full, first<<(2*rung))
}

// bytes returns the memory size of c.
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

// putBack restores every row that was saved in logs[k:] to its oldest value in these logs. It
// removes the logs.
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

// undo swaps the rows in the newest log with the live rows and moves the log to the undone logs.
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

// exchange swaps the saved values of l with the live rows. A row may occur more than once in l, so
// the order matters. An undo swaps the newest saved row first, and a redo the oldest. So a redo
// reverts exactly what the undo did.
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

// tell calls f with all rows in logs. f may be nil.
func (u *undoStack) tell(f func(Run), logs ...*undoLog) {
	for _, l := range logs {
		if f != nil {
			l.eachRun(func(r Run) { f(u.wholeRows(r)) })
		}
	}
}

// moved reports the restored rows of logs to Moved and to the readers.
func (u *undoStack) moved(logs ...*undoLog) {
	u.tell(u.Moved, logs...)
	if len(u.readers) > 0 {
		u.tell(func(r Run) { u.report(int(r.Row), int(r.Row+r.N)) }, logs...)
	}
}

// cut removes logs[k:].
func (u *undoStack) cut(k int) {
	for _, l := range u.logs[k:] {
		u.recycle(l)
	}
	u.logs, u.top = u.logs[:k], nil
}

// drop removes logs[k].
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

// discard recycles logs[k], whose record is removed.
func (u *undoStack) discard(k int) {
	u.recycle(u.logs[k])
	u.logs[k], u.top = tombstone, nil
}

// squeeze removes the logs of removed records from the list.
func (u *undoStack) squeeze() {
	u.logs = slices.DeleteFunc(u.logs, func(l *undoLog) bool { return l == tombstone })
	u.top = nil
}

// merge moves the rows of logs[at], the older log, into logs[k]. logs[at] is empty afterwards.
func (u *undoStack) merge(at, k int) {
	u.moves++
	older, newer := u.logs[at], u.logs[k]
	switch {
	case older.rows() == 0 || newer.rows() == 0:
		older.repeats = older.repeats || newer.repeats
		u.concat(older, newer)
	case older.rows() <= 4*newer.rows() && !older.repeats:
		u.fold(older, newer)
	// The newer log has few rows, so append them all. A search for rows that the older log already
	// has would have to read the whole older log.
	default:
		older.repeats = true
		u.concat(older, newer)
		u.tidy(older)
	}
	u.discard(k)
	u.logs[at], u.logs[k] = tombstone, older
}

// fold adds to the older log the rows of the newer log that the older log does not have. A row in
// both logs keeps the value in the older log. Afterwards the older log contains each row once.
func (u *undoStack) fold(older, newer *undoLog) {
	older.eachRun(func(r Run) { u.clock.Seen.Add(r, func(uint32, uint32) {}) })
	u.saveUnseen(older, newer.chunks)
	older.eachRun(u.clock.Seen.remove)
	older.kept = older.rows()
}

// reopenLog prepares the newest log for a new span of its frame. All marks become invalid in the
// new span. So it may save rows that the log already contains.
func (u *undoStack) reopenLog() {
	l := u.logs[len(u.logs)-1]
	u.tidy(l)
	l.repeats = l.rows() > 0
}

// tidy compacts l if its number of rows has doubled since the last compaction.
func (u *undoStack) tidy(l *undoLog) {
	if l.repeats && l.rows() > 2*l.kept+1024 {
		u.compact(l)
	}
}

// concat appends the rows of the newer log to the older log. If they fit into the last chunk of the
// older log, concat copies them. Otherwise it moves the chunks of the newer log.
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

// compact keeps, for each row of l, only the oldest value.
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

// saveUnseen appends to l each row of chunks that is not in Clock.Seen, and adds the row to Seen.
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
	if l == tombstone {
		return
	}
	for _, c := range l.chunks {
		u.recycleChunk(c)
	}
	clear(l.chunks)
	*l = undoLog{chunks: l.chunks[:0]}
	u.blank = append(u.blank, l)
}

// oldest calls f for the rows in logs[k:], each row once, with its oldest saved value. This value
// was live when log k was opened. Each call passes n consecutive rows, beginning with the given
// row. Their values are at p.
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

// logBytes returns the memory size of logs[i], or of forward[i] if undone is set.
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

// eachRun calls f for every run of l, oldest first.
func (l *undoLog) eachRun(f func(Run)) {
	for _, c := range l.chunks {
		for _, r := range c.runs {
			f(r)
		}
	}
}
