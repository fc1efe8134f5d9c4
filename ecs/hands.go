package ecs

import (
	"runtime"
	"strings"
)

// inHand is the rows that a loop has given to its body for writing. A boundary makes their
// undo marks stale while the body may still write, so a boundary saves these rows again.
type inHand interface {
	saveAgain() bool // Returns false if the rows have moved.
}

// A handStack has an entry for each running loop of a world that writes. Loops are nested,
// so the entries are a stack: a loop that ends removes its own and all above it.
//
// A loop whose body panics never removes its entry. A deferred call would, but the compiler
// does not inline functions with deferred calls, and loops would take several times as long.
// If the program recovers from the panic, the entry stays. So a boundary looks for loops in
// the call stack of its goroutine. If it finds none, it drops all entries: their rows are
// saved by then.
type handStack []inHand

// maxHands is the number of entries from which a new loop checks whether they belong to
// loops that panicked.
const maxHands = 256

// crowded drops all entries, unless loops are running besides the one that begins.
func (s *handStack) crowded() {
	if n := len(*s); n&(n-1) == 0 && loopsUnderWay() <= 1 {
		s.drop(0)
	}
}

// release drops entry i and all above it, if entry i is still h or was cleared.
func (s *handStack) release(i int, h inHand) {
	if i < len(*s) && ((*s)[i] == h || (*s)[i] == nil) {
		s.drop(i)
	}
}

// save saves the rows of all entries again, and drops entries whose rows have moved.
func (s *handStack) save() {
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

// drop removes all entries but the first n.
func (s *handStack) drop(n int) {
	for len(*s) > n {
		last := len(*s) - 1
		(*s)[last] = nil
		*s = (*s)[:last]
	}
}

// loopsUnderWay returns how many loops over queries the goroutine runs, of any world. It
// counts the calls on the stack whose code is in query_gen.go, inlined or not.
func loopsUnderWay() (n int) {
	_, file, _, _ := runtime.Caller(0)
	file = strings.TrimSuffix(file, "hands.go") + "query_gen.go"
	callers := make([]uintptr, 64)
	for len(callers) == runtime.Callers(2, callers) {
		callers = make([]uintptr, 2*len(callers))
	}
	callers = callers[:runtime.Callers(2, callers)]
	frames := runtime.CallersFrames(callers)
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.File == file {
			n++
		}
	}
	return n
}
