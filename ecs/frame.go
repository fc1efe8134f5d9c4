package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

// A frame is the span between two boundaries: a checkpoint or the end of a tick.
// What it saved lies in the logs of columns; here stands what belongs to the world.
//
//	frames   | tick 7 | checkpoint | tick 8 | tick 9 |
//	                                          open: writes go here
//	boundary ^        ^            ^        ^
//
// A frame is named after the boundary it begins with.
type frame struct {
	track.Frame
	tick   bool   // It begins with the end of a committed tick; otherwise with a checkpoint.
	hidden bool   // The history does not have its beginning: values are kept for a pin only.
	at     uint64 // The world's tick at its beginning; if it was undone, at its end.
	mark   uint64 // What the recorder returned for that tick.
	ops    []Op
}

// held reports whether the world can be put back to the beginning of f.
func (f *frame) held() bool { return !f.Bare && !f.hidden }

// push closes the open frame and opens f.
func (w *World) push(f frame) {
	w.frameID++
	w.clock.Span++
	w.changes++
	f.ID, f.at = w.frameID, w.tick
	if k := len(w.frames); k < cap(w.frames) { // Reuse the slices of a frame that was dropped.
		old := &w.frames[:k+1][k]
		f.Touched, f.ops = old.Touched[:0], old.ops[:0]
	}
	w.frames = append(w.frames, f)
	if f.tick {
		w.ticks++
		w.thinning.consider(f.at)
	}
	w.point()
	w.remember()
}

// pushTick opens the first frame of a history that begins at the present state.
func (w *World) pushTick(mark uint64) {
	w.push(frame{Frame: track.Frame{Bare: w.bareTicks()}, tick: true, mark: mark})
}

// point makes changes and operations go to the open frame.
func (w *World) point() {
	k := len(w.frames) - 1
	if k < 0 {
		w.clock.Frame = nil
		return
	}
	w.clock.Frame = &w.frames[k].Frame
	if w.recorder != nil {
		w.ops = &w.frames[k].ops
	}
}

// cutFrames forgets frames[k:], whose logs are gone already, and keeps their
// slices for reuse.
func (w *World) cutFrames(k int) {
	for i := k; i < len(w.frames); i++ {
		if w.frames[i].tick {
			w.ticks--
		}
	}
	w.frames = w.frames[:k]
}

// removeFrame takes frames[k] out of the deque and keeps its slices for reuse.
func (w *World) removeFrame(k int) {
	f := w.frames[k]
	if f.tick {
		w.ticks--
	} else if k > 0 && w.frames[k-1].tick { // No checkpoint needs it any more.
		w.thinning.consider(w.frames[k-1].at)
	}
	n := len(w.frames) - 1
	copy(w.frames[k:], w.frames[k+1:])
	w.frames[n] = f
	w.frames = w.frames[:n]
}

// renew starts a new span: the marks of all columns and the pointers given out
// become stale.
func (w *World) renew() {
	w.clock.Span++
	w.changes++
	w.point()
	w.remember()
}

// A Checkpoint is a point to which a world can be put back.
type Checkpoint struct {
	w  *World
	id uint64
}

// Checkpoint opens a frame: from now on the old value of every row is kept
// before its first write, until cp is released. Checkpoints nest.
//
// It costs O(1), whatever the world holds: it raises the number of the open
// frame, and a storage compares its own with it at the next change. Pointers and
// slices for writing that were given out before are no longer valid.
func (w *World) Checkpoint() Checkpoint {
	w.verify()
	w.push(frame{})
	return Checkpoint{w, w.frameID}
}

// Valid reports whether cp can still be restored: it was neither released nor
// made in a future that was thrown away since.
func (cp Checkpoint) Valid() bool { return cp.w != nil && cp.w.findCheckpoint(cp.id) >= 0 }

// findCheckpoint returns the position of the frame that begins with checkpoint
// id, or -1. Ids rise along the deque.
func (w *World) findCheckpoint(id uint64) int {
	lo, hi := 0, len(w.frames)
	if hi > 0 && w.frames[hi-1].ID == id { // The newest one, nearly always.
		lo = hi - 1
	}
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); w.frames[mid].ID < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(w.frames) || w.frames[lo].ID != id {
		return -1
	}
	return lo
}

func (w *World) mustFind(cp Checkpoint, verb string) int {
	if cp.w != w {
		panic("ecs: " + verb + " of a checkpoint of another world; use the world that made it")
	}
	k := w.findCheckpoint(cp.id)
	if k < 0 {
		panic("ecs: " + verb + " of a checkpoint that is gone: it was released, or an older checkpoint or tick was restored since; ask Checkpoint.Valid before")
	}
	return k
}

// Restore puts the world back to where it was when cp was made: the same
// entities alive, generations and order of reuse, the same rows in the same
// order, values, resources, and tick. Checkpoints newer than cp are gone; cp
// stays and can be restored again.
//
// It costs O(rows written since cp). It panics if cp is not valid.
func (w *World) Restore(cp Checkpoint) {
	k := w.mustFind(cp, "Restore")
	w.verify()
	for i := k; i < len(w.frames); i++ {
		if w.frames[i].tick {
			w.dropForward()
		}
	}
	w.putBack(k)
	w.restored()
}

// putBack undoes, for good, everything since the start of frames[k], which
// becomes the open frame again.
func (w *World) putBack(k int) {
	f := &w.frames[k]
	for i := k; i < len(w.frames); i++ {
		for _, t := range w.frames[i].Touched {
			t.PutBack(f.ID)
		}
	}
	w.tick = f.at
	f.Touched, f.ops = f.Touched[:0], f.ops[:0]
	w.cutFrames(k + 1)
	w.leavePins(f.ID, f.ID)
	w.renew()
}

// Release keeps the changes made since cp and forgets how to undo them; older
// checkpoints and ticks can still be restored. cp is gone. It costs O(rows
// written between cp and the next checkpoint), and nothing for rows when no
// older frame is held.
//
// It panics if cp is not valid.
func (w *World) Release(cp Checkpoint) {
	k := w.mustFind(cp, "Release")
	w.verify()
	w.release(k)
	w.evict()
}

// release removes the boundary at the start of frames[k].
func (w *World) release(k int) {
	f := &w.frames[k]
	if k == 0 {
		for _, t := range f.Touched {
			t.Drop(f.ID)
		}
	} else {
		older := &w.frames[k-1]
		for _, t := range f.Touched {
			t.Release(&f.Frame, &older.Frame)
		}
		older.ops = append(older.ops, f.ops...)
	}
	w.removeFrame(k)
	w.renew()
}

// Try calls f between a checkpoint and its release. If f returns an error or
// panics, the world is put back to where it was; the error is returned, the
// panic goes on.
func (w *World) Try(f func() error) (err error) {
	cp := w.Checkpoint()
	done := false
	defer func() {
		if !done || err != nil {
			w.Restore(cp)
		}
		w.Release(cp)
	}()
	err = f()
	done = true
	return err
}
