package persist

import (
	"cmp"
	"fmt"
)

// A store without a configured Retention does not fill the disk: a default bound limits the bytes
// of all its files. After each snapshot it removes the oldest data that is not needed. But it
// removes nothing by default if the store is damaged or already above the default bound. Then the
// report says so, and which option to set. retention.go plans what can be removed; this file
// derives segments and snapshots from the bound.

// A bounding holds the bound of a store.
type bounding struct {
	bound int64 // Bytes to stay within; 0: no bound, or the store does not keep to it.
	// The store was above the default bound when it was opened, so nothing is removed.
	overLimitAtOpen bool
}

// initRetention decides the bound of the store with the given journal segments.
func (s *Store) initRetention(journal []segmentSize) {
	r, p := s.options.Retain, past{s.list, s.head, s.head, journal, s.smallSegment()}
	bytes := s.counters.snapshotBytes + bytesOf(journal)
	s.bound = s.options.bound(p.largest())
	s.overLimitAtOpen = r.unset() && bytes > s.bound
	will := r.plan(p, s.bound) // What the next snapshot removes; today everything is kept.
	r.KeepAll = true
	k := r.plan(p, s.bound).keeping // Nothing has been removed yet.
	k.Bytes, k.Reason = bytes, will.keeping.Reason
	switch {
	case s.damaged:
		k.Reason = "all, as the store was damaged when it was opened"
	case s.overLimitAtOpen:
		k.Reason = fmt.Sprintf("all, as it was above the default bound of %s when it was opened by a program that sets none; "+
			"write Retain: persist.Retention{Bytes: %d} to have the oldest removed, or {KeepAll: true}", size(s.bound), s.bound)
		s.bound = 0
	case len(will.files) > 0 || will.journal > 0:
		k.Reason += "; the rest goes after the next snapshot"
	}
	s.keeps(k)
	s.report.Kept = k
}

// Reasons in Keeping.Reason.
const (
	asMuch       = "as much of the past as the bound lets"
	asMany       = "the newest segments of the journal, as each opening adds one; Retain.KeepAll keeps all"
	snapshotDue  = "what was written since the last snapshot; the next one lets older ticks go"
	removeFailed = "files could not be removed, see Metrics.LastSnapshot; the next snapshot tries again"
)

// now returns k for a store that has that many bytes now.
func (k Keeping) now(bytes int64) Keeping {
	if bytes > k.Bound && k.Bound > 0 && k.Bytes <= k.Bound {
		k.Reason = snapshotDue
	}
	k.Bytes = bytes
	return k
}

// Each opening begins a segment, however little it writes, and opens the segments behind the last
// snapshot. A segment is small if an opening left it before it reached its size. Reading a MiB of
// journal takes longer than opening a file.
const (
	maxSegments    = 24      // Small segments that stay in a small journal.
	segmentsBehind = 12      // Small segments that such a journal has behind the last snapshot.
	segmentWorth   = 1 << 20 // Bytes of journal that allow one more segment.
	smallSegment   = 256 << 10
)

// tooMany reports whether more than most segments are small, and more than the total size allows.
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

// manySegments reports whether a snapshot is due because of the segments behind the last one. After
// that snapshot the segments can be removed, or, if everything is kept, an opening need not read
// them.
func (s *Store) manySegments() bool {
	return s.behind >= max(segmentsBehind, int(s.grown/segmentWorth)) && s.mayPrune()
}

// share returns the part of the bound that one snapshot or one segment may take.
func share(bound int64) int64 { return max(minShare, bound/shares) }

// segmentBytes returns the size of the journal's segments, because pruning removes whole segments.
// 0: the journal's default.
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

// retentionNeedsFull reports whether retention needs a full snapshot before it can remove enough.
// The journal must stay from the newest base on that shares no file with the newest snapshot. This
// part of the journal may be too large. Too large is a quarter of the bound, many segments, or more
// than what is asked for.
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
