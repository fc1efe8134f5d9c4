package ecs

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// Attach makes r a recorder of w. seq is the sequence number of the current state.
func (w rawWorld) Attach(r raw.Recorder, seq uint64) error {
	k, n := w.recorderAt(r), w.numbers()
	switch {
	case w.anyCheckpoint():
		return raw.ErrCheckpointHeld
	case len(w.recorders) > 0 && (k < 0 || len(w.recorders) > 1) && w.Dirty():
		return raw.ErrDirty // The other recorders have not received these changes yet.
	}
	w.verify()
	if k < 0 {
		if w.Deferred() {
			if err := w.RecordLast(); err != nil {
				return err
			}
		}
		n = w.numbers()
		k = len(w.recorders)
		w.recorders = append(w.recorders, r)
	}
	w.restart(n.with(k, seq))
	w.exemptSpan = w.clock.Span
	return nil
}

// Detach removes the recorder r from w.
func (w rawWorld) Detach(r raw.Recorder) error {
	k := w.recorderAt(r)
	switch {
	case w.anyCheckpoint():
		return raw.ErrCheckpointHeld
	case k < 0:
		return nil
	}
	w.verify()
	if w.recorders = slices.Delete(w.recorders, k, k+1); len(w.recorders) == 0 {
		w.restart(seqs{})
		return nil
	}
	for _, frames := range [2][]frame{w.frames, w.forward} {
		for i := range frames {
			frames[i].seq = frames[i].seq.without(k)
		}
	}
	return nil
}

// recorderAt returns the position of r among the recorders, or -1.
func (w *World) recorderAt(r raw.Recorder) int { return slices.Index(w.recorders, r) }

// Written returns the names of what was written since the newest boundary.
func (w rawWorld) Written() (names []string) {
	touched := map[*track.Tracker]bool{}
	for _, f := range w.frames[max(0, w.newestBoundary()):] {
		for _, t := range f.Touched {
			touched[t] = true
		}
	}
	if touched[&w.entities.rows] {
		names = append(names, "entities")
	}
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			if touched[s.tracked()] || w.exemptChange(s) {
				names = append(names, s.Raw().Name())
			}
		}
	}
	return names
}

// exemptChange reports whether s has NoRewind, and was written since the last commit with a
// recorder.
func (w *World) exemptChange(s AnyStorage) bool {
	t := s.tracked()
	return len(w.recorders) > 0 && t.Exempt && t.OpenedSince(w.exemptSpan) && s.Raw().Persistent()
}

// Held returns the sequence numbers that r gave to the oldest and the newest retained tick
// boundary.
func (w rawWorld) Held(r raw.Recorder) (oldest, newest uint64) {
	k := w.recorderAt(r)
	for i := range w.frames {
		if w.frames[i].tick {
			return w.frames[i].seq.of(k), w.numbers().of(k)
		}
	}
	return 0, 0
}

// Seq returns the sequence number that the first recorder gave to the newest tick boundary.
func (w rawWorld) Seq() uint64 { return w.numbers().first }

// recordTick passes the ending tick to the recorders, or defers it. It returns the frame for the
// next tick.
func (w *World) recordTick() frame {
	if w.deferring() && w.deferTick() {
		return frame{deferred: true}
	}
	n := w.record(w.tick+1, false)
	// The record has the operations of the tick, so they are no longer needed.
	last := &w.frames[len(w.frames)-1]
	last.ops = last.ops[:0]
	return frame{seq: n}
}

// deferTick asks the recorder whether it defers the ending tick. The next record then has the
// changes of this tick too.
func (w *World) deferTick() bool {
	w.recording = true
	defer func() { w.recording = false }()
	return w.recorders[0].(raw.Deferrer).Defer(w.tick+1, w.frames[w.newestRecorded()].at)
}

// Deferred reports whether the newest tick is not recorded yet.
func (w rawWorld) Deferred() bool {
	k := w.newestBoundary()
	return k >= 0 && w.frames[k].deferred
}

// RecordDeferred records the deferred ticks. It does nothing after a rewind, because the rewind has
// recorded them before it went back.
func (w rawWorld) RecordDeferred() error {
	if !w.Deferred() || w.clock.Undone {
		return nil
	}
	return w.RecordLast()
}

// RecordLast records the deferred ticks. If no tick is deferred, it records the newest tick again.
func (w rawWorld) RecordLast() error {
	if w.Dirty() {
		return raw.ErrDirty
	}
	w.recordLate()
	return nil
}

// recordLate records the ticks since the newest record, after they have ended. If the newest tick
// has a record already, it records that tick again.
//
// The record includes writes of NoRewind storages since the end of the newest tick. The open frame
// must have no other writes. recordLate drops the undone ticks, because their records do not
// continue the new record.
func (w *World) recordLate() {
	w.dropForward()
	k := w.newestBoundary()
	before := w.older(k)
	was := w.isEvictable(before, k)
	n := w.record(w.tick, true)
	w.frames[k].seq, w.frames[k].deferred = n, false
	// Begin a new span. The next write of a NoRewind storage then counts as a change of the next
	// tick.
	w.newSpan()
	w.exemptSpan = w.clock.Span
	w.saveActiveCursors()
	if !was {
		w.markEvictable(before, k)
	}
}

// record passes the changes since the last recorded tick to the recorders, as a record of the given
// tick. It returns the numbers that they gave to this tick. If late is true, the tick has already
// ended.
func (w *World) record(tick uint64, late bool) (n seqs) {
	first, end := w.newestRecorded(), len(w.frames)
	if late {
		end = w.newestBoundary() // The frame that begins here belongs to the next tick.
	}
	from, frames, c := &w.frames[first], w.frames[first:end], &w.change
	if c.Of == nil { // A method value is an allocation, so each is made once.
		c.Of, c.Before = w.storageChange, w.eachBefore
	}
	c.World, c.Tick, c.ParentTick, c.Late, c.from = w.Raw(), tick, from.at, late, from.ID
	c.Entities, c.Storages, c.Ops = w.registryChange(c.Entities.Rows[:0]), c.Storages[:0], nil
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			if w.changed(s.tracked()) {
				c.Storages = append(c.Storages, s.Raw())
			}
		}
	}
	if len(frames) == 1 {
		c.Ops = from.ops
	} else if len(frames) > 1 {
		c.ops = c.ops[:0]
		for i := range frames {
			c.ops = append(c.ops, frames[i].ops...)
		}
		c.Ops = c.ops
	}
	w.recording = true
	defer func() { w.recording = false }()
	for k, r := range w.recorders {
		c.Parent = from.seq.of(k)
		n = n.with(k, r.Record(&c.Change))
	}
	return n
}

// registryChange returns the changes of the registry. It reuses the memory of ranges.
func (w *World) registryChange(ranges []raw.Range) raw.EntityChange {
	r := &w.entities
	change := raw.EntityChange{Alive: r.rows.N, Free: r.rows.Extra, Total: r.rows.Total, Before: r.rows.Total, Rows: ranges}
	if k, before, changed := r.rows.Since(w.change.from); changed {
		change.Changed, change.Before = true, before.Total
		rows, sorted := written(&r.dense.Log, ranges, k, min(change.Before, r.rows.Total))
		change.Rows = w.collect(rows, sorted, change.Before, r.rows.Total)
	}
	return change
}

// changed reports whether the recorded tick changed t.
func (w *World) changed(t *track.Tracker) bool {
	if t.Exempt {
		return t.Changed
	}
	_, _, changed := t.Since(w.change.from)
	return changed
}

// storageChange returns the changes of the storage in the recorded tick.
func (w *World) storageChange(told raw.Storage) raw.StorageChange {
	c, s := &w.change, told.(*rawAdapter)
	t := s.tracked()
	k, before, limit := 0, track.Lengths{}, 0
	// Frames save nothing of this NoRewind storage, so record all its rows.
	if t.Exempt {
		t.Changed = false
	} else {
		k, before, _ = t.Since(c.from)
		limit = min(before.N, t.N)
	}
	change := raw.StorageChange{Storage: told, Before: before.N}
	if set := s.sparseSet(); set != nil {
		rows, sorted := written(&set.dense.Log, c.entities[:0], k, limit)
		c.entities = w.collect(rows, sorted, before.N, t.N)
		change.Entities = c.entities
	}
	rows, sorted := s.valuesWritten(c.values[:0], k, limit)
	c.values = w.collect(rows, sorted, before.N, t.N)
	change.Values = c.values
	return change
}

// collect adds the new rows to ranges, and sorts ranges unless sorted is true. before: the number
// of rows before the tick, n: the number of rows after it. The result is ascending and disjoint.
func (w *World) collect(ranges []raw.Range, sorted bool, before, n int) []raw.Range {
	if !sorted {
		ranges = w.sortRanges(ranges)
	}
	if before < n {
		ranges = appendRange(ranges, before, n)
	}
	return ranges
}

// sortRanges makes ranges ascending and disjoint. For a long list it uses a set of rows, which
// takes linear time.
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

// A recorder usually receives the new values of written rows. For large rows of a fixed size it
// also receives the old values. It can then write only the changed bytes.
//
// A frame that serves only recorders (a bare frame) usually saves no old values. But it saves those
// of such rows.

// eachBefore calls f for each row of the storage that existed before the tick and that the tick
// wrote.
func (w *World) eachBefore(told raw.Storage, f func(row int, then, now []byte)) {
	s := told.(*rawAdapter)
	t := s.tracked()
	k, before, changed := t.Since(w.change.from)
	if !changed || t.Exempt || !s.about().keepsOld() {
		return
	}
	s.rows.eachBefore(&w.change.old, k, min(before.N, t.N), f)
}

// eachBefore calls the function tell for each row below limit that was saved in log k or a later
// log, in ascending order. It passes the encoding of the row before the tick and the present
// encoding.
func (f *rowAdapter[T]) eachBefore(o *oldRows, k, limit int, tell func(row int, then, now []byte)) {
	o.spans.Read(&f.data.Log, k)
	defer o.spans.Reset()
	for i := range o.spans.Len() {
		span := o.spans.At(i)
		old := f.data.Old(span)
		for j := range min(len(old), limit-int(span.Row)) {
			row := int(span.Row) + j
			tell(row, f.encode(&o.then, old[j:j+1]), f.encode(&o.now, f.data.Live[row:row+1]))
		}
	}
}

// encode returns the encoding of rows. If the encoding equals the rows in memory, it returns that
// memory. Otherwise it returns the memory of scratch.
func (f *rowAdapter[T]) encode(scratch *[]byte, rows []T) []byte {
	if c, ok := f.codec.(typedRows[T]); ok {
		if view, ok := layout.View(c.codec, rows); ok {
			return view
		}
	}
	*scratch = f.codec.append((*scratch)[:0], rows)
	return *scratch
}
