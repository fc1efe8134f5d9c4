package web

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The time bar is one document for a range of ticks. It sums the ticks in buckets. The page
// requests a number of buckets, so the size of the document does not depend on the number of ticks.
// Records are small and in memory, so the sums are fast. A counter reads the payloads and counts
// rows and inputs. Until nearly all ticks are counted, the bar shows bytes.
//
// fill() computes the sums, peaks and inputs of the path to the newest state. Rewound branches are
// drawn in lanes below it. Snapshots, damage and marks are drawn at their ticks.

// Limits of a bar.
const (
	maxBuckets = 4096
	maxLanesOf = 2000 // Maximum number of branches.
	maxMarks   = 2000
	maxSnaps   = 5000
	maxDamage  = 200
)

// barDoc describes a range of ticks, summed in buckets.
type barDoc struct {
	// First and Last are the ticks of the oldest and the newest state.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// From and To are the range of ticks in this document.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Measure is the unit of Sums and Peaks: "rows" written, or "bytes" until the rows of nearly
	// all ticks are counted.
	Measure string `json:"measure"`
	// Counted is the fraction of ticks whose rows are counted.
	Counted float64 `json:"counted"`
	// Per is the number of ticks in a bucket. The last bucket may have fewer.
	Per uint64 `json:"per"`
	// Sums has, for each bucket, the sum of Measure over its ticks.
	Sums []uint64 `json:"sums"`
	// Peaks has the largest value of a single tick in each bucket.
	Peaks []uint64 `json:"peaks"`
	// Inputs has the number of counted inputs in each bucket. It is empty if no tick has inputs.
	Inputs []uint64 `json:"inputs"`
	// Rewound branches.
	Branches  []branchDoc  `json:"branches"`
	Marks     []markDoc    `json:"marks"`
	Snapshots []snapDoc    `json:"snapshots"`
	Damage    []damagedDoc `json:"damage"`
}

// A branchDoc is a chain of rewound ticks.
type branchDoc struct {
	Lane int `json:"lane"`
	// First tick.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Last record.
	Tip uint64 `json:"tip"`
	// The record that the branch continues.
	Fork uint64 `json:"fork"`
}

// A markDoc is a name that the program gave to a tick, on any branch.
type markDoc struct {
	Name    string `json:"name"`
	Tick    uint64 `json:"tick"`
	Seq     uint64 `json:"record"`
	Rewound bool   `json:"rewound"`
}

// A snapDoc is a snapshot file with its state.
type snapDoc struct {
	stateDoc
	Number uint32 `json:"number"`
	Label  string `json:"label,omitempty"`
	Size   int64  `json:"size"`
	// Error is the reason why the file cannot be read. In that case the state is unknown.
	Error string `json:"error,omitempty"`
}

// A damagedDoc is damage at a position in time.
type damagedDoc struct {
	Tick    uint64 `json:"tick"` // The last readable tick before the damage.
	Message string `json:"message"`
}

// timeBar returns the time bar for a range of ticks.
func (h *server) timeBar(a *params) (any, error) {
	from, to := a.ticks()
	width := a.count("width", 1000, maxBuckets)
	return answer(a, h.fast, func() (doc *barDoc, err error) {
		d := h.fast
		doc = &barDoc{Measure: "bytes", Branches: d.branches(), Snapshots: d.snapshots(h), Damage: d.damage(h)}
		doc.First, doc.Last = d.ends()
		doc.From, doc.To = max(from, doc.First), min(to, doc.Last)
		// If the range has no ticks of the store, for instance after pruning, show all ticks.
		if doc.To < doc.From {
			doc.From, doc.To = doc.First, doc.Last
		}
		doc.fill(d.line.within(doc.From, doc.To), max(width, 1), h.bar.measure(d.view.Log(), doc))
		doc.Marks, err = h.bar.marks(a.ctx, d)
		return doc, err
	})
}

// ends returns the ticks of the oldest and the newest state, including branches. It returns 0 and
// 0 if the store has no state.
func (d *session) ends() (first, last uint64) {
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

// fill sums up entries, whose ticks are in [From, To], into at most width buckets of equal
// length. It also stores the peak of each bucket, so a single large tick stays visible.
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

// branches returns all branches, for any range. If there are too many branches, it returns the
// newest branches.
func (d *session) branches() []branchDoc {
	all := d.line.branches
	docs := describe.Listed(all[max(0, len(all)-maxLanesOf):], func(b branch) branchDoc {
		return branchDoc{b.lane, b.first.Tick, b.tip.Tick, b.tip.ID.Seq, b.fork}
	})
	// The newest branch comes first.
	slices.Reverse(docs)
	return docs
}

// snapshots returns all snapshots. If there are too many snapshots, it returns the newest
// snapshots.
func (d *session) snapshots(h *server) []snapDoc {
	all := d.view.Snapshots()
	return describe.Listed(all[max(0, len(all)-maxSnaps):], func(s inspect.SnapshotInfo) snapDoc {
		doc := snapDoc{describe.State(s.Tick, s.ID.Seq), s.Number, s.Label, s.Size, ""}
		if s.Err != nil {
			doc.Error = h.describe(s.Err).Message
		}
		return doc
	})
}

// damage returns the known damage. Damage in a journal file has the tick of the last record before
// it. Other damage has tick 0.
func (d *session) damage(h *server) []damagedDoc {
	all := d.view.Damage()
	return describe.Listed(all[:min(len(all), maxDamage)], func(p error) damagedDoc {
		doc := damagedDoc{Message: h.describe(p).Message}
		if at, ok := errors.AsType[*persist.DamageError](p); ok {
			doc.Tick = tickBefore(d.view.Log(), at.File, at.Offset)
		}
		return doc
	})
}

// tickBefore returns the tick of the last record before an offset in a file of the store, or 0.
func tickBefore(log *journal.Log, file string, offset int64) (tick uint64) {
	segment := slices.IndexFunc(log.Segments, func(s journal.Segment) bool { return "journal/"+s.Name == file })
	// The file is not a segment of the journal.
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

// marks returns the marks in the journal. If there are new records, it reads all marks again, but
// at most every two seconds. So a new mark may appear two seconds late. Only requests at the fast
// session call marks.
func (c *counter) marks(ctx context.Context, d *session) ([]markDoc, error) {
	const often = 2 * time.Second
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(d.view.Log().Entries)
	if c.known != nil && (n == c.marked || time.Since(c.asked) < often) {
		return c.known, nil
	}
	// Ignore the error: the document reports damage separately.
	marks, _ := d.view.Marks(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.known = describe.Listed(marks[max(0, len(marks)-maxMarks):], func(m inspect.Mark) markDoc {
		return markDoc{m.Name, m.Tick, m.Seq, !m.OnHead}
	})
	c.asked, c.marked = time.Now(), n
	return c.known, nil
}
