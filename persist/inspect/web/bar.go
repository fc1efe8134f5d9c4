package web

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// The bar is one document for a stretch of time at the width of a screen: its size does not
// depend on how many ticks there are. Records are few bytes each and in memory, so summing them up
// is quick; what is not known without reading payloads (rows, inputs, marks) a counter has ready,
// or the bar does without it.
//
//	line, within a stretch ──fill──▶ sums, peaks, inputs    measured by the counter
//	line, branches                   lanes
//	snapshots, damage, marks         by tick

// Limits of a bar.
const (
	maxBuckets = 4096
	maxLanesOf = 2000 // Branches.
	maxMarks   = 2000
	maxSnaps   = 5000
	maxDamage  = 200
)

// barDoc is what a stretch of time holds, for so many pixels.
type barDoc struct {
	First     uint64       `json:"first"` // Ticks: of the oldest state, and of the newest.
	Last      uint64       `json:"last"`
	From      uint64       `json:"from"` // Of what is told here.
	To        uint64       `json:"to"`
	Measure   string       `json:"measure"`  // What is told of a tick: rows that it wrote; or bytes, until these are counted.
	Counted   float64      `json:"counted"`  // The part of them that is.
	Per       uint64       `json:"per"`      // Ticks in a bucket; the last one may have fewer.
	Sums      []uint64     `json:"sums"`     // Of all ticks of a bucket,
	Peaks     []uint64     `json:"peaks"`    // and of the one that has most.
	Inputs    []uint64     `json:"inputs"`   // What the program was told in a bucket: how many. Empty: in none, by what is counted.
	Branches  []branchDoc  `json:"branches"` // That were rewound.
	Marks     []markDoc    `json:"marks"`
	Snapshots []snapDoc    `json:"snapshots"`
	Damage    []damagedDoc `json:"damage"`
}

// A branchDoc is a chain of ticks that were rewound.
type branchDoc struct {
	Lane int    `json:"lane"`
	From uint64 `json:"from"` // Ticks.
	To   uint64 `json:"to"`
	Tip  uint64 `json:"tip"`  // Record.
	Fork uint64 `json:"fork"` // The record that it continues.
}

// A markDoc is a name that the program gave a tick, on whatever branch.
type markDoc struct {
	Name    string `json:"name"`
	Tick    uint64 `json:"tick"`
	Seq     uint64 `json:"record"`
	Rewound bool   `json:"rewound"`
}

// A snapDoc is a snapshot file, and the state in it.
type snapDoc struct {
	stateDoc
	Number uint32 `json:"number"`
	Label  string `json:"label,omitempty"`
	Size   int64  `json:"size"`
	Error  string `json:"error,omitempty"` // Why it cannot be read; then there is no state.
}

// A damagedDoc is a place in time that something is damaged at.
type damagedDoc struct {
	Tick    uint64 `json:"tick"` // The last one before it.
	Message string `json:"message"`
}

// timeBar tells what a stretch of time holds.
func (h *shown) timeBar(a *ask) (any, error) {
	from, to := a.ticks()
	width := a.count("width", 1000, maxBuckets)
	return answer(a, h.near, func() (doc *barDoc, err error) {
		d := h.near
		doc = &barDoc{Measure: "bytes", Branches: []branchDoc{}, Marks: []markDoc{}, Snapshots: d.snapshots(h), Damage: d.damage(h)}
		doc.First, doc.Last = d.ends()
		doc.From, doc.To = max(from, doc.First), min(to, doc.Last)
		if doc.To < doc.From { // A stretch that lies outside, as of a store that was pruned: all of it.
			doc.From, doc.To = doc.First, doc.Last
		}
		doc.fill(d.line.within(doc.From, doc.To), max(width, 1), h.bar.measure(d.view.Log(), doc))
		doc.Branches = d.branches()
		doc.Marks, err = h.bar.marks(a.ctx, d)
		return doc, err
	})
}

// ends returns the ticks of the oldest state and the newest, on whatever branch; 0 and 0 if there is
// none.
func (d *desk) ends() (first, last uint64) {
	first = math.MaxUint64
	note := func(tick uint64) { first, last = min(first, tick), max(last, tick) }
	for _, s := range d.view.Snapshots() {
		if s.Err == nil {
			note(s.Tick)
		}
	}
	if n := len(d.line.path); n > 0 {
		note(d.line.path[0].Tick)
		note(d.line.path[n-1].Tick)
	}
	for _, b := range d.line.branches {
		note(b.tip.Tick)
	}
	return min(first, last), last
}

// fill sums up entries, whose ticks are in [From, To], into at most as many buckets as there are
// pixels, each of as many ticks.
// A peak is kept beside the sum: one large tick among a thousand must not be lost on the screen.
func (b *barDoc) fill(entries []journal.Entry, width int, measure func(e journal.Entry) (written, inputs uint64)) {
	ticks := b.To - b.From + 1
	b.Per = max(1, (ticks-1)/uint64(width)+1)
	n := (ticks-1)/b.Per + 1
	b.Sums, b.Peaks, b.Inputs = make([]uint64, n), make([]uint64, n), make([]uint64, n)
	told := false
	for _, e := range entries {
		i := (e.Tick - b.From) / b.Per
		written, inputs := measure(e)
		b.Sums[i] += written
		b.Peaks[i] = max(b.Peaks[i], written)
		b.Inputs[i] += inputs
		told = told || inputs > 0
	}
	if !told {
		b.Inputs = b.Inputs[:0]
	}
}

// branches returns the branches of the whole line, whatever stretch is told: the newest, if there are
// too many.
func (d *desk) branches() []branchDoc {
	docs := []branchDoc{}
	for _, b := range slices.Backward(d.line.branches) { // The newest.
		if len(docs) == maxLanesOf {
			break
		}
		docs = append(docs, branchDoc{b.lane, b.first.Tick, b.tip.Tick, b.tip.ID.Seq, b.fork})
	}
	return docs
}

// snapshots returns all snapshots, or the last of them in the order of the view: the newest.
func (d *desk) snapshots(h *shown) []snapDoc {
	docs := []snapDoc{}
	all := d.view.Snapshots()
	for _, s := range all[max(0, len(all)-maxSnaps):] {
		doc := snapDoc{stateDoc{s.Tick, s.ID.Seq}, s.Number, s.Label, s.Size, ""}
		if s.Err != nil {
			doc.Error = h.describe(s.Err).Error.Message
		}
		docs = append(docs, doc)
	}
	return docs
}

// damage tells where in time something of the journal cannot be read: behind the last record that
// lies before it. Damage of a snapshot is at tick 0 here; its snapDoc tells it as well.
func (d *desk) damage(h *shown) []damagedDoc {
	docs := []damagedDoc{}
	log := d.view.Log()
	for _, p := range d.view.Damage() {
		if len(docs) == maxDamage {
			break
		}
		doc := damagedDoc{Message: h.describe(p).Error.Message}
		if at, ok := errors.AsType[*persist.DamageError](p); ok {
			doc.Tick = tickBefore(log, at.File, at.Offset)
		}
		docs = append(docs, doc)
	}
	return docs
}

// tickBefore returns the tick of the last record before a place in a file of the store; 0: of none.
func tickBefore(log *journal.Log, file string, offset int64) (tick uint64) {
	segment := slices.IndexFunc(log.Segments, func(s journal.Segment) bool { return "journal/"+s.Name == file })
	if segment < 0 { // It is no segment.
		return 0
	}
	i, _ := slices.BinarySearchFunc(log.Entries, offset, func(e journal.Entry, offset int64) int {
		return cmp.Or(cmp.Compare(e.Segment, segment), cmp.Compare(e.Offset, offset))
	})
	if i == 0 {
		return 0
	}
	return log.Entries[i-1].Tick
}

// marks returns the names in the journal. All of them are read again when there are new records,
// but not for every one of a program that commits many: at most every two seconds. So a new mark may
// be missing for as long. It is called at the near desk, whose turn the lock of c is taken within.
func (c *counter) marks(ctx context.Context, d *desk) ([]markDoc, error) {
	const often = 2 * time.Second
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(d.view.Log().Entries)
	if c.known != nil && (n == c.marked || time.Since(c.asked) < often) {
		return c.known, nil
	}
	marks, _ := d.view.Marks(ctx) // Damage is told elsewhere.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.known, c.asked, c.marked = []markDoc{}, time.Now(), n
	for _, m := range marks[max(0, len(marks)-maxMarks):] {
		c.known = append(c.known, markDoc{m.Name, m.Tick, m.Seq, !m.OnHead})
	}
	return c.known, nil
}
