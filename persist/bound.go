package persist

import (
	"cmp"
	"fmt"
)

// Without a configured Retention, the journal and snapshots of a store have a default bound in
// bytes, so that they do not fill the disk. After each snapshot the store removes its oldest data
// that nothing needs. It removes nothing if, at Open, it was damaged or already above the default
// bound. The Report then says why, and which option to set.
//
// retention.go plans which files to remove. This file derives the size of segments, and when a
// snapshot is due, from the bound.

// A bounding holds the size limit of a store's files.
type bounding struct {
	bound int64      // Maximum bytes on the disk; 0 means no bound, or that the bound is ignored.
	block pruneBlock // Why the store removes nothing.
}

// A pruneBlock is the reason why an open store removes nothing. Damage is the only reason that may
// appear after the store was opened, and it replaces any other reason.
type pruneBlock int

const (
	blockNone      pruneBlock = iota // Retention removes data.
	blockOverLimit                   // The store was above the default bound when it was opened.
	blockDamaged                     // Damage was found when the files were read.
)

// foundDamage blocks the removal of data if damage was found.
func (b *bounding) foundDamage(damage []error) {
	if len(damage) > 0 {
		b.block = blockDamaged
	}
}

// initRetention sets the bound of the store. journal lists the segments of its journal.
func (s *Store) initRetention(journal []segmentSize) {
	r, p := s.options.Retain, past{s.list, s.head, s.head, journal, s.smallSegment()}
	bytes := s.counters.snapshotBytes + bytesOf(journal)
	s.bound = s.options.bound(p.largest())
	switch {
	case s.block == blockDamaged:
	case r.unset() && bytes > s.bound:
		s.block = blockOverLimit
	default:
		s.block = blockNone
	}
	will := r.plan(p, s.bound) // What the next snapshot will remove.
	r.KeepAll = true
	k := r.plan(p, s.bound).keeping // Until that snapshot, the store keeps everything.
	k.Bytes, k.Reason = bytes, will.keeping.Reason
	switch {
	case s.block == blockDamaged:
		k.Reason = "all data, because the store was damaged when it was opened"
	case s.block == blockOverLimit:
		k.Reason = fmt.Sprintf("all data, because the store was above the default bound of %s when it was opened without a Retain; "+
			"set Retain: persist.Retention{Bytes: %d} to remove the oldest data, or {KeepAll: true}", size(s.bound), s.bound)
		s.bound = 0
	case len(will.files) > 0 || will.journal > 0:
		k.Reason += "; the next snapshot removes the other data"
	}
	s.keeps(k)
	s.report.Kept = k
}

// Texts for RetentionStatus.Reason.
const (
	asMuch       = "as much old data as the bound allows"
	asMany       = "only the newest journal segments, because each opening adds one; Retain.KeepAll keeps all"
	snapshotDue  = "the data since the last snapshot exceeds the bound; the next snapshot removes older ticks"
	removeFailed = "files could not be removed, see Metrics.LastSnapshot; the next snapshot tries again"
)

// now returns k, updated for a store that now has the given number of bytes.
func (k RetentionStatus) now(bytes int64) RetentionStatus {
	if bytes > k.Bound && k.Bound > 0 && k.Bytes <= k.Bound {
		k.Reason = snapshotDue
	}
	k.Bytes = bytes
	return k
}

// These limits keep the number of journal segments low. Each opening of a store begins a segment,
// even if the program then commits nothing. It also reads the segments after the last snapshot. A
// segment is small if an opening ended it early. Reading a MiB of journal takes longer than opening
// a file, so a large journal may have more small segments.
const (
	maxSegments    = 24      // Maximum number of small segments in a small journal.
	segmentsBehind = 12      // Maximum number of small segments after the last snapshot.
	segmentWorth   = 1 << 20 // Bytes of journal that allow one more small segment.
	smallSegment   = 256 << 10
)

// tooMany reports whether too many segments are small, that is, have fewer than small bytes. The
// limit is the parameter most, or one segment per segmentWorth bytes of journal if that is more.
func tooMany(segments []segmentSize, small int64, most int) bool {
	n := 0
	for _, s := range segments {
		if s.bytes < small {
			n++
		}
	}
	return n > max(most, int(bytesOf(segments)/segmentWorth))
}

// smallSegment returns the size below which a segment is small.
func (s *Store) smallSegment() int64 {
	return min(smallSegment, cmp.Or(s.segmentBytes(), defaultSegment)/4)
}

// manySegments reports whether a snapshot is due because many small segments follow the last one.
// After that snapshot, retention can remove these segments. Even if retention keeps them, the next
// opening need not read them.
func (s *Store) manySegments() bool {
	return s.behind >= max(segmentsBehind, int(s.grown/segmentWorth)) && s.mayPrune()
}

// share returns how many bytes of the bound one snapshot or one segment may use.
func share(bound int64) int64 { return max(minShare, bound/shares) }

// segmentBytes returns the size in bytes of a journal segment; 0 means the journal's default. A
// small bound needs small segments, because pruning removes whole segments.
func (s *Store) segmentBytes() int64 {
	r := s.options.Retain
	switch bound := s.options.bound(s.fullSize); {
	case s.options.segmentSize > 0:
		return s.options.segmentSize
	case bound > 0:
		return min(defaultSegment, share(bound))
	case r.asks():
		return min(defaultSegment, max(minSegment, s.snapshotBytes()))
	}
	return 0
}

// retentionNeedsFull reports whether retention needs a full snapshot before it can remove enough
// data. Retention keeps the journal after the newest base that shares no file with the newest
// snapshot. This journal is too large if it takes more than a quarter of the bound, or has many
// small segments. It is also too large if it reaches further back than Last, Ticks and Age request.
func (s *Store) retentionNeedsFull() bool {
	if s.journal == nil {
		return false
	}
	r, p := s.options.Retain, past{list: s.list, newest: s.seq(), journal: sizesOf(s.journal), small: s.smallSegment()}
	bases := p.bases()
	if len(bases) == 0 {
		return false
	}
	apart, from := second(bases), uint64(1)
	if apart >= 0 {
		from = bases[apart].from()
	}
	segments := p.since(from)
	if s.bound > 0 && bytesOf(segments) > s.bound/4 || !r.KeepAll && tooMany(segments, p.small, segmentsBehind) {
		return true
	}
	return r.asks() && s.chain() >= minChain && (apart < 0 || apart > r.asked(bases))
}
