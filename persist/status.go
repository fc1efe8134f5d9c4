package persist

import "fmt"

// A RetentionStatus says which data a store keeps, and why.
type RetentionStatus struct {
	Bytes int64 // Bytes of journal and snapshots.
	Bound int64 // The bound of Bytes; 0 means no bound.
	// The oldest reachable record: Goto can reach each state from this record on.
	Record uint64
	Tick   uint64 // The tick of Record.
	// Why the store keeps this data, as text for people. It also says why Bytes is above Bound.
	Reason string
}

// String returns what is kept, and why, on one line.
func (k RetentionStatus) String() string {
	bound := ""
	if k.Bound > 0 {
		bound = " of " + size(k.Bound)
	}
	return fmt.Sprintf("%s%s, back to tick %d: %s", size(k.Bytes), bound, k.Tick, k.Reason)
}

// now returns a copy of k in which Bytes is the parameter bytes, the present size of the store. If
// the store has grown above its bound since the last pruning, the Reason of the copy says so.
func (k RetentionStatus) now(bytes int64) RetentionStatus {
	if bytes > k.Bound && k.Bound > 0 && k.Bytes <= k.Bound {
		k.Reason = snapshotDue
	}
	k.Bytes = bytes
	return k
}

// SnapshotResult describes a snapshot that has finished or failed.
type SnapshotResult struct {
	Tick    uint64
	Slot    string // Name of the slot that the snapshot saves, or "".
	Name    string // Name of the file, relative to the store's directory.
	Written int    // Number of pages written.
	// Number of pages that other files already hold. Neither Shared nor Written counts copies of
	// written pages.
	Shared int
	Bytes  int64 // Size of the file.
	Err    error

	// Files lists the files with the pages of the snapshot, relative to the store's directory. The
	// first is the snapshot's own file. The others hold shared pages, and stay as long as the
	// snapshot. If all are copied elsewhere under these names, the first is a save for [Load],
	// package inspect and ecsdump.
	Files []string

	// Removed are the files that retention removed after this snapshot. See [Retention].
	Removed []string

	// RemoveErr is why retention could not remove more files, or nil.
	RemoveErr error

	// Lost are the files of older snapshots that another program removed or truncated while the
	// store was open. This snapshot is a full one, which replaces them.
	Lost []string
}

// snapshotDue is the Reason of a store that has grown above its bound since the last pruning.
const snapshotDue = "the data since the last snapshot exceeds the bound; the next snapshot removes older ticks"

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
