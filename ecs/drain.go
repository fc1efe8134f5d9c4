package ecs

// drainLoops are the loops over [Storage.Drain] of a world. A loop must not continue after a
// restore that undid its last removal. So each restore calls wentBack, which marks such loops.
//
// The entry of a finished loop stays in the list, and a later loop reuses it.
type drainLoops []*drainLoop

// A drainLoop describes a loop and the row that it removed last.
type drainLoop struct {
	running bool
	undone  bool   // A rollback has undone the removal of the row.
	taken   Entity // The entity whose row the loop removed last, or 0.
	frame   uint64 // Id of the frame in which the row was removed.
}

// begin returns the entry for a new loop.
func (l *drainLoops) begin() *drainLoop {
	for _, loop := range *l {
		if !loop.running {
			*loop = drainLoop{running: true}
			return loop
		}
	}
	loop := &drainLoop{running: true}
	*l = append(*l, loop)
	return loop
}

func (l *drainLoop) end() { l.running = false }

func (l *drainLoop) take(e Entity, frame uint64) {
	l.undone, l.taken, l.frame = false, e, frame
}

// wentBack runs after a restore to the start of the given frame. It marks the loops that removed
// their last row in this frame or later. A load passes 0, which marks all loops that have removed a
// row.
func (l drainLoops) wentBack(frame uint64) {
	for _, loop := range l {
		if loop.running && loop.taken != 0 && frame <= loop.frame {
			loop.undone = true
		}
	}
}
