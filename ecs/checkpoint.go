package ecs

import (
	"errors"
	"fmt"
	"iter"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A Checkpoint is a state to which a world can be restored.
type Checkpoint struct {
	w  *World
	id uint64
}

// Checkpoint marks the present state for [World.Restore]. Until cp is released, the world saves the
// old value of every row before its first write. Checkpoints can be nested.
//
// The cost is O(1) for worlds of any size. Earlier pointers and slices for writing are no longer
// valid.
func (w *World) Checkpoint() Checkpoint {
	if debug {
		w.mustBeAlone("Checkpoint")
	}
	w.verify()
	w.push(frame{})
	return Checkpoint{w, w.frameID}
}

// CheckpointAs is Checkpoint with a name that describes its purpose. [World.Checkpoints] shows
// the name. Several checkpoints may have the same name.
func (w *World) CheckpointAs(name string) Checkpoint {
	cp := w.Checkpoint()
	w.frames[len(w.frames)-1].name = name
	return cp
}

// Checkpoints iterates over the checkpoints that are not released, oldest first. If the memory of a
// program grows without limit, the cause may be a checkpoint that is never released. Names given by
// [World.CheckpointAs] help to find it. The loop must not change the world.
func (w *World) Checkpoints() iter.Seq[Checkpoint] {
	return func(yield func(Checkpoint) bool) {
		for i := range w.frames {
			if f := &w.frames[i]; !f.removed && !f.tick && !yield(Checkpoint{w, f.ID}) {
				return
			}
		}
	}
}

// Restore returns the world to its state at the checkpoint. That state includes the alive
// entities, their generations, and the order in which indices are reused. It also includes all
// rows in their order, values, resources, and the tick. Checkpoints newer than cp are discarded.
// cp stays valid and can be restored again.
//
// The cost is O(rows written since cp). Restore panics if cp is not valid.
func (w *World) Restore(cp Checkpoint) {
	if debug {
		w.mustBeAlone("Restore")
	}
	k := w.mustFind(cp, "Restore")
	w.verify()
	for i := k; i < len(w.frames); i++ {
		if w.frames[i].tick {
			w.dropForward()
		}
	}
	if k < w.newestBoundary() {
		w.recordBeforeUndo()
	}
	w.putBack(k)
	w.afterRewind()
	w.saveActiveCursors()
}

// Release discards cp and keeps the changes made since. Older checkpoints and ticks can still be
// restored. The cost is O(rows written between cp and the next checkpoint). If no older checkpoint
// or tick is retained, the cost does not depend on the number of rows.
//
// Release panics if cp is not valid.
func (w *World) Release(cp Checkpoint) {
	if debug {
		w.mustBeAlone("Release")
	}
	k := w.mustFind(cp, "Release")
	w.verify()
	w.release(k)
	w.evict()
	w.saveActiveCursors()
}

// Try calls f. If f returns an error or panics, Try restores the world to its state before the
// call. Then it returns the error, or continues the panic.
//
// f must not restore an older checkpoint or tick. If it does, the world keeps that older state, and
// Try reports the mistake:
//
//   - If f returned an error, Try returns this error joined with a second one.
//   - If f returned no error, Try panics.
//   - If f panicked with an error, Try panics with a value that wraps this error.
func (w *World) Try(f func() error) (err error) {
	cp := w.Checkpoint()
	hands, done := len(w.activeCursors), false
	defer func() {
		w.activeCursors.drop(hands) // The loops in f have ended, even if f panicked.
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
			// recover returns nil if runtime.Goexit is ending the goroutine.
			if reason := recover(); reason != nil {
				panic(errors.Join(asError(reason), errTooFar))
			}
		}
	}()
	err = f()
	done = true
	return err
}

var errTooFar = errors.New("ecs: the function given to Try restored a checkpoint or tick from before Try; the world keeps that state")

// asError converts the value of a panic to an error.
func asError(reason any) error {
	if err, ok := reason.(error); ok {
		return err
	}
	return fmt.Errorf("%v", reason)
}

// Valid reports whether cp can still be restored. A checkpoint is valid until it is released, or
// until a restore to an older state discards it.
func (cp Checkpoint) Valid() bool { return cp.frame() != nil }

// Name returns the name given by [World.CheckpointAs]. It returns "" if cp has no name or is not
// valid.
func (cp Checkpoint) Name() string {
	if f := cp.frame(); f != nil {
		return f.name
	}
	return ""
}

// Tick returns the tick of the world when cp was made. It returns 0 if cp is not valid.
func (cp Checkpoint) Tick() uint64 {
	if f := cp.frame(); f != nil {
		return f.at
	}
	return 0
}

// Bytes returns the number of bytes saved between cp and the next retained checkpoint or end of a
// tick. [History.Bytes] includes them. It costs O(storages written in this time).
func (cp Checkpoint) Bytes() (n int64) {
	if f := cp.frame(); f != nil {
		n = f.saved()
	}
	return n
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

// findCheckpoint returns the position of the checkpoint's frame in tl.frames, or -1. Frames are
// sorted by id.
func (tl *timeline) findCheckpoint(id uint64) int {
	k := len(tl.frames) - 1
	if k < 0 || tl.frames[k].ID != id { // Usually the checkpoint is the newest checkpoint.
		k = track.Search(tl.oldest, len(tl.frames), func(i int) bool { return tl.frames[i].ID >= id })
		if k == len(tl.frames) || tl.frames[k].ID != id || tl.frames[k].removed {
			return -1
		}
	}
	return k
}

func (w *World) mustFind(cp Checkpoint, verb string) int {
	if cp.w == nil {
		panic("ecs: " + verb + " of the zero Checkpoint; get one from World.Checkpoint")
	}
	if cp.w != w {
		panic("ecs: " + verb + " of a checkpoint of another world; use the world that made it")
	}
	k := w.findCheckpoint(cp.id)
	if k < 0 {
		panic("ecs: " + verb + " of a checkpoint that is no longer valid: it was released, or an older checkpoint or tick was restored; check Checkpoint.Valid first")
	}
	return k
}
