package ecs

import (
	"runtime"
	"strings"
)

// loops holds the running loops of a world.
type loops struct {
	activeCursors cursorStack // The running loops that write, the innermost one last.
	// The number of boundaries in this tick at which activeCursors had entries. It starts again at
	// 0 when activeCursors is empty.
	loopBoundaries uint
	// A parallel loop is running, so the program may write only the rows of its runs.
	parallel bool
	longLogs bool // A set has a long log of moves; see dropLongLogs.
	drains   drainLoops
}

// An activeCursor is a loop that has passed rows to its body for writing. A boundary makes the undo
// marks of these rows stale while the body may still write. So a boundary saves these rows again.
type activeCursor interface {
	saveAgain() bool // Saves the rows again. Returns false if they have moved.
}

// A cursorStack has an entry for each running loop that may write the world. Loops are nested, so
// the entries are a stack. A loop that ends removes its entry and all entries above it.
//
// A loop whose body panics does not remove its entry. A deferred call would remove it, but the
// compiler does not inline functions with deferred calls, and loops would be several times slower.
// If the program recovers from the panic, the entry stays in the stack. So a boundary looks for
// loops in the call stack of its goroutine. If no loop is running, it drops all entries. Their rows
// are saved by then.
type cursorStack []activeCursor

// maxActiveCursors is the number of entries at which a new loop starts to check whether some
// entries belong to loops that panicked.
const maxActiveCursors = 256

// dropStale drops all entries if no loop is running except the loop that is starting.
func (s *cursorStack) dropStale() {
	if n := len(*s); n&(n-1) == 0 && runningLoops() <= 1 {
		s.drop(0)
	}
}

// release drops entry i and all entries above it, if entry i is h or nil.
func (s *cursorStack) release(i int, h activeCursor) {
	if i < len(*s) && ((*s)[i] == h || (*s)[i] == nil) {
		s.drop(i)
	}
}

// save saves the rows of all entries again. It drops entries whose rows have moved.
func (s *cursorStack) save() {
	n := 0
	for i, h := range *s {
		if h != nil && h.saveAgain() {
			n = i + 1
		} else {
			(*s)[i] = nil
		}
	}
	s.drop(n)
}

// drop removes all entries except the first n.
func (s *cursorStack) drop(n int) {
	for len(*s) > n {
		last := len(*s) - 1
		(*s)[last] = nil
		*s = (*s)[:last]
	}
}

// runningLoops returns the number of loops over queries that the goroutine runs, of any world. It
// counts the calls on the stack whose code is in query_gen.go or in Storage.All, inlined or not.
func runningLoops() (n int) {
	_, file, _, _ := runtime.Caller(0)
	file = strings.TrimSuffix(file, "loops.go")
	callers := make([]uintptr, 64)
	for len(callers) == runtime.Callers(2, callers) {
		callers = make([]uintptr, 2*len(callers))
	}
	callers = callers[:runtime.Callers(2, callers)]
	frames := runtime.CallersFrames(callers)
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.File == file+"query_gen.go" || f.File == file+"storage.go" && strings.Contains(f.Function, ").All") {
			n++
		}
	}
	return n
}
