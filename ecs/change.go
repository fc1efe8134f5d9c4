package ecs

import (
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// oldRows reads the values of rows before the tick.
type oldRows struct {
	spans     track.Spans
	then, now []byte // Buffers for encoded rows.
}

// A change is the [raw.Change] that the recorders receive, with its buffers.
type change struct {
	raw.Change
	// The record has the changes since the start of the frame with this id.
	from             uint64
	entities, values []raw.Range // Results of storageChange.
	ops              []raw.Op    // Operations of several frames.
	old              oldRows
}

// written returns the ranges of rows below limit that were written. The log l has an entry for each
// frame in which its storage or the registry changed. written reads the entries from position k on.
// It appends to ranges, which must be empty. If sorted is true, the result is ascending and
// disjoint.
func written(l *track.Log, ranges []raw.Range, k, limit int) (_ []raw.Range, sorted bool) {
	sorted = true
	last := 0
	l.SavedRuns(k, func(runs []track.Run) {
		for _, r := range runs {
			lo, hi := int(r.Row), min(int(r.Row+r.N), limit)
			if lo < hi {
				sorted = sorted && lo >= last
				last = hi
				ranges = appendRange(ranges, lo, hi)
			}
		}
	})
	return ranges, sorted
}

// appendRange appends rows lo to hi-1 to ranges. If possible, it extends the last range.
func appendRange(ranges []raw.Range, lo, hi int) []raw.Range {
	if k := len(ranges) - 1; k >= 0 && ranges[k].First+ranges[k].N == lo {
		ranges[k].N += hi - lo
		return ranges
	}
	return append(ranges, raw.Range{First: lo, N: hi - lo})
}
