package web

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A counter stores the number of rows and inputs of each tick. The journal lists only the length of
// a record, so the counter must read the ticks. The counts stay in memory, at 12 bytes per tick. If
// the cache directory is set, save() also writes the counts to a file in it, and recall() reads
// them at the next start.
//
// The counter uses the slow session for a few ticks at a time (countSome), so no request waits
// long. The fast session reads the counts for the time bar (measure). The lock guards the counts
// and the marks. The lock is free while ticks are counted.
type counter struct {
	kept keptCounts

	mu sync.Mutex
	// epoch is the epoch of the store when the counts were last checked against its ticks.
	epoch  uint64
	counts // Existing counts never change. New counts are appended.
	// saved is the number of counts in the file.
	saved int
	// unread says that a tick could not be read. The counts are then not written to the file,
	// because the tick may be readable next time.
	unread bool

	// known has the marks of the last read, or nil.
	known []markDoc
	asked time.Time
	// marked is the number of records at the time when the marks were last read.
	marked int
}

// counts has the counts of a world's ticks. ticks[i] belongs to seq begin+i. An element is zero
// if the seq has no record.
type counts struct {
	world [16]byte
	begin uint64 // The seq of ticks[0].
	ticks []counted
}

// A counted has the counts of a tick. sum is the checksum of the tick's payload. After a crash, the
// seq may belong to another tick, with another checksum.
type counted struct{ sum, written, inputs uint32 }

// maxCounted limits the number of counted ticks. For a longer journal the bar shows bytes.
const maxCounted = 4 << 20

// countable reports whether the ticks of entries can be counted. A journal with lost segments can
// have large gaps between seqs, and each seq in a gap takes an element of counts.
func countable(entries []journal.Entry) bool {
	n := len(entries)
	return n > 0 && entries[n-1].ID.Seq-entries[0].ID.Seq < maxCounted
}

// The bar shows rows if at most fewest ticks are uncounted. The limit is not 0, because a growing
// store always has some uncounted ticks.
const fewest = 64

// matchLog removes the counts that do not belong to the records of log:
//
//   - all counts, if they are of another world
//   - counts of records before the start or after the end of log
//   - the count of the first record with another checksum, and all later counts
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
	// After a crash, the seq of a lost record was reused for a record with another checksum.
	for _, e := range log.Entries {
		if i := e.ID.Seq - first; i >= uint64(len(c.ticks)) || c.ticks[i].sum != e.ID.CRC {
			break
		}
		end = e.ID.Seq + 1
	}
	// A running request may still read the removed counts, because it shares the array. Clip makes
	// the next append copy the array instead of overwriting them.
	c.ticks = slices.Clip(c.ticks[:end-first])
}

// measure returns the function with which the bar measures a tick. The function returns rows if
// nearly all ticks are counted, and payload bytes otherwise. measure sets doc.Measure
// accordingly.
func (c *counter) measure(log *journal.Log, doc *barDoc) func(journal.Entry) (written, inputs uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin, ticks, total := c.begin, c.ticks, len(log.Entries)
	done, _ := search(log.Entries, begin+uint64(len(ticks)))
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

// count counts the rows of existing and new ticks until ctx ends. After every few ticks, it
// releases the session.
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
			// Ignore the error: the next refresh finds the records.
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

// save writes all counts to the cache if enough counts are new. The argument last is true in the
// final call, for which fewer new counts are enough.
func (c *counter) save(last bool) {
	// Fewer new counts than this are not worth a write: counting them again is quick.
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
	// Ignore a failed write: a later one may succeed.
	c.kept.write(&all)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saved = len(all.ticks)
}

// countSome counts a few ticks. It returns false if no ticks are left to count.
func (c *counter) countSome(d *session) (more bool) {
	const some, bytes = 1024, 4 << 20
	entries := d.view.Log().Entries
	if !countable(entries) {
		return false
	}
	c.mu.Lock()
	// Check the counts against the log in two cases: ticks may have changed, or many ticks were
	// pruned and their counts waste memory.
	const past = 1 << 16 // Check the counts after this many pruned ticks.
	epoch, world := d.view.Log().Epoch, d.view.Log().World
	// A crash of the program begins a new epoch, in which seqs of lost records may be reused.
	if c.epoch != epoch || c.world != world || entries[0].ID.Seq > c.begin+past {
		c.matchLog(d.view.Log())
		c.epoch, c.saved = epoch, min(c.saved, len(c.ticks))
	}
	upto := c.begin + uint64(len(c.ticks))
	c.mu.Unlock()

	// Read the ticks without the lock: no other goroutine adds counts.
	next, _ := search(entries, upto)
	todo, size := entries[next:], 0
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
	// Commits stops at an unreadable tick. Count the unreadable tick as 0 rows, and continue after
	// it.
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
