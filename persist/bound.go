package persist

import (
	"cmp"
	"fmt"
)

// A store that nobody configured does not fill the disk: it has a bound, in bytes of all its files,
// and after each snapshot removes the oldest that it can do without. But it removes nothing unasked
// from a store that somebody else let grow, or that is damaged: then it says so, and how to ask. What
// can be removed is planned in retention.go; here is what the bound makes of segments and snapshots.

// A bounding is what a store knows of its own bound.
type bounding struct {
	bound   int64 // What it is to stay within; 0: it has no bound, or does not keep to it.
	asFound bool  // It was above the default bound when it was opened: remove nothing.
}

// bind decides what the store, whose journal is that, is to stay within.
func (s *Store) bind(journal []segmentSize) {
	r, p := s.options.Retain, past{s.list, s.head, s.head, journal, s.smallSegment()}
	bytes := s.tally.snapshotBytes + bytesOf(journal)
	s.bound = s.options.bound(p.largest())
	s.asFound = r.unset() && bytes > s.bound
	will := r.plan(p, s.bound) // What the next snapshot removes; today everything is kept.
	r.KeepAll = true
	k := r.plan(p, s.bound).keeping // Nothing has been removed yet.
	k.Bytes, k.Reason = bytes, will.keeping.Reason
	switch {
	case s.damaged:
		k.Reason = "all, as the store was damaged when it was opened"
	case s.asFound:
		k.Reason = fmt.Sprintf("all, as it was above the default bound of %s when it was opened by a program that sets none; "+
			"write Retain: persist.Retention{Bytes: %d} to have the oldest removed, or {KeepAll: true}", size(s.bound), s.bound)
		s.bound = 0
	case len(will.files) > 0 || will.journal > 0:
		k.Reason += "; the rest goes after the next snapshot"
	}
	s.keeps(k)
	s.report.Kept = k
}

// What a store says that has what its bound lets, and between two snapshots maybe more.
const (
	asMuch       = "as much of the past as the bound lets"
	asMany       = "the newest segments of the journal, as each opening adds one; Retain.KeepAll keeps all"
	snapshotDue  = "what was written since the last snapshot; the next one lets older ticks go"
	removeFailed = "files could not be removed, see Metrics.LastSnapshot; the next snapshot tries again"
)

// now returns what is kept of a store that has that many bytes by now.
func (k Keeping) now(bytes int64) Keeping {
	if bytes > k.Bound && k.Bound > 0 && k.Bytes <= k.Bound {
		k.Reason = snapshotDue
	}
	k.Bytes = bytes
	return k
}

// Each opening begins a segment, however little it writes, and opens those behind the last snapshot.
// Small segments are those that an opening left and not the size of a segment. To read a MiB of
// journal takes longer than to open a file.
const (
	maxSegments    = 24      // Small ones that stay in a small journal.
	segmentsBehind = 12      // Small ones that such a journal has behind the last snapshot.
	segmentWorth   = 1 << 20 // Bytes of journal for each further one.
	smallSegment   = 256 << 10
)

// tooMany reports whether more segments than most are small, and more than all bytes are worth.
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

// manySegments reports whether a snapshot is due because of the segments behind the last one. It
// lets those before it go, or, if all is kept, an opening need not read them.
func (s *Store) manySegments() bool {
	return s.behind >= max(segmentsBehind, int(s.grown/segmentWorth)) && s.mayPrune()
}

// share is the part of the bound that one snapshot may take, or one segment.
func share(bound int64) int64 { return max(minShare, bound/shares) }

// segmentBytes returns the size of the journal's segments: what is removed goes by whole
// segments. 0 is the journal's default.
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

// crowded reports whether what must stay is more than it should be, and only a full
// snapshot lets it go: the journal behind the second newest one that shares no file with
// the newest takes a quarter of the bound, has many segments, or reaches further back than what is
// asked for.
func (s *Store) crowded() bool {
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
