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

// ErrNotHeld reports a tick that the history does not hold.
var ErrNotHeld = errors.New("ecs: tick not held")

// Commit ends a tick. The tick becomes part of the history, if the world has
// one, and is told to the recorders, if some are attached.
//
// It costs O(storages changed in the tick), without a recorder, and with history a look at each
// row above 256 bytes that was written, whose unchanged parts are not kept. Pointers and slices
// for writing that were given out before are no longer valid. It panics in a system of a
// [Stepper] and in the body of ParallelRuns.
func (w *World) Commit() {
	w.mustBeBetween("Commit")
	if len(w.hooks.change) > 0 {
		w.hooks.tellChanges()
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
	w.bound(w.tick+1, n)
}

// bound makes the present state the end of that tick, whose records have the numbers n.
func (w *World) bound(tick uint64, n seqs) {
	w.tick = tick
	if w.keepsTicks() {
		for i := max(0, w.newestBoundary()); i < len(w.frames); i++ {
			w.frames[i].Pare()
		}
		bare := w.bareTicks() && !w.anyCheckpoint()
		w.push(frame{Frame: track.Frame{Bare: bare}, tick: true, seq: n})
		w.evict()
		w.handBoundaries = 0 // What panicked in the tick is over with it.
		w.settleHands()
	}
}

// anyCheckpoint reports whether a checkpoint is held.
func (w *World) anyCheckpoint() bool { return len(w.frames)-w.removed > w.ticks }

// evict forgets ticks until the history is within its bounds: of those between older ones, if
// the history is thinned, else the oldest. A boundary that a checkpoint needs to say what its
// tick changed stays; younger ones are merged instead.
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

// evictable returns the position of the oldest boundary that is loose, or -1.
func (w *World) evictable() int {
	t := &w.thinning
	if w.loose == 0 {
		t.oldest = math.MaxUint64
		return -1
	}
	k := w.firstFrame(t.oldest)
	for !w.isLoose(k, w.younger(k)) {
		k = w.younger(k)
	}
	t.oldest = w.frames[k].at
	return k
}

// isLoose reports whether frames[k] begins with a tick boundary that no checkpoint
// follows before the next one, which frames[next] begins with: it can be given up.
// The newest boundary never is.
func (w *World) isLoose(k, next int) bool {
	return k >= 0 && next < len(w.frames) && w.frames[k].tick && w.frames[next].tick
}

// loosen notes that frames[next] follows frames[k] now, if that makes its boundary
// loose.
func (w *World) loosen(k, next int) {
	if w.isLoose(k, next) {
		w.loose++
		w.thinning.consider(w.frames[k].at)
	}
}

// dropForward ends the forward branch.
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

// A History goes back and forth between the committed ticks that its world
// holds.
type History struct{ w *World }

// History returns the history of w. It holds nothing if [Options.History] is 0.
func (w *World) History() History { return History{w} }

// Oldest returns the oldest tick that can be gone to.
func (h History) Oldest() uint64 {
	for i := h.w.oldest; i < len(h.w.frames); i++ {
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
	w.mustBeBetween("Seek")
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
	w.settleHands()
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
	k := -1
	for i := w.firstFrame(at); i < len(w.frames) && w.frames[i].at == at; i++ {
		if w.frames[i].tick {
			k = i
		}
	}
	return k
}

// discardOpen throws away what was written since the last commit, and the checkpoints made since.
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
	k := w.older(len(w.frames) - 1)
	for !w.frames[k].tick {
		w.release(k)
		k = w.older(len(w.frames) - 1)
	}
	open, f := w.frames[len(w.frames)-1], w.frames[k]
	w.clock.Undone = true
	undone := frame{at: open.at, seq: open.seq, state: open.state}
	undone.ID, undone.Touched = f.ID, slices.Clone(f.Touched)
	if ahead := len(w.forward); ahead > 0 { // Ids fall along the branch; that of f is the largest if it was redone.
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
	w.leavePins(f.ID)
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
	w.push(frame{tick: true, seq: redone.seq, state: redone.state})
	if last == 0 {
		w.settle()
	}
}

// A frame is the span between two boundaries: a checkpoint or the end of a tick.
// What it saved lies in the logs of columns; here stands what belongs to the world.
//
//	frames   | tick 7 | checkpoint | tick 8 | tick 9 |
//	                                          open: writes go here
//	boundary ^        ^            ^        ^
//
// A frame is named after the boundary it begins with. One whose boundary is removed
// has nothing, and keeps its place until enough of them are squeezed out together, so
// that a history of any length costs the same. The oldest that is not removed is
// frames[oldest]; the last one, which is open, never is.
type frame struct {
	track.Frame
	removed bool
	tick    bool   // It begins with the end of a committed tick; otherwise with a checkpoint.
	name    string // Of a checkpoint that the program gave one.
	at      uint64 // The world's tick at its beginning; if it was undone, at its end.
	seq     seqs   // Of that tick.
	state   uint64 // The id that its boundary had first: going back and forth renames it.
	ops     []raw.Op
}

// keepLists keeps the memory of the lists of f, which is gone.
func (w *World) keepLists(f *frame) {
	if cap(f.Touched)+cap(f.ops) > 0 {
		w.lists = append(w.lists, frameLists{f.Touched[:0], f.ops[:0]})
		f.Touched, f.ops = nil, nil
	}
}

// held reports whether the world can be put back to the beginning of f.
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
		w.loosen(w.older(len(w.frames)-1), len(w.frames)-1)
	}
	w.point()
	w.remember()
	if !f.tick && len(w.hands) > 0 { // The ends of ticks are for whoever sets them.
		w.settleHands()
	}
}

// pushTick opens the first frame of a history that begins at the present state.
func (w *World) pushTick(n seqs) {
	w.push(frame{Frame: track.Frame{Bare: w.bareTicks()}, tick: true, seq: n})
}

// point makes changes and operations go to the open frame.
func (w *World) point() {
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

// younger returns the position of the frame behind frames[k], or their number.
func (w *World) younger(k int) int {
	for k++; k < len(w.frames) && w.frames[k].removed; {
		k++
	}
	return k
}

// cutFrames forgets frames[k:], whose logs are gone already.
func (w *World) cutFrames(k int) {
	for i := len(w.frames) - 1; i >= k; i-- {
		f := &w.frames[i]
		w.keepLists(f)
		switch {
		case f.removed:
			w.removed--
		case f.tick:
			w.ticks--
			if w.isLoose(w.older(i), i) {
				w.loose--
			}
		}
	}
	for ; k > 0 && w.frames[k-1].removed; k-- {
		w.removed--
	}
	w.frames = w.frames[:k]
	w.oldest = min(w.oldest, k)
}

// removeFrame takes frames[k], whose logs are gone already, out of the deque.
func (w *World) removeFrame(k int) {
	f, before, after := &w.frames[k], w.older(k), w.younger(k)
	if !f.tick {
		w.loosen(before, after) // No checkpoint needs it any more.
	} else if w.ticks--; w.isLoose(before, k) || w.isLoose(k, after) {
		w.loose--
	}
	w.keepLists(f)
	f.removed, f.tick = true, false
	w.removed++
	if before < 0 {
		w.oldest = after
	}
	if after == len(w.frames) {
		w.cutFrames(before + 1)
	}
	if w.removed > 8+len(w.frames)/4 {
		w.squeeze()
	}
}

// squeeze takes the frames that are removed out of the list.
func (w *World) squeeze() {
	w.frames = slices.DeleteFunc(w.frames, func(f frame) bool { return f.removed })
	w.oldest, w.removed = 0, 0
}

// renew starts a new span: the marks of all columns and the pointers given out
// become stale.
func (w *World) renew() {
	w.clock.Span++
	w.changes++
	w.turn++
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

// Valid reports whether cp can still be restored: it was neither released nor
// made in a future that was thrown away since.
func (cp Checkpoint) Valid() bool { return cp.frame() != nil }

// findCheckpoint returns the position of the frame that begins with checkpoint
// id, or -1. Ids rise along the deque.
func (w *World) findCheckpoint(id uint64) int {
	k := len(w.frames) - 1
	if k < 0 || w.frames[k].ID != id { // The newest one, nearly always.
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
	w.settleHands()
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
	w.leavePins(f.ID)
	w.drains.wentBack(f.ID)
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
	w.settleHands()
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
	w.renew()
}

// Try calls f between a checkpoint and its release. If f returns an error or
// panics, the world is put back to where it was; the error is returned, the
// panic goes on.
//
// f must not go back further than that, to an older checkpoint or tick. If it does, Try
// cannot put the world back: it says so beside the error of f, or panics with an error
// that says so and wraps what f panicked with, if that is an error.
func (w *World) Try(f func() error) (err error) {
	cp := w.Checkpoint()
	hands, done := len(w.hands), false
	defer func() {
		w.hands.drop(hands) // The loops of f are over, also if it panicked.
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
			if reason := recover(); reason != nil { // Else the goroutine ends.
				panic(errors.Join(asError(reason), errTooFar))
			}
		}
	}()
	err = f()
	done = true
	return err
}

// errTooFar reports a function that took the checkpoint of its Try along.
var errTooFar = errors.New("ecs: the function given to Try went back further than where Try began, to an older checkpoint or tick; the world is where that left it")

// asError returns what a panic was called with as an error.
func asError(reason any) error {
	if err, ok := reason.(error); ok {
		return err
	}
	return fmt.Errorf("%v", reason)
}

// thinnable returns the position of the tick boundary to be given up, which is
// neither the oldest nor one of the newest, or -1.
func (w *World) thinnable() int {
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
		case ticksOfLevel(level, w.frames[k].at) > ticksOfLevel(level, *from): // Another level may be fuller.
			*from = w.frames[k].at
		default:
			*from = w.frames[k].at + 1
			return k
		}
	}
}

// boundaryOfLevel returns the position of the first boundary from tick from to
// limit that is of that level and can be given up, or -1. The oldest boundary
// cannot, nor one that a checkpoint follows.
func (w *World) boundaryOfLevel(level int, from, limit uint64) int {
	for k := max(w.oldest+1, w.firstFrame(from)); k < len(w.frames) && w.frames[k].at <= limit; k = w.younger(k) {
		if levelOf(w.frames[k].at) == level && w.isLoose(k, w.younger(k)) {
			return k
		}
	}
	return -1
}

// firstFrame returns the position of the first frame that begins at tick or later,
// which may be removed.
func (w *World) firstFrame(tick uint64) int {
	return track.Search(w.oldest, len(w.frames), func(i int) bool { return w.frames[i].at >= tick })
}

// Ticks iterates over the ticks that can be gone to, in ascending order: those
// before the present one, it, and those that can be gone forward to. The world must
// not change meanwhile.
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

// Nearest returns the tick nearest to tick, the earlier of two, of those that can be gone to,
// and whether there is any: not if [Options.History] is 0. A thinned history holds few of long
// ago, so it is for sliders and "about a minute back". It costs O(ticks held).
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

// around returns the nearest ticks before and after tick that can be gone to, and
// whether there is one on each side.
func (h History) around(tick uint64) (before, after uint64, ok bool) {
	for t := range h.Ticks() {
		if t > tick {
			return before, t, ok
		}
		before, ok = t, true
	}
	return 0, 0, false
}
