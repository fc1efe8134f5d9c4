package persist

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stet-ecs/stet/journal"
)

// Metrics describe the state of a store. Counts and times start at Open. All values are from the
// same moment. Metrics are written as JSON by encoding/json, and as a group by log/slog.
type Metrics struct {
	// Tick of the world: the tick of the last commit, or of a later move to another state.
	Tick        uint64
	DurableTick uint64 // Tick of the newest commit that survives any crash.
	// Tick of the newest commit that survives a crash of this machine: see [Options.OnLocal].
	LocalTick uint64
	LagTicks  uint64 // Number of records that are not durable yet.
	Err       error  // Why the journal failed, see [Store.Err]; nil means no failure.

	JournalSegments int
	JournalBytes    int64         // Bytes in all segments.
	QueuedBytes     int64         // Bytes that wait to be written.
	Syncs           uint64        // Number of fsync calls for the journal.
	SyncLast        time.Duration // Duration of the last fsync.
	SyncMax         time.Duration // Duration of the longest fsync.
	SyncTotal       time.Duration // Total duration of all fsyncs.

	Snapshots       int            // Finished snapshots, including the base of a new store.
	SnapshotsFailed int            // Number of failed or abandoned snapshots.
	Snapshotting    bool           // A snapshot is under way.
	LastSnapshot    SnapshotResult // The last snapshot that finished or failed.
	// The longest delay that the last snapshot, or the one under way, added to a Commit.
	SnapshotStall time.Duration
	SnapshotBytes int64 // Bytes in all snapshot files.

	DiskBytes int64           // JournalBytes plus SnapshotBytes.
	Kept      RetentionStatus // How far back the files reach, and why.

	// Number of marked ticks that were removed with the journal. See [Retention].
	PrunedMarks    int
	PrunedBranches int // Branch tips that were removed with the journal.
}

// counters holds the values of [Store.Metrics] that the journal does not count itself. Two
// goroutines update them: the goroutine of the world, and the goroutine that writes a snapshot.
// Each update holds the lock counting for a short time. While it holds this lock, it takes no other
// lock except the journal's.
type counters struct {
	counting sync.Mutex

	// Only the goroutine of the world changes this field, so that goroutine reads the field without
	// the lock.
	journal *journal.Journal
	// The error of the store itself, for example if its snapshots were removed. The journal has its
	// own error. Only the goroutine of the world changes this field.
	failed  error
	opening uint64        // The first record of the current journal.
	durable uint64        // The last durable tick when the current journal began.
	before  journal.Stats // Sync statistics of the earlier journals, which failed.

	// tick is the tick to which the last opening or restore moved the world. next is the number of
	// the first record after that. Once the journal has that record, Metrics.Tick is the tick of
	// the journal's newest record.
	tick, next uint64

	snapshots, failures int
	underway            bool
	last                SnapshotResult
	stall               time.Duration
	snapshotBytes       int64
	keeping             RetentionStatus

	// Records with marks, and tips of abandoned branches. Both lists are oldest first and cover
	// only retained segments.
	marks, tips                 []uint64
	prunedMarks, prunedBranches int
}

// metrics is [Store.Metrics].
func (t *counters) metrics() Metrics {
	t.counting.Lock()
	defer t.counting.Unlock()
	j := t.journal.Stats()
	m := Metrics{
		Tick:            j.Tick,
		DurableTick:     t.tickOf(j.Durable, j.DurableTick),
		LocalTick:       t.tickOf(j.Local, j.LocalTick),
		LagTicks:        j.Next - 1 - j.Durable,
		Err:             t.failed,
		JournalSegments: j.Segments,
		JournalBytes:    j.Bytes,
		QueuedBytes:     j.Queued,
		Syncs:           t.before.Syncs + j.Syncs,
		SyncLast:        cmp.Or(j.SyncLast, t.before.SyncLast),
		SyncMax:         max(t.before.SyncMax, j.SyncMax),
		SyncTotal:       t.before.SyncTotal + j.SyncTotal,
		Snapshots:       t.snapshots,
		SnapshotsFailed: t.failures,
		Snapshotting:    t.underway,
		LastSnapshot:    t.last,
		SnapshotStall:   t.stall,
		SnapshotBytes:   t.snapshotBytes,
		DiskBytes:       j.Bytes + t.snapshotBytes,
		Kept:            t.keeping.now(j.Bytes + t.snapshotBytes),
		PrunedMarks:     t.prunedMarks,
		PrunedBranches:  t.prunedBranches,
	}
	if j.Next == t.next {
		m.Tick = t.tick
	}
	if m.Err == nil && !errors.Is(j.Err, journal.ErrClosed) {
		m.Err = j.Err
	}
	return m
}

// tickOf returns the tick of the durable record seq. The parameter tick is the tick of a record of
// the current journal. If the record is older, tickOf instead returns the last durable tick when
// the current journal began.
func (t *counters) tickOf(seq, tick uint64) uint64 {
	if seq < t.opening {
		return t.durable
	}
	return tick
}

// opened makes j the current journal. The first record of j continues the present tick of the
// world, which the caller passes.
func (t *counters) opened(j *journal.Journal, tick uint64) {
	t.counting.Lock()
	defer t.counting.Unlock()
	if t.journal == nil {
		t.durable = tick
	} else {
		old, b := t.journal.Stats(), &t.before
		t.durable = t.tickOf(old.Durable, old.DurableTick)
		b.Syncs, b.SyncTotal = b.Syncs+old.Syncs, b.SyncTotal+old.SyncTotal
		b.SyncLast, b.SyncMax = cmp.Or(old.SyncLast, b.SyncLast), max(b.SyncMax, old.SyncMax)
	}
	t.journal, t.opening = j, j.Next()
	t.tick, t.next = tick, t.opening
}

// current returns the journal. Any goroutine may call it.
func (t *counters) current() *journal.Journal {
	t.counting.Lock()
	defer t.counting.Unlock()
	return t.journal
}

// fail sets the error with which the store failed. A nil err clears the error.
func (t *counters) fail(err error) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.failed = err
}

// observeTick sets the tick of the world when it changes without a new record. For example, a
// rewind moves the world to an older tick.
func (t *counters) observeTick(tick uint64) {
	t.counting.Lock()
	defer t.counting.Unlock()
	// Before the journal is opened, nothing reads tick.
	if t.tick = tick; t.journal != nil {
		t.next = t.journal.Next()
	}
}

// adopted sets the values of an existing store: bytes of snapshots, records with marks, and branch
// tips.
func (t *counters) adopted(snapshotBytes int64, marks, tips []uint64) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.snapshotBytes, t.marks, t.tips = snapshotBytes, marks, tips
}

// keeps sets the description of the data that the store keeps.
func (t *counters) keeps(k RetentionStatus) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.keeping = k
}

// begun records that a snapshot is under way.
func (t *counters) begun() {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.underway, t.stall = true, 0
}

// observeStall updates the longest delay that the latest snapshot added to a Commit.
func (t *counters) observeStall(d time.Duration) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.stall = max(t.stall, d)
}

// ended counts a snapshot that finished or failed, and the bytes removed after it. k describes the
// data that is still kept; a nil k means that retention did not run.
func (t *counters) ended(r SnapshotResult, removed int64, k *RetentionStatus) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.underway, t.last = false, r
	if r.Err != nil {
		t.failures++
		return
	}
	t.snapshots++
	t.snapshotBytes += r.Bytes
	t.lost(removed, k)
}

// pruned counts bytes that were removed without a new snapshot.
func (t *counters) pruned(removed int64, k *RetentionStatus) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.lost(removed, k)
}

// lost subtracts the bytes of removed snapshots. If retention ran, k describes the data that stays.
// Then lost also counts the marks and branch tips that were removed with the oldest segments. The
// caller holds the lock.
func (t *counters) lost(removed int64, k *RetentionStatus) {
	t.snapshotBytes -= removed
	if k == nil {
		return
	}
	t.keeping = *k
	for first := range t.journal.Segments() {
		t.prunedMarks += forget(&t.marks, first)
		t.prunedBranches += forget(&t.tips, first)
		break
	}
}

// forget removes the records with lower numbers than first from the list seqs. It returns how many
// records it removed.
func forget(seqs *[]uint64, first uint64) int {
	n, _ := slices.BinarySearch(*seqs, first)
	*seqs = slices.Delete(*seqs, 0, n)
	return n
}

// marked adds record seq to the records with marks.
func (t *counters) marked(seq uint64) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.marks = append(t.marks, seq)
}

// observeBranch updates the branch tips when the next record begins a branch. Until now, record
// last was the newest one. The next record continues record parent instead. So last becomes a tip,
// and parent is no longer a tip.
func (t *counters) observeBranch(parent, last uint64) {
	t.counting.Lock()
	defer t.counting.Unlock()
	if n := len(t.tips); n == 0 || t.tips[n-1] != last {
		t.tips = append(t.tips, last)
	}
	t.tips = slices.DeleteFunc(t.tips, func(seq uint64) bool { return seq == parent })
}
