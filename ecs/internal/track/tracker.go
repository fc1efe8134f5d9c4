package track

import (
	"slices"
)

// Lengths are the counters of a tracker that a frame saves, in addition to the rows.
type Lengths struct {
	N int // Number of rows in use. They are the first rows.
	// Number of rows that a restore needs, if there are more than N. For example, the registry of a
	// world also keeps free entities, in the rows after the alive entities.
	Total int
	// A number that the owner of the tracker defines. It is saved and restored with the lengths.
	Extra int
}

// height returns the number of rows that a restore may need.
func (l Lengths) height() int { return max(l.N, l.Total) }

// A record holds the lengths that a tracker had at the start of one frame. The logs of the columns
// at the same position hold the rows.
//
// A record is removed when its frame is dropped or merged with a neighbour. At first it is only
// marked as removed: it keeps its place in the list, with an empty log. When more than a quarter of
// the records are marked, all marked records are deleted together. So the time for one removal does
// not depend on the length of the history. The newest record is never marked as removed.
type record struct {
	// The id of the record's frame. A removed record has the id of an earlier record, or 0. So the
	// list stays sorted by id.
	frame uint64
	Lengths
	// The maximum of Lengths.height of this record and all older records.
	prot    int
	removed bool
}

func (r *record) height() int {
	if r.removed {
		return 0
	}
	return r.Lengths.height()
}

// Tracked is the interface through which a tracker uses its columns. *[Log] and *[Sparse] implement
// it.
type Tracked interface {
	push(bare, read bool)
	dropUnchanged()
	reopenLog()
	open(marks uint64, prot int)
	putBack(k int)
	undo()
	redo()
	merge(older, k int)
	discard(k int)
	drop(k int)
	squeeze()
	dropForward()
	reach() int
	shrink(rows int)
	reserve(rows int)
	check(records, forward int) (bytes int64, err error)
	savedIn(i int) int
	logBytes(i int, undone bool) int64
	SavedRows() int
	bareLog(i int) bool
}

// A Tracker manages columns that change together, such as the columns of a storage, and their
// common lengths. Every change begins with a call of Open. The first change in a frame adds a
// record of the frame. If nothing changes in a frame, the tracker has no record of it.
//
// Init initializes a Tracker.
type Tracker struct {
	clock *Clock
	// The clock's span at the last call of Reopen. Open calls Reopen if it differs from the present
	// span of the clock. The bit stale makes it differ.
	Span uint64
	// Serial number of the last call of Reopen. Only marks with this number are valid.
	marks uint64
	Lengths
	// Rows below Prot are saved before a write. Open computes it.
	Prot int
	// Minimum value of Prot. Protect sets it, because as-of readers need the rows below it.
	floor int
	// Readers that are notified of written rows.
	readers []*DirtySet
	recs    []record // Oldest first.
	// Number of removed records.
	removed int
	// Number of removed records at the start of recs.
	oldest int
	// Undone records. A redo starts with the last record.
	forward []record
	columns []Tracked

	// If set, frames save nothing of this tracker, and a restore does not change it.
	Exempt bool
	// Set by Reopen. If the tracker is exempt, a recorder clears it when it records the changes.
	Changed bool

	// Called when Prot or the lengths may have become smaller. The owner can then clear rows that
	// no restore needs. May be nil.
	Settle func()
	// Called when rows were restored, undone or redone. May be nil.
	Rewound func(before Lengths)
}

// Init initializes t, which must be empty. Further columns can be added by Add before the first
// change.
func (t *Tracker) Init(clock *Clock, exempt bool, columns ...Tracked) {
	t.clock, t.Exempt, t.columns = clock, exempt, columns
}

// Add adds column c to t.
func (t *Tracker) Add(c Tracked) { t.columns = append(t.columns, c) }

// OpenedSince reports whether the tracker was opened for writes in the given span or later.
func (t *Tracker) OpenedSince(span uint64) bool { return t.Span&^stale >= span }

// Open prepares the columns for writes in the current span, by a call of Reopen if necessary. It is
// small enough to be inlined.
func (t *Tracker) Open() {
	if t.Span != t.clock.Span {
		t.Reopen()
	}
}

// Reopen does the work of Open, even if the columns are already prepared in this span. Code that
// replaces all rows calls Reopen directly.
//
//go:noinline
func (t *Tracker) Reopen() {
	c := t.clock
	if c.Shared {
		c.shared.Lock()
		defer c.shared.Unlock()
	}
	c.opened++
	t.Span, t.marks, t.Changed = c.Span, c.opened, true
	if !t.Exempt {
		if c.Undone {
			c.End()
		}
		if c.Frame != nil {
			t.join(c.Frame)
		}
	}
	t.Prot = max(t.least(), t.topProt())
	t.openColumns()
	t.settled()
}

func (t *Tracker) openColumns() {
	for _, c := range t.columns {
		c.open(t.marks, t.Prot)
	}
}

// least returns the smallest Prot that protects all rows that readers need. Frames may need a
// larger Prot.
func (t *Tracker) least() int {
	rows := t.floor
	for _, n := range t.readers {
		rows = max(rows, n.seen)
	}
	return rows
}

// join opens a record for frame f, unless the newest record already belongs to f.
func (t *Tracker) join(f *Frame) {
	k := len(t.recs)
	if k > 0 && t.recs[k-1].frame == f.ID {
		for _, c := range t.columns {
			c.reopenLog()
		}
		return
	}
	t.recs = append(t.recs, record{frame: f.ID, Lengths: t.Lengths, prot: max(t.topProt(), t.height())})
	f.Touched = append(f.Touched, t)
	for _, c := range t.columns {
		c.push(f.Bare, t.floor > 0)
	}
}

// DropUnchanged reduces the logs of large rows to the pieces that f changed. It does nothing for a
// bare frame. The frame must have ended, or must end before the next write.
func (f *Frame) DropUnchanged() {
	if f.Bare {
		return
	}
	for _, t := range f.Touched {
		for _, c := range t.columns {
			c.dropUnchanged()
		}
	}
}

func (t *Tracker) topProt() int {
	if k := len(t.recs); k > 0 {
		return t.recs[k-1].prot
	}
	return 0
}

// Protect makes t save all rows below l.height() before they are written. As-of readers need the
// old values of these rows. Frames may need fewer rows.
func (t *Tracker) Protect(l Lengths) { t.floor = max(t.floor, l.height()) }

// Unprotect removes the minimum that Protect set.
func (t *Tracker) Unprotect() { t.floor = 0 }

// Follow returns a DirtySet for a new reader. At first, the set reports all rows as new. The given
// logs of columns of t report writes to the set. Every write of a row must go through one of these
// columns.
func (t *Tracker) Follow(logs ...*Log) *DirtySet {
	n := &DirtySet{t: t, all: true}
	t.readers = append(t.readers, n)
	for _, l := range logs {
		l.readers = append(l.readers, n)
	}
	return n
}

// Unfollow removes n, which Follow returned for the same logs. Afterwards n gets no more reports.
func (t *Tracker) Unfollow(n *DirtySet, logs ...*Log) {
	t.readers = without(t.readers, n)
	for _, l := range logs {
		l.readers = without(l.readers, n)
	}
	t.Prot = max(t.least(), t.topProt())
	t.openColumns()
	t.settled()
}

// without returns a copy of the slice readers without n. It does not change the original slice,
// because other slices may share that memory.
func without(readers []*DirtySet, n *DirtySet) (others []*DirtySet) {
	for _, r := range readers {
		if r != n {
			others = append(others, r)
		}
	}
	return others
}

// Replaced reports to all readers that all rows of t were replaced.
func (t *Tracker) Replaced() {
	for _, n := range t.readers {
		n.replaced()
	}
}

// Lengthen sets N to n, in the tracker and in every record. So if a restore goes back to any frame,
// the tracker still has n rows.
func (t *Tracker) Lengthen(n int) {
	t.N = n
	for i := range t.recs {
		t.recs[i].N, t.recs[i].prot = n, n
	}
	t.Prot = t.topProt()
	t.openColumns()
}

func (t *Tracker) settled() {
	if t.Settle != nil {
		t.Settle()
	}
}

// lowered recomputes Prot after records were removed. It does not tell the columns. The clock then
// starts a new span, so the next Open passes Prot to the columns.
func (t *Tracker) lowered() {
	t.Prot = max(t.least(), t.topProt())
	t.settled()
}

// Since returns the lengths at the start of frame id, and a position k. The records from position k
// on contain the changes since then. So do the logs from the same position on. ok is false if
// nothing has changed since the start of frame id.
func (t *Tracker) Since(id uint64) (k int, before Lengths, ok bool) {
	if k = t.find(id); k == len(t.recs) {
		return k, t.Lengths, false
	}
	return k, t.recs[k].Lengths, true
}

// SavedIn returns the memory size of the logs of frame id. The frame may be undone.
func (t *Tracker) SavedIn(id uint64) (bytes int64) {
	k := t.find(id)
	undone := k == len(t.recs) || t.recs[k].frame != id
	if undone {
		if k = slices.IndexFunc(t.forward, func(r record) bool { return r.frame == id }); k < 0 {
			return 0
		}
	}
	for _, c := range t.columns {
		bytes += c.logBytes(k, undone)
	}
	return bytes
}

// Untouched reports whether t has no record in any frame, including undone frames.
func (t *Tracker) Untouched() bool { return len(t.recs)+len(t.forward) == 0 }

func (t *Tracker) find(id uint64) int {
	k := len(t.recs)
	// The result is nearly always one of the newest records.
	for n := 0; k > t.oldest && t.recs[k-1].frame >= id; n++ {
		if k--; n == 8 {
			k = Search(t.oldest, k, func(i int) bool { return t.recs[i].frame >= id })
			break
		}
	}
	for k < len(t.recs) && t.recs[k].removed {
		k++
	}
	return k
}

// findBefore returns the same result as find(id), but is faster. The parameter k must be the result
// of find for the frame directly after id. So findBefore looks only at the last record before k
// that is not removed.
func (t *Tracker) findBefore(k int, id uint64) int {
	for i := k - 1; i >= t.oldest; i-- {
		if r := &t.recs[i]; !r.removed {
			if r.frame >= id {
				k = i
			}
			break
		}
	}
	return k
}

// Search returns the first position in [lo, hi) for which f is true, or hi. f must be false before
// that position and true from it on. Search is fast if the position is near lo.
func Search(lo, hi int, f func(int) bool) int {
	for at := min(lo+8, (lo+hi)/2); lo < hi; at = int(uint(lo+hi) / 2) {
		if f(at) {
			hi = at
		} else {
			lo = at + 1
		}
	}
	return lo
}

// PutBack restores the state at the start of frame id. The changes since then cannot be redone.
func (t *Tracker) PutBack(id uint64) {
	k := t.find(id)
	if k == len(t.recs) {
		return
	}
	before := t.Lengths
	t.Lengths = t.recs[k].Lengths
	for _, c := range t.columns {
		c.putBack(k)
	}
	t.cut(k)
	t.rewound(before)
}

func (t *Tracker) rewound(before Lengths) {
	if t.Rewound != nil {
		t.Rewound(before)
	}
	t.lowered()
}

// Undo reverts the changes of the newest record. It stores them for Redo, as changes of the frame
// with the given id. The next Undo must have a smaller id.
func (t *Tracker) Undo(id uint64) {
	k := len(t.recs) - 1
	r := t.recs[k]
	r.Lengths, t.Lengths = t.Lengths, r.Lengths
	r.frame = id
	for _, c := range t.columns {
		c.undo()
	}
	t.cut(k)
	t.forward = append(t.forward, r)
	t.rewound(r.Lengths)
}

// Redo repeats the change that Undo reverted last, as a change of frame id.
func (t *Tracker) Redo(id uint64) {
	k := len(t.forward) - 1
	r := t.forward[k]
	r.Lengths, t.Lengths = t.Lengths, r.Lengths
	for _, c := range t.columns {
		c.redo()
	}
	t.forward = t.forward[:k]
	r.frame, r.prot = id, max(t.topProt(), r.height())
	t.recs = append(t.recs, r)
	t.rewound(r.Lengths)
}

// cut deletes recs[k:], whose logs are already removed. It also deletes removed records directly
// before position k.
func (t *Tracker) cut(k int) {
	for i := k; i < len(t.recs); i++ {
		if t.recs[i].removed {
			t.removed--
		}
	}
	for t.recs = t.recs[:k]; k > 0 && t.recs[k-1].removed; t.recs = t.recs[:k] {
		k--
		t.removed--
		for _, c := range t.columns {
			c.drop(k)
		}
	}
	t.oldest = min(t.oldest, k)
}

// Release merges frame f into the frame older, which is directly before f. So no restore can go
// back to the boundary between them. If both frames have a record of t, Release merges the records.
// If only f has one, it becomes the record of older. Afterwards older lists t as touched.
func (t *Tracker) Release(f, older *Frame) {
	k := t.find(f.ID)
	before := t.findBefore(k, older.ID)
	own := k < len(t.recs) && t.recs[k].frame == f.ID
	if before == k { // The first frame has no record.
		older.Touched = append(older.Touched, t)
		if own {
			t.recs[k].frame = older.ID
		}
		return
	}
	if !own {
		return
	}
	for _, c := range t.columns {
		c.merge(before, k)
	}
	t.recs[k].frame, t.recs[k].Lengths = older.ID, t.recs[before].Lengths
	t.remove(before, k)
}

// Drop removes the record of frame id, which must be the oldest frame.
func (t *Tracker) Drop(id uint64) {
	k := t.find(id)
	if k == len(t.recs) || t.recs[k].frame != id {
		return
	}
	for _, c := range t.columns {
		c.discard(k)
	}
	t.remove(k, k)
}

// remove marks recs[k] as removed. The logs of recs[k] must be empty. All records between positions
// k and last must already be marked as removed. They get the frame id of recs[k-1], so that recs
// stays sorted. remove also updates the protected lengths of the later records.
func (t *Tracker) remove(k, last int) {
	var before record
	if k > 0 {
		before = t.recs[k-1]
	}
	t.recs[k] = record{frame: before.frame, prot: before.prot, removed: true}
	for t.removed++; t.oldest < len(t.recs) && t.recs[t.oldest].removed; {
		t.oldest++
	}
	prot := before.prot
	for i := k + 1; i < len(t.recs); i++ {
		r := &t.recs[i]
		prot = max(prot, r.height())
		if r.prot == prot && i > last {
			break
		}
		if r.prot = prot; i < last {
			r.frame = before.frame
		}
	}
	t.cut(len(t.recs))
	if t.removed > len(t.recs)/4 {
		t.squeeze()
	}
	t.lowered()
}

// squeeze deletes all removed records from recs, and their logs from the lists of the columns.
func (t *Tracker) squeeze() {
	for _, c := range t.columns {
		c.squeeze()
	}
	t.recs = slices.DeleteFunc(t.recs, func(r record) bool { return r.removed })
	t.removed, t.oldest = 0, 0
}

// DropForward removes the undone records and their logs.
func (t *Tracker) DropForward() {
	t.forward = t.forward[:0]
	for _, c := range t.columns {
		c.dropForward()
	}
}
