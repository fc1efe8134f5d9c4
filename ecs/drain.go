package ecs

// drainLoops are the loops over [Storage.Drain] of a world. A rollback can undo the last removal of
// a running loop. The method wentBack then marks the loop.
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

// wentBack runs after a restore to the start of the given frame. It marks the loops whose last
// removal was undone. Id 0 stands for a state before all frames.
func (l drainLoops) wentBack(frame uint64) {
	for _, loop := range l {
		if loop.running && loop.taken != 0 && frame <= loop.frame {
			loop.undone = true
		}
	}
}
