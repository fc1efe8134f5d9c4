package web

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// This file maps points in time to records. Only the request "resolve" accepts a point as text; all
// other requests take a seq. A line stores the relations between records. So a step to the next
// tick, or a test for rewound records, does not walk along a journal of millions of records. In
// this drawing, the path leads to the newest state:
//
//	path      1 ── 2 ── 3 ── 6 ── 7
//	branch         └─── 4 ── 5
//
// The branch has the first record 4, the tip 5 and the fork 2. It is drawn in a lane below the
// path.

type stateDoc = describe.StateDoc

// infoDoc describes the store or save.
type infoDoc struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // store or save.
	// First is the oldest state on the path to the newest one. It is null if it cannot be shown.
	First  *stateDoc `json:"first"`
	Newest *stateDoc `json:"newest"`
	// Records is the number of records in the journal.
	Records int    `json:"records"`
	InUse   bool   `json:"in_use"` // A program has the store open.
	Damaged string `json:"damaged,omitempty"`
	// Session changes with each start of the server.
	Session string `json:"session"`
}

// info describes the store or save. It is the first request of a page. If the newest state is
// unreachable, damage found by opening is reported instead, because it may be the cause.
func (h *server) info(a *params) (any, error) {
	return answer(a, h.fast, func() (infoDoc, error) {
		v := h.fast.view
		doc := infoDoc{
			Name: h.name, Kind: "store", Records: len(v.Log().Entries), Session: h.started[:8],
			First: h.fast.pointDoc("@first"), Newest: h.fast.pointDoc("@latest"), InUse: v.InUseNow(),
		}
		if v.IsSave() {
			doc.Kind = "save"
		}
		if found := v.Damage(); len(found) > 0 {
			doc.Damaged = h.describe(found[0]).Message
		} else if _, err := v.Newest(); err != nil {
			doc.Damaged = h.describe(err).Message
		}
		return doc, nil
	})
}

// pointDoc returns the state of a point in time, or nil.
func (d *session) pointDoc(point string) *stateDoc {
	seq, err := d.view.Resolve(point)
	if err != nil {
		return nil
	}
	return new(describe.StateOf(d.view, seq))
}

// pointDoc is a point in time with the states before and after it.
type pointDoc struct {
	stateDoc
	// Time is the commit time by the clock of the writer. It is null if unknown.
	Time *time.Time `json:"time"`
	// Head says that the point is the newest state.
	Head bool `json:"head"`
	// Rewound says that the newest state does not descend from the point.
	Rewound bool `json:"rewound"`
	// Parent is the state before the point. It is null if the point is the oldest state.
	Parent *stateDoc `json:"parent"`
	// Next is the state after the point, or null.
	Next *stateDoc `json:"next"`
}

// maxStep is the maximum size of one step.
const maxStep = 1 << 20

// resolve finds the record of a point in time, or a record some steps away from the point.
func (h *server) resolve(a *params) (any, error) {
	step := 0
	if text := a.text("step"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < -maxStep || n > maxStep {
			a.invalid("step takes a whole number from -%d to %d", maxStep, maxStep)
		}
		step = n
	}
	return answer(a, h.fast, func() (doc pointDoc, err error) {
		d := h.fast
		seq, err := d.resolve(a.text("at"))
		if err != nil {
			return doc, err
		}
		// A step past an end stays at the end.
		for ; step < 0; step++ {
			before, ok := d.before(seq)
			if !ok {
				break
			}
			seq = before
		}
		for ; step > 0; step-- {
			next, ok := d.line.next(d.view.Log(), seq)
			if !ok {
				break
			}
			seq = next
		}
		return d.describe(seq), nil
	})
}

// resolve returns the record of a point in time. A text in no known syntax is the name of a mark.
// If no such mark exists, the error explains the syntax of points.
func (d *session) resolve(point string) (uint64, error) {
	seq, err := d.view.Resolve(point)
	if errors.Is(err, persist.ErrPoint) {
		if marked, other := d.view.Resolve("mark:" + point); other == nil {
			return marked, nil
		}
	}
	return seq, err
}

// before returns the parent of record seq. The second result tells whether the state after the
// parent can be shown. If the journal no longer has the parent, a snapshot must have its state.
func (d *session) before(seq uint64) (uint64, bool) {
	e, ok := d.view.Log().Known(seq)
	if !ok {
		return 0, false
	}
	if _, ok := d.view.Log().Known(e.Parent); ok {
		return e.Parent, true
	}
	return e.Parent, describe.SnapshotOf(d.view, e.Parent) != nil
}

// describe describes record seq. It reads the commit time from the payload. A state without a
// record, which is only in a snapshot, has no time.
func (d *session) describe(seq uint64) pointDoc {
	doc := pointDoc{stateDoc: describe.StateOf(d.view, seq), Head: seq == d.line.newest}
	doc.Rewound = !d.line.leadsToNewest(seq)
	if before, ok := d.before(seq); ok {
		doc.Parent = new(describe.StateOf(d.view, before))
	}
	if next, ok := d.line.next(d.view.Log(), seq); ok {
		doc.Next = new(describe.StateOf(d.view, next))
	}
	if commits, err := d.view.Commits(seq, seq); err == nil && len(commits) == 1 {
		doc.Time = describe.Known(commits[0].Time)
	}
	return doc
}

// A line stores the relations between the records of a journal. path leads to the end of the
// journal, which is the newest state unless the store is damaged. branches has the rewound
// records.
type line struct {
	// path is ordered by seq, and so by tick: both increase from a record to the next record.
	path     []journal.Entry
	branches []branch
	// entries is the number of records in the log at the last update. If the log has since grown by
	// more records than the path, some new records are on a branch.
	entries int

	// newest is the record of the newest state: see [inspect.View.Newest]. In a damaged store, the
	// path may lead beyond this record, or end before it. In that case it is unknown which records
	// were rewound.
	newest uint64
	// apart says that the path does not lead to the newest state.
	apart bool
}

// A branch is a chain of records from which the newest state does not descend. If the program
// went back to a record several times, each continuation is a separate branch.
type branch struct {
	first, tip journal.Entry
	// fork is the record that the branch continues, or 0.
	fork uint64
	// lane is the row of the branch in the drawing. Branches with overlapping ticks have different
	// lanes. If a branch fits into no other lane, it gets the last lane, where branches may
	// overlap.
	lane int
}

// maxLanes is the maximum number of lanes. Branches that fit into no other lane are in the last
// lane.
const maxLanes = 8

// update updates l from v. Usually new records continue the newest state, so update only appends
// them.
func (l *line) update(v *inspect.View) {
	log := v.Log()
	l.newest, _ = v.Newest()
	end := log.Head
	// If the journal was cut short, only a snapshot has the newest state. The path ends at that
	// state.
	if _, known := log.Known(l.newest); known && l.newest > log.Last {
		end = l.newest
	}
	l.apart = l.newest > log.Last && l.newest != end
	fresh, joined := make([]journal.Entry, 0, max(0, len(log.Entries)-l.entries)), false
	for e := range log.Ancestors(end) {
		if n := len(l.path); n > 0 && e.ID == l.path[n-1].ID {
			joined = true
			break
		}
		fresh = append(fresh, e)
	}
	slices.Reverse(fresh)
	// All new records are on the path, and no record was pruned. So the branches stay the same.
	if joined && len(log.Entries) == l.entries+len(fresh) && log.Entries[0].ID.Seq <= l.path[0].ID.Seq {
		l.path, l.entries = append(l.path, fresh...), len(log.Entries)
		return
	}
	// Build the path and the branches again: there are new branches, or old records were pruned.
	if joined {
		fresh = slices.Collect(log.Ancestors(end))
		slices.Reverse(fresh)
	}
	l.path, l.entries = fresh, len(log.Entries)
	l.branches = branchesOf(log, l.path)
}

// branchesOf returns the branches of log outside of path. It visits the records once, in the order
// of seqs. A record extends a chain if its parent is the last record of the chain. Any other record
// starts a new chain. A branch gets the first lane in which no earlier branch overlaps it.
func branchesOf(log *journal.Log, path []journal.Entry) (all []branch) {
	// chains maps the last record of a chain to the index of the chain in the result. The position
	// i on the path follows the seq of e.
	chains, i := map[uint64]int{}, 0
	for _, e := range log.Entries {
		for i < len(path) && path[i].ID.Seq < e.ID.Seq {
			i++
		}
		if i < len(path) && path[i].ID.Seq == e.ID.Seq {
			continue
		}
		k, ok := chains[e.Parent]
		if ok {
			// Now e is the last record of the chain. A later record with the same parent as e
			// starts a new branch.
			delete(chains, e.Parent)
			all[k].tip = e
		} else {
			k = len(all)
			all = append(all, branch{first: e, tip: e, fork: e.Parent})
		}
		chains[e.ID.Seq] = k
	}
	// ends has the tick after the last branch in each lane.
	var ends [maxLanes]uint64
	byTick := make([]*branch, len(all))
	for i := range all {
		byTick[i] = &all[i]
	}
	slices.SortStableFunc(byTick, func(a, b *branch) int { return cmp.Compare(a.first.Tick, b.first.Tick) })
	for _, b := range byTick {
		for b.lane < maxLanes-1 && ends[b.lane] > b.first.Tick {
			b.lane++
		}
		ends[b.lane] = max(ends[b.lane], b.tip.Tick+1)
	}
	return all
}

// find returns the position of record seq on the path, or the position at which to insert it.
func (l *line) find(seq uint64) (i int, ok bool) { return search(l.path, seq) }

// search returns the position of record seq in entries, or the number of entries before it.
func search(entries []journal.Entry, seq uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(entries, seq, func(e journal.Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
}

// leadsToNewest reports whether the newest state descends from record seq. For records before the
// start of the path this is unknown, and leadsToNewest returns true.
func (l *line) leadsToNewest(seq uint64) bool {
	_, ok := l.find(seq)
	return ok || len(l.path) == 0 || l.apart || seq <= l.path[0].Parent || seq < l.path[0].ID.Seq
}

// next returns the record after seq, toward the newest state or along the branch. The newest
// state has no next record.
func (l *line) next(log *journal.Log, seq uint64) (uint64, bool) {
	i, ok := l.find(seq)
	switch {
	// The newest state has no next record, even if a rewound record continues it.
	case seq == l.newest:
		return 0, false
	case ok && i+1 < len(l.path):
		return l.path[i+1].ID.Seq, true
	// The state is just before the path. Its record was pruned, but a snapshot has the state.
	case len(l.path) > 0 && l.path[0].Parent == seq:
		return l.path[0].ID.Seq, true
	}
	// On a branch, return the first record that continues seq. A child has a higher seq than its
	// parent, and the two seqs are usually close.
	k, _ := search(log.Entries, seq)
	for _, e := range log.Entries[k:] {
		if e.Parent == seq && e.ID.Seq > seq {
			return e.ID.Seq, true
		}
	}
	return 0, false
}

// rewound returns the number of records from which the newest state does not descend.
func (l *line) rewound(log *journal.Log) (n int) {
	for _, e := range log.Entries {
		if !l.leadsToNewest(e.ID.Seq) {
			n++
		}
	}
	return n
}

// end returns the last record after record seq: the newest state, or the end of the branch. If
// l.apart is true, it returns the end of the path instead of the newest state.
func (l *line) end(log *journal.Log, seq uint64) uint64 {
	switch {
	case l.apart && l.leadsToNewest(seq):
		return max(seq, log.Head)
	case l.leadsToNewest(seq):
		return max(seq, l.newest)
	}
	for {
		next, ok := l.next(log, seq)
		if !ok {
			return seq
		}
		seq = next
	}
}

// within returns the records of the path with ticks in [from, to].
func (l *line) within(from, to uint64) []journal.Entry {
	at := func(tick uint64) int {
		i, _ := slices.BinarySearchFunc(l.path, tick, func(e journal.Entry, tick uint64) int { return cmp.Compare(e.Tick, tick) })
		return i
	}
	// The sum to+1 would overflow.
	if to == math.MaxUint64 {
		return l.path[at(from):]
	}
	return l.path[at(from):max(at(from), at(to+1))]
}

// A componentDoc describes a component, tag or resource.
type componentDoc struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`   // component, tag or resource.
	Layout string `json:"layout"` // In Go's notation.
	// Fields are the fields with a single value. The path "" means the component itself.
	Fields []fieldDoc `json:"fields"`
}

// schemaDoc describes the components in the state after a record.
type schemaDoc struct {
	stateDoc
	Alive      int            `json:"alive"`
	Components []componentDoc `json:"components"`
}

// schema describes the components in the state after a record. If the fast session has the state,
// schema uses it. Otherwise the slow session looks up an entity, which does not load the state.
func (h *server) schema(a *params) (any, error) {
	seq := a.record("record")
	doc, err := answer(a, h.fast, func() (*schemaDoc, error) {
		if !h.fast.holds(seq) {
			return nil, nil
		}
		im := h.fast.cursor.Image()
		return &schemaDoc{describe.State(im.Tick, seq), im.Living, describe.Listed(im.Components, func(c *inspect.Component) componentDoc {
			return componentDocOf(c.Name, c.Layout, c.Resource)
		})}, nil
	})
	if err != nil || doc != nil {
		return doc, err
	}
	return answerAt(a, h.slow, seq, func() (*schemaDoc, error) {
		s, err := h.slow.view.Peek(a.ctx, ecs.Entity(0), seq)
		if err != nil {
			return nil, err
		}
		return &schemaDoc{describe.State(s.Tick, seq), s.Living, describe.Listed(s.Components, func(c inspect.EntityComponent) componentDoc {
			return componentDocOf(c.Name, c.Layout, c.Resource)
		})}, nil
	})
}

// componentDocOf describes one component.
func componentDocOf(name string, t *layout.Type, resource bool) componentDoc {
	return componentDoc{name, describe.Kind(t, resource), cut(t.String(), 4096), fieldsOf(t)}
}
