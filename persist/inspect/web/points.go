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

// Points in time become records here: "resolve" is the one question that takes a point as people
// write it, all others take a seq. A line keeps how the records hang together, so that a step to
// the next tick, or whether a record was rewound, does not walk a journal of millions.
//
//	path      1 ── 2 ── 3 ── 6 ── 7      to the newest state
//	branches       └─── 4 ── 5           first 4, tip 5, fork 2, in a lane below

// A stateDoc names a state.
type stateDoc struct {
	Tick uint64 `json:"tick"`
	Seq  uint64 `json:"record"` // Of the record that leads to it; 0: none does.
}

// infoDoc says what is shown.
type infoDoc struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`  // store or save.
	First   *stateDoc `json:"first"` // The oldest state that the newest comes from; null: it cannot be shown.
	Newest  *stateDoc `json:"newest"`
	Records int       `json:"records"` // Of the journal.
	InUse   bool      `json:"in_use"`  // A program has it open.
	Damaged string    `json:"damaged,omitempty"`
	Session string    `json:"session"` // Another one after a start of the server.
}

// info tells what is shown: the first thing that a page asks. Damage that opening found comes before
// that the newest state cannot be reached, which may follow from it.
func (h *shown) info(a *ask) (any, error) {
	return answer(a, h.near, func() (infoDoc, error) {
		v := h.near.view
		doc := infoDoc{
			Name: h.name, Kind: "store", Records: len(v.Log().Entries), Session: h.started[:8],
			First: h.near.pointDoc("@first"), Newest: h.near.pointDoc("@latest"), InUse: v.InUseNow(),
		}
		if v.IsSave() {
			doc.Kind = "save"
		}
		if found := v.Damage(); len(found) > 0 {
			doc.Damaged = h.describe(found[0]).Error.Message
		} else if _, err := v.Newest(); err != nil {
			doc.Damaged = h.describe(err).Error.Message
		}
		return doc, nil
	})
}

// pointDoc returns the state of a point in time; nil: there is none.
func (d *desk) pointDoc(point string) *stateDoc {
	seq, err := d.view.Resolve(point)
	if err != nil {
		return nil
	}
	return &stateDoc{d.tickOf(seq), seq}
}

// tickOf returns the tick of record seq, or of the snapshot of its state; 0: of neither.
func (d *desk) tickOf(seq uint64) uint64 {
	if e, ok := d.view.Log().Known(seq); ok {
		return e.Tick
	}
	if s := d.snapshot(seq); s != nil {
		return s.Tick
	}
	return 0
}

// snapshot returns the snapshot of the state after record seq; nil: it lies in none.
func (d *desk) snapshot(seq uint64) *inspect.SnapshotInfo {
	for _, s := range d.view.Snapshots() {
		if s.Err == nil && s.ID.Seq == seq {
			return &s
		}
	}
	return nil
}

// pointDoc is a point in time, and what lies beside it.
type pointDoc struct {
	stateDoc
	Time    *time.Time `json:"time"`    // By the clock of the writer; null: not known.
	Head    bool       `json:"head"`    // It is the newest state.
	Rewound bool       `json:"rewound"` // The newest state does not come from it.
	Parent  *stateDoc  `json:"parent"`  // The state before it; null: it is the oldest.
	Next    *stateDoc  `json:"next"`    // The state behind it; null: there is none.
}

// maxStep is how far one step goes at most.
const maxStep = 1 << 20

// resolve finds the record of a point in time, or of one that is some steps away.
func (h *shown) resolve(a *ask) (any, error) {
	step := 0
	if text := a.text("step"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < -maxStep || n > maxStep {
			a.wrong("step takes a whole number from -%d to %d", maxStep, maxStep)
		}
		step = n
	}
	return answer(a, h.near, func() (doc pointDoc, err error) {
		d := h.near
		seq, err := d.resolve(a.text("at"))
		if err != nil {
			return doc, err
		}
		for ; step < 0; step++ { // A step beyond an end stays there.
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

// resolve returns the record of a point in time. A mark may be written by its name alone, if that is
// no other point. Where there is no such mark, the first error tells how points are written.
func (d *desk) resolve(point string) (uint64, error) {
	seq, err := d.view.Resolve(point)
	if errors.Is(err, persist.ErrPoint) {
		if marked, other := d.view.Resolve("mark:" + point); other == nil {
			return marked, nil
		}
	}
	return seq, err
}

// before returns the state before record seq. It is one only if something leads to it: a record
// that is there, or a snapshot, where the journal before that was pruned.
func (d *desk) before(seq uint64) (uint64, bool) {
	e, ok := d.view.Log().Known(seq)
	if !ok {
		return 0, false
	}
	if _, ok := d.view.Log().Known(e.Parent); ok {
		return e.Parent, true
	}
	return e.Parent, d.snapshot(e.Parent) != nil
}

// describe returns what record seq is. When it was committed is in its payload, which is read for it; a
// state that only lies in a snapshot has no time.
func (d *desk) describe(seq uint64) pointDoc {
	doc := pointDoc{stateDoc: stateDoc{d.tickOf(seq), seq}, Head: seq == d.line.newest}
	doc.Rewound = !d.line.leadsOn(seq)
	if before, ok := d.before(seq); ok {
		doc.Parent = &stateDoc{d.tickOf(before), before}
	}
	if next, ok := d.line.next(d.view.Log(), seq); ok {
		doc.Next = &stateDoc{d.tickOf(next), next}
	}
	if commits, err := d.view.Commits(seq, seq); err == nil && len(commits) == 1 {
		doc.Time = describe.Known(commits[0].Time)
	}
	return doc
}

// A line says how the records of a journal hang together: those that lead to the end of the journal, which
// is the newest state unless something is damaged, and the branches that were rewound.
type line struct {
	path     []journal.Entry // By seq, and so by tick: a record that continues another has a higher one of both.
	branches []branch
	entries  int // Of the log that was learned: if more came than those of the path, there is a new branch.

	// newest is the record of the newest state, see [inspect.View.Newest]. In a damaged store the path may
	// lead beyond it, or end before it: then nothing says what was rewound.
	newest uint64
	apart  bool // The path does not lead to newest.
}

// A branch is a chain of records that the newest state does not come from. Where the program went back
// several times to one record, each way on is a branch of its own.
type branch struct {
	first, tip journal.Entry
	fork       uint64 // The record that it continues; 0: none.
	lane       int    // Two that have ticks in common have not the same lane.
}

// maxLanes bounds how many lanes there are; what finds no room is in the last one.
const maxLanes = 8

// learn makes l what v says. Records that continue the newest state, as nearly all do, are
// added to what is known.
func (l *line) learn(v *inspect.View) {
	log := v.Log()
	l.newest, _ = v.Newest()
	end := log.Head
	if _, known := log.Known(l.newest); known && l.newest > log.Last { // The journal was cut short in its record.
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
	// All that is new is on the path, and nothing of it was pruned: the branches are as they were.
	if joined && len(log.Entries) == l.entries+len(fresh) && log.Entries[0].ID.Seq <= l.path[0].ID.Seq {
		l.path, l.entries = append(l.path, fresh...), len(log.Entries)
		return
	}
	if joined { // Something else is new, or the oldest are gone.
		fresh = slices.Collect(log.Ancestors(end))
		slices.Reverse(fresh)
	}
	l.path, l.entries = fresh, len(log.Entries)
	l.branches = branchesOf(log, l.path)
}

// branchesOf returns the branches beside path. It goes over the records once, in the order of
// their seqs: one that continues the end of a chain makes it longer, any other begins a chain.
// Lanes are given like rooms, by when a branch begins: the first one whose last branch has ended.
func branchesOf(log *journal.Log, path []journal.Entry) (all []branch) {
	chains, i := map[uint64]int{}, 0 // Chains by the record that each ends with; the place in path.
	for _, e := range log.Entries {
		for i < len(path) && path[i].ID.Seq < e.ID.Seq {
			i++
		}
		if i < len(path) && path[i].ID.Seq == e.ID.Seq {
			continue
		}
		k, ok := chains[e.Parent]
		if ok {
			delete(chains, e.Parent) // Another one that continues it is a branch of its own.
			all[k].tip = e
		} else {
			k = len(all)
			all = append(all, branch{first: e, tip: e, fork: e.Parent})
		}
		chains[e.ID.Seq] = k
	}
	var ends [maxLanes]uint64 // Ticks behind the last of each lane.
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

// find returns where on the path record seq is, or would be.
func (l *line) find(seq uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(l.path, seq, func(e journal.Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
}

// leadsOn reports whether the newest state comes from record seq, or may: of what lies before
// the oldest record of the path, nothing says that it was rewound.
func (l *line) leadsOn(seq uint64) bool {
	_, ok := l.find(seq)
	return ok || len(l.path) == 0 || l.apart || seq <= l.path[0].Parent || seq < l.path[0].ID.Seq
}

// next returns the record that continues record seq: on the way to the newest state, which ends
// there, else on the branch that it is on.
func (l *line) next(log *journal.Log, seq uint64) (uint64, bool) {
	i, ok := l.find(seq)
	switch {
	case seq == l.newest: // What continues it was rewound, or damage hides it.
		return 0, false
	case ok && i+1 < len(l.path):
		return l.path[i+1].ID.Seq, true
	case len(l.path) > 0 && l.path[0].Parent == seq: // The state of a snapshot, whose record was pruned.
		return l.path[0].ID.Seq, true
	}
	// On a branch the first that continues it is taken. Children lie behind their parents, mostly near.
	k, _ := slices.BinarySearchFunc(log.Entries, seq, func(e journal.Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
	for _, e := range log.Entries[k:] {
		if e.Parent == seq && e.ID.Seq > seq {
			return e.ID.Seq, true
		}
	}
	return 0, false
}

// rewound returns how many records the newest state does not come from.
func (l *line) rewound(log *journal.Log) (n int) {
	for _, e := range log.Entries {
		if !l.leadsOn(e.ID.Seq) {
			n++
		}
	}
	return n
}

// end returns the last record of the way that record seq is on: the newest state, or where the branch
// ends. Of a newest state apart from the path, it is the end of the path.
func (l *line) end(log *journal.Log, seq uint64) uint64 {
	switch {
	case l.apart && l.leadsOn(seq):
		return max(seq, log.Head)
	case l.leadsOn(seq):
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

// within returns the part of the path with ticks in [from, to].
func (l *line) within(from, to uint64) []journal.Entry {
	at := func(tick uint64) int {
		i, _ := slices.BinarySearchFunc(l.path, tick, func(e journal.Entry, tick uint64) int { return cmp.Compare(e.Tick, tick) })
		return i
	}
	if to == math.MaxUint64 { // There is no tick behind it.
		return l.path[at(from):]
	}
	return l.path[at(from):max(at(from), at(to+1))]
}

// A componentDoc describes a component, tag or resource.
type componentDoc struct {
	Name   string     `json:"name"`
	Kind   string     `json:"kind"`   // component, tag or resource.
	Layout string     `json:"layout"` // In Go's notation.
	Fields []fieldDoc `json:"fields"` // That hold one value, with their paths; "": it is a value itself.
}

// A fieldDoc is a field that an expression can name.
type fieldDoc struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // number, bool, text, entity or other.
}

// schemaDoc is what there is at a record.
type schemaDoc struct {
	stateDoc
	Alive      int            `json:"alive"`
	Components []componentDoc `json:"components"`
}

// schema describes the components at a record. It is asked wherever somebody goes: of the state that is held
// there, if it is the one, and else at the far desk of an entity, as nothing is loaded for one.
func (h *shown) schema(a *ask) (any, error) {
	seq := a.record("record")
	var doc *schemaDoc
	held, err := answer(a, h.near, func() (bool, error) {
		if c := h.near.cursor; c != nil && c.Seq() == seq && c.Image() != nil {
			im := c.Image()
			doc = &schemaDoc{stateDoc: stateDoc{im.Tick, seq}, Alive: im.Alive, Components: []componentDoc{}}
			for _, c := range im.Components {
				doc.add(c.Name, c.Layout, c.Resource)
			}
		}
		return doc != nil, nil
	})
	if err != nil || held {
		return doc, err
	}
	return answer(a, h.far, func() (*schemaDoc, error) {
		if err := h.far.reach(a.ctx, seq); err != nil {
			return nil, err
		}
		s, err := h.far.view.Peek(a.ctx, ecs.Entity(0), seq)
		if err != nil {
			return nil, err
		}
		doc := &schemaDoc{stateDoc: stateDoc{s.Tick, seq}, Alive: s.Living, Components: []componentDoc{}}
		for _, c := range s.Components {
			doc.add(c.Name, c.Layout, c.Resource)
		}
		return doc, nil
	})
}

// add adds what describes a component.
func (d *schemaDoc) add(name string, t *layout.Type, resource bool) {
	d.Components = append(d.Components, componentDoc{name, describe.Kind(t, resource), cut(t.String(), 4096), fieldsOf(t)})
}
