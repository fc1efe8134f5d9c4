package web

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Points in time become records here: "resolve" is the one question that takes a point as people
// write it, all others take a seq. A line keeps how the records hang together, so that a step to
// the next tick, or whether a record was rewound, does not walk a journal of millions.

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

func (h *shown) info(a *ask) (any, error) {
	return answer(a, h.near, func() (infoDoc, error) {
		v := h.near.view
		doc := infoDoc{
			Name: h.name, Kind: "store", Records: len(v.Log().Entries), Session: h.started[:8],
			First: h.near.pointDoc("@first"), Newest: h.near.pointDoc("@latest"), InUse: v.InUse() && !v.Log().Clean,
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
	for _, s := range d.view.Snapshots() {
		if s.Err == nil && s.ID.Seq == seq {
			return s.Tick
		}
	}
	return 0
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
		seq, err := d.view.Resolve(a.text("at"))
		if err != nil {
			return doc, err
		}
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
	held := slices.ContainsFunc(d.view.Snapshots(), func(s inspect.SnapshotInfo) bool { return s.Err == nil && s.ID.Seq == e.Parent })
	return e.Parent, held
}

// describe returns what record seq is.
func (d *desk) describe(seq uint64) pointDoc {
	doc := pointDoc{stateDoc: stateDoc{d.tickOf(seq), seq}, Head: seq == d.view.Head()}
	doc.Rewound = !d.line.leadsOn(seq)
	if before, ok := d.before(seq); ok {
		doc.Parent = &stateDoc{d.tickOf(before), before}
	}
	if next, ok := d.line.next(d.view.Log(), seq); ok {
		doc.Next = &stateDoc{d.tickOf(next), next}
	}
	if commits, err := d.view.Commits(seq, seq); err == nil && len(commits) == 1 {
		doc.Time = known(commits[0].Time)
	}
	return doc
}

// known returns a time for a member that is null if it is not known.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// A line says how the records of a journal hang together: those that lead to the newest state,
// and the branches beside them, which were rewound.
type line struct {
	path     []journal.Entry // By seq, and so by tick: a record that continues another has a higher one of both.
	branches []branch
	entries  int // Of the log that was learned: if more came than those of the path, there is a new branch.
}

// A branch is a chain of records that the newest state does not come from.
type branch struct {
	first, tip journal.Entry
	fork       uint64 // The record that it continues; 0: none.
	lane       int    // Two that have ticks in common have not the same lane.
}

// maxLanes bounds how many lanes there are; what finds no room is in the last one.
const maxLanes = 8

// learn makes l what log says. Records that continue the newest state, as nearly all do, are
// added to what is known.
func (l *line) learn(log *journal.Log) {
	var fresh []journal.Entry
	joined := false
	for e := range log.Ancestors(log.Head) {
		if n := len(l.path); n > 0 && e.ID == l.path[n-1].ID {
			joined = true
			break
		}
		fresh = append(fresh, e)
	}
	slices.Reverse(fresh)
	if joined && len(log.Entries) == l.entries+len(fresh) && log.Entries[0].ID.Seq <= l.path[0].ID.Seq {
		l.path, l.entries = append(l.path, fresh...), len(log.Entries)
		return
	}
	if joined { // Something else is new, or the oldest are gone.
		fresh = slices.Collect(log.Ancestors(log.Head))
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

// find returns where on the path record seq is.
func (l *line) find(seq uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(l.path, seq, func(e journal.Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
}

// leadsOn reports whether the newest state comes from record seq, or may: of what lies before
// the oldest record of the path, nothing says that it was rewound.
func (l *line) leadsOn(seq uint64) bool {
	_, ok := l.find(seq)
	return ok || len(l.path) == 0 || seq <= l.path[0].Parent || seq < l.path[0].ID.Seq
}

// next returns the record that continues record seq: on the way to the newest state, else on the
// branch that it is on.
func (l *line) next(log *journal.Log, seq uint64) (uint64, bool) {
	i, ok := l.find(seq)
	switch {
	case ok && i+1 < len(l.path):
		return l.path[i+1].ID.Seq, true
	case len(l.path) > 0 && l.path[0].Parent == seq:
		return l.path[0].ID.Seq, true
	}
	k, _ := slices.BinarySearchFunc(log.Entries, seq, func(e journal.Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
	for _, e := range log.Entries[k:] {
		if e.Parent == seq && e.ID.Seq > seq {
			return e.ID.Seq, true
		}
	}
	return 0, false
}

// end returns the last record of the way that record seq is on.
func (l *line) end(log *journal.Log, seq uint64) uint64 {
	if l.leadsOn(seq) {
		return log.Head
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
	if to == math.MaxUint64 {
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

// schema describes the components at a record. It is asked of an entity, as nothing is loaded for
// one.
func (h *shown) schema(a *ask) (any, error) {
	seq := a.record("record")
	return answer(a, h.near, func() (any, error) {
		s, err := h.near.view.Peek(a.ctx, ecs.Entity(0), seq)
		if err != nil {
			return nil, err
		}
		docs := []componentDoc{}
		for _, c := range s.Components {
			doc := componentDoc{c.Name, "component", cut(c.Layout.String(), 4096), fieldsOf(c.Layout)}
			if c.Resource {
				doc.Kind = "resource"
			} else if c.Layout.Width() == 0 {
				doc.Kind = "tag"
			}
			docs = append(docs, doc)
		}
		return struct {
			stateDoc
			Alive      int            `json:"alive"`
			Components []componentDoc `json:"components"`
		}{stateDoc{s.Tick, seq}, s.Living, docs}, nil
	})
}

// listed returns what doc makes of each of items. It is never nil, which JSON would write as
// null.
func listed[T, D any](items []T, doc func(T) D) []D {
	docs := make([]D, len(items))
	for i, item := range items {
		docs[i] = doc(item)
	}
	return docs
}
