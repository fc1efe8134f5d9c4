package dump

import (
	"cmp"
	"errors"
	"slices"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Commands such as bisect and plot visit the states of a range A..B, and skip states that damage
// hides. A statePath lists the records from A to B. Each record is the child of the record before
// it. A route has a statePath and a cursor, and knows which states cannot be reached.
//
// Damage hides all states up to the next snapshot. In this example, record 4 is damaged:
//
//	snapshot              damage          snapshot
//	   0 ── 1 ── 2 ── 3 ──  4  ── 5 ── 6 ── 7 ── 8
//	   └── replayed ──┘     └── lost ──┘    replayed
//
// route.each loads state 0 and replays the ticks up to the damage. It then loads state 7, and
// continues there. The damage is returned at the end.

// A statePath has the record numbers of successive states, oldest first. Each record is the parent
// of the next.
type statePath []uint64

// String returns the number of states as text.
func (w statePath) String() string { return term.Count(len(w), "state", "states") }

// sampled reports whether --every N selects the state with index i: every Nth state from the first,
// and the last state.
func (w statePath) sampled(i int, every uint) bool {
	return uint64(i)%uint64(every) == 0 || i == len(w)-1
}

// statePath returns the states of a range. If the range is "", it returns all states up to the
// given point.
//
// A range without an end ends at the newest state. A range without a start begins at the oldest
// state that can be reconstructed. A single point is one state. Lost records are included if their
// parents are known.
func (s *source) statePath(text string, at string) (statePath, error) {
	first, last := "", at
	if text != "" {
		var err error
		if first, last, err = parseRange(text); err != nil {
			return nil, err
		}
	}
	from, to, err := s.resolveEnds(first, last)
	if err != nil {
		return nil, err
	}
	if first == "" {
		from = s.oldest(to)
	}
	// Call Path only to check the range. It may fail because of damage, which is no error here: the
	// loop below includes lost records.
	_, err = s.Path(from, to)
	if errors.Is(err, journal.ErrNotAncestor) {
		return nil, s.missing(describe.Command("log", s.path), "record %d does not lead to record %d", from, to)
	}
	if err != nil && !damaged(err) {
		return nil, err
	}
	states := statePath{to}
	// Includes lost records whose parents are known.
	for e := range s.Log().Ancestors(to) {
		if states[len(states)-1] == from {
			break
		}
		states = append(states, e.Parent)
	}
	slices.Reverse(states)
	return states, nil
}

// stored returns the records whose states have undamaged snapshots.
func (s *source) stored() map[uint64]bool {
	stored := map[uint64]bool{}
	for _, sn := range s.View.Snapshots() {
		if sn.Err == nil {
			stored[sn.ID.Seq] = true
		}
	}
	return stored
}

// oldest returns the oldest ancestor of record seq whose state has an undamaged snapshot. The
// journal may no longer have the record of this snapshot, because pruning removes old records.
func (s *source) oldest(seq uint64) uint64 {
	stored := s.stored()
	oldest, last := seq, journal.Entry{Parent: seq}
	for e := range s.Log().Ancestors(seq) {
		if stored[e.ID.Seq] {
			oldest = e.ID.Seq
		}
		last = e
	}
	if stored[last.Parent] {
		oldest = last.Parent
	}
	return oldest
}

// A route visits the states of a path in order and skips states that damage hides.
type route struct {
	*source
	states statePath
	cursor *inspect.Cursor
	stored map[uint64]bool // Records with snapshots of their states.
	lost   map[int]bool    // Indices of the states that cannot be reached; may grow during a walk.
	unread error           // First damage that the walk found, or nil.
}

// route returns the route of a range. If the range is "", the route has all states up to the given
// point. The cursor of the route is at its last state. States that are hidden by lost records are
// marked as lost. It returns an error if the last state cannot be reached.
func (s *source) route(text, at string) (r *route, err error) {
	r = &route{source: s, stored: s.stored(), lost: map[int]bool{}}
	if r.states, err = s.statePath(text, at); err != nil {
		return nil, err
	}
	if r.cursor, err = s.Cursor(s.ctx, r.states[len(r.states)-1]); err != nil {
		return nil, err
	}
	for i := 1; i < len(r.states); i++ {
		if _, ok := r.Log().Find(r.states[i]); !ok && !r.stored[r.states[i]] {
			r.markLost(i, nil)
		}
	}
	return r, nil
}

// lastState returns the last state. The result is valid until the cursor of r moves.
func (r *route) lastState() state { return state{r.cursor.Image(), r.cursor.Seq()} }

// markLost marks the states from index i up to the next snapshot as lost. It returns the index of
// the snapshot's state. r.unread keeps the first damage.
func (r *route) markLost(i int, damage error) (next int) {
	r.unread = cmp.Or(r.unread, damage)
	for next = i; next == i || next < len(r.states) && !r.stored[r.states[next]]; next++ {
		r.lost[next] = true
	}
	return next
}

// each calls visit() for the reachable states in a range of indices, both ends included. The
// argument c is the tick that led to the state, or nil for a state that was loaded from a snapshot.
// After damage, each continues at the next snapshot.
func (r *route) each(first, last int, visit func(i int, im *inspect.Image, c *inspect.Commit) error) error {
	i := first
	next := func(im *inspect.Image, c *inspect.Commit) error {
		i++
		return visit(i-1, im, c)
	}
	for i <= last {
		if r.lost[i] {
			i++
			continue
		}
		if err := r.replayFrom(i, last, next); damaged(err) {
			i = r.markLost(i, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// replayFrom loads the state with index i and replays the ticks after it, up to the state last. It
// visits each of these states. If a record is lost, it ends before this record.
func (r *route) replayFrom(i, last int, visit func(im *inspect.Image, c *inspect.Commit) error) error {
	end := i
	for end < last && !r.lost[end+1] {
		if _, ok := r.Log().Find(r.states[end+1]); !ok {
			break
		}
		end++
	}
	return r.Walk(r.ctx, r.states[i], r.states[end], visit)
}
