package ecs

// drainLoops are the running loops over [Storage.Drain] of a world. What puts the world back
// tells them, so that a loop notices that rows it took are there again.
//
// A loop that ends leaves its place to the next one, so that the others keep theirs. Loops
// over iter.Pull end in any order.
type drainLoops []*drainLoop

// A drainLoop is what is known of the row that a loop took last.
type drainLoop struct {
	running bool
	undone  bool   // The world was put back to before the row was taken.
	taken   Entity // Whose row it was.
	frame   uint64 // The id of the frame in which it was taken. Only older boundaries undo that.
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

// take notes that the loop took the row of e in the frame with that id.
func (l *drainLoop) take(e Entity, frame uint64) {
	l.undone, l.taken, l.frame = false, e, frame
}

// wentBack comes after the world was put back to the beginning of the frame with that id; 0
// is before all frames.
func (l drainLoops) wentBack(frame uint64) {
	for _, loop := range l {
		if loop.running && loop.taken != 0 && frame <= loop.frame {
			loop.undone = true
		}
	}
}
