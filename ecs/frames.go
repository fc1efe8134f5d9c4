package ecs

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A timeline has the saved states of a world: its checkpoints and the ticks of its history. Its
// frames are in the order of time. Writes save rows in the last frame, which is open.
type timeline struct {
	// Oldest first. The last frame is open. The list is empty in a world without history,
	// checkpoints and recorders.
	frames  []frame
	oldest  int          // The position of the first frame that is not removed.
	removed int          // The number of removed frames.
	lists   []frameLists // Buffers of removed frames.
	// Frames that Seek or Rewind has undone, the newest tick first. Seek redoes them, beginning
	// with the last element. The next write drops them.
	forward []frame

	tick  uint64
	ticks int // The number of frames that begin at the end of a tick.
	// clock.Span after the last Commit, Attach or load. A NoRewind storage that was written since
	// then has changes that belong to the next tick.
	exemptSpan     uint64
	evictableTicks int // The number of boundaries that evict can remove.
	thinning       thinning

	clock   track.Clock
	frameID uint64 // The id of the newest frame. It never decreases.
	turn    uint64 // Number of times that a frame was opened or closed.
	pins    []*rawPin
}

// frameLists has the buffers of a removed frame, which a new frame reuses.
type frameLists struct {
	touched []*track.Tracker
	ops     []raw.Op
}

// A frame is the time between two boundaries, and saves the rows that are written in this time. A
// boundary is a checkpoint or the end of a tick.
//
//	frame         begins with
//	tick 7        the end of tick 7
//	checkpoint    a checkpoint during tick 8
//	tick 8        the end of tick 8
//	tick 9        the end of tick 9; this frame is open
//
// A frame is named after the boundary at its start. The logs of the columns have its saved rows. A
// removed frame stays in the list until compactFrames deletes many removed frames at once.
type frame struct {
	track.Frame
	removed bool
	// The frame begins with the end of a committed tick. Otherwise it begins with a checkpoint.
	tick bool
	name string // Name that the program gave the checkpoint, if any.
	// The tick of the world at the start of the frame. In the list forward, the tick at the end of
	// the frame.
	at uint64
	// The sequence numbers that the recorders gave to the tick in the field at.
	seq seqs
	// A recorder has deferred the tick in the field at. The tick has no record yet, and seq is
	// unused. The next record will include its changes.
	deferred bool
	// The id that the frame of this boundary had at first. When the boundary is undone and redone,
	// its frame gets a new id, but state does not change. A Past finds its boundary by state.
	state uint64
	ops   []raw.Op
}

// held reports whether the world can be restored to the start of f.
func (f *frame) held() bool { return !f.Bare }

// saved returns the number of bytes that frame f saved.
func (f *frame) saved() (n int64) {
	for _, t := range f.Touched {
		n += t.SavedIn(f.ID)
	}
	return n
}

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
	// For a checkpoint, save the rows of running loops here. For the end of a tick, the caller does
	// it.
	if !f.tick && len(w.activeCursors) > 0 {
		w.saveActiveCursors()
	}
}

// pushTick opens the first frame of a history that begins now.
func (w *World) pushTick(n seqs) {
	w.push(frame{Frame: track.Frame{Bare: w.bareTicks()}, tick: true, seq: n})
}

// setOpenFrame directs saved rows and recorded operations to the last frame.
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

// newSpan begins a new span: a period in which each row is saved at most once. So the next write of
// a row saves it again. Pointers for writing from earlier spans are no longer valid.
func (w *World) newSpan() {
	w.clock.Span++
	w.changes++
	w.turn++
	w.setOpenFrame()
	w.remember()
}

// putBack undoes all writes since the start of frames[k], which becomes the open frame. A redo is
// not possible.
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

// cutFrames removes frames[k:]. The caller has removed their logs.
func (tl *timeline) cutFrames(k int) {
	for i := len(tl.frames) - 1; i >= k; i-- {
		f := &tl.frames[i]
		tl.reuseLists(f)
		switch {
		case f.removed:
			tl.removed--
		case f.tick:
			tl.ticks--
			if tl.isEvictable(tl.older(i), i) {
				tl.evictableTicks--
			}
		}
	}
	for ; k > 0 && tl.frames[k-1].removed; k-- {
		tl.removed--
	}
	tl.frames = tl.frames[:k]
	tl.oldest = min(tl.oldest, k)
}

// removeFrame removes frames[k] from the list. The caller has removed its logs.
func (tl *timeline) removeFrame(k int) {
	f, before, after := &tl.frames[k], tl.older(k), tl.younger(k)
	if f.tick {
		tl.ticks--
	}
	if tl.isEvictable(k, after) {
		tl.evictableTicks--
	}
	switch was, is := tl.isEvictable(before, k), tl.isEvictable(before, after); {
	case was && !is:
		tl.evictableTicks--
	case is && !was:
		tl.markEvictable(before, after)
	}
	tl.reuseLists(f)
	f.removed, f.tick = true, false
	tl.removed++
	if before < 0 {
		tl.oldest = after
	}
	if after == len(tl.frames) {
		tl.cutFrames(before + 1)
	}
	if tl.removed > 8+len(tl.frames)/4 {
		tl.compactFrames()
	}
}

// compactFrames deletes the removed frames from the list.
func (tl *timeline) compactFrames() {
	tl.frames = slices.DeleteFunc(tl.frames, func(f frame) bool { return f.removed })
	tl.oldest, tl.removed = 0, 0
}

// reuseLists keeps the lists of the removed frame f for new frames.
func (tl *timeline) reuseLists(f *frame) {
	if cap(f.Touched)+cap(f.ops) > 0 {
		tl.lists = append(tl.lists, frameLists{f.Touched[:0], f.ops[:0]})
		f.Touched, f.ops = nil, nil
	}
}

// older returns the position of the frame before frames[k], or -1.
func (tl *timeline) older(k int) int {
	if k <= tl.oldest {
		return -1
	}
	for k--; tl.frames[k].removed; {
		k--
	}
	return k
}

// younger returns the position of the frame after frames[k], or len(frames) if there is none.
func (tl *timeline) younger(k int) int {
	for k++; k < len(tl.frames) && tl.frames[k].removed; {
		k++
	}
	return k
}

// firstFrame returns the position of the first frame that begins at the given tick or later, even
// if it is removed.
func (tl *timeline) firstFrame(tick uint64) int {
	return track.Search(tl.oldest, len(tl.frames), func(i int) bool { return tl.frames[i].at >= tick })
}

// lastBoundary returns the position of the newest frame that begins at the end of the given tick.
// It returns -1 if there is none.
func (tl *timeline) lastBoundary(at uint64) int {
	k := -1
	for i := tl.firstFrame(at); i < len(tl.frames) && tl.frames[i].at == at; i++ {
		if tl.frames[i].tick {
			k = i
		}
	}
	return k
}

func (w *World) newestBoundary() int {
	for k := len(w.frames) - 1; k >= 0; k-- {
		if w.frames[k].tick {
			return k
		}
	}
	return -1
}

// newestRecorded returns the position of the newest tick boundary that has a record, or -1.
func (w *World) newestRecorded() int {
	k := w.newestBoundary()
	for k >= 0 && (!w.frames[k].tick || w.frames[k].deferred) {
		k--
	}
	return k
}

// numbers returns the sequence numbers of the newest recorded tick.
func (w *World) numbers() (n seqs) {
	if k := w.newestRecorded(); k >= 0 {
		n = w.frames[k].seq
	}
	return n
}

// written reports whether anything was written since the newest boundary.
func (w *World) written() bool {
	for i := max(0, w.newestBoundary()); i < len(w.frames); i++ {
		if len(w.frames[i].Touched) > 0 {
			return true
		}
	}
	return false
}

// anyCheckpoint reports whether the program holds a checkpoint.
func (tl *timeline) anyCheckpoint() bool { return len(tl.frames)-tl.removed > tl.ticks }

// isEvictable reports whether evict() can remove the boundary at the start of frames[k]. next is
// the position of the following frame. These boundaries cannot be removed:
//
//   - the newest boundary
//   - checkpoints, and the boundary before a checkpoint
//   - a recorded tick that is followed by a deferred tick, because the next record lists the
//     changes since the recorded tick
func (tl *timeline) isEvictable(k, next int) bool {
	if k < 0 || next >= len(tl.frames) || !tl.frames[k].tick || !tl.frames[next].tick {
		return false
	}
	return tl.frames[k].deferred || !tl.frames[next].deferred
}

// markEvictable counts the boundary at the start of frames[k] if evict() can remove it. next is the
// position of the following frame.
func (tl *timeline) markEvictable(k, next int) {
	if tl.isEvictable(k, next) {
		tl.evictableTicks++
		tl.thinning.consider(tl.frames[k].at)
	}
}

// dropForward drops the ticks that Seek has undone.
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

// forgetFrames drops all frames, including undone ones.
func (w *World) forgetFrames() {
	w.invalidatePins(0)
	w.dropForward()
	for len(w.frames) > 0 {
		w.release(w.oldest)
	}
	w.newSpan()
}

// restart begins a new history at the current state.
func (w *World) restart(n seqs) {
	w.forgetFrames()
	w.ops = nil
	w.updateObserved()
	if w.keepsTicks() {
		w.pushTick(n)
	}
}
