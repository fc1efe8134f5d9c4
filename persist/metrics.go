package persist

import "time"

// Metrics say how a store fares. Counts and times are those since Open.
type Metrics struct {
	Tick        uint64 // Of the last commit.
	DurableTick uint64 // Of the newest commit that survives any crash.
	LagTicks    uint64 // Records that are not durable yet.

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

// tally is what a store counts for [Metrics].
type tally struct {
	snapshots, failed int
	last              SnapshotResult
	stall             time.Duration
	snapshotBytes     int64
	marks, branches   int // Pruned.
}

// ended counts a snapshot that finished or failed.
func (t *tally) ended(r SnapshotResult) {
	t.last = r
	if r.Err != nil {
		t.failed++
		return
	}
	t.snapshots++
	t.snapshotBytes += r.Bytes
}

// begun notes what beginning a snapshot added to a Commit.
func (t *tally) begun(d time.Duration) { t.stall = d }

// stalled notes what a snapshot under way added to a Commit.
func (t *tally) stalled(d time.Duration) { t.stall = max(t.stall, d) }
