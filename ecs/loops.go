package ecs

import (
	"runtime"
	"strings"
)

// loops holds the running loops of a world.
type loops struct {
	activeCursors cursorStack // The running loops that write, the innermost loop last.
	// Number of calls of saveActiveCursors since the last Commit. A call without active cursors
	// sets it to 0.
	loopBoundaries uint
	// A parallel loop is running. The program may write only its rows.
	parallel bool
	// The log of a set is long. The next Commit calls dropLongLogs, which drops logs of loops that
	// panicked.
	longLogs bool
	drains   drainLoops
}

// An activeCursor is a loop that has passed rows to its body for writing. These rows must be saved
// again at every checkpoint and end of a tick, because the body may still write them.
type activeCursor interface {
	saveAgain() bool // Saves the rows again. Returns false if they have moved.
}

// A cursorStack has an entry for each running loop that may write the world. A loop that ends
// removes its entry and all entries above it.
//
// A loop whose body panics leaves its entry. A deferred call could remove it, but would make loops
// several times slower. Instead, a checkpoint or the end of a tick inspects the call stack of its
// goroutine. If the call stack has no loop, it drops all entries.
type cursorStack []activeCursor

// If a stack has at least maxActiveCursors entries, a new loop looks for entries of loops that
// panicked.
const maxActiveCursors = 256

// dropStale drops all entries if only the new loop is running.
func (s *cursorStack) dropStale() {
	if n := len(*s); n&(n-1) == 0 && runningLoops() <= 1 {
		s.drop(0)
	}
}

// release drops entry i and all entries above it. It does nothing if entry i belongs to another
// loop.
func (s *cursorStack) release(i int, h activeCursor) {
	if i < len(*s) && ((*s)[i] == h || (*s)[i] == nil) {
		s.drop(i)
	}
}

// save saves the rows of all entries again, and drops the entries whose rows have moved.
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

// runningLoops counts the loops over queries and Storage.All on the call stack of the goroutine, of
// any world.
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
		if f, more = frames.Next(); f.File == file+"query_gen.go" || f.File == file+"iterate.go" && strings.Contains(f.Function, ").All") {
			n++
		}
	}
	return n
}
