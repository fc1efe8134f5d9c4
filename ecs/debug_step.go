//go:build stetdebug

package ecs

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// In a debug build, a system of a [Stepper] panics if it writes a world other than the one it was
// given. Most likely it uses storages or queries of that other world: the program began with that
// world, and now steps a clone.
//
// A system may write worlds that were created or loaded in its step, for example a clone in which
// it looks ahead.

// A step is a running system.
type step struct {
	w      *World
	system string
	outer  *step // The enclosing step of the same world.
	waits  bool  // Another step runs inside this one.
}

// underWay has the running steps of each goroutine, the innermost last.
var underWay struct {
	n  atomic.Int64
	mu sync.Mutex
	by map[uint64][]*step
}

// stepping records that system runs on w, until the caller calls end.
func (w *World) stepping(system string) (end func()) {
	g := goroutine()
	s := &step{w: w, system: system, outer: w.guards.stepped}
	underWay.mu.Lock()
	defer underWay.mu.Unlock()
	if underWay.by == nil {
		underWay.by = map[uint64][]*step{}
	}
	if k := len(underWay.by[g]); k > 0 {
		underWay.by[g][k-1].waits = true
	}
	underWay.by[g] = append(underWay.by[g], s)
	underWay.n.Add(1)
	w.guards.stepped = s
	return func() {
		w.guards.stepped = s.outer
		underWay.mu.Lock()
		defer underWay.mu.Unlock()
		underWay.n.Add(-1)
		k := len(underWay.by[g]) - 1
		if k == 0 {
			delete(underWay.by, g)
			return
		}
		underWay.by[g] = underWay.by[g][:k]
		underWay.by[g][k-1].waits = false
	}
}

// under returns the steps that this goroutine runs, the innermost last.
func under() []*step {
	if underWay.n.Load() == 0 {
		return nil
	}
	underWay.mu.Lock()
	defer underWay.mu.Unlock()
	return slices.Clone(underWay.by[goroutine()])
}

// begun records that w was created or loaded.
func (w *World) begun() {
	if s := under(); len(s) > 0 {
		w.guards.begun = s[len(s)-1]
	}
}

// refusesStep returns the refusal of a write of w by another world's system, or nil.
func (w *World) refusesStep() *refusal {
	if s := w.guards.stepped; underWay.n.Load() == 0 || s != nil && !s.waits {
		return nil
	}
	all := under()
	if len(all) == 0 || w.guards.begun != nil && slices.Contains(all, w.guards.begun) {
		return nil
	}
	if s := all[len(all)-1]; s.w != w {
		return &refusal{fmt.Sprintf("the system %q was given one world and writes another", s.system),
			"let it use what belongs to the world that it is given: Storage.In, Resource.In and Group.In find that, and queries are made for each world"}
	}
	return nil
}

// goroutine returns the number of the calling goroutine.
func goroutine() uint64 {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	n, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		panic(err) // Unreachable: "goroutine 12 [running]".
	}
	return n
}
