package track

import (
	"math/bits"
	"slices"
	"sort"
	"unsafe"
)

// An AsOf reads an earlier state of a tracker, while the tracker continues to change. This state is
// the boundary of the AsOf: the start of a frame, or the end of an undone frame.
//
// An AsOf holds the lengths of the tracker at the boundary. For two columns, it also holds the rows
// that have changed since, with their values at the boundary. It reads all other rows from the live
// rows. For an undone frame, the changed rows come from the logs of undone frames.
//
// Before a look-up, a reader calls [AsOf.Current]. If the result is false, the reader calls
// [AsOf.CatchUp]. CatchUp costs O(rows written since the last CatchUp). If a log released memory in
// between, CatchUp reads all changes again, which costs O(rows written since the boundary).
//
// An AsOf does not prevent its frame from being dropped. [NewAsOf] returns an AsOf.
type AsOf struct {
	Lengths
	Columns [2]Old
	t       *Tracker
	// The value of t.marks at the last CatchUp. Every call of Tracker.Reopen changes t.marks.
	marks uint64
	// Columns[0].u.saves plus Columns[1].u.saves at the last CatchUp.
	saves uint64
}

// NewAsOf returns an AsOf for the logs of two columns of t. The second log may be nil. CatchUp sets
// the boundary of the AsOf.
func NewAsOf(t *Tracker, a, b *Log) AsOf {
	h := AsOf{t: t}
	for i, l := range [2]*Log{a, b} {
		h.Columns[i].u = &undoStack{pieces: 1}
		if l != nil {
			h.Columns[i].u = &l.undoStack
		}
	}
	return h
}

// Current reports whether no row was saved since the last CatchUp. The result is valid until a
// frame begins or ends. Every look-up calls Current, so Current is small enough to be inlined.
func (h *AsOf) Current() bool {
	return h.marks == h.t.marks && h.saves == h.Columns[0].u.saves+h.Columns[1].u.saves
}

// Reset discards the rows in h. Callers use it before h gets another boundary.
func (h *AsOf) Reset() {
	for i := range h.Columns {
		h.Columns[i].reset()
	}
}

// CatchUp updates h to the state at the start of frame id. If ahead is set, the frame is undone,
// and h gets the state at its end. The logs must contain values.
func (h *AsOf) CatchUp(id uint64, ahead bool) {
	var k int
	if ahead {
		k, h.Lengths = h.t.ahead(id)
	} else {
		k, h.Lengths, _ = h.t.Since(id)
	}
	h.marks, h.saves = h.t.marks, 0
	for i := range h.Columns {
		o := &h.Columns[i]
		if o.moves != o.u.moves {
			o.reset()
		}
		o.limit = h.N * o.u.pieces
		if ahead {
			o.readAhead(k)
		} else {
			o.read(k)
		}
		// Make the next save take the slow path. Only the slow path increments u.saves.
		o.u.tip = noRoom
		h.saves += o.u.saves
	}
}

// ahead returns the lengths at the end of the undone frame id, and a position k. A redo leads to
// this end if it applies the undone records from the last one down to forward[k]. The undone logs
// have the same positions as the records.
func (t *Tracker) ahead(id uint64) (k int, after Lengths) {
	k = sort.Search(len(t.forward), func(i int) bool { return t.forward[i].frame <= id })
	if k == len(t.forward) {
		return k, t.Lengths
	}
	return k, t.forward[k].Lengths
}

// An Old holds the rows of a column that were written since a boundary, with their values at the
// boundary. It stores the rows in blocks. A block stands for 64 rows of the column. Bit i of
// oldBlock.saved is 1 if the Old has row i of the block. oldBlock.rows points to the values of
// these rows, one after another.
//
// An [AsOf] reads the logs of retained frames into its Olds. If a log has all 64 rows of a block
// side by side, the block points to the memory of the log. A log that moves or releases rows
// increments undoStack.moves. The next CatchUp then discards the blocks and reads the logs again.
//
// An Old that [Pin] returns copies all rows. A frame may be dropped once [Old.Absorb] has read its
// logs.
type Old struct {
	u *undoStack
	// Called with each group of n rows that are added. Their values are at p. May be nil.
	added func(row, n int, p unsafe.Pointer)
	// Number of rows at the boundary. Here and in the fields below, a large row counts once per
	// piece: see pieces.go.
	limit int
	// Buffer for composing a large row.
	whole  []uint64
	blocks []oldBlock
	// Numbers of the blocks with at least one row.
	used  []uint32
	slabs []slab // Memory of the saved rows, except those in the memory of a log.
	slab  int    // Position of the first slab with free space.
	place place  // The position up to which the logs are read.
	moves uint64 // The value of u.moves when this Old began to read the logs.

	// Set if the Old is pinned, and so never refers to the memory of a log.
	pinned bool
	// Returns a deep copy of the n rows at p, for a pinned Old. Nil if plain copies are enough.
	clone func(p unsafe.Pointer, n int) unsafe.Pointer
	// For a pinned Old, the number of blocks that were not yet passed to Done.
	left int
}

type oldBlock struct {
	saved uint64
	rows  unsafe.Pointer
}

// doneBlock replaces a block that no reader needs: see [Old.Done]. It has no memory. All its bits
// are set, so the method add skips its rows.
var doneBlock = oldBlock{saved: ^uint64(0)}

// blocksOf returns the number of blocks for the given number of rows.
func blocksOf(rows int) int { return (rows + 63) >> 6 }

// A place is a position in a log.
type place struct {
	log *undoLog
	// Indices of the last chunk that was read, and of the last run that was read in this chunk.
	chunk, run int
	// Number of rows already read from the last run.
	rows int
	// Number of rows of this chunk that are in earlier runs.
	before int
}

// Has reports whether row i was written since the boundary. The row must have existed at the
// boundary. Has and most other methods of Old count large rows in pieces.
func (o *Old) Has(i int) bool {
	return uint(i>>6) < uint(len(o.blocks)) && o.blocks[i>>6].saved>>(uint(i)&63)&1 != 0
}

// at returns the address of the old value of row i. o.Has(i) must be true.
func (o *Old) at(i int, size uintptr) unsafe.Pointer {
	b := &o.blocks[i>>6]
	return unsafe.Add(b.rows, uintptr(rank(b.saved, i))*size)
}

// rank returns the number of saved rows of a block before row i.
func rank(saved uint64, i int) int { return bits.OnesCount64(saved & (1<<(uint(i)&63) - 1)) }

// reset removes all rows from o.
func (o *Old) reset() {
	for _, b := range o.used {
		o.blocks[b] = oldBlock{}
	}
	for i := range o.slabs {
		s := &o.slabs[i]
		if o.u.wipes {
			o.u.rows.wipe(s.p, s.n)
		}
		s.n = 0
	}
	o.used, o.slab, o.place, o.moves = o.used[:0], 0, place{}, o.u.moves
}

// read adds the rows of the logs from position k on. It reads the oldest log first, because the
// oldest value of a row is the value at the boundary.
func (o *Old) read(k int) {
	logs := o.u.logs
	for i := len(logs) - 1; i > k; i-- {
		if logs[i] == o.place.log {
			k = i
		}
	}
	for ; k < len(logs); k++ {
		o.readLog(logs[k])
	}
}

// readLog adds the rows of l. If o.place is in l, readLog starts after that place.
func (o *Old) readLog(l *undoLog) {
	at := &o.place
	if at.log != l {
		*at = place{log: l}
	}
	for {
		if at.chunk == len(l.chunks) {
			return
		}
		c := l.chunks[at.chunk]
		for i, r := range c.runs[at.run:] {
			if i > 0 {
				at.run, at.before, at.rows = at.run+1, at.before+at.rows, 0
			}
			if n := int(r.N) - at.rows; n > 0 {
				o.add(int(r.Row)+at.rows, n, c.rows.at(at.before+at.rows, o.u.size))
			}
			at.rows = int(r.N)
		}
		// Do not leave the last chunk. Later saves append rows to it, and may extend its last run.
		if at.chunk == len(l.chunks)-1 {
			return
		}
		at.chunk, at.run, at.rows, at.before = at.chunk+1, 0, 0, 0
	}
}

// readAhead adds the rows of the undone logs from position k on. A row can be in several of these
// logs. A redo applies the log at position k last, so the value in this log counts. The method add
// keeps the first value that it gets for a row. So readAhead begins at position k, and reads each
// log backwards.
func (o *Old) readAhead(k int) {
	for ; k < len(o.u.forward); k++ {
		for _, c := range slices.Backward(o.u.forward[k].chunks) {
			at := c.rows.n
			for _, r := range slices.Backward(c.runs) {
				at -= int(r.N)
				o.add(int(r.Row), int(r.N), c.rows.at(at, o.u.size))
			}
		}
	}
}

// add adds n rows, beginning with the given row. Their values are at p. It skips rows that o
// already has, and rows that are not below o.limit.
func (o *Old) add(row, n int, p unsafe.Pointer) {
	end := min(row+n, o.limit)
	if row < end {
		o.grow()
	}
	for at := row; at < end; {
		stop := min(at|63+1, end)
		o.addTo(uint32(at>>6), blockMask(uint32(at), uint32(stop)), unsafe.Add(p, uintptr(at-row)*o.u.size))
		at = stop
	}
}

// grow allocates the blocks of all rows below limit.
func (o *Old) grow() {
	if n := blocksOf(o.limit); n > len(o.blocks) {
		o.blocks = append(o.blocks, make([]oldBlock, n-len(o.blocks))...)
	}
}

// addTo adds the rows of block b whose bits are set in the mask want. These rows are consecutive
// and stored at p.
func (o *Old) addTo(b uint32, want uint64, p unsafe.Pointer) {
	block := &o.blocks[b]
	fresh := want &^ block.saved
	if fresh == 0 {
		return
	}
	if block.saved == 0 {
		o.used = append(o.used, b)
	}
	if fresh == ^uint64(0) && !o.pinned {
		block.saved, block.rows = fresh, p
		o.tell(int(b)<<6, 64, p)
		return
	}
	for first := bits.TrailingZeros64(want); fresh != 0; {
		from := bits.TrailingZeros64(fresh)
		n := bits.TrailingZeros64(^(fresh >> from))
		rows := unsafe.Add(p, uintptr(from-first)*o.u.size)
		o.insert(block, from, n, rows)
		o.tell(int(b)<<6|from, n, rows)
		fresh &^= (1<<n - 1) << from
	}
}

func (o *Old) tell(row, n int, p unsafe.Pointer) {
	if o.added != nil {
		o.added(row, n, p)
	}
}

// insert adds copies of the n rows at p to block b, beginning at row i of the block.
func (o *Old) insert(b *oldBlock, i, n int, p unsafe.Pointer) {
	u := o.u
	if o.clone != nil {
		p = o.clone(p, n) // Clone before b changes, because clone may panic.
	}
	have, before := bits.OnesCount64(b.saved), rank(b.saved, i)
	if have == 0 || have+n > blockRoom(have) {
		rows := o.alloc(blockRoom(have + n))
		if have > 0 {
			o.move(rows, b.rows, have)
		}
		b.rows = rows
	}
	at := unsafe.Add(b.rows, uintptr(before)*u.size)
	if have > before {
		o.move(unsafe.Add(at, uintptr(n)*u.size), at, have-before)
	}
	o.move(at, p, n)
	b.saved |= (1<<n - 1) << i
}

// move copies n rows from src to dst. Rows without pointers are copied as bytes.
func (o *Old) move(dst, src unsafe.Pointer, n int) {
	if o.u.wipes {
		o.u.rows.move(dst, src, n)
		return
	}
	copyRow(dst, src, uintptr(n)*o.u.size)
}

// blockRoom returns the capacity to allocate for a block with the given number of rows, which is at
// least one.
func blockRoom(rows int) int {
	switch {
	case rows <= 4:
		return 4
	case rows <= 16:
		return 16
	}
	return 64
}

// alloc returns memory for n rows. n is at most 64.
func (o *Old) alloc(n int) unsafe.Pointer {
	for ; o.slab < len(o.slabs); o.slab++ {
		if s := &o.slabs[o.slab]; s.n+n <= s.room {
			s.n += n
			return s.at(s.n-n, o.u.size)
		}
	}
	room := max(n, o.u.chunkRows(o.slab))
	o.slabs = append(o.slabs, slab{p: o.u.rows.alloc(room), n: n, room: room})
	return o.slabs[o.slab].p
}

// Lives reports whether row i of c was not written since the boundary of o, so the live row has the
// value of the boundary. It returns false for all large rows. Lives is small enough to be inlined.
func Lives[T any](c *Column[T], o *Old, i int) bool {
	return unsafe.Sizeof(c.Live[0]) <= largeRow && !o.Has(i)
}

// RowAsOf returns row i of c at the boundary of o. The caller must not write to the row. The
// pointer is valid until the next call.
func RowAsOf[T any](c *Column[T], o *Old, i int) *T {
	switch {
	case o.u.pieces > 1:
		return (*T)(o.together(c.Log.row(i), i))
	case !o.Has(i):
		return &c.Live[i]
	}
	return (*T)(o.at(i, unsafe.Sizeof(c.Live[0])))
}

// together returns large row i as it was at the boundary. The parameter live points to the live
// row. If no piece of the row was written since the boundary, the result is live. Otherwise the
// result is a copy of the live row, with the old values of the pieces that were written.
func (o *Old) together(live unsafe.Pointer, i int) unsafe.Pointer {
	n, size := o.u.pieces, o.u.size
	if !o.Any(i*n, (i+1)*n) {
		return live
	}
	o.whole = sized(o.whole, int(o.u.width+7)/8)
	row := unsafe.Pointer(unsafe.SliceData(o.whole))
	copyRow(row, live, o.u.width)
	o.each(i*n, (i+1)*n, func(piece, some int) {
		copyRow(unsafe.Add(row, uintptr(piece-i*n)*size), o.at(piece, size), uintptr(some)*size)
	})
	return row
}

// each calls f for all runs of consecutive rows in [lo, hi) that o has. f gets the first row of the
// run and the number of its rows. A run does not cross the end of a block.
func (o *Old) each(lo, hi int, f func(row, some int)) {
	for at := lo; at < hi && at>>6 < len(o.blocks); {
		stop := min(at|63+1, hi)
		saved := o.blocks[at>>6].saved & blockMask(uint32(at), uint32(stop))
		for saved != 0 {
			from := bits.TrailingZeros64(saved)
			n := bits.TrailingZeros64(^(saved >> from))
			f(at&^63+from, n)
			saved &^= (1<<n - 1) << from
		}
		at = stop
	}
}

// RowsAsOf returns rows of c as they were at the boundary of o. It returns len(dst) rows, beginning
// with the given row. If one of these rows was written since the boundary, the result is dst.
// Otherwise the result is the live rows, and the caller must not write to them.
func RowsAsOf[T any](c *Column[T], o *Old, row int, dst []T) []T {
	end := row + len(dst)
	switch n := o.u.pieces; {
	case !o.Any(row*n, end*n):
		return c.Live[row:end:end]
	case n > 1:
		for i := range dst {
			dst[i] = *RowAsOf(c, o, row+i)
		}
		return dst
	}
	// The rows below live are already in dst.
	live := row
	o.each(row, end, func(at, n int) {
		copy(dst[live-row:], c.Live[live:at])
		copy(dst[at-row:], rowsAt[T](o.at(at, o.u.size), n))
		live = at + n
	})
	copy(dst[live-row:], c.Live[live:end])
	return dst
}

// RunAsOf returns consecutive rows, beginning with the given row, as they were at the boundary of
// o. It copies nothing. The result ends before row hi, or earlier where the values are not
// consecutive in memory. The caller must not write to it. RunAsOf returns nil for large rows.
func RunAsOf[T any](c *Column[T], o *Old, row, hi int) []T {
	switch {
	case o.u.pieces > 1:
		return nil
	case !o.Has(row):
		end := o.liveEnd(row, hi)
		return c.Live[row:end:end]
	}
	p, n := o.run(row, hi)
	return rowsAt[T](p, n)
}

// liveEnd returns the first row of [lo, hi) that o has, or hi if there is none.
func (o *Old) liveEnd(lo, hi int) int {
	for ; lo < hi && lo>>6 < len(o.blocks); lo = lo | 63 + 1 {
		if saved := o.blocks[lo>>6].saved >> (lo & 63); saved != 0 {
			return min(hi, lo+bits.TrailingZeros64(saved))
		}
	}
	return hi
}

// run returns the address p of a row that o has. n is the number of rows in [row, hi) that are
// stored consecutively at p.
func (o *Old) run(row, hi int) (p unsafe.Pointer, n int) {
	size := o.u.size
	p = o.at(row, size)
	room := o.room(p) // The run ends with the slab, even if another slab follows in memory.
	for at := row; ; {
		b := &o.blocks[at>>6]
		some := min(bits.TrailingZeros64(^(b.saved >> (at & 63))), 64-at&63)
		at += some
		if at >= hi || at&63 != 0 || at>>6 == len(o.blocks) || at-row >= room {
			return p, min(at, hi) - row
		}
		next := unsafe.Add(p, uintptr(at-row)*size)
		if o.blocks[at>>6].rows != next || o.blocks[at>>6].saved&1 == 0 {
			return p, at - row
		}
	}
}

// room returns the number of rows from p to the end of its slab, or 0 if p is in the memory of a
// log.
func (o *Old) room(p unsafe.Pointer) int {
	for i := range o.slabs {
		s := &o.slabs[i]
		if at := uintptr(p) - uintptr(s.p); at < uintptr(s.room)*o.u.size {
			return s.room - int(at/o.u.size)
		}
	}
	return 0
}

// Any reports whether one of the rows [lo, hi) was written since the boundary. All of these rows
// must have existed at the boundary.
func (o *Old) Any(lo, hi int) bool {
	for hi = min(hi, len(o.blocks)<<6); lo < hi; lo = lo | 63 + 1 {
		if o.blocks[lo>>6].saved&blockMask(uint32(lo), uint32(min(lo|63+1, hi))) != 0 {
			return true
		}
	}
	return false
}

// OnOld makes o call f with each group of rows of c that o adds.
func OnOld[T any](_ *Column[T], o *Old, f func(row int, rows []T)) {
	o.added = func(row, n int, p unsafe.Pointer) { f(row, rowsAt[T](p, n)) }
}

// Pin returns an Old for the current state of c, which has the given number of rows. The caller
// must protect these rows: see [Tracker.Protect].
//
// Before a frame is dropped, the caller calls [Old.Absorb], which copies the rows in the logs of
// the frame. Frames are dropped in order, the oldest first. After the last read, the caller calls
// [Old.Release].
func Pin[T any](c *Column[T], rows int) *Old {
	o, _ := c.Log.pins.Get().(*Old)
	if o == nil {
		o = &Old{u: &c.Log.undoStack, pinned: true}
		if c.Clone != nil {
			// A restore can make the logged value the live value again. Without a clone, a later
			// write to the live row could then change the pinned row.
			o.clone = func(p unsafe.Pointer, n int) unsafe.Pointer {
				rows := slices.Clone(rowsAt[T](p, n))
				for i := range rows {
					rows[i] = c.Clone(rows[i])
				}
				return unsafe.Pointer(&rows[0])
			}
		}
	}
	o.limit = rows * o.u.pieces
	o.left = blocksOf(o.limit)
	return o
}

// Absorb adds the rows of the logs from position k on. It skips rows that o already has, and blocks
// that Done covers.
func (o *Old) Absorb(k int) {
	// Read from the start of the log. The log that place refers to may have been recycled.
	o.place = place{}
	o.read(k)
}

// Done declares that the reader no longer needs rows [lo, hi). Absorb then skips the blocks within
// these rows. Here, a large row counts as one row.
func (o *Old) Done(lo, hi int) {
	lo, hi = lo*o.u.pieces, hi*o.u.pieces
	end := hi >> 6
	if hi >= o.limit {
		end = blocksOf(o.limit)
	}
	o.grow()
	for b := blocksOf(lo); b < end; b++ {
		if o.blocks[b] != doneBlock {
			o.blocks[b] = doneBlock
			o.used = append(o.used, uint32(b))
			o.left--
		}
	}
}

// Finished reports whether all rows are done.
func (o *Old) Finished() bool { return o.left == 0 }

// Release recycles the memory of o, which must not be used again.
func (o *Old) Release() {
	o.reset()
	o.u.pins.Put(o)
}
