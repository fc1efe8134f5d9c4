package journal

import (
	"iter"
	"time"

	"github.com/stet-ecs/stet/disk"
)

// Stats say how a journal fares. Times are those of this opening.
type Stats struct {
	Segments int   // Files.
	Bytes    int64 // Written to them, by earlier openings as well.
	Ledger   int64 // Bytes of the ledger, which lists them.
	Queued   int64 // Bytes that wait for the writer, headers included.

	Next        uint64 // Seq that the next record will have.
	Tick        uint64 // The tick of the one before; 0 if j has not appended it.
	Durable     uint64 // Highest seq that an fsync covered.
	DurableTick uint64 // The tick of that record; 0 if j has not appended it.
	Local       uint64 // Highest seq that a crash of this machine leaves: Durable, or a later one,
	LocalTick   uint64 // and its tick.
	Err         error  // As of [Journal.Err].

	Syncs     uint64        // Calls of fsync,
	SyncLast  time.Duration // how long the last one took,
	SyncMax   time.Duration // the longest one,
	SyncTotal time.Duration // and all of them.
}

// Stats returns how j fares. It allocates nothing and waits for nothing but a
// short lock. What it returns was true at one moment.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.counted
	s.Segments, s.Queued, s.Next, s.Durable, s.Err = len(j.segments), j.queued, j.next, j.durable.Load(), j.err
	if j.ledger != nil {
		s.Ledger = j.ledger.size.Load()
	}
	return s
}

// Segments yields the seq that each segment begins with, 0 if its header cannot be read,
// and the size of its file in bytes, oldest first. It tells what a [Journal.Prune] would
// leave. Cost: O(segments), in memory.
func (j *Journal) Segments() iter.Seq2[uint64, int64] {
	return func(yield func(uint64, int64) bool) {
		j.mu.Lock()
		segments, rest := append([]segmentRef(nil), j.segments...), j.counted.Bytes
		j.mu.Unlock()
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
	start := time.Now()
	err := disk.SyncLocal(w.file, func() { w.j.local(w.seq, w.tick) })
	w.j.countSync(time.Since(start))
	return err
}

// countSync counts an fsync that took that long.
func (j *Journal) countSync(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &j.counted
	c.Syncs++
	c.SyncLast, c.SyncMax, c.SyncTotal = d, max(d, c.SyncMax), c.SyncTotal+d
}

// countBytes counts bytes written.
func (j *Journal) countBytes(n int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counted.Bytes += n
}
