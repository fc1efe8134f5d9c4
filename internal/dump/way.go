package dump

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// What commands over time have in common: which states they go to (way), and how they go over
// damage (route).
//
//	A..B or --at ──▶ way: the records from A to B, each the child of the one before
//	way ──▶ route: which of these states can be reached, and a cursor
//	route.each ──▶ together: load a state, follow the ticks from it, as far as the way is whole
//
//	snapshot              damage          snapshot
//	   0 ── 1 ── 2 ── 3 ──  ×  ── 5 ── 6 ── 7 ── 8
//	   [      together     ] lost lost lost [ together ]
//
// A record that cannot be read hides its own state and all behind it, up to the next that has a
// snapshot: from there it goes on, and the damage is the error at the end.

// A way is states that lead to each other, oldest first, by their records.
type way []uint64

// String says how many states w has.
func (w way) String() string { return term.Count(len(w), "state", "states") }

// sampled reports whether --every asks about state i: every Nth from the first on, and the last.
// Counted from the first, two calls on a store that grew in between ask about the same ticks.
func (w way) sampled(i int, every uint) bool {
	return uint64(i)%uint64(every) == 0 || i == len(w)-1
}

// way returns the states of a range, or those on the way to at.
//
// The range is read as one of states: A.. ends at the newest one, ..B begins with the oldest that
// can be shown, and so does --at alone. Records that are lost are on the way as well, as long as
// their parents are known: a route marks them.
func (s *source) way(text string, at string) (way, error) {
	first, last, isRange := strings.Cut(text, "..")
	if text == "" {
		last = at
	} else if !isRange {
		return nil, fail(exitUsage, "", "%q is no range; write A..B, A.. or ..B", text)
	}
	from, to, err := s.resolved(first, last)
	if err != nil {
		return nil, err
	}
	if first == "" {
		from = s.oldest(to)
	}
	// It is called for its error alone; the way of a damaged journal is gathered below.
	_, err = s.Path(from, to)
	if errors.Is(err, journal.ErrNotAncestor) {
		return nil, s.missing(try("log", s.path), "record %d does not lead to record %d", from, to)
	}
	if err != nil && !damaged(err) {
		return nil, err
	}
	states := way{to}
	for e := range s.Log().Ancestors(to) { // Also over records that are lost.
		if states[len(states)-1] == from {
			break
		}
		states = append(states, e.Parent)
	}
	slices.Reverse(states)
	return states, nil
}

// stored returns the states that there are snapshots of, by their records.
func (s *source) stored() map[uint64]bool {
	stored := map[uint64]bool{}
	for _, sn := range s.View.Snapshots() {
		if sn.Err == nil {
			stored[sn.ID.Seq] = true
		}
	}
	return stored
}

// oldest returns the oldest state that leads to record seq and that a snapshot
// leads to. Ticks before it may still be in the journal, but no state they could be applied to. It
// is the state of the oldest snapshot on the way from the root; the last ancestor known continues a
// record that was pruned, or none, and of that state a snapshot may be left.
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

// A route is a way that is gone state by state, over damage: what that hides is left out.
//
// lost grows while a command goes along: pass adds to it whatever turns out to be damaged. Indices
// of the way, not records, are its keys.
type route struct {
	*source
	states way
	cursor *inspect.Cursor
	stored map[uint64]bool // States with snapshots.
	lost   map[int]bool    // Of the way: those that are known to be out of reach.
	unread error           // Why: the first damage that was met.
}

// route returns the way of a range, or that to at, and stands at its end. Lost are the states that
// records lead to which are, up to the next that has a snapshot. Their damage is no news and is not
// noted: opening the store found it, and read tells it at the end. The end must be reachable, else
// there is no route.
func (s *source) route(text, at string) (r *route, err error) {
	r = &route{source: s, stored: s.stored(), lost: map[int]bool{}}
	if r.states, err = s.way(text, at); err != nil {
		return nil, err
	}
	if r.cursor, err = s.Cursor(s.ctx, r.states[len(r.states)-1]); err != nil {
		return nil, err
	}
	for i := 1; i < len(r.states); i++ {
		if _, ok := r.Log().Find(r.states[i]); !ok && !r.stored[r.states[i]] {
			r.pass(i, nil)
		}
	}
	return r, nil
}

// end returns the last state. It is valid until r is gone.
func (r *route) end() state { return state{r.cursor.Image(), r.cursor.Seq()} }

// pass leaves out state i, for what is damaged, and those behind it that are reached by the same
// record, and returns the next. The first damage is kept, which is the oldest where a command goes
// forward. A snapshot ends what is passed, since a state that has one needs no record.
func (r *route) pass(i int, damage error) (next int) {
	r.unread = cmp.Or(r.unread, damage)
	for next = i; next == i || next < len(r.states) && !r.stored[r.states[next]]; next++ {
		r.lost[next] = true
	}
	return next
}

// each calls visit with the states first to last of the way that can be reached, and the tick that
// led to each, which is nil where it was not come to from the state before.
//
// A stretch that ends with damage is continued by the next state that is not lost, which together
// loads from its snapshot. i is the next state to be visited: whatever error comes is about it.
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
		if err := r.together(i, last, next); damaged(err) {
			i = r.pass(i, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// together visits state i of the way and those behind it up to last that can be gone to from it, by
// what is known. The first is loaded, and led to by no tick; the others follow from it by one each.
//
// It ends before the first record that cannot be read or is known to be lost. The cursor and the
// walk have a state each: the cursor stays at i.
func (r *route) together(i, last int, visit func(im *inspect.Image, c *inspect.Commit) error) error {
	if err := r.cursor.Seek(r.ctx, r.states[i]); err != nil {
		return err
	}
	end := i
	for end < last && !r.lost[end+1] {
		if _, ok := r.Log().Find(r.states[end+1]); !ok {
			break
		}
		end++
	}
	if err := visit(r.cursor.Image(), nil); err != nil {
		return err
	}
	return r.Walk(r.ctx, r.states[i], r.states[end], visit)
}
