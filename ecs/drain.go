package ecs

// drainLoops are the running loops over [Storage.Drain] of a world. What puts the world back
// tells them, so that a loop notices that rows it took are there again.
//
// A loop that ends leaves its place to the next one, so that the others keep theirs. Loops
// over iter.Pull end in any order.
type drainLoops []drainLoop

// A drainLoop is what is known of the row that a loop took last.
type drainLoop struct {
	running bool
	undone  bool   // The world was put back to before the row was taken.
	taken   Entity // Whose row it was.
	frame   uint64 // The id of the frame in which it was taken. Only older boundaries undo that.
}

// begin returns the number of a new loop.
func (l *drainLoops) begin() int {
	for i := range *l {
		if !(*l)[i].running {
			(*l)[i] = drainLoop{running: true}
			return i
		}
	}
	*l = append(*l, drainLoop{running: true})
	return len(*l) - 1
}

// end ends a loop.
func (l *drainLoops) end(loop int) { (*l)[loop].running = false }

// take notes that a loop took the row of e in the frame with that id.
func (l *drainLoops) take(loop int, e Entity, frame uint64) {
	(*l)[loop] = drainLoop{running: true, taken: e, frame: frame}
}

// undone returns the entity whose row a loop took last, and reports whether the world was put
// back to before that.
func (l *drainLoops) undone(loop int) (Entity, bool) { return (*l)[loop].taken, (*l)[loop].undone }

// wentBack comes after the world was put back to the beginning of the frame with that id; 0
// is before all frames.
func (l *drainLoops) wentBack(frame uint64) {
	for i := range *l {
		if loop := &(*l)[i]; loop.running && loop.taken != 0 && frame <= loop.frame {
			loop.undone = true
		}
	}
}
