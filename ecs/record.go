package ecs

import (
	"iter"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// An op is a [raw.Op] as it is noted.
type op struct {
	kind    raw.OpKind
	entity  Entity
	storage AnyStorage
}

func (w *World) note(kind raw.OpKind, s AnyStorage, e Entity) {
	*w.ops = append(*w.ops, op{kind, e, s})
}

// Attach makes r the recorder of w, whose present state has the number seq.
func (w rawWorld) Attach(r raw.Recorder, seq uint64) error {
	if w.anyCheckpoint() {
		return raw.ErrCheckpointHeld
	}
	w.verify()
	w.forgetFrames()
	w.recorder, w.ops = r, nil
	w.settleObserved()
	if w.keepsTicks() {
		w.pushTick(seq)
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

// Dirty reports whether anything was written since the newest boundary.
func (w rawWorld) Dirty() bool {
	for i := max(0, w.newestBoundary()); i < len(w.frames); i++ {
		if len(w.frames[i].Touched) > 0 {
			return true
		}
	}
	return false
}

// OldestSeq returns the recorder's number of the oldest tick boundary.
func (w rawWorld) OldestSeq() uint64 {
	for i := range w.frames {
		if w.frames[i].tick {
			return w.frames[i].seq
		}
	}
	return 0
}

// Seq returns the recorder's number of the newest one.
func (w rawWorld) Seq() uint64 {
	if k := w.newestBoundary(); k >= 0 {
		return w.frames[k].seq
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
	c.w, c.tick, c.parent, c.frames = w, w.tick+1, w.frames[k].seq, w.frames[k:]
	w.recording = true
	defer func() { w.recording = false }()
	seq := w.recorder.Record(c)
	last := &w.frames[len(w.frames)-1] // A restore to a checkpoint needs the operations before it, and never these.
	last.ops = last.ops[:0]
	return seq
}

// A change is a [raw.Change]: it reads what the frames of a tick saved.
type change struct {
	tick   uint64 // The tick that ends.
	parent uint64 // The number of the tick that it continues.

	w      *World
	frames []frame

	entities, values []raw.Range // Scratch of Storages.
}

func (c *change) World() raw.World { return c.w.Raw() }
func (c *change) Tick() uint64     { return c.tick }
func (c *change) Parent() uint64   { return c.parent }

// Ops returns the operations of the tick that were not undone.
func (c *change) Ops() iter.Seq[raw.Op] {
	return func(yield func(raw.Op) bool) {
		var of AnyStorage // Of the operation before; nearly always of the next one too.
		var storage raw.Storage
		for i := range c.frames {
			for _, op := range c.frames[i].ops {
				if op.storage != of {
					of, storage = op.storage, nil
					if of != nil {
						storage = of.Raw()
					}
				}
				if !yield(raw.Op{Kind: op.kind, Entity: uint64(op.entity), Storage: storage}) {
					return
				}
			}
		}
	}
}

// Entities returns what changed in the registry.
func (c *change) Entities(ranges []raw.Range) raw.EntityChange {
	r := &c.w.entities
	change := raw.EntityChange{Alive: r.rows.N, Free: r.rows.Extra, Total: r.rows.Total, Before: r.rows.Total, Rows: ranges}
	if k, before, changed := r.rows.Since(c.frames[0].ID); changed {
		change.Changed, change.Before = true, before.Total
		rows, sorted := written(&r.dense, ranges[:0], k, min(change.Before, r.rows.Total))
		change.Rows = c.w.collect(rows, sorted, change.Before, r.rows.Total)
	}
	return change
}

// Changed iterates over the storages and resources that changed.
func (c *change) Changed() iter.Seq[raw.Storage] {
	return func(yield func(raw.Storage) bool) {
		for _, list := range [2][]AnyStorage{c.w.storages, c.w.resources} {
			for _, s := range list {
				if c.changed(s) && !yield(s.Raw()) {
					return
				}
			}
		}
	}
}

func (c *change) changed(s AnyStorage) bool {
	t := s.tracked()
	if t.Exempt {
		return t.Changed
	}
	_, _, changed := t.Since(c.frames[0].ID)
	return changed
}

// Storages iterates over what changed in them.
func (c *change) Storages() iter.Seq[raw.StorageChange] {
	return func(yield func(raw.StorageChange) bool) {
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
func (c *change) storage(s AnyStorage, entities, values []raw.Range) raw.StorageChange {
	t, change := s.tracked(), raw.StorageChange{Storage: s.Raw()}
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
func (w *World) collect(ranges []raw.Range, sorted bool, before, n int) []raw.Range {
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
func written[T any](c *track.Column[T], ranges []raw.Range, k, limit int) (_ []raw.Range, sorted bool) {
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
func appendRange(ranges []raw.Range, lo, hi int) []raw.Range {
	if k := len(ranges) - 1; k >= 0 && ranges[k].First+ranges[k].N == lo {
		ranges[k].N += hi - lo
		return ranges
	}
	return append(ranges, raw.Range{First: lo, N: hi - lo})
}

// sortRanges makes ranges ascending and disjoint. A few are sorted; many go
// through a set of rows, which is linear.
func (w *World) sortRanges(ranges []raw.Range) []raw.Range {
	if len(ranges) <= 64 {
		slices.SortFunc(ranges, func(a, b raw.Range) int { return a.First - b.First })
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
