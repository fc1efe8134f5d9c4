package ecs

import (
	"fmt"
)

// A progress records which entities of a driver a loop has visited. The entities in rows below the
// field next are visited, and the entities in later rows are not. But the loop body may move an
// entity from a later row to a row below next, or in the other direction. The fields behind and
// ahead list such entities.
//
// While a loop over a set is running, the set logs each move of a row. After the body has changed
// the world, the loop applies the logged moves to its progress. So the loop visits each entity that
// stays a member exactly once.
type progress struct {
	next   int      // The first row that the loop has not reached.
	moves  uint64   // Number of the next logged move to apply.
	behind *visited // Unvisited entities in rows before the field next, or nil.
	ahead  *visited // Visited entities in rows from the field next on, or nil.
	// Number of entities in behind.added that takeBehind has processed.
	taken   int
	back    bool // The loop is visiting an entity that takeBehind returned.
	counted bool // The loop is counted in the field loops of the set's log.
}

// begin begins a loop over s. The set must log row moves for the loop, except in a parallel loop or
// a loop in index order.
func (p *progress) begin(s *set) {
	if p.back = false; s.w.parallel || s.byIndex {
		return
	}
	p.counted = true
	p.moves = s.log.end()
	s.log.loops++
}

// end ends the loop.
func (p *progress) end(s *set) {
	if p.counted {
		p.counted = false
		if s.log.loops--; s.log.loops <= 0 {
			s.log.reset()
		}
	}
	if p.behind != nil || p.ahead != nil {
		p.drop(s.w)
	}
}

// drop returns the sets behind and ahead to the pool of w.
func (p *progress) drop(w *World) {
	if p.behind != nil {
		w.spare.drop(p.behind)
	}
	if p.ahead != nil {
		w.spare.drop(p.ahead)
	}
	p.behind, p.ahead, p.taken = nil, nil, 0
}

// mustFollow runs after the loop body has changed the world while it visited e in the given row. It
// applies the row moves since the last call to p. It panics if the log no longer has all of them.
// The parameter loop returns the name of the loop, for the panic.
func (p *progress) mustFollow(s *set, row int, loop func() string, e Entity) {
	if !p.back {
		p.next = row + 1
	}
	if s.byIndex {
		return
	}
	if p.moves < s.log.first {
		panic(fmt.Sprintf("ecs: rows of %s moved while a loop over %s was visiting %v, and the loop does not know how, because it runs by iter.Pull; run it as a range loop",
			s.storage.Name(), loop(), e))
	}
	for _, m := range s.log.moves[p.moves-s.log.first:] {
		p.apply(m, s.w)
	}
	p.moves = s.log.end()
}

// apply applies one move.
func (p *progress) apply(m rowMove, w *World) {
	i, j := int(m.i), int(m.j)
	crosses := i < p.next && p.next <= j
	switch {
	case m.a == 0:
		p.next = 0
		p.drop(w)
		return
	case !m.swapped:
		p.forget(m.a)
		p.next = min(p.next, j)
	case crosses && !removeFrom(p.behind, m.a):
		addTo(&p.ahead, m.a, w)
	}
	switch {
	case !crosses:
	case removeFrom(p.ahead, m.b):
	case i == p.next-1:
		p.next = i
	default:
		addTo(&p.behind, m.b, w)
	}
}

// forget removes e from the sets of p.
func (p *progress) forget(e Entity) {
	removeFrom(p.behind, e)
	removeFrom(p.ahead, e)
}

func addTo(v **visited, e Entity, w *World) {
	if *v == nil {
		*v = w.spare.take()
	}
	(*v).add(e)
}

func removeFrom(v *visited, e Entity) bool { return v != nil && v.remove(e) }

// isVisited reports whether the loop has visited e although it has not reached the row of e.
func (p *progress) isVisited(e Entity) bool { return p.ahead != nil && p.ahead.has(e) }

// takeBehind removes an entity from the set p.behind, and returns it with its row. The row is -1 if
// the set is empty.
func (p *progress) takeBehind(s *set) (e Entity, row int) {
	for p.behind != nil && p.taken < len(p.behind.added) {
		e = p.behind.added[p.taken]
		p.taken++
		// Skips removed entities and duplicates.
		if row = s.row(e); row >= 0 && p.behind.remove(e) {
			return e, row
		}
	}
	return 0, -1
}

// take returns the next rows [lo, hi) of a loop over all rows of s. At the end it returns more =
// false. It counts all these rows as visited. If the loop body changes the world before the loop
// has visited them all, the loop must call mustFollow.
func (p *progress) take(s *set) (lo, hi int, more bool) {
	if p.back = false; p.next < s.rows.N {
		lo, p.next = p.next, s.rows.N
		return lo, p.next, true
	}
	_, row := p.takeBehind(s)
	p.back = row >= 0
	return row, row + 1, p.back
}

// mustKeepOrder panics if the rows of s were rearranged while a loop was visiting e. The parameter
// since is the value of World.changes when the loop was last valid. The parameter loop returns the
// name of the loop.
func (s *set) mustKeepOrder(loop func() string, e Entity, since uint64) {
	if s.arrangedAt > since {
		panic(fmt.Sprintf("ecs: the rows of %s were %s%s while a loop over %s was visiting %v; end the loop first",
			s.storage.Name(), s.arrangedBy, s.caller(), loop(), e))
	}
}

// changed describes the change of e in s for an error.
func (s *set) changed(e Entity) string {
	how := "added to %s or moved there%s"
	switch {
	case e == 0:
		return fmt.Sprintf("%s was cleared%s", s.storage.Name(), s.caller())
	case s.row(e) < 0:
		how = "removed from %s%s"
	}
	return fmt.Sprintf("%v was "+how, e, s.storage.Name(), s.caller())
}
