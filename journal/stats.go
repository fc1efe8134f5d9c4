package journal

import (
	"iter"
	"sync/atomic"
	"time"
)

// Stats say how a journal fares. Times are those of this opening.
type Stats struct {
	Segments int   // Files.
	Bytes    int64 // Written to them, by earlier openings as well.
	Ledger   int64 // Bytes of the ledger, which lists them.
	Queued   int64 // Bytes that wait for the writer, headers included.

	Durable     uint64 // Highest seq that an fsync covered.
	DurableTick uint64 // The tick of that record; 0 if j has not appended it.

	Syncs     uint64        // Calls of fsync,
	SyncLast  time.Duration // how long the last one took,
	SyncMax   time.Duration // the longest one,
	SyncTotal time.Duration // and all of them.
}

// counters are what the writer counts for [Stats].
type counters struct {
	bytes       atomic.Int64
	durableTick atomic.Uint64
	syncs       atomic.Uint64
	last        atomic.Int64
	longest     atomic.Int64
	total       atomic.Int64
}

// Stats returns how j fares. It allocates nothing and waits for nothing but a
// short lock. What it returns was true one after the other, not all at once.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	s := Stats{Segments: len(j.segments), Queued: j.queued, Durable: j.durable.Load()}
	j.mu.Unlock()
	c := &j.counters
	s.Bytes, s.DurableTick, s.Syncs = c.bytes.Load(), c.durableTick.Load(), c.syncs.Load()
	if j.ledger != nil {
		s.Ledger = j.ledger.size.Load()
	}
	s.SyncLast = time.Duration(c.last.Load())
	s.SyncMax = time.Duration(c.longest.Load())
	s.SyncTotal = time.Duration(c.total.Load())
	return s
}

// Segments yields the seq that each segment begins with, 0 if its header cannot be read,
// and the size of its file in bytes, oldest first. It tells what a [Journal.Prune] would
// leave. Cost: O(segments), in memory.
func (j *Journal) Segments() iter.Seq2[uint64, int64] {
	return func(yield func(uint64, int64) bool) {
		j.mu.Lock()
		segments := append([]segmentRef(nil), j.segments...)
		j.mu.Unlock()
		rest := j.counters.bytes.Load()
		for i, s := range segments {
			if i == len(segments)-1 {
				s.size = max(0, rest)
			}
			rest -= s.size
			if !yield(s.first, s.size) {
				return
			}
		}
	}
}

// sync is fsync, counted.
func (w *writer) sync() error {
	c, start := &w.j.counters, time.Now()
	err := w.file.Sync()
	d := int64(time.Since(start))
	c.syncs.Add(1)
	c.last.Store(d)
	c.longest.Store(max(d, c.longest.Load()))
	c.total.Add(d)
	return err
}

// removed counts a segment no more, whose size was asked for before.
func (c *counters) removed(size int64) { c.bytes.Add(-size) }

// sizeOf returns the size of a file, 0 if it cannot be told.
func (j *Journal) sizeOf(name string) int64 {
	f, err := j.fs.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	size, _ := f.Size()
	return size
}
