package persist

import (
	"cmp"
	"fmt"
)

// Without a configured Retention, a store has a default bound in bytes for its journal and
// snapshots. After each snapshot, the store removes the oldest data that is not needed. Two kinds
// of stores are not pruned: a damaged store, and a store that Open finds above the default bound.
// The Report then says why, and which option to set.
//
// retention.go plans which files to remove. From the bound, this file derives the segment size, and
// the time of the next snapshot.

// A bounding holds the size limit of a store's files.
type bounding struct {
	bound int64      // Maximum bytes on the disk; 0 means no bound. Also 0 with blockOverLimit.
	block pruneBlock // Why the store is not pruned.
}

// A pruneBlock is the reason why an open store is not pruned. If damage is found after Open,
// blockDamaged replaces any other reason.
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
	removeFailed = "files could not be removed, see Metrics.LastSnapshot; the next snapshot tries again"
)

// These limits keep the number of small journal segments low. Each Open begins a segment, and a
// program that closes early leaves a small one. Open reads all segments after the last snapshot.
const (
	maxSegments    = 24      // Maximum number of small segments in a journal of up to 24 MiB.
	segmentsBehind = 12      // Maximum number of small segments after the last snapshot.
	segmentWorth   = 1 << 20 // A larger journal may have one small segment per MiB.
	smallSegment   = 256 << 10
)

// tooMany reports whether too many segments have fewer than small bytes. The limit is max(most,
// journal bytes / segmentWorth).
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
// The next opening then skips these segments, and retention can remove them.
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
// data.
//
// Retention always keeps one older base that shares no file with the newest snapshot, and the
// journal after that base. After a full snapshot, a newer base can take this role, and the journal
// before it can be removed. A full snapshot is needed if the journal after the present base
//
//   - is larger than a quarter of the bound,
//   - has many small segments, or
//   - reaches further back than Last, Ticks and Age request.
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
