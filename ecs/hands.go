package ecs

import (
	"runtime"
	"strings"
)

// inHand is what a loop that writes has handed out and not taken back. A boundary makes
// its marks stale while the loop's body may still write, so whoever sets one saves it
// anew.
type inHand interface {
	saveAgain() bool // False: it moved.
}

// A handStack is what the loops of a world have in hand. Loops lie in each other, so they
// are a stack. One that ends takes along those above its own.
//
// A loop whose body panics does not end: the compiler makes its function part of the
// caller's, which a deferred call would prevent, and loops would take several times as long.
// If the program recovers, its hand stays. So a boundary looks for loops on the stack of its
// goroutine, and drops all hands if there are none: whatever was written is saved by then.
type handStack []inHand

// maxHands is how many hands there may be before the next one looks whether they are of
// loops that panicked.
const maxHands = 256

// crowded drops all hands, which are many, unless there are other loops than the one that
// begins.
func (s *handStack) crowded() {
	if n := len(*s); n&(n-1) == 0 && loopsUnderWay() <= 1 {
		s.drop(0)
	}
}

// release drops h, which is hand i if it is still there, and those above.
func (s *handStack) release(i int, h inHand) {
	if i < len(*s) && ((*s)[i] == h || (*s)[i] == nil) {
		s.drop(i)
	}
}

// save saves anew what loops have in hand.
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

// drop forgets all hands but the first n.
func (s *handStack) drop(n int) {
	for len(*s) > n {
		last := len(*s) - 1
		(*s)[last] = nil
		*s = (*s)[:last]
	}
}

// loopsUnderWay returns how many loops over queries the goroutine is in, of any world: how
// many calls on its stack are of code that lies in query_gen.go, be it a part of another
// function or not.
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
