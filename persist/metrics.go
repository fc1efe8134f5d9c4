package persist

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stet-ecs/stet/journal"
)

// Metrics say how a store fares. Counts and times are those since Open. All of them were
// true at one moment.
type Metrics struct {
	Tick        uint64 // That the world is at: of the last commit, or gone to since.
	DurableTick uint64 // Of the newest commit that survives any crash.
	LocalTick   uint64 // Of the newest that a crash of this machine leaves: see [Options.OnLocal].
	LagTicks    uint64 // Records that are not durable yet.
	Err         error  // Why the journal failed, see [Store.Err]; nil: it has not.

	JournalSegments int
	JournalBytes    int64         // In all segments.
	QueuedBytes     int64         // Wait to be written.
	Syncs           uint64        // Calls of fsync for the journal,
	SyncLast        time.Duration // how long the last one took,
	SyncMax         time.Duration // the longest one,
	SyncTotal       time.Duration // and all of them.

	Snapshots       int            // Finished, the base of a new store included.
	SnapshotsFailed int            // Or abandoned.
	Snapshotting    bool           // One is under way.
	LastSnapshot    SnapshotResult // The last that finished or failed.
	SnapshotStall   time.Duration  // The most that the last one, or the one under way, added to a Commit.
	SnapshotBytes   int64          // In all snapshot files.

	DiskBytes int64   // JournalBytes and SnapshotBytes.
	Kept      Keeping // How far back they reach, and why.

	PrunedMarks    int // Ticks with marks, and
	PrunedBranches int // ends of branches that went with the journal. See [Retention].
}

// A tally is what [Store.Metrics] tells, but for what the journal counts itself. Whoever does
// something writes it down here when it is done: the goroutine of the world, or that of the
// snapshot under way. Its lock is held for no longer than that takes, and no other is taken within
// it but that of the journal.
type tally struct {
	counting sync.Mutex

	journal *journal.Journal // Only the goroutine that the store belongs to changes it,
	failed  error            // and why a tick could not be handed to it, and needs no lock to look.
	opening uint64           // Its first record,
	durable uint64           // and the tick of what was durable before.
	before  journal.Stats    // The syncs of those that failed before it.

	// The world is at tick as long as the journal's next record is next, else where its last
	// record led.
	tick, next uint64

	snapshots, failures int
	underway            bool
	last                SnapshotResult
	stall               time.Duration
	snapshotBytes       int64
	keeping             Keeping

	marks, tips                 []uint64 // Records with marks and ends of branches that were left, oldest first, as far as they are in the journal.
	prunedMarks, prunedBranches int
}

// metrics is [Store.Metrics].
func (t *tally) metrics() Metrics {
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

// tickOf returns the tick of a record, of which the journal knows the tick if it was appended since.
func (t *tally) tickOf(seq, tick uint64) uint64 {
	if seq < t.opening {
		return t.durable
	}
	return tick
}

// opened notes that j is the journal from now on, and that the world is at that tick, which the
// first one continues.
func (t *tally) opened(j *journal.Journal, tick uint64) {
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

// current returns the journal, for goroutines that the store does not belong to.
func (t *tally) current() *journal.Journal {
	t.counting.Lock()
	defer t.counting.Unlock()
	return t.journal
}

// fail notes why a tick could not be handed to the journal; nil: the next one can.
func (t *tally) fail(err error) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.failed = err
}

// went notes that the world is at that tick, and no record led there.
func (t *tally) went(tick uint64) {
	t.counting.Lock()
	defer t.counting.Unlock()
	if t.tick = tick; t.journal != nil { // Nobody asks before there is one.
		t.next = t.journal.Next()
	}
}

// adopted counts what lies in the store: bytes of snapshots, records with marks, and ends of
// branches.
func (t *tally) adopted(snapshotBytes int64, marks, tips []uint64) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.snapshotBytes, t.marks, t.tips = snapshotBytes, marks, tips
}

// keeps notes what is kept from now on.
func (t *tally) keeps(k Keeping) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.keeping = k
}

// begun counts a snapshot as under way.
func (t *tally) begun() {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.underway, t.stall = true, 0
}

// stalled notes what a snapshot under way, or one that has just ended, added to a Commit.
func (t *tally) stalled(d time.Duration) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.stall = max(t.stall, d)
}

// ended counts a snapshot that finished or failed, and what was removed for it; k is what
// is kept since, nil if nothing was decided.
func (t *tally) ended(r SnapshotResult, removed int64, k *Keeping) {
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

// pruned counts what was removed, but for a snapshot.
func (t *tally) pruned(removed int64, k *Keeping) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.lost(removed, k)
}

// lost counts bytes of snapshots that were removed, and the marks and branches that went with
// the journal: those before the first record of its first segment. The lock is held.
func (t *tally) lost(removed int64, k *Keeping) {
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

// forget takes those before first away from seqs, and returns how many they were.
func forget(seqs *[]uint64, first uint64) int {
	n, _ := slices.BinarySearch(*seqs, first)
	*seqs = slices.Delete(*seqs, 0, n)
	return n
}

// marked notes that record seq has marks.
func (t *tally) marked(seq uint64) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.marks = append(t.marks, seq)
}

// parted notes that the next record continues parent, and not the last one.
func (t *tally) parted(parent, last uint64) {
	t.counting.Lock()
	defer t.counting.Unlock()
	if n := len(t.tips); n == 0 || t.tips[n-1] != last {
		t.tips = append(t.tips, last)
	}
	t.tips = slices.DeleteFunc(t.tips, func(seq uint64) bool { return seq == parent })
}
