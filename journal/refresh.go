package journal

import (
	"context"
	"errors"
	"slices"
)

// A newest is where reading the newest segment can go on when it has grown: what the
// log was before the segment, and how far all in it is good.
type newest struct {
	last   uint64
	lastID ID
	sound  sound
}

// A sound is a place in a segment before which nothing is bad and no payload is
// unfinished, and what a scanner had found there, but for records. What comes behind
// says nothing about it. A log without problems has just the records before it.
type sound struct {
	offset, vouched int64
	due             uint64
	marks           []markAt
	seals           []sealAt
}

// soundUpTo returns what s has found, all of it before offset.
func (s *scanner) soundUpTo(offset int64) sound {
	return sound{offset, s.vouched, s.due, s.marks, s.seals}
}

// Refresh brings l up to date with what was written, rolled and pruned since it was
// scanned, and reports whether there was anything to read. Afterwards l is what a
// new [Scan] returns. No other method of l may run meanwhile; entries that it had
// before are for no other use, as segments that were pruned give their places in
// Log.Segments to others.
//
// Of what is there it reads the names, and what stands behind that which it read of
// the newest segment. It reads everything again if l has problems, or if the files
// are not those that l was read from. An error leaves l as it was.
//
// Cost: that of reading; if segments were pruned, all records are copied.
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
	l.become(next)
	return true, nil
}

// continued reports whether files are segments of l without the first few, which
// were pruned, and perhaps newer ones, and whether what l knows of them can be true
// yet.
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

// upToDate reports whether files, which continue l, hold nothing else than l. What
// looked torn may have been about to be written.
func (l *Log) upToDate(files listing) bool {
	n := len(l.Segments)
	return len(files.segments) == n && files.segments[n-1].size == l.Segments[n-1].Size && l.Torn == nil &&
		(l.ledger == nil || l.ledger.is(files.ledgers))
}

// refreshed returns what Scan would, or nil if what l knows does not help with that.
// It shares memory with l, whose entries stay as they are.
func (l *Log) refreshed(ctx context.Context, pruned int, files listing) (*Log, error) {
	next := l.before(pruned)
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
	next.checkEnd()
	next.setLost(next.Lost)
	next.sortProblems()
	next.forgetSummaries()
	return next, ctx.Err()
}

// before returns what l was before its newest segment, which has the highest epoch, without
// pruned segments, but with all records. To append to these does not change those of l.
func (l *Log) before(pruned int) *Log {
	b := &Log{
		fs: l.fs, ledger: l.ledger, Believed: max(0, l.Believed-pruned), Clean: true, Last: l.newest.last, LastID: l.newest.lastID,
		Segments:  slices.Clone(l.Segments[pruned : len(l.Segments)-1]),
		Entries:   withoutPruned(l.Entries, pruned),
		Preambles: withoutPruned(l.Preambles, pruned),
	}
	for _, r := range l.Disowned {
		if slices.ContainsFunc(b.Segments, func(s Segment) bool { return s.Name == r.File }) {
			b.Disowned = append(b.Disowned, r)
		}
	}
	return b
}

// withoutPruned returns entries without those of the first segments, which were
// pruned; it copies them if there are such.
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

// resume makes s, which has read nothing yet of the newest segment of l, go on where all of
// that is known. next has its records already.
func (l *Log) resume(next *Log, segment *Segment, s *scanner) {
	at := &l.newest.sound
	s.start, s.vouched, s.due, s.sound = at.offset, at.vouched, at.due, *at
	s.marks, s.seals = slices.Clip(at.marks), slices.Clip(at.seals)
	if segment.Records = l.Segments[len(l.Segments)-1].Records; segment.Records > 0 {
		last := next.Entries[len(next.Entries)-1].ID
		next.LastID, next.Head, next.Last = last, last.Seq, max(next.Last, last.Seq)
	}
}

// become makes l what next is.
func (l *Log) become(next *Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.release()
	l.Segments, l.Entries, l.Preambles = next.Segments, next.Entries, next.Preambles
	l.Problems, l.Torn, l.Disowned = next.Problems, next.Torn, next.Disowned
	l.World, l.Epoch, l.Head, l.Last, l.LastID = next.World, next.Epoch, next.Head, next.Last, next.LastID
	l.Believed, l.Lost, l.small = next.Believed, next.Lost, nil
	l.Clean, l.gap, l.newest = next.Clean, next.gap, next.newest
	l.Unsure, l.Note, l.ledger, l.spare, l.gone = next.Unsure, next.Note, next.ledger, next.spare, next.gone
}
