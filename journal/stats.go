package journal

import (
	"iter"
	"time"

	"github.com/stet-ecs/stet/disk"
)

// Stats are the statistics of a journal. Times and counts of fsyncs cover the time since Open.
type Stats struct {
	Segments int   // Number of segment files.
	Bytes    int64 // Size of the segments, including bytes that earlier openings wrote.
	Ledger   int64 // Size of the ledger in bytes.
	Queued   int64 // Bytes that wait for the writer, headers included.

	Next        uint64 // Seq of the next record.
	Tick        uint64 // Tick of the record before Next. 0 if this Journal has not appended it.
	Durable     uint64 // Highest seq that an fsync covered.
	DurableTick uint64 // Tick of record Durable. 0 if this Journal has not appended it.
	Local       uint64 // Highest seq that survives a crash of this machine: Durable or later.
	LocalTick   uint64 // Tick of record Local.
	Err         error  // Result of [Journal.Err].

	Syncs     uint64        // Number of fsync calls.
	SyncLast  time.Duration // Duration of the last fsync.
	SyncMax   time.Duration // Duration of the longest fsync.
	SyncTotal time.Duration // Total duration of all fsyncs.
}

// Stats returns the statistics of j, all from the same moment. It allocates nothing and holds a
// lock only briefly.
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

// Segments yields the seq that each segment begins with and its file size in bytes, oldest first.
// The seq is 0 if the header cannot be read. With these values, the caller can predict what
// [Journal.Prune] leaves. Cost: O(segments), in memory.
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

// sync calls fsync and counts the call.
func (w *writer) sync() error {
	start := time.Now()
	err := disk.SyncLocal(w.file, func() { w.j.local(w.seq, w.tick) })
	w.j.countSync(time.Since(start))
	return err
}

// countSync counts an fsync of duration d.
func (j *Journal) countSync(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &j.counted
	c.Syncs++
	c.SyncLast, c.SyncMax, c.SyncTotal = d, max(d, c.SyncMax), c.SyncTotal+d
}

// countBytes counts n written bytes.
func (j *Journal) countBytes(n int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counted.Bytes += n
}
