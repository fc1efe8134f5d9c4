package track

import (
	"slices"
)

// Lengths are what a frame saves of a tracker beside its rows.
type Lengths struct {
	N     int // Rows in use: the first ones.
	Total int // Rows that must come back, if they are more than N.
	Extra int // Any number that the tracker's owner wants back with them.
}

// height is how many rows hold something that going back may need.
func (l Lengths) height() int { return max(l.N, l.Total) }

// A record is what one frame saved of a tracker's lengths. The rows are in the
// logs of its columns, at the same position.
//
// A record whose frame was merged with its neighbour, or forgotten, is removed: it
// stays in the list with an empty log until enough of them are squeezed out
// together, so that a history of any length costs the same. The newest record is
// never one.
type record struct {
	frame uint64 // If it is removed: at least that of the record before.
	Lengths
	prot    int // The largest height in this record and the older ones.
	removed bool
}

func (r *record) height() int {
	if r.removed {
		return 0
	}
	return r.Lengths.height()
}

// Tracked is what a tracker asks of a column: *[Log] and *[Sparse] have it.
type Tracked interface {
	push(bare, read bool)
	pare()
	again()
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

// A Tracker takes columns that change together, and their common lengths, through
// the frames of its clock. It learns of a frame only when something changes: every
// change begins with
//
//	if t.Span != clock.Span {
//		t.Open()
//	}
//
// Init makes one.
type Tracker struct {
	clock *Clock
	Span  uint64 // The clock's span when Open was last called; with stale, another one.
	marks uint64 // The number of that call: whose marks count.
	Lengths
	Prot    int      // Rows below it are saved before they are written. Settled by Open.
	floor   int      // The least that it is, for readers of the past.
	readers []*News  // Of those who want to know what was written.
	recs    []record // Oldest first.
	removed int      // How many records are removed,
	oldest  int      // and how many of the first ones.
	forward []record // Undone; the next one to redo is last.
	columns []Tracked

	Exempt  bool // No frame keeps anything.
	Changed bool // Set by Open; cleared by whoever asks what changed.

	Settle  func()               // Called when Prot or the lengths may have fallen; may be nil.
	Rewound func(before Lengths) // Called when rows were put back, undone or redone; may be nil.
}

// Init readies t, which is empty. More columns can follow by Add, before any
// change.
func (t *Tracker) Init(clock *Clock, exempt bool, columns ...Tracked) {
	t.clock, t.Exempt, t.columns = clock, exempt, columns
}

// Add makes c another column of t.
func (t *Tracker) Add(c Tracked) { t.columns = append(t.columns, c) }

// Open readies the columns for writes in the present span.
//
//go:noinline
func (t *Tracker) Open() {
	c := t.clock
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

// least returns the least that Prot is, whatever the frames need.
func (t *Tracker) least() int {
	rows := t.floor
	for _, n := range t.readers {
		rows = max(rows, n.seen)
	}
	return rows
}

// join opens a record for frame f unless there is one.
func (t *Tracker) join(f *Frame) {
	k := len(t.recs)
	if k > 0 && t.recs[k-1].frame == f.ID {
		for _, c := range t.columns {
			c.again()
		}
		return
	}
	t.recs = append(t.recs, record{frame: f.ID, Lengths: t.Lengths, prot: max(t.topProt(), t.height())})
	f.Touched = append(f.Touched, t)
	for _, c := range t.columns {
		c.push(f.Bare, t.floor > 0)
	}
}

// Pare makes what changed in f keep of large rows only what differs, if it is kept. The frame
// must be over, or be so before the next write.
func (f *Frame) Pare() {
	if f.Bare {
		return
	}
	for _, t := range f.Touched {
		for _, c := range t.columns {
			c.pare()
		}
	}
}

func (t *Tracker) topProt() int {
	if k := len(t.recs); k > 0 {
		return t.recs[k-1].prot
	}
	return 0
}

// Protect makes as many rows as lengths name saved before they are written,
// whatever the frames need: for those who read the past.
func (t *Tracker) Protect(l Lengths) { t.floor = max(t.floor, l.height()) }

// Unprotect ends what Protect began.
func (t *Tracker) Unprotect() { t.floor = 0 }

// Follow returns the news for another reader, to whom all rows are new. It is told by logs,
// the columns of t without which no row is written.
func (t *Tracker) Follow(logs ...*Log) *News {
	n := &News{t: t, all: true}
	t.readers = append(t.readers, n)
	for _, l := range logs {
		l.readers = append(l.readers, n)
	}
	return n
}

// Unfollow ends what Follow of the same logs returned: n is told nothing more.
func (t *Tracker) Unfollow(n *News, logs ...*Log) {
	t.readers = without(t.readers, n)
	for _, l := range logs {
		l.readers = without(l.readers, n)
	}
	t.Prot = max(t.least(), t.topProt())
	t.openColumns()
	t.settled()
}

// without returns readers, which other slices may share, without n.
func without(readers []*News, n *News) (others []*News) {
	for _, r := range readers {
		if r != n {
			others = append(others, r)
		}
	}
	return others
}

// Anew says that all rows of t were replaced, whatever was reported.
func (t *Tracker) Anew() {
	for _, n := range t.readers {
		n.anew()
	}
}

// Lengthen makes N n, as if it had been in every frame kept, so that all of them
// put back new rows too.
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

// lowered follows records that are removed. The clock begins a new span behind
// that, so the columns are told by Open before the next write.
func (t *Tracker) lowered() {
	t.Prot = max(t.least(), t.topProt())
	t.settled()
}

// Since returns the position of the first record of frame id or a later one, which
// is that of its logs too, and the lengths at the beginning of that frame; ok is
// false if nothing changed since.
func (t *Tracker) Since(id uint64) (k int, before Lengths, ok bool) {
	if k = t.find(id); k == len(t.recs) {
		return k, t.Lengths, false
	}
	return k, t.recs[k].Lengths, true
}

// SavedIn returns how many bytes the logs of frame id hold, which may be undone.
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

// Untouched reports whether no frame, undone ones included, has a record of t.
func (t *Tracker) Untouched() bool { return len(t.recs)+len(t.forward) == 0 }

func (t *Tracker) find(id uint64) int {
	k := len(t.recs)
	for n := 0; k > t.oldest && t.recs[k-1].frame >= id; n++ { // One of the newest, nearly always.
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

// findBefore is find for an id below that of recs[k], of the frame before, mostly: the position
// is k or that of the record before it.
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

// Search returns the first position from lo on at which f holds, hi if there is none: f holds
// at none before that, and at all behind. It is sooner found if it is one of the first.
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

// PutBack undoes all changes since the start of frame id, for good.
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

// Undo takes back the changes of the newest record and keeps them, to be redone, as those of
// frame id: a smaller one than that of the frame undone before.
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

// Redo repeats what Undo took back last, as a change of frame id.
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

// cut forgets recs[k:], whose logs are gone already, and then those that are
// removed before them.
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

// Release removes the boundary at the start of frame f: its record joins that of
// older, the frame before, which then knows t.
func (t *Tracker) Release(f, older *Frame) {
	k := t.find(f.ID)
	before := t.findBefore(k, older.ID)
	own := k < len(t.recs) && t.recs[k].frame == f.ID
	if before == k { // The older one has no record of its own.
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

// Drop forgets the record of the oldest frame, id.
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

// remove notes that recs[k], whose logs are empty, is removed, and settles what
// follows: the protected lengths, and the frames of those that are removed up to
// recs[last].
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

// squeeze takes the records that are removed out of the list.
func (t *Tracker) squeeze() {
	for _, c := range t.columns {
		c.squeeze()
	}
	t.recs = slices.DeleteFunc(t.recs, func(r record) bool { return r.removed })
	t.removed, t.oldest = 0, 0
}

// DropForward forgets what Undo kept.
func (t *Tracker) DropForward() {
	t.forward = t.forward[:0]
	for _, c := range t.columns {
		c.dropForward()
	}
}
