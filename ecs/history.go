package ecs

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

// ErrNotHeld reports a tick that the history does not retain.
var ErrNotHeld = errors.New("ecs: tick not held")

// Commit ends a tick. If the world has a history, the tick becomes part of it. If recorders are
// attached, they receive the tick.
//
// The cost is O(storages changed in the tick), without a recorder. With history, Commit also
// compares each written row above 256 bytes with its old value, and retains only the bytes that
// differ. Pointers and slices for writing from before the Commit are no longer valid. Commit panics
// in a system of package schedule and in the body of ParallelRuns.
func (w *World) Commit() {
	w.mustBeBetween("Commit")
	if len(w.hooks.change) > 0 {
		w.hooks.runChangeHooks()
	}
	w.pack()
	w.endTick()
	w.verify()
	w.dropForward()
	if len(w.pins) > 0 {
		w.absorb(max(0, w.newestBoundary()))
	}
	if len(w.recorders) == 0 {
		w.endFrame(w.tick+1, frame{})
		return
	}
	w.endFrame(w.tick+1, w.recordTick())
}

// Dirty reports whether the world has changed since the last [World.Commit], Rewind, load or other
// move to a tick. A world tracks its changes only if it has a history, a recorder, an OnChange hook
// or a [ChangeFilter]. Otherwise Dirty always returns true.
//
// Writes of NoRewind components and resources count if a recorder keeps them. They still count
// after a Rewind, which does not undo them.
//
// The cost is O(components).
func (w *World) Dirty() bool {
	if !w.keepsTicks() || w.written() {
		return true
	}
	return slices.ContainsFunc(w.storages, w.exemptChange) || slices.ContainsFunc(w.resources, w.exemptChange)
}

// endFrame ends the given tick, and opens f as the next frame. The caller has set the fields seq
// and deferred of f to those of the ended tick.
func (w *World) endFrame(tick uint64, f frame) {
	w.tick = tick
	if w.longLogs {
		w.dropLongLogs()
	}
	if w.keepsTicks() {
		for i := max(0, w.newestBoundary()); i < len(w.frames); i++ {
			w.frames[i].DropUnchanged()
		}
		f.tick, f.Bare = true, w.bareTicks() && !w.anyCheckpoint()
		w.push(f)
		w.exemptSpan = w.clock.Span
		w.evict()
		// Make saveActiveCursors look for loops that panicked, and drop their cursors.
		w.loopBoundaries = 0
		w.saveActiveCursors()
	}
}

// A History moves its world back and forth between the committed ticks that the world retains.
type History struct{ w *World }

// History returns the history of w. It has no ticks if [Options.History] is 0.
func (w *World) History() History { return History{w} }

// Oldest returns the oldest tick that Seek can reach.
func (h History) Oldest() uint64 {
	for i := h.w.oldest; i < len(h.w.frames); i++ {
		if h.w.frames[i].tick && h.restorable(i) {
			return h.w.frames[i].at
		}
	}
	return h.w.tick
}

func (h History) restorable(i int) bool { return h.w.frames[i].held() }

// Newest returns the newest tick that Seek can reach. After a rewind it is later than
// [World.Tick], until the next change.
func (h History) Newest() uint64 {
	if len(h.w.forward) > 0 {
		return h.w.forward[0].at
	}
	return h.w.tick
}

// Bytes returns the size of the saved rows of the history and the checkpoints, in bytes.
func (h History) Bytes() int64 { return h.w.clock.Bytes() }

// Rewind goes n ticks back. Its cost and errors are those of [History.Seek].
func (h History) Rewind(n int) error {
	from := h.w.tick
	if n < 0 || uint64(n) > from {
		return fmt.Errorf("%w: rewind %d ticks from tick %d; %s", ErrNotHeld, n, from, h.retainedRange())
	}
	tick := from - uint64(n)
	if h.seek(tick) {
		return nil
	}
	remedy := ""
	if h.w.options.History > 0 {
		remedy = "; set a larger ecs.Options.History, or use Store.Goto for older ticks; a load begins the history again"
	}
	return fmt.Errorf("%w: rewind %d ticks from tick %d; %s%s", ErrNotHeld, n, from, h.nearestRetained(tick), remedy)
}

// Seek moves the world to the end of a committed tick, backward or forward. It discards uncommitted
// changes and the checkpoints newer than the target. After a Seek backward, Seek can also go
// forward again, until the program changes or commits the world.
//
// The cost is O(rows written in the ticks between). An error leaves the world unchanged. It wraps
// [ErrNotHeld], and names the nearest retained ticks or says that [Options.History] is 0.
func (h History) Seek(tick uint64) error {
	if !h.seek(tick) {
		return fmt.Errorf("%w: seek tick %d; %s", ErrNotHeld, tick, h.nearestRetained(tick))
	}
	return nil
}

// seek is Seek, but returns false if the tick is not retained.
func (h History) seek(tick uint64) bool {
	w := h.w
	w.mustBeBetween("Seek")
	w.verify()
	if k := w.forwardTo(tick); k >= 0 {
		w.discardOpen()
		for len(w.forward) > k {
			w.redoTick()
		}
	} else if k := w.lastBoundary(tick); k < 0 || !w.frames[k].held() {
		return false
	} else {
		if w.tick > tick {
			w.recordBeforeUndo()
		}
		w.discardOpen()
		for w.tick > tick {
			w.undoTick()
		}
	}
	w.afterRewind()
	w.saveActiveCursors()
	return true
}

// nearestRetained returns the text that names the retained ticks nearest to tick, for an error.
func (h History) nearestRetained(tick uint64) string {
	if before, after, ok := h.around(tick); ok {
		return fmt.Sprintf("the nearest retained ticks are %d and %d", before, after)
	}
	return h.retainedRange()
}

// retainedRange returns the text that names the oldest and the newest retained tick, for an error.
func (h History) retainedRange() string {
	if h.w.options.History == 0 {
		return noHistory
	}
	return fmt.Sprintf("the oldest retained tick is %d, the newest %d", h.Oldest(), h.Newest())
}

const noHistory = "the world has no history, because ecs.Options.History is 0: " +
	"set it to the number of ticks to retain, and create the world with it"

// forwardTo returns the position in w.forward of the frame that ends with the given tick, or -1.
func (w *World) forwardTo(tick uint64) int {
	for i := range w.forward {
		if w.forward[i].at == tick {
			return i
		}
	}
	return -1
}

// discardOpen undoes the writes since the last commit, and discards the checkpoints since then.
func (w *World) discardOpen() {
	for k := len(w.frames) - 1; k >= 0; k-- {
		if w.frames[k].tick {
			w.putBack(k)
			return
		}
	}
}

// recordBeforeUndo runs before the world goes back. It discards the writes since the last commit,
// and records the deferred ticks, because the caller may undo one of them. After an earlier step
// back, it does nothing: that step has recorded the ticks.
func (w *World) recordBeforeUndo() {
	if (rawWorld{w}).Deferred() && !w.clock.Undone {
		w.discardOpen()
		w.dropDead()
		w.recordLate()
	}
}

// undoTick goes back from the newest tick boundary to the one before it. The frames between the two
// become one frame of the forward list. The open frame must have no writes.
func (w *World) undoTick() {
	k := w.older(len(w.frames) - 1)
	for !w.frames[k].tick {
		w.release(k)
		k = w.older(len(w.frames) - 1)
	}
	open, f := w.frames[len(w.frames)-1], w.frames[k]
	w.clock.Undone = true
	undone := frame{at: open.at, seq: open.seq, deferred: open.deferred, state: open.state}
	undone.ID, undone.Touched = f.ID, slices.Clone(f.Touched)
	if open.deferred {
		undone.ops = slices.Clone(f.ops) // The record of a redone tick needs the operations.
	}
	// The ids in the list forward descend. The frame may have a higher id if it was redone before.
	if ahead := len(w.forward); ahead > 0 {
		undone.ID = w.forward[ahead-1].ID - 1
	}
	for _, t := range f.Touched {
		t.Undo(undone.ID)
	}
	w.drains.wentBack(f.ID)
	w.forward = append(w.forward, undone)
	w.cutFrames(k)
	w.tick = f.at
	w.push(frame{tick: true, seq: f.seq, deferred: f.deferred, state: f.state})
	w.invalidatePins(f.ID)
}

// redoTick goes one tick forward, to the next tick of the forward branch.
func (w *World) redoTick() {
	last := len(w.forward) - 1
	redone := w.forward[last]
	open := &w.frames[len(w.frames)-1]
	for _, t := range redone.Touched {
		t.Redo(open.ID)
	}
	open.Touched = append(open.Touched[:0], redone.Touched...)
	open.ops = append(open.ops[:0], redone.ops...)
	w.absorb(len(w.frames) - 1)
	w.forward[last] = frame{}
	w.forward = w.forward[:last]
	w.clock.Undone = last > 0
	w.tick = redone.at
	w.push(frame{tick: true, seq: redone.seq, deferred: redone.deferred, state: redone.state})
	if last == 0 {
		w.settle()
	}
}

// Ticks iterates in ascending order over the ticks that Seek can reach: older ticks, the current
// tick, and ticks of the forward branch. The world must not change during the loop.
func (h History) Ticks() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range h.w.frames {
			if f := &h.w.frames[i]; f.tick && f.held() && !yield(f.at) {
				return
			}
		}
		for i := len(h.w.forward) - 1; i >= 0; i-- {
			if !yield(h.w.forward[i].at) {
				return
			}
		}
	}
}

// Nearest returns the reachable tick nearest to the given tick. If two ticks are equally near, it
// returns the earlier tick. It returns false if no tick is reachable, as with [Options.History] 0.
// It is useful with a thinned history, which retains few old ticks. The cost is O(retained ticks).
func (h History) Nearest(tick uint64) (nearest uint64, ok bool) {
	for t := range h.Ticks() {
		if t >= tick {
			if !ok || t-tick < tick-nearest {
				nearest = t
			}
			return nearest, true
		}
		nearest, ok = t, true
	}
	return nearest, ok
}

// around returns the nearest reachable ticks before and after the given tick. ok is false if one of
// the two does not exist.
func (h History) around(tick uint64) (before, after uint64, ok bool) {
	for t := range h.Ticks() {
		if t > tick {
			return before, t, ok
		}
		before, ok = t, true
	}
	return 0, 0, false
}

// TickBytes returns the number of bytes saved between the end of the given tick and the end of the
// next retained tick. [History.Bytes] includes these bytes. TickBytes returns 0 for a tick that is
// not retained. It costs O(ticks retained, storages written).
func (h History) TickBytes(tick uint64) (n int64) {
	w := h.w
	if k := w.lastBoundary(tick); k >= 0 && w.frames[k].held() {
		n = w.frames[k].saved()
		for k = w.younger(k); k < len(w.frames) && !w.frames[k].tick; k = w.younger(k) {
			n += w.frames[k].saved()
		}
	}
	for i, begin := len(w.forward)-1, w.tick; i >= 0; i-- {
		if begin == tick {
			n += w.forward[i].saved()
		}
		begin = w.forward[i].at
	}
	return n
}

// evict removes boundaries until the history is within its limits. With HistoryDense, it first
// removes ticks between the oldest tick and the newest ticks: see thinning. Otherwise it removes
// the oldest tick that it can remove.
func (w *World) evict() {
	for w.ticks > 1 && (w.ticks-1-w.pinned() > w.options.History || w.overBudget()) {
		k := w.nextThinned()
		if k < 0 {
			k = w.oldestEvictable()
		}
		if k < 0 {
			return
		}
		w.release(k)
	}
}

func (w *World) overBudget() bool {
	if w.options.HistoryBytes <= 0 {
		return false
	}
	bytes := w.clock.Bytes()
	if w.pinned() > 0 {
		bytes -= w.frames[w.oldest].saved()
	}
	return bytes > w.options.HistoryBytes
}

// pinned returns 1 if the oldest retained tick is recorded and the next tick is deferred. Otherwise
// it returns 0. The next record lists the changes since that oldest tick. So the world retains it
// in addition to the ticks of the history.
func (w *World) pinned() int {
	next := w.younger(w.oldest)
	if next < len(w.frames) && w.frames[w.oldest].tick && !w.frames[w.oldest].deferred && w.frames[next].tick && w.frames[next].deferred {
		return 1
	}
	return 0
}

// nextThinned returns the position of the boundary that evict() removes next with HistoryDense, or
// -1. The oldest and the newest boundaries stay.
func (w *World) nextThinned() int {
	dense := uint64(w.options.HistoryDense)
	if dense == 0 || w.tick <= dense+1 {
		return -1
	}
	t, limit := &w.thinning, w.tick-dense-1
	for {
		level, n := t.fullest(limit)
		if n == 0 {
			return -1
		}
		from := &t.from[level]
		k := w.boundaryOfLevel(level, *from, limit)
		switch {
		case k < 0:
			*from = limit + 1
		// Some ticks of this level are already gone, so the level has fewer ticks than assumed.
		// Choose the fullest level again.
		case ticksOfLevel(level, w.frames[k].at) > ticksOfLevel(level, *from):
			*from = w.frames[k].at
		default:
			*from = w.frames[k].at + 1
			return k
		}
	}
}

// oldestEvictable returns the position of the oldest boundary that evict() can remove, or -1.
func (tl *timeline) oldestEvictable() int {
	t := &tl.thinning
	if tl.evictableTicks == 0 {
		t.oldest = math.MaxUint64
		return -1
	}
	k := tl.firstFrame(t.oldest)
	for !tl.isEvictable(k, tl.younger(k)) {
		k = tl.younger(k)
	}
	t.oldest = tl.frames[k].at
	return k
}

// boundaryOfLevel returns the position of the first boundary that evict() can remove and whose tick
// has the given level. The tick must be at least from and at most limit. boundaryOfLevel returns -1
// if there is none. See thinning for levels.
func (tl *timeline) boundaryOfLevel(level int, from, limit uint64) int {
	for k := max(tl.oldest+1, tl.firstFrame(from)); k < len(tl.frames) && tl.frames[k].at <= limit; k = tl.younger(k) {
		if levelOf(tl.frames[k].at) == level && tl.isEvictable(k, tl.younger(k)) {
			return k
		}
	}
	return -1
}
