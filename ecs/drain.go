package ecs

// drainLoops are the running loops over [Storage.Drain] of a world. A rollback informs the loops,
// so that a loop detects that rows which it took exist again.
//
// A finished loop leaves its entry for the next loop, so the positions of the others do not
// change. Loops over iter.Pull end in any order.
type drainLoops []*drainLoop

// A drainLoop describes the row that a loop took last.
type drainLoop struct {
	running bool
	undone  bool   // A rollback has undone the taking of the row.
	taken   Entity // The entity of the row.
	frame   uint64 // Id of the frame in which the loop took the row.
}

// begin returns a new loop.
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

// take records that the loop took the row of e, in the frame with that id.
func (l *drainLoop) take(e Entity, frame uint64) {
	l.undone, l.taken, l.frame = false, e, frame
}

// wentBack runs after a restore to the start of the frame with that id. Id 0 is before all
// frames.
func (l drainLoops) wentBack(frame uint64) {
	for _, loop := range l {
		if loop.running && loop.taken != 0 && frame <= loop.frame {
			loop.undone = true
		}
	}
}
