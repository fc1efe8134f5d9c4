package ecs

// drainLoops are the running loops over [Storage.Drain] of a world. A rollback may make a row live
// again that a loop has already removed. The method wentBack then marks the loop.
//
// A finished loop keeps its entry, for reuse by a later loop. So the positions of other loops do
// not change. Loops over iter.Pull may end in any order.
type drainLoops []*drainLoop

// A drainLoop describes the row that a loop removed last.
type drainLoop struct {
	running bool
	undone  bool   // A rollback has undone the removal of the row.
	taken   Entity // The entity whose row the loop removed last, or 0.
	frame   uint64 // Id of the frame in which the loop removed the row.
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

// take records that the loop removed the row of e. frame is the id of the open frame.
func (l *drainLoop) take(e Entity, frame uint64) {
	l.undone, l.taken, l.frame = false, e, frame
}

// wentBack runs after a restore to the start of the frame with the given id. Id 0 stands for a
// state before all frames.
func (l drainLoops) wentBack(frame uint64) {
	for _, loop := range l {
		if loop.running && loop.taken != 0 && frame <= loop.frame {
			loop.undone = true
		}
	}
}
