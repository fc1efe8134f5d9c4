package ecs

import (
	"slices"
	"sort"
)

// lengths are the lengths that a frame saves. A storage has only n, a group's m is
// a flag.
//
//	registry   [0, n) alive   [n, m) free   [m, total) retired
type lengths struct{ n, m, total int }

// height is how many rows hold something that a restore may need.
func (l lengths) height() int { return max(l.n, l.total) }

// A record is what one frame saved of a tracker's lengths. The rows are in the
// logs of its columns, at the same position.
//
// A record whose frame was merged with its neighbour, or forgotten, is gone: it stays
// in the list with an empty log until enough of them are squeezed out together, so
// that a history of any length costs the same. The newest record is never gone.
type record struct {
	frame uint64 // If it is gone: at least that of the record before.
	lengths
	prot int // The largest height in this record and the older ones.
	gone bool
}

func (r *record) height() int {
	if r.gone {
		return 0
	}
	return r.lengths.height()
}

// trackedColumn is a column or a sparse array.
type trackedColumn interface {
	push(bare bool)
	again()
	open(span uint64, prot int)
	putBack(k int)
	undo()
	redo()
	merge(older, k int)
	discard(k int)
	drop(k int)
	squeeze(recs []record)
	dropForward()
}

// A tracker takes columns that change together, and their common lengths,
// through the frames of a world: those of a storage, of the registry, of a
// resource. It learns of a frame only when its owner changes something: every
// change begins with
//
//	if t.span != t.w.span { t.open() }
type tracker struct {
	w    *World
	span uint64 // The world's span when open was last called.
	lengths
	prot    int // Settled by open: see column.
	floor   int // Rows below it are protected, for pins.
	recs    []record
	gone    int      // How many records are gone.
	forward []record // Undone by seek; the next one to redo is last.
	columns []trackedColumn
	owner   trackerOwner
	exempt  bool // NoRewind: no frame keeps anything.
	changed bool // Set by open; cleared by whoever asks what changed.
}

// A trackerOwner is the registry, a storage or a resource.
type trackerOwner interface {
	// settle is called when the protected length or the lengths may have fallen.
	settle()

	// rewound is called when rows were put back, undone or redone.
	rewound(before lengths)
}

// open readies the columns for writes in the present span.
//
//go:noinline
func (t *tracker) open() {
	w := t.w
	t.span, t.changed = w.span, true
	if !t.exempt {
		w.dropForward()
		if k := len(w.frames); k > 0 {
			t.join(&w.frames[k-1])
		}
	}
	t.prot = max(t.floor, t.topProt())
	for _, c := range t.columns {
		c.open(t.span, t.prot)
	}
	t.owner.settle()
}

// join opens a record for frame f unless there is one.
func (t *tracker) join(f *frame) {
	k := len(t.recs)
	if k > 0 && t.recs[k-1].frame == f.id {
		for _, c := range t.columns {
			c.again()
		}
		return
	}
	t.recs = append(t.recs, record{frame: f.id, lengths: t.lengths, prot: max(t.topProt(), t.height())})
	f.touched = append(f.touched, t)
	for _, c := range t.columns {
		c.push(f.bare)
	}
}

func (t *tracker) topProt() int {
	if k := len(t.recs); k > 0 {
		return t.recs[k-1].prot
	}
	return 0
}

// lowered follows records that are gone. The world begins a new span behind
// that, so the columns are told by open before the next write.
func (t *tracker) lowered() {
	t.prot = max(t.floor, t.topProt())
	t.owner.settle()
}

// find returns the position of the first record of frame id or a later one.
func (t *tracker) find(id uint64) int {
	k := len(t.recs)
	for n := 0; k > 0 && t.recs[k-1].frame >= id; n++ { // One of the newest, nearly always.
		if k--; n == 8 {
			k = sort.Search(k, func(i int) bool { return t.recs[i].frame >= id })
			break
		}
	}
	for k < len(t.recs) && t.recs[k].gone {
		k++
	}
	return k
}

// putBack undoes all changes since the start of frame id, for good.
func (t *tracker) putBack(id uint64) {
	k := t.find(id)
	if k == len(t.recs) {
		return
	}
	before := t.lengths
	t.lengths = t.recs[k].lengths
	for _, c := range t.columns {
		c.putBack(k)
	}
	t.cut(k)
	t.owner.rewound(before)
	t.lowered()
}

// undo takes back the changes of the newest record and keeps them on the
// forward branch.
func (t *tracker) undo() {
	k := len(t.recs) - 1
	r := t.recs[k]
	r.lengths, t.lengths = t.lengths, r.lengths
	for _, c := range t.columns {
		c.undo()
	}
	t.cut(k)
	t.forward = append(t.forward, r)
	t.owner.rewound(r.lengths)
	t.lowered()
}

// redo repeats what undo took back, as a change of frame id.
func (t *tracker) redo(id uint64) {
	k := len(t.forward) - 1
	r := t.forward[k]
	r.lengths, t.lengths = t.lengths, r.lengths
	for _, c := range t.columns {
		c.redo()
	}
	t.forward = t.forward[:k]
	r.frame, r.prot = id, max(t.topProt(), r.height())
	t.recs = append(t.recs, r)
	t.owner.rewound(r.lengths)
	t.lowered()
}

// cut forgets recs[k:], whose logs are gone already, and then those that are gone
// before them.
func (t *tracker) cut(k int) {
	for i := k; i < len(t.recs); i++ {
		if t.recs[i].gone {
			t.gone--
		}
	}
	for t.recs = t.recs[:k]; k > 0 && t.recs[k-1].gone; t.recs = t.recs[:k] {
		k--
		t.gone--
		for _, c := range t.columns {
			c.drop(k)
		}
	}
}

// release removes the boundary at the start of frame id: its record joins the
// record of frame into, the one before.
func (t *tracker) release(id, into uint64) {
	k := t.find(id)
	if k == len(t.recs) || t.recs[k].frame != id {
		return
	}
	older := k - 1
	for older >= 0 && t.recs[older].gone {
		older--
	}
	if older < 0 || t.recs[older].frame != into {
		t.recs[k].frame = into
		return
	}
	for _, c := range t.columns {
		c.merge(older, k)
	}
	t.recs[k].frame, t.recs[k].lengths = into, t.recs[older].lengths
	t.bury(older, k)
}

// drop forgets the record of the oldest frame, id.
func (t *tracker) drop(id uint64) {
	k := t.find(id)
	if k == len(t.recs) || t.recs[k].frame != id {
		return
	}
	for _, c := range t.columns {
		c.discard(k)
	}
	t.bury(k, k)
}

// bury notes that recs[k], whose logs are empty, is gone, and settles what follows:
// the protected lengths, and the frames of those that are gone up to recs[last].
func (t *tracker) bury(k, last int) {
	var before record
	if k > 0 {
		before = t.recs[k-1]
	}
	t.recs[k] = record{frame: before.frame, prot: before.prot, gone: true}
	t.gone++
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
	if t.gone > len(t.recs)/4 {
		t.squeeze()
	}
	t.lowered()
}

// squeeze takes the records that are gone out of the list.
func (t *tracker) squeeze() {
	for _, c := range t.columns {
		c.squeeze(t.recs)
	}
	t.recs = slices.DeleteFunc(t.recs, func(r record) bool { return r.gone })
	t.gone = 0
}

func (t *tracker) dropForward() {
	t.forward = t.forward[:0]
	for _, c := range t.columns {
		c.dropForward()
	}
}
