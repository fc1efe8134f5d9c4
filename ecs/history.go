package ecs

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// ErrNotHeld reports a tick that the history does not retain.
var ErrNotHeld = errors.New("ecs: tick not held")

// Commit ends a tick. If the world has a history, the tick becomes part of it. If recorders are
// attached, they receive the tick.
//
// The cost is O(storages changed in the tick), without a recorder. With history, Commit also
// compares each written row above 256 bytes with its old value, and retains only the bytes that
// differ. Pointers and slices for writing from before the Commit are no longer valid. Commit panics
// in a system of a [Stepper] and in the body of ParallelRuns.
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
	var n seqs
	if len(w.recorders) > 0 {
		n = w.record()
	}
	w.endFrame(w.tick+1, n)
}

// endFrame ends a tick with the current state. n has the record numbers of the tick.
func (w *World) endFrame(tick uint64, n seqs) {
	w.tick = tick
	if w.keepsTicks() {
		for i := max(0, w.newestBoundary()); i < len(w.frames); i++ {
			w.frames[i].Pare()
		}
		bare := w.bareTicks() && !w.anyCheckpoint()
		w.push(frame{Frame: track.Frame{Bare: bare}, tick: true, seq: n})
		w.evict()
		w.loopBoundaries = 0 // So saveActiveCursors drops the entries of loops that panicked.
		w.saveActiveCursors()
	}
}

// anyCheckpoint reports whether the program holds a checkpoint.
func (w *World) anyCheckpoint() bool { return len(w.frames)-w.removed > w.ticks }

// evict removes boundaries until the history is within its limits. A thinned history removes ticks
// between older ticks; any other history removes the oldest tick. A checkpoint needs the boundary
// of its tick. Then evict removes the boundaries of younger ticks instead, which merges these
// ticks.
func (w *World) evict() {
	for w.ticks > 1 && (w.ticks-1 > w.options.History || w.overBudget()) {
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
	return w.options.HistoryBytes > 0 && w.clock.Bytes() > w.options.HistoryBytes
}

// oldestEvictable returns the position of the oldest boundary that evict can remove, or -1.
func (w *World) oldestEvictable() int {
	t := &w.thinning
	if w.evictableTicks == 0 {
		t.oldest = math.MaxUint64
		return -1
	}
	k := w.firstFrame(t.oldest)
	for !w.isEvictable(k, w.younger(k)) {
		k = w.younger(k)
	}
	t.oldest = w.frames[k].at
	return k
}

// isEvictable reports whether evict can remove the boundary at the start of frames[k]. It and the
// boundary at the start of frames[next], which follows it, must be tick boundaries. So a boundary
// before a checkpoint stays. The newest boundary is never removed.
func (w *World) isEvictable(k, next int) bool {
	return k >= 0 && next < len(w.frames) && w.frames[k].tick && w.frames[next].tick
}

// markEvictable counts the boundary of frames[k] as evictable if it is. frames[next] is the frame
// that now follows.
func (w *World) markEvictable(k, next int) {
	if w.isEvictable(k, next) {
		w.evictableTicks++
		w.thinning.consider(w.frames[k].at)
	}
}

// dropForward drops the forward branch, which has the ticks after the tick that Seek went back to.
func (w *World) dropForward() {
	if !w.clock.Undone {
		return
	}
	w.turn++
	w.clock.Undone = false
	for i := range w.forward {
		for _, t := range w.forward[i].Touched {
			t.DropForward()
		}
	}
	clear(w.forward)
	w.forward = w.forward[:0]
	w.settle()
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

// Rewind goes n ticks back. See [History.Seek].
func (h History) Rewind(n int) error {
	if n < 0 || uint64(n) > h.w.tick {
		return fmt.Errorf("ecs: rewind %d ticks from tick %d: %w", n, h.w.tick, ErrNotHeld)
	}
	return h.Seek(h.w.tick - uint64(n))
}

// Seek moves the world to the end of a committed tick, backward or forward. It discards uncommitted
// changes and the checkpoints newer than the target. After a Seek backward, Seek can also go
// forward again, until the program changes or commits the world.
//
// The cost is O(rows written in the ticks between). An error wraps [ErrNotHeld] and names the
// nearest retained ticks; the world is then unchanged.
func (h History) Seek(tick uint64) error {
	w := h.w
	w.mustBeBetween("Seek")
	w.verify()
	if k := w.forwardTo(tick); k >= 0 {
		w.discardOpen()
		for len(w.forward) > k {
			w.redoTick()
		}
	} else if k := w.lastBoundary(tick); k < 0 || !w.frames[k].held() {
		return fmt.Errorf("ecs: seek tick %d: %w; %s", tick, ErrNotHeld, h.nearestRetained(tick))
	} else {
		w.discardOpen()
		for w.tick > tick {
			w.undoTick()
		}
	}
	w.afterRewind()
	w.saveActiveCursors()
	return nil
}

// nearestRetained returns the text that names the retained ticks nearest to tick, for an error.
func (h History) nearestRetained(tick uint64) string {
	if before, after, ok := h.around(tick); ok {
		return fmt.Sprintf("the nearest retained ticks are %d and %d", before, after)
	}
	return fmt.Sprintf("the oldest retained tick is %d, the newest %d", h.Oldest(), h.Newest())
}

// forwardTo returns the position, in the forward branch, of the undone frame that ends with tick,
// or -1.
func (w *World) forwardTo(tick uint64) int {
	for i := range w.forward {
		if w.forward[i].at == tick {
			return i
		}
	}
	return -1
}

// lastBoundary returns the position of the newest frame that begins with the end of tick at, or -1
// if there is none.
func (w *World) lastBoundary(at uint64) int {
	k := -1
	for i := w.firstFrame(at); i < len(w.frames) && w.frames[i].at == at; i++ {
		if w.frames[i].tick {
			k = i
		}
	}
	return k
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

// undoTick goes back from the newest tick boundary to the tick boundary before it. The world must
// have no writes after the newest one. The frames between the boundaries become one frame of the
// forward branch, so ticks that were merged stay merged.
func (w *World) undoTick() {
	k := w.older(len(w.frames) - 1)
	for !w.frames[k].tick {
		w.release(k)
		k = w.older(len(w.frames) - 1)
	}
	open, f := w.frames[len(w.frames)-1], w.frames[k]
	w.clock.Undone = true
	undone := frame{at: open.at, seq: open.seq, state: open.state}
	undone.ID, undone.Touched = f.ID, slices.Clone(f.Touched)
	// Ids decrease along the forward branch, but a frame that was redone has a larger id than the
	// others.
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
	w.push(frame{tick: true, seq: f.seq, state: f.state})
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
	w.absorb(len(w.frames) - 1)
	w.forward[last] = frame{}
	w.forward = w.forward[:last]
	w.clock.Undone = last > 0
	w.tick = redone.at
	w.push(frame{tick: true, seq: redone.seq, state: redone.state})
	if last == 0 {
		w.settle()
	}
}

// A frame is the span between two boundaries. A boundary is a checkpoint or the end of a tick. The
// saved rows of a frame are in the logs of the columns. This struct has the other state.
//
//	frames   | tick 7 | checkpoint | tick 8 | tick 9 |
//	                                          open: writes go here
//	boundary ^        ^            ^        ^
//
// A frame is named after the boundary at its start. Removing the boundary empties the frame, but
// the frame keeps its position in the list. Later, compactFrames deletes many removed frames at
// once, so a commit costs the same for histories of any length. frames[oldest] is the oldest
// frame that is not removed. The last frame is open and is never removed.
type frame struct {
	track.Frame
	removed bool
	// The frame begins with the end of a committed tick. Otherwise it begins with a checkpoint.
	tick bool
	name string // Name that the program gave the checkpoint, if any.
	// The world's tick at the start of the frame, or at its end if the frame is undone.
	at    uint64
	seq   seqs   // Record numbers of the tick in at.
	state uint64 // First id of the boundary. Rewinding and redoing assign new ids.
	ops   []raw.Op
}

// reuseLists keeps the lists of the removed frame f for new frames.
func (w *World) reuseLists(f *frame) {
	if cap(f.Touched)+cap(f.ops) > 0 {
		w.lists = append(w.lists, frameLists{f.Touched[:0], f.ops[:0]})
		f.Touched, f.ops = nil, nil
	}
}

// held reports whether the world can be restored to the start of f.
func (f *frame) held() bool { return !f.Bare }

// push closes the open frame and opens f.
func (w *World) push(f frame) {
	w.frameID++
	w.clock.Span++
	w.changes++
	w.turn++
	if f.ID, f.at = w.frameID, w.tick; f.state == 0 {
		f.state = f.ID
	}
	if k := len(w.lists) - 1; k >= 0 {
		f.Touched, f.ops, w.lists = w.lists[k].touched, w.lists[k].ops, w.lists[:k]
	}
	w.frames = append(w.frames, f)
	if f.tick {
		w.ticks++
		w.markEvictable(w.older(len(w.frames)-1), len(w.frames)-1)
	}
	w.setOpenFrame()
	w.remember()
	// After the end of a tick, the caller calls saveActiveCursors.
	if !f.tick && len(w.activeCursors) > 0 {
		w.saveActiveCursors()
	}
}

// pushTick opens the first frame of a history that begins at the current state.
func (w *World) pushTick(n seqs) {
	w.push(frame{Frame: track.Frame{Bare: w.bareTicks()}, tick: true, seq: n})
}

// setOpenFrame sets the frame that receives changes and recorded operations to the open frame.
func (w *World) setOpenFrame() {
	k := len(w.frames) - 1
	if k < 0 {
		w.clock.Frame = nil
		return
	}
	w.clock.Frame = &w.frames[k].Frame
	if len(w.recorders) > 0 {
		w.ops = &w.frames[k].ops
	}
}

// older returns the position of the frame before frames[k], or -1.
func (w *World) older(k int) int {
	if k <= w.oldest {
		return -1
	}
	for k--; w.frames[k].removed; {
		k--
	}
	return k
}

// younger returns the position of the frame after frames[k], or len(frames) if there is none.
func (w *World) younger(k int) int {
	for k++; k < len(w.frames) && w.frames[k].removed; {
		k++
	}
	return k
}

// cutFrames removes frames[k:]. The logs of these frames are removed already.
func (w *World) cutFrames(k int) {
	for i := len(w.frames) - 1; i >= k; i-- {
		f := &w.frames[i]
		w.reuseLists(f)
		switch {
		case f.removed:
			w.removed--
		case f.tick:
			w.ticks--
			if w.isEvictable(w.older(i), i) {
				w.evictableTicks--
			}
		}
	}
	for ; k > 0 && w.frames[k-1].removed; k-- {
		w.removed--
	}
	w.frames = w.frames[:k]
	w.oldest = min(w.oldest, k)
}

// removeFrame removes frames[k] from the list. The logs of the frame are removed already.
func (w *World) removeFrame(k int) {
	f, before, after := &w.frames[k], w.older(k), w.younger(k)
	if !f.tick {
		w.markEvictable(before, after) // The checkpoint no longer keeps the previous boundary.
	} else if w.ticks--; w.isEvictable(before, k) || w.isEvictable(k, after) {
		w.evictableTicks--
	}
	w.reuseLists(f)
	f.removed, f.tick = true, false
	w.removed++
	if before < 0 {
		w.oldest = after
	}
	if after == len(w.frames) {
		w.cutFrames(before + 1)
	}
	if w.removed > 8+len(w.frames)/4 {
		w.compactFrames()
	}
}

// compactFrames deletes the removed frames from the list.
func (w *World) compactFrames() {
	w.frames = slices.DeleteFunc(w.frames, func(f frame) bool { return f.removed })
	w.oldest, w.removed = 0, 0
}

// newSpan starts a new span. The marks of all columns and all pointers for writing become stale.
func (w *World) newSpan() {
	w.clock.Span++
	w.changes++
	w.turn++
	w.setOpenFrame()
	w.remember()
}

// A Checkpoint is a state to which a world can be restored.
type Checkpoint struct {
	w  *World
	id uint64
}

// Checkpoint opens a frame. From now on the world saves the old value of every row before its first
// write, until cp is released. Checkpoints can be nested.
//
// The cost is O(1) for worlds of any size: a storage learns of the new frame at its next change.
// Earlier pointers and slices for writing are no longer valid.
func (w *World) Checkpoint() Checkpoint {
	w.verify()
	w.push(frame{})
	return Checkpoint{w, w.frameID}
}

// frame returns the frame that begins with cp, or nil if cp is not valid.
func (cp Checkpoint) frame() *frame {
	if cp.w == nil {
		return nil
	}
	if k := cp.w.findCheckpoint(cp.id); k >= 0 {
		return &cp.w.frames[k]
	}
	return nil
}

// Valid reports whether cp can still be restored. A checkpoint is valid until it is released, or
// until a restore to an older state discards it.
func (cp Checkpoint) Valid() bool { return cp.frame() != nil }

// findCheckpoint returns the position of the frame that begins with checkpoint id, or -1. Ids
// increase along the list of frames.
func (w *World) findCheckpoint(id uint64) int {
	k := len(w.frames) - 1
	if k < 0 || w.frames[k].ID != id { // Usually the checkpoint is the newest one.
		k = track.Search(w.oldest, len(w.frames), func(i int) bool { return w.frames[i].ID >= id })
		if k == len(w.frames) || w.frames[k].ID != id || w.frames[k].removed {
			return -1
		}
	}
	return k
}

func (w *World) mustFind(cp Checkpoint, verb string) int {
	if cp.w != w {
		panic("ecs: " + verb + " of a checkpoint of another world; use the world that made it")
	}
	k := w.findCheckpoint(cp.id)
	if k < 0 {
		panic("ecs: " + verb + " of a checkpoint that is no longer valid: it was released, or an older checkpoint or tick was restored; check Checkpoint.Valid first")
	}
	return k
}

// Restore returns the world to its state at the checkpoint. That state includes the alive
// entities, their generations, and the order in which indices are reused. It also includes all
// rows in their order, values, resources, and the tick. Checkpoints newer than cp are discarded.
// cp stays valid and can be restored again.
//
// The cost is O(rows written since cp). Restore panics if cp is not valid.
func (w *World) Restore(cp Checkpoint) {
	k := w.mustFind(cp, "Restore")
	w.verify()
	for i := k; i < len(w.frames); i++ {
		if w.frames[i].tick {
			w.dropForward()
		}
	}
	w.putBack(k)
	w.afterRewind()
	w.saveActiveCursors()
}

// putBack undoes all writes since the start of frames[k]. These writes cannot be redone. frames[k]
// becomes the open frame.
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
	w.invalidatePins(f.ID)
	w.drains.wentBack(f.ID)
	w.newSpan()
}

// Release discards cp and keeps the changes made since. Older checkpoints and ticks can still be
// restored. The cost is O(rows written between cp and the next checkpoint). If no older checkpoint
// or tick is retained, the cost does not depend on the number of rows.
//
// It panics if cp is not valid.
func (w *World) Release(cp Checkpoint) {
	k := w.mustFind(cp, "Release")
	w.verify()
	w.release(k)
	w.evict()
	w.saveActiveCursors()
}

// release removes the boundary at the start of frames[k].
func (w *World) release(k int) {
	f := &w.frames[k]
	if k == w.oldest {
		for _, t := range f.Touched {
			t.Drop(f.ID)
		}
	} else {
		older := &w.frames[w.older(k)]
		for _, t := range f.Touched {
			t.Release(&f.Frame, &older.Frame)
		}
		older.ops = append(older.ops, f.ops...)
	}
	w.removeFrame(k)
	w.newSpan()
}

// Try calls f between a checkpoint and its release. If f returns an error or panics, Try restores
// the world to the checkpoint. Then it returns the error, or continues the panic.
//
// f must not restore an older checkpoint or tick, because Try then cannot restore the world. In
// this case Try returns the error of f joined with an error that reports the misuse. If f has
// returned no error, Try panics with that second error. If f has panicked, Try panics with an error
// that also wraps the panic value, if the value is an error.
func (w *World) Try(f func() error) (err error) {
	cp := w.Checkpoint()
	hands, done := len(w.activeCursors), false
	defer func() {
		w.activeCursors.drop(hands) // The loops in f have ended, also if f panicked.
		switch {
		case cp.Valid():
			if !done || err != nil {
				w.Restore(cp)
			}
			w.Release(cp)
		case done && err != nil:
			err = errors.Join(err, errTooFar)
		case done:
			panic(errTooFar)
		default:
			// Without a reason, runtime.Goexit is ending the goroutine.
			if reason := recover(); reason != nil {
				panic(errors.Join(asError(reason), errTooFar))
			}
		}
	}()
	err = f()
	done = true
	return err
}

// errTooFar is the error of a function that restored a state from before its Try.
var errTooFar = errors.New("ecs: the function given to Try restored a checkpoint or tick from before Try; the world keeps that state")

// asError returns a panic value as an error.
func asError(reason any) error {
	if err, ok := reason.(error); ok {
		return err
	}
	return fmt.Errorf("%v", reason)
}

// nextThinned returns the position of the tick boundary that a thinned history removes next. It is
// neither the oldest nor one of the newest boundaries. If there is none, nextThinned returns -1.
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
		// A level with more ticks may now exist, so check again.
		case ticksOfLevel(level, w.frames[k].at) > ticksOfLevel(level, *from):
			*from = w.frames[k].at
		default:
			*from = w.frames[k].at + 1
			return k
		}
	}
}

// boundaryOfLevel returns the position of the first evictable boundary of the level, between ticks
// from and limit. It returns -1 if there is none. The oldest boundary is never evictable, nor is a
// boundary before a checkpoint.
func (w *World) boundaryOfLevel(level int, from, limit uint64) int {
	for k := max(w.oldest+1, w.firstFrame(from)); k < len(w.frames) && w.frames[k].at <= limit; k = w.younger(k) {
		if levelOf(w.frames[k].at) == level && w.isEvictable(k, w.younger(k)) {
			return k
		}
	}
	return -1
}

// firstFrame returns the position of the first frame that begins at tick or later. The frame may be
// a removed one.
func (w *World) firstFrame(tick uint64) int {
	return track.Search(w.oldest, len(w.frames), func(i int) bool { return w.frames[i].at >= tick })
}

// Ticks iterates in ascending order over the ticks that Seek can reach: older ticks, the current
// one, and ticks of the forward branch. The world must not change during the loop.
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

// Nearest returns the reachable tick nearest to tick. If two are equally near, it returns the
// earlier one. ok is false if no tick is reachable, as with [Options.History] 0. Nearest is useful
// with a thinned history, which retains few old ticks. The cost is O(retained ticks).
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

// around returns the nearest reachable ticks before and after tick. ok is false if either does not
// exist.
func (h History) around(tick uint64) (before, after uint64, ok bool) {
	for t := range h.Ticks() {
		if t > tick {
			return before, t, ok
		}
		before, ok = t, true
	}
	return 0, 0, false
}
