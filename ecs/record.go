package ecs

import (
	"errors"
	"iter"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A Recorder is told every tick at its commit: the journal's side of a world.
type Recorder interface {
	// Record encodes what the tick changed; c is valid until it returns. The mark
	// names the state at the end of the tick: the next tick on this branch has it
	// as its Parent.
	Record(c *Change) (mark uint64)
}

// OpKind says what an operation did.
type OpKind uint8

// The operations that change structure. Values that were set are the rows that
// [StorageChange] names.
const (
	OpCreate  OpKind = iota // Entity was created.
	OpDestroy               // Entity was destroyed, with all its components.
	OpAdd                   // Entity got the component Storage.
	OpRemove                // Entity lost the component Storage.
	OpClear                 // Storage was cleared; the whole world if it is nil.
)

// An Op is one operation of a tick, as it was called.
type Op struct {
	Kind    OpKind
	Entity  Entity
	Storage AnyStorage
}

func (w *World) note(kind OpKind, s AnyStorage, e Entity) {
	*w.ops = append(*w.ops, Op{kind, e, s})
}

// ErrCheckpointHeld reports an operation that is not possible while checkpoints
// are held.
var ErrCheckpointHeld = errors.New("ecs: a checkpoint is held; release it before")

// Attach makes r the recorder of w; nil detaches. mark names the present state.
// The history starts anew: older ticks are unknown to the recorder.
func (w *World) Attach(r Recorder, mark uint64) error {
	if w.anyCheckpoint() {
		return ErrCheckpointHeld
	}
	w.verify()
	w.forgetFrames()
	w.recorder, w.ops = r, nil
	w.settleObserved()
	if w.keepsTicks() {
		w.pushTick(mark)
	}
	return nil
}

// forgetFrames gives up all frames and the forward branch.
func (w *World) forgetFrames() {
	w.leavePins(0, 0)
	w.dropForward()
	for len(w.frames) > 0 {
		w.release(0)
	}
	w.renew()
}

// Storages returns the storages of w in the order of registration, and behind
// them the resources.
func (w *World) Storages() []AnyStorage {
	return append(append(make([]AnyStorage, 0, len(w.storages)+len(w.resources)), w.storages...), w.resources...)
}

// Dirty reports whether anything was written since the last commit, or since
// Attach. It is for worlds with a recorder or a history; others do not know.
func (w *World) Dirty() bool {
	for i := max(0, w.newestBoundary()); i < len(w.frames); i++ {
		if len(w.frames[i].Touched) > 0 {
			return true
		}
	}
	return false
}

// OldestMark returns the mark of the oldest tick boundary that a later tick may
// name as its parent.
func (w *World) OldestMark() uint64 {
	for i := range w.frames {
		if w.frames[i].tick {
			return w.frames[i].mark
		}
	}
	return 0
}

// Mark returns the mark of the present tick.
func (w *World) Mark() uint64 {
	if k := w.newestBoundary(); k >= 0 {
		return w.frames[k].mark
	}
	return 0
}

func (w *World) newestBoundary() int {
	for k := len(w.frames) - 1; k >= 0; k-- {
		if w.frames[k].tick {
			return k
		}
	}
	return -1
}

// record tells the recorder the tick that ends now.
func (w *World) record() uint64 {
	k := w.newestBoundary()
	c := &w.change
	c.w, c.Tick, c.Parent, c.frames = w, w.tick+1, w.frames[k].mark, w.frames[k:]
	w.recording = true
	defer func() { w.recording = false }()
	mark := w.recorder.Record(c)
	last := &w.frames[len(w.frames)-1] // A restore to a checkpoint needs the operations before it, and never these.
	last.ops = last.ops[:0]
	return mark
}

// A Change is what a tick changed, compared with the end of the tick that it
// continues. It costs O(rows written) to read, whatever the world holds.
type Change struct {
	Tick   uint64 // The tick that ends.
	Parent uint64 // The mark of the tick that it continues.

	w      *World
	frames []frame

	entities, values []Range // Scratch of Storages.
}

// World returns the world that changed. It must not be changed.
func (c *Change) World() *World { return c.w }

// Ops returns the operations of the tick in the order of the calls, without
// those that were undone.
func (c *Change) Ops() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		for i := range c.frames {
			for _, op := range c.frames[i].ops {
				if !yield(op) {
					return
				}
			}
		}
	}
}

// A Range is a range of rows: First, First+1, …, First+N-1.
type Range struct{ First, N int }

// An EntityChange is what changed in the registry of entities: rows [0, Alive)
// are alive, [Alive, Free) free, [Free, Total) retired.
type EntityChange struct {
	Changed            bool // Anything at all.
	Alive, Free, Total int  // At the end of the tick.
	Before             int  // Total at its beginning.
	Rows               []Range
}

// Registry returns the registry of entities as it lies: rows [0, alive) are
// alive, [alive, free) free, [free, total) retired. The slice is valid until the
// next change and must not be written.
func (w *World) Registry() (rows []Entity, alive, free int) {
	r := &w.entities
	return r.dense.Live[:r.rows.Total:r.rows.Total], r.rows.N, r.rows.Extra
}

// Entities returns what changed in the registry. Its Rows take the place of
// ranges, which lets a caller recycle them.
func (c *Change) Entities(ranges []Range) EntityChange {
	r := &c.w.entities
	change := EntityChange{Alive: r.rows.N, Free: r.rows.Extra, Total: r.rows.Total, Before: r.rows.Total, Rows: ranges}
	if k, before, changed := r.rows.Since(c.frames[0].ID); changed {
		change.Changed, change.Before = true, before.Total
		rows, sorted := written(&r.dense, ranges[:0], k, min(change.Before, r.rows.Total))
		change.Rows = c.w.collect(rows, sorted, change.Before, r.rows.Total)
	}
	return change
}

// A StorageChange is what changed in a storage or resource: its rows [0, Len)
// are those of the parent, but for the rows named here.
type StorageChange struct {
	Storage  AnyStorage
	Before   int     // Rows at the beginning of the tick.
	Entities []Range // Rows whose entity may differ, ascending.
	Values   []Range // Rows whose value may differ, ascending.
}

// Changed iterates over the storages and resources that changed, in the order of
// registration.
func (c *Change) Changed() iter.Seq[AnyStorage] {
	return func(yield func(AnyStorage) bool) {
		for _, list := range [2][]AnyStorage{c.w.storages, c.w.resources} {
			for _, s := range list {
				if c.changed(s) && !yield(s) {
					return
				}
			}
		}
	}
}

func (c *Change) changed(s AnyStorage) bool {
	t := s.tracked()
	if t.Exempt {
		return t.Changed
	}
	_, _, changed := t.Since(c.frames[0].ID)
	return changed
}

// Storages iterates over what changed in the storages and resources of
// [Change.Changed]. The ranges are valid until the next step. A storage that does
// not rewind is given whole if it changed since it was given last, on whatever
// branch.
func (c *Change) Storages() iter.Seq[StorageChange] {
	return func(yield func(StorageChange) bool) {
		entities, values := c.entities, c.values
		defer func() { c.entities, c.values = entities, values }()
		for _, list := range [2][]AnyStorage{c.w.storages, c.w.resources} {
			for _, s := range list {
				if !c.changed(s) {
					continue
				}
				change := c.storage(s, entities[:0], values[:0])
				if !yield(change) {
					return
				}
				if change.Entities != nil {
					entities = change.Entities
				}
				values = change.Values
			}
		}
	}
}

// storage returns what changed in s, and gives ranges the memory of entities and
// values.
func (c *Change) storage(s AnyStorage, entities, values []Range) StorageChange {
	t, change := s.tracked(), StorageChange{Storage: s}
	if t.Exempt {
		t.Changed = false
		if s.sparseSet() != nil {
			change.Entities = c.w.collect(entities, true, 0, t.N)
		}
		change.Values = c.w.collect(values, true, 0, t.N)
		return change
	}
	k, before, _ := t.Since(c.frames[0].ID)
	change.Before = before.N
	limit := min(change.Before, t.N)
	if set := s.sparseSet(); set != nil {
		rows, sorted := written(&set.dense, entities, k, limit)
		change.Entities = c.w.collect(rows, sorted, change.Before, t.N)
	}
	rows, sorted := s.valuesWritten(values, k, limit)
	change.Values = c.w.collect(rows, sorted, change.Before, t.N)
	return change
}

// collect finishes what written began: the rows that differ between a column of
// length before and its present length n, ascending and disjoint.
func (w *World) collect(ranges []Range, sorted bool, before, n int) []Range {
	if !sorted {
		ranges = w.sortRanges(ranges)
	}
	if before < n {
		ranges = appendRange(ranges, before, n)
	}
	return ranges
}

// written appends to ranges, which is empty, the rows below limit that the logs of
// c from k on hold, and reports whether they are ascending and disjoint.
func written[T any](c *track.Column[T], ranges []Range, k, limit int) (_ []Range, sorted bool) {
	sorted = true
	last := 0
	c.Saved(k, func(runs []track.Run, _ []T) {
		for _, r := range runs {
			lo, hi := int(r.Row), min(int(r.Row+r.N), limit)
			if lo < hi {
				sorted = sorted && lo >= last
				last = hi
				ranges = appendRange(ranges, lo, hi)
			}
		}
	})
	return ranges, sorted
}

// appendRange appends rows [lo, hi), to the last range if they follow it.
func appendRange(ranges []Range, lo, hi int) []Range {
	if k := len(ranges) - 1; k >= 0 && ranges[k].First+ranges[k].N == lo {
		ranges[k].N += hi - lo
		return ranges
	}
	return append(ranges, Range{lo, hi - lo})
}

// sortRanges makes ranges ascending and disjoint. A few are sorted; many go
// through a set of rows, which is linear.
func (w *World) sortRanges(ranges []Range) []Range {
	if len(ranges) <= 64 {
		slices.SortFunc(ranges, func(a, b Range) int { return a.First - b.First })
		out := ranges[:0]
		for _, r := range ranges {
			if k := len(out) - 1; k >= 0 && r.First <= out[k].First+out[k].N {
				out[k].N = max(out[k].N, r.First+r.N-out[k].First)
			} else {
				out = append(out, r)
			}
		}
		return out
	}
	for _, r := range ranges {
		w.clock.Seen.Add(track.Run{Row: uint32(r.First), N: uint32(r.N)}, func(uint32, uint32) {})
	}
	out := ranges[:0]
	w.clock.Seen.Drain(func(lo, hi int) { out = appendRange(out, lo, hi) })
	return out
}
