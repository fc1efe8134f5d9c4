package web

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

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

type markDoc struct {
	Name    string `json:"name"`
	Tick    uint64 `json:"tick"`
	Seq     uint64 `json:"record"`
	Rewound bool   `json:"rewound"`
}

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
	from, to, err := a.ticks()
	if err != nil {
		return nil, err
	}
	width, err := a.count("width", 1000, maxBuckets)
	if err != nil {
		return nil, err
	}
	return answer(a.ctx, h.near, func() (*barDoc, error) {
		d := h.near
		doc := &barDoc{Measure: "bytes", Branches: []branchDoc{}, Marks: []markDoc{}, Snapshots: d.snapshots(h), Damage: d.damage(h)}
		doc.First, doc.Last = d.ends()
		doc.From, doc.To = max(from, doc.First), min(to, doc.Last)
		if doc.To < doc.From {
			doc.From, doc.To = doc.First, doc.Last
		}
		doc.fill(d.line.within(doc.From, doc.To), max(width, 1), h.bar.measure(d.view.Log(), doc))
		doc.Branches = d.branches()
		doc.Marks, err = h.bar.marks(a.ctx, d)
		return doc, err
	})
}

// ends returns the ticks of the oldest state and the newest.
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

// fill sums up entries into at most as many buckets as there are pixels, each of as many ticks.
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
// lies before it.
func (d *desk) damage(h *shown) []damagedDoc {
	docs := []damagedDoc{}
	log := d.view.Log()
	for _, p := range d.view.Damage() {
		if len(docs) == maxDamage {
			break
		}
		doc := damagedDoc{Message: h.describe(p).Error.Message}
		var at *persist.DamageError
		if errors.As(p, &at) {
			doc.Tick = tickBefore(log, at.File, at.Offset)
		}
		docs = append(docs, doc)
	}
	return docs
}

// tickBefore returns the tick of the last record before a place in a file of the store; 0: of none.
func tickBefore(log *journal.Log, file string, offset int64) (tick uint64) {
	segment := slices.IndexFunc(log.Segments, func(s journal.Segment) bool { return "journal/"+s.Name == file })
	if segment < 0 {
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

// A counter knows how many rows each tick wrote, and how many inputs it had. The journal only says
// how long a record is, so ticks are read for it, one after the other, while nobody asks for
// anything else. What is counted stays in memory: 8 bytes a tick.
type counter struct {
	mu    sync.Mutex
	epoch uint64    // Of the desk, when the first was counted.
	begin uint64    // The seq of the first.
	ticks []counted // By seq. What is counted never changes; more is added.

	known  []markDoc
	asked  time.Time
	marked int // Records that there were when marks were asked for.
}

// A counted is what a tick is counted for.
type counted struct{ written, inputs uint32 }

// maxCounted bounds how many ticks are counted. Of a longer journal the bar tells bytes.
const maxCounted = 4 << 20

// fewest is how many uncounted ticks make a bar of rows none: a store that grows always has some.
const fewest = 64

// measure returns what a bar tells of a tick.
func (c *counter) measure(log *journal.Log, doc *barDoc) func(journal.Entry) (written, inputs uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin, ticks, total := c.begin, c.ticks, len(log.Entries)
	done := indexOf(log.Entries, begin+uint64(len(ticks)))
	doc.Counted = float64(done) / float64(max(total, 1))
	of := func(e journal.Entry) (written, inputs uint64) {
		if i := e.ID.Seq - begin; i < uint64(len(ticks)) {
			return uint64(ticks[i].written), uint64(ticks[i].inputs)
		}
		return 0, 0
	}
	if total-done > fewest || total == 0 {
		return func(e journal.Entry) (written, inputs uint64) {
			_, inputs = of(e)
			return uint64(e.Length), inputs
		}
	}
	doc.Measure = "rows"
	return of
}

// indexOf returns how many of entries come before record seq.
func indexOf(entries []journal.Entry, seq uint64) int {
	i, _ := slices.BinarySearchFunc(entries, seq, func(e journal.Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
	return i
}

// count counts the rows of ticks until ctx ends: those that there are, and those that come.
func (h *shown) count(ctx context.Context) {
	news := h.following.subscribe()
	defer h.following.leave(news)
	for {
		more := false
		_ = h.far.with(ctx, func() error {
			more = h.bar.countSome(h.far)
			return nil
		})
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
			_ = h.far.with(ctx, func() error { // What it does not find is found the next time.
				_, err := h.far.refresh(ctx)
				return err
			})
		}
	}
}

// countSome counts a few ticks, and reports whether there are more.
func (c *counter) countSome(d *desk) (more bool) {
	const some, bytes = 256, 1 << 20
	entries := d.view.Log().Entries
	if len(entries) == 0 || len(entries) > maxCounted {
		return false
	}
	c.mu.Lock()
	if epoch := d.epoch(); c.ticks == nil || c.epoch != epoch { // Seqs may have been given again.
		c.epoch, c.begin, c.ticks = epoch, entries[0].ID.Seq, []counted{}
	}
	upto := c.begin + uint64(len(c.ticks))
	c.mu.Unlock()

	todo, size := entries[indexOf(entries, upto):], 0
	for i, e := range todo {
		if size += int(e.Length); i > 0 && (i == some || size > bytes) {
			todo = todo[:i]
			break
		}
	}
	if len(todo) == 0 {
		return false
	}
	last := todo[len(todo)-1].ID.Seq
	ticks := make([]counted, last+1-upto)
	for first := todo[0].ID.Seq; first <= last; { // What cannot be read wrote nothing that is known.
		commits, err := d.view.Commits(first, last)
		for i := range commits {
			first = commits[i].Seq + 1
			ticks[commits[i].Seq-upto] = counted{narrowed(written(&commits[i])), narrowed(len(commits[i].Inputs))}
		}
		if err == nil {
			break
		}
		first++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ticks = append(c.ticks, ticks...)
	return true
}

// written returns how many rows a tick wrote.
func written(c *inspect.Commit) (n int) {
	for _, r := range c.Rows {
		n += r.Written
	}
	return n
}

func narrowed(n int) uint32 { return uint32(min(uint64(n), math.MaxUint32)) }

// marks returns the names in the journal. All of them are read again when there are new records,
// but not for every one of a program that commits many.
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
