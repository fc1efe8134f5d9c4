package web

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A counter knows how many rows each tick wrote, and how many inputs it had. The journal only says
// how long a record is, so ticks are read for it, one after the other, while nobody asks for
// anything else. What is counted stays in memory, and in a file for the next time if there is a
// place for it: 12 bytes a tick.
//
// It counts at the far desk, a few ticks at each turn, so that nobody waits for long. The near
// desk reads the counts for a bar; the lock is only held to take or put them, not while ticks are
// read.
//
//	recall ── of an earlier start ──┐
//	far desk ──countSome──▶ counts ─┴─measure──▶ bar, at the near desk
//	                          └─save──▶ the file, as a whole
type counter struct {
	kept keptCounts

	mu     sync.Mutex
	epoch  uint64 // Of the store, when it was last seen that these are its ticks.
	counts        // What is counted never changes; more is added.
	saved  int    // So many of them are in the file.
	unread bool   // One could not be read. It may be readable the next time, so nothing is saved.

	known  []markDoc // The marks, as they were when they were asked for last; nil: never.
	asked  time.Time
	marked int // Records that there were when marks were asked for.
}

// counts are what the ticks of a world are counted for, by their seqs: ticks[i] is that of seq
// begin+i. A seq without a record has a zero there.
type counts struct {
	world [16]byte
	begin uint64 // The seq of the first.
	ticks []counted
}

// A counted is what a tick is counted for, and the sum of its payload, which tells it from another
// one that was given its seq.
type counted struct{ sum, written, inputs uint32 }

// maxCounted bounds how many ticks are counted. Of a longer journal the bar tells bytes.
const maxCounted = 4 << 20

// countable reports whether the ticks of entries are counted. Between two of a journal that lost
// segments can lie any number of seqs, and each of them takes a place.
func countable(entries []journal.Entry) bool {
	n := len(entries)
	return n > 0 && entries[n-1].ID.Seq-entries[0].ID.Seq < maxCounted
}

// fewest is how many uncounted ticks make a bar of rows none: a store that grows always has some.
const fewest = 64

// of makes c those of log: what is counted of another world is let go, and so is what lies before log,
// and all from the first tick on that is another one there or is not in it.
func (c *counts) of(log *journal.Log) {
	if len(log.Entries) == 0 {
		*c = counts{world: log.World}
		return
	}
	first := log.Entries[0].ID.Seq
	if c.world != log.World || first < c.begin || first-c.begin > uint64(len(c.ticks)) {
		*c = counts{log.World, first, []counted{}}
		return
	}
	c.begin, c.ticks = first, c.ticks[first-c.begin:]
	end := first
	// A seq is given again where a crash lost records: then the payload has another sum, and whatever
	// follows was counted of the lost ones.
	for _, e := range log.Entries {
		if i := e.ID.Seq - first; i >= uint64(len(c.ticks)) || c.ticks[i].sum != e.ID.CRC {
			break
		}
		end = e.ID.Seq + 1
	}
	c.ticks = slices.Clip(c.ticks[:end-first]) // A bar may be reading those behind, which must not become others.
}

// measure returns what a bar tells of a tick: rows if nearly all are counted, else bytes of payloads.
// It says in doc which.
func (c *counter) measure(log *journal.Log, doc *barDoc) func(journal.Entry) (written, inputs uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin, ticks, total := c.begin, c.ticks, len(log.Entries)
	done := indexOf(log.Entries, begin+uint64(len(ticks)))
	doc.Counted = 1
	if countable(log.Entries) {
		doc.Counted = float64(done) / float64(total)
	}
	of := func(e journal.Entry) (written, inputs uint64) {
		if i := e.ID.Seq - begin; i < uint64(len(ticks)) {
			return uint64(ticks[i].written), uint64(ticks[i].inputs)
		}
		return 0, 0
	}
	if total-done > fewest {
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

// count counts the rows of ticks until ctx ends: those that there are, and those that come. Between
// two turns others can have the desk.
func (h *shown) count(ctx context.Context) {
	news := h.following.subscribe()
	defer h.following.leave(news)
	defer h.bar.save(true)
	for {
		more := false
		_ = h.far.with(ctx, func() error {
			more = h.bar.countSome(h.far)
			return nil
		})
		if more {
			continue
		}
		h.bar.save(false)
		select {
		case <-ctx.Done():
			return
		case <-news:
			_ = h.far.with(ctx, func() error { return h.far.refresh(ctx) }) // What it does not find is found the next time.
		}
	}
}

// recall takes what was counted of the store of d at another time.
func (c *counter) recall(d *desk) {
	log := d.view.Log()
	c.counts = c.kept.read(log.World)
	c.of(log)
	c.epoch, c.saved = log.Epoch, len(c.ticks)
}

// save keeps what is counted for the next time, if that is much more than what is kept: it is written
// as a whole. Less is enough if nothing comes any more.
func (c *counter) save(last bool) {
	least := 1000 // Fewer are counted at once.
	c.mu.Lock()
	all, saved, unread := c.counts, c.saved, c.unread
	c.mu.Unlock()
	if !last {
		least = max(least, saved/8)
	}
	if unread || len(all.ticks)-saved < least {
		return
	}
	c.kept.write(&all) // If there is no place for it now, there may be one later.
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saved = len(all.ticks)
}

// countSome counts a few ticks, and reports whether there are more.
func (c *counter) countSome(d *desk) (more bool) {
	const some, bytes = 1024, 4 << 20
	entries := d.view.Log().Entries
	if !countable(entries) {
		return false
	}
	c.mu.Lock()
	// Ticks are looked through from the first only when they may be others, or so many were pruned
	// that their counts take memory for nothing.
	const past = 1 << 16 // Ticks that were pruned.
	epoch, world := d.view.Log().Epoch, d.view.Log().World
	if c.epoch != epoch || c.world != world || entries[0].ID.Seq > c.begin+past { // Seqs may have been given again.
		c.of(d.view.Log())
		c.epoch, c.saved = epoch, min(c.saved, len(c.ticks))
	}
	upto := c.begin + uint64(len(c.ticks))
	c.mu.Unlock()

	// The lock is not held while ticks are read: nobody else adds counts.
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
	ticks, unread := make([]counted, last+1-upto), false
	for _, e := range todo {
		ticks[e.ID.Seq-upto].sum = e.ID.CRC
	}
	// Commits stops at a tick that it cannot read: that is passed over, and it goes on behind it.
	for first := todo[0].ID.Seq; first <= last; { // What cannot be read wrote nothing that is known.
		commits, err := d.view.Commits(first, last)
		for i := range commits {
			tick := &ticks[commits[i].Seq-upto]
			first, tick.written, tick.inputs = commits[i].Seq+1, narrowed(written(&commits[i])), narrowed(len(commits[i].Inputs))
		}
		if err == nil {
			break
		}
		unread = true
		first++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ticks, c.unread = append(c.ticks, ticks...), c.unread || unread
	return true
}

// written returns how many rows a tick wrote.
func written(c *inspect.Commit) (n int) {
	for _, r := range c.Rows {
		n += r.Written
	}
	return n
}

// narrowed returns n, or the most that a count can be.
func narrowed(n int) uint32 { return uint32(min(uint64(n), math.MaxUint32)) }
