package ecs

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNotHeld reports a tick that the history does not hold.
var ErrNotHeld = errors.New("ecs: tick not held")

// Commit ends a tick. The tick becomes part of the history, if the world has
// one, and is told to the recorder, if one is attached.
//
// It costs O(storages changed in the tick), without a recorder; pointers and
// slices for writing that were given out before are no longer valid.
func (w *World) Commit() {
	if len(w.hooks.change) > 0 {
		w.hooks.tellChanges()
	}
	w.pack()
	w.verify()
	w.dropForward()
	if len(w.pins) > 0 {
		w.absorb(max(0, w.newestBoundary()))
	}
	var mark uint64
	if w.recorder != nil {
		mark = w.record()
	}
	w.tick++
	if w.keepsTicks() {
		bare := w.bareTicks() && !w.anyCheckpoint()
		f := frame{tick: true, mark: mark, hidden: bare && len(w.pins) > 0}
		f.Bare = bare && len(w.pins) == 0
		w.push(f)
		w.evict()
	}
}

// anyCheckpoint reports whether a checkpoint is held.
func (w *World) anyCheckpoint() bool {
	for i := range w.frames {
		if !w.frames[i].tick {
			return true
		}
	}
	return false
}

// evict forgets ticks until the history is within its bounds: of those between
// older ones, if the history is thinned, else the oldest. A boundary that a
// checkpoint needs to say what its tick changed stays; younger ones are merged
// instead.
func (w *World) evict() {
	for w.ticks > 1 && (w.ticks-1 > w.options.History || w.overBudget()) {
		k := w.thinnable()
		if k < 0 {
			k = w.evictable()
		}
		if k < 0 {
			return
		}
		w.release(k)
	}
}

func (w *World) overBudget() bool {
	return w.options.HistoryBytes > 0 && w.clock.Bytes() > w.options.HistoryBytes
}

// evictable returns the position of the oldest tick boundary that no checkpoint
// follows before the next one, or -1. The newest boundary is never given up.
func (w *World) evictable() int {
	for i := 0; i+1 < len(w.frames); i++ {
		if w.frames[i].tick && w.frames[i+1].tick {
			return i
		}
	}
	return -1
}

// dropForward ends the forward branch.
func (w *World) dropForward() {
	if !w.clock.Undone {
		return
	}
	w.clock.Undone = false
	for i := range w.forward {
		for _, t := range w.forward[i].Touched {
			t.DropForward()
		}
	}
	clear(w.forward)
	w.forward = w.forward[:0]
	for _, s := range w.storages { // All of them: none settles while a branch is held.
		if settle := s.tracked().Settle; settle != nil {
			settle()
		}
	}
}

// A History goes back and forth between the committed ticks that its world
// holds.
type History struct{ w *World }

// History returns the history of w. It holds nothing if [Options.History] is 0.
func (w *World) History() History { return History{w} }

// Oldest returns the oldest tick that can be gone to.
func (h History) Oldest() uint64 {
	for i := range h.w.frames {
		if h.w.frames[i].tick && h.restorable(i) {
			return h.w.frames[i].at
		}
	}
	return h.w.tick
}

func (h History) restorable(i int) bool { return h.w.frames[i].held() }

// Newest returns the newest tick that can be gone to. It is later than
// [World.Tick] after a rewind, until the next change.
func (h History) Newest() uint64 {
	if len(h.w.forward) > 0 {
		return h.w.forward[0].at
	}
	return h.w.tick
}

// Bytes returns how many bytes of saved rows the history and the checkpoints
// hold.
func (h History) Bytes() int64 { return h.w.clock.Bytes() }

// Rewind goes n ticks back. See [History.Seek].
func (h History) Rewind(n int) error {
	if n < 0 || uint64(n) > h.w.tick {
		return fmt.Errorf("ecs: rewind %d ticks from tick %d: %w", n, h.w.tick, ErrNotHeld)
	}
	return h.Seek(h.w.tick - uint64(n))
}

// Seek puts the world to the end of a committed tick, backwards or forwards.
// Uncommitted changes are thrown away, and checkpoints newer than the target are
// gone. After going back, the ticks gone back over can be gone forward to until
// the world is changed or committed.
//
// It costs O(rows written in the ticks between). An error wraps [ErrNotHeld] and
// names the nearest ticks that are held; the world is then as it was.
func (h History) Seek(tick uint64) error {
	w := h.w
	w.verify()
	if k := w.forwardTo(tick); k >= 0 {
		w.discardOpen()
		for len(w.forward) > k {
			w.redoTick()
		}
	} else if k := w.lastBoundary(tick); k < 0 || !w.frames[k].held() {
		return fmt.Errorf("ecs: seek tick %d: %w; %s", tick, ErrNotHeld, h.held(tick))
	} else {
		w.discardOpen()
		for w.tick > tick {
			w.undoTick()
		}
	}
	w.restored()
	return nil
}

// held says which ticks are held near one that is not.
func (h History) held(tick uint64) string {
	if before, after, ok := h.around(tick); ok {
		return fmt.Sprintf("the nearest that are held are %d and %d", before, after)
	}
	return fmt.Sprintf("the oldest that is held is %d, the newest %d", h.Oldest(), h.Newest())
}

// forwardTo returns the position of the undone frame that ends with tick, or -1.
func (w *World) forwardTo(tick uint64) int {
	for i := range w.forward {
		if w.forward[i].at == tick {
			return i
		}
	}
	return -1
}

// lastBoundary returns the position of the newest frame that begins with the end
// of tick at, or -1.
func (w *World) lastBoundary(at uint64) int {
	for i := len(w.frames) - 1; i >= 0; i-- {
		if w.frames[i].tick && w.frames[i].at == at {
			return i
		}
	}
	return -1
}

// discardOpen throws away what was written since the last commit, and the
// checkpoints made since.
func (w *World) discardOpen() {
	for k := len(w.frames) - 1; k >= 0; k-- {
		if w.frames[k].tick {
			w.putBack(k)
			return
		}
	}
}

// undoTick goes from one tick boundary, with nothing written behind it, to the
// one before. What lies between becomes one frame of the forward branch: ticks
// that were merged stay so.
func (w *World) undoTick() {
	k := len(w.frames) - 2
	for !w.frames[k].tick {
		w.release(k)
		k--
	}
	open, f := w.frames[k+1], w.frames[k]
	w.clock.Undone = true
	for _, t := range f.Touched {
		t.Undo()
	}
	undone := frame{at: open.at, mark: open.mark}
	undone.Touched = slices.Clone(f.Touched)
	w.forward = append(w.forward, undone)
	w.cutFrames(k)
	w.tick = f.at
	w.push(frame{tick: true, mark: f.mark})
	w.leavePins(f.ID, w.frameID)
}

// redoTick goes one tick forward along the forward branch.
func (w *World) redoTick() {
	last := len(w.forward) - 1
	redone := w.forward[last]
	open := &w.frames[len(w.frames)-1]
	for _, t := range redone.Touched {
		t.Redo(open.ID)
	}
	open.Touched = append(open.Touched[:0], redone.Touched...)
	w.absorb(len(w.frames) - 1)
	w.forward[last] = frame{}
	w.forward = w.forward[:last]
	w.clock.Undone = last > 0
	w.tick = redone.at
	w.push(frame{tick: true, mark: redone.mark})
}
