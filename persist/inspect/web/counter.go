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

// A counter holds the number of rows and inputs of each tick. The journal only stores the length of
// a record. So the counter reads the ticks one after the other while no other request runs. The
// counts stay in memory, and in a file of the cache directory, if there is one: 12 bytes per tick.
//
// The counter works at the slow session, a few ticks per turn, so that no request waits long. The
// fast session reads the counts for the time bar. The lock is only held to read or store counts,
// not while ticks are read.
//
//	recall ── of an earlier start ──┐
//	slow session ──countSome──▶ counts ─┴─measure──▶ time bar, at the fast session
//	                          └─save──▶ the whole file
type counter struct {
	kept keptCounts

	mu sync.Mutex
	// Epoch of the store when the counts were last checked against its ticks.
	epoch  uint64
	counts // Existing counts never change. New counts are appended.
	// Number of counts in the file.
	saved int
	// A tick could not be read. It may be readable next time, so the file is not written.
	unread bool

	// The marks when they were last read, or nil.
	known []markDoc
	asked time.Time
	// Number of records when marks were last read.
	marked int
}

// counts are the counts of a world's ticks. ticks[i] belongs to seq begin+i. It is zero for a seq
// without a record.
type counts struct {
	world [16]byte
	begin uint64 // The seq of ticks[0].
	ticks []counted
}

// A counted holds the counts of a tick. sum is the checksum of its payload, which identifies the
// tick if its seq is reused.
type counted struct{ sum, written, inputs uint32 }

// maxCounted limits the number of counted ticks. For a longer journal the bar shows bytes.
const maxCounted = 4 << 20

// countable reports whether the ticks of entries are counted. A journal with lost segments can have
// large gaps between seqs, and each seq in a gap takes an element.
func countable(entries []journal.Entry) bool {
	n := len(entries)
	return n > 0 && entries[n-1].ID.Seq-entries[0].ID.Seq < maxCounted
}

// fewest is the number of uncounted ticks up to which the bar shows rows. A growing store always
// has some uncounted ticks.
const fewest = 64

// matchLog adjusts c to log. It removes counts of another world, and of ticks before the start of
// log. It also removes all counts from the first tick on that differs from log or is missing there.
func (c *counts) matchLog(log *journal.Log) {
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
	// After a crash, seqs of lost records are reused. The payload then has another checksum, and
	// all later counts belong to lost records.
	for _, e := range log.Entries {
		if i := e.ID.Seq - first; i >= uint64(len(c.ticks)) || c.ticks[i].sum != e.ID.CRC {
			break
		}
		end = e.ID.Seq + 1
	}
	// A bar may be reading the removed counts, so append must not overwrite them.
	c.ticks = slices.Clip(c.ticks[:end-first])
}

// measure returns the function that the bar uses for a tick. It returns rows if nearly all ticks
// are counted, and payload bytes otherwise. It sets doc.Measure accordingly.
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

// indexOf returns the number of entries before record seq.
func indexOf(entries []journal.Entry, seq uint64) int {
	i, _ := slices.BinarySearchFunc(entries, seq, func(e journal.Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
	return i
}

// count counts the rows of existing and new ticks until ctx ends. It releases the session between
// two parts.
func (h *server) count(ctx context.Context) {
	news := h.following.subscribe()
	defer h.following.unsubscribe(news)
	defer h.bar.save(true)
	for {
		more := false
		_ = h.slow.with(ctx, func() error {
			more = h.bar.countSome(h.slow)
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
			// An error is ignored: the next refresh finds the records.
			_ = h.slow.with(ctx, func() error { return h.slow.refresh(ctx) })
		}
	}
}

// recall reads the counts of d's store from the cache.
func (c *counter) recall(d *session) {
	log := d.view.Log()
	c.counts = c.kept.read(log.World)
	c.matchLog(log)
	c.epoch, c.saved = log.Epoch, len(c.ticks)
}

// save writes the counts to the cache if enough new ones exist, because it writes the whole file.
// With last set, fewer new counts are enough.
func (c *counter) save(last bool) {
	// For less, counting again is fast enough.
	least := 1000
	c.mu.Lock()
	all, saved, unread := c.counts, c.saved, c.unread
	c.mu.Unlock()
	if !last {
		least = max(least, saved/8)
	}
	if unread || len(all.ticks)-saved < least {
		return
	}
	// If the write fails, a later one may succeed.
	c.kept.write(&all)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saved = len(all.ticks)
}

// countSome counts a few ticks and reports whether there are more.
func (c *counter) countSome(d *session) (more bool) {
	const some, bytes = 1024, 4 << 20
	entries := d.view.Log().Entries
	if !countable(entries) {
		return false
	}
	c.mu.Lock()
	// The counts are checked from the first tick only if ticks may have changed. They are also
	// checked if many ticks were pruned, to release the memory of their counts.
	const past = 1 << 16 // Number of pruned ticks.
	epoch, world := d.view.Log().Epoch, d.view.Log().World
	// Seqs may have been reused.
	if c.epoch != epoch || c.world != world || entries[0].ID.Seq > c.begin+past {
		c.matchLog(d.view.Log())
		c.epoch, c.saved = epoch, min(c.saved, len(c.ticks))
	}
	upto := c.begin + uint64(len(c.ticks))
	c.mu.Unlock()

	// The lock is not held while ticks are read, because no other goroutine adds counts.
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
	// Commits stops at a tick that it cannot read. The loop skips that tick and continues after it.
	// An unreadable tick counts as 0 rows.
	for first := todo[0].ID.Seq; first <= last; {
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

// written returns the number of rows that a tick wrote.
func written(c *inspect.Commit) (n int) {
	for _, r := range c.Rows {
		n += r.Written
	}
	return n
}

// narrowed returns n, limited to the maximum of a uint32.
func narrowed(n int) uint32 { return uint32(min(uint64(n), math.MaxUint32)) }
