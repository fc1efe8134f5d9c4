package journal

import (
	"context"
	"errors"
	"slices"
)

// newest describes how far the newest segment was read, so that Refresh can continue there. last
// and lastID are those of the log before that segment. sound is the part of the segment that was
// read.
type newest struct {
	last   uint64
	lastID ID
	sound  soundPrefix
}

// A soundPrefix is the first part of a segment, up to an offset. It has no bad bytes, and does not
// end inside a payload. It stores what the scanner has found, so that Refresh does not scan these
// bytes again. The records of the prefix are among the entries of the log, if the log has no
// problems.
type soundPrefix struct {
	offset, vouched int64
	due             uint64
	marks           []markAt
	seals           []sealAt
}

// soundUpTo returns the findings of s as those of the prefix that ends at offset. Until now, s has
// found no bad bytes, and nothing after offset.
func (s *scanner) soundUpTo(offset int64) soundPrefix {
	return soundPrefix{offset, s.vouched, s.due, s.marks, s.seals}
}

// Refresh brings l up to date: it adds what was written, rolled and pruned since the scan. It
// reports whether l changed. Afterwards l equals the result of a new [Scan]. No other method of l
// may run during Refresh. Earlier entries become invalid, because pruning shifts the indexes of
// Log.Segments.
//
// Refresh reads the directory and the unread bytes of the newest segment. It reads everything again
// if l has problems, or if the existing files do not match l. An error leaves l unchanged.
//
// Cost: the bytes that it reads. If segments were pruned, it also copies all records.
func (l *Log) Refresh(ctx context.Context) (changed bool, err error) {
	files, err := list(l.fs)
	if err != nil {
		return false, err
	}
	pruned, ok := l.continued(files.segments)
	if ok && pruned == 0 && l.upToDate(files) {
		return false, ctx.Err()
	}
	var next *Log
	if ok {
		next, err = l.refreshed(ctx, pruned, files)
	}
	if next == nil && err == nil || vanished(err) || errors.Is(err, errListing) {
		next, err = Scan(ctx, l.fs, 0, nil)
	}
	if err != nil {
		return false, err
	}
	l.replaceWith(next)
	return true, nil
}

// continued reports whether files can be a later state of the journal in l. Newer segments may have
// been added, and the oldest ones removed. The sizes of the files must also be consistent with l.
// The result pruned is the number of removed segments.
func (l *Log) continued(files []listedFile) (pruned int, ok bool) {
	if len(l.Problems) > 0 || len(files) == 0 {
		return 0, false
	}
	pruned = slices.IndexFunc(l.Segments, func(s Segment) bool { return s.Name == files[0].name })
	if pruned < 0 || len(files) < len(l.Segments)-pruned {
		return 0, false
	}
	for i, s := range l.Segments[pruned:] {
		same := files[i].size == s.Size
		if pruned+i == len(l.Segments)-1 {
			same = files[i].size >= s.Size
		}
		if files[i].name != s.Name || !same {
			return 0, false
		}
	}
	return pruned, true
}

// upToDate reports whether files, which continue l, contain nothing new. A torn tail counts as new:
// the writer may have been writing it during the scan.
func (l *Log) upToDate(files listing) bool {
	n := len(l.Segments)
	return len(files.segments) == n && files.segments[n-1].size == l.Segments[n-1].Size && l.Torn == nil &&
		(l.ledger == nil || l.ledger.isFile(files.ledgers))
}

// refreshed returns the result of a new Scan, computed from l and the new bytes. It returns nil if
// the newest segment in l was replaced or cut short. The result shares memory with l. The entries
// of l stay unchanged.
func (l *Log) refreshed(ctx context.Context, pruned int, files listing) (*Log, error) {
	next := l.withoutNewest(pruned)
	at := len(next.Segments)
	for i, f := range files.segments[at:] {
		if err := next.addSegment(f, at+i+1 == len(files.segments)); err != nil {
			return nil, err
		}
	}
	newest := &l.Segments[len(l.Segments)-1]
	limit, _ := next.statedEnd(at)
	if s := &next.Segments[at]; s.header != newest.header || min(limit, s.Size) < l.newest.sound.offset {
		return nil, nil
	}
	next.checkWorlds()
	if err := next.readLedger(files.ledgers); err != nil {
		return nil, err
	}
	window := newScanWindow(ctx, nil, nil)
	if err := next.scanSegments(at, window, l); err != nil {
		return nil, err
	}
	return next, ctx.Err()
}

// withoutNewest returns a copy of l to which new findings can be added. It has neither the pruned
// segments nor the newest segment. But it has the records of the newest segment that were read
// already. Appending to the entries of the result does not change l.
func (l *Log) withoutNewest(pruned int) *Log {
	b := &Log{
		fs: l.fs, ledger: l.ledger, Believed: max(0, l.Believed-pruned), Clean: true, Last: l.newest.last, LastID: l.newest.lastID,
		Segments:  slices.Clone(l.Segments[pruned : len(l.Segments)-1]),
		Entries:   withoutPruned(l.Entries, pruned),
		Preambles: withoutPruned(l.Preambles, pruned),
	}
	for _, r := range l.TornTails {
		if slices.ContainsFunc(b.Segments, func(s Segment) bool { return s.Name == r.File }) {
			b.TornTails = append(b.TornTails, r)
		}
	}
	return b
}

// withoutPruned returns entries without those of the pruned segments. If there are pruned segments,
// it copies the entries.
func withoutPruned(entries []Entry, pruned int) []Entry {
	if pruned == 0 {
		return entries
	}
	first, _ := slices.BinarySearchFunc(entries, pruned, func(e Entry, segment int) int { return e.Segment - segment })
	entries = slices.Clone(entries[first:])
	for i := range entries {
		entries[i].Segment -= pruned
	}
	return entries
}

// resume makes s continue where the earlier scan of the newest segment ended. The entries of next
// already contain the records of that scan.
func (l *Log) resume(next *Log, segment *Segment, s *scanner) {
	at := &l.newest.sound
	s.start, s.vouched, s.due, s.sound = at.offset, at.vouched, at.due, *at
	s.marks, s.seals = slices.Clip(at.marks), slices.Clip(at.seals)
	if segment.Records = l.Segments[len(l.Segments)-1].Records; segment.Records > 0 {
		last := next.Entries[len(next.Entries)-1].ID
		next.LastID, next.Head, next.Last = last, last.Seq, max(next.Last, last.Seq)
	}
}

// replaceWith replaces the contents of l with those of another log. next: the other log.
func (l *Log) replaceWith(next *Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.release()
	l.Segments, l.Entries, l.Preambles = next.Segments, next.Entries, next.Preambles
	l.Problems, l.Torn, l.TornTails = next.Problems, next.Torn, next.TornTails
	l.World, l.Epoch, l.Head, l.Last, l.LastID = next.World, next.Epoch, next.Head, next.Last, next.LastID
	l.Believed, l.Lost, l.small = next.Believed, next.Lost, nil
	l.Clean, l.gap, l.newest = next.Clean, next.gap, next.newest
	l.Unsure, l.Note, l.ledger, l.spare, l.gone = next.Unsure, next.Note, next.ledger, next.spare, next.gone
}
