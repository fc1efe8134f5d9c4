package journal

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/stet-ecs/stet/disk"
)

// scanSegment scans segment i, classifies its bad bytes, and adds its valid records to the log.
func (l *Log) scanSegment(i int, window *scanWindow, known *Log) error {
	s := &l.Segments[i]
	last := i == len(l.Segments)-1
	if s.Err != nil {
		l.Clean = l.Clean && !last
		return nil
	}
	limit, linked := l.statedEnd(i)
	var sc *scanner
	if linked && (i < window.first || l.trusted[s.Number]) {
		sc = l.trustSummary(s, limit)
	}
	if sc != nil {
		l.Believed++
	} else {
		f, done, err := l.reader(s.Name)
		if err != nil {
			return err
		}
		defer done()
		sc = newScanner(f, s, min(limit, s.Size), window)
		if known != nil {
			known.resume(l, s, sc)
		}
		if err := sc.run(); err != nil {
			return err
		}
	}
	l.newest.sound = sc.sound
	j := damageClassifier{log: l, index: i, segment: s, scanner: sc, torn: -1}
	switch {
	case last:
		if err := j.classifyLast(); err != nil {
			return err
		}
	case linked:
		j.classifyInner(limit)
	// No header states the end of this segment, so the file size counts. All these bytes were
	// durable before the next segment was created.
	default:
		j.classifyInner(s.Size)
	}
	j.addEntries()
	return nil
}

// statedEnd returns the end of segment i according to the header of the next segment, and true.
// Without such a header, it returns the file size and false.
func (l *Log) statedEnd(i int) (int64, bool) {
	if i+1 == len(l.Segments) {
		return l.Segments[i].Size, false
	}
	s, next := &l.Segments[i], &l.Segments[i+1]
	if next.Err != nil || next.header.previous != s.Number {
		return s.Size, false
	}
	return int64(next.header.prevEnd), true
}

// A damageClassifier decides which bad bytes of a segment were durable once.
//
// Bytes before one of these offsets were durable:
//
//   - the watermark of a valid record header: the segment was durable up to this offset
//   - the end of the segment according to the header of the next segment
//   - the end of the segment according to a seal, the last record of a closed journal
//   - the end of the segment according to the ledger of a closed journal
//
// Bad bytes before such an offset are corrupt. The first bad byte after all these offsets begins
// the torn tail, which extends to the end of the segment.
type damageClassifier struct {
	log     *Log
	index   int // Index of segment in log.Segments.
	segment *Segment
	scanner *scanner
	vouched int64
	torn    int64 // Start of the torn tail. -1 means no torn tail.
	ended   int64 // End of the segment according to a seal. 0 means no seal.
}

// classifyInner classifies a segment that is not the last one. The bytes before the offset end were
// durable before the next segment was created.
func (j *damageClassifier) classifyInner(end int64) {
	s := j.segment
	j.vouched = end
	j.addProblems()
	if s.Size < end {
		_ = j.log.problem(s.Name, s.Size, end-s.Size, "file cut short")
	}
	switch {
	case s.Size <= end:
	case j.sealedAt(end):
		_ = j.log.problem(s.Name, end, s.Size-end, "bytes after the clean end")
	default:
		j.log.TornTails = append(j.log.TornTails, Range{File: s.Name, Offset: end, Length: s.Size - end})
	}
	s.End = min(end, s.Size)
	s.durable = s.End
}

// sealedAt reports whether a seal ends the segment at the given offset.
func (j *damageClassifier) sealedAt(end int64) bool {
	return slices.ContainsFunc(j.scanner.seals, func(seal sealAt) bool { return seal.end() == end })
}

// classifyLast classifies the last segment. It ends with seals, with a torn tail, or with
// its last record.
func (j *damageClassifier) classifyLast() error {
	s := j.segment
	j.vouched = max(j.scanner.vouched, j.log.closedAt(s))
	s.durable = min(j.vouched, s.Size)
	j.log.Clean = false
	unfinished, err := j.findSeals()
	if err != nil {
		return err
	}
	s.vouched = j.vouched
	j.addProblems()
	if s.Size < j.vouched {
		_ = j.log.problem(s.Name, s.Size, j.vouched-s.Size, "file cut short")
	}
	if unfinished == "" && j.ended == 0 {
		unfinished = j.findTear()
	}
	s.End = s.Size
	if j.torn >= 0 {
		s.End = j.torn
		j.log.Torn = &disk.DamageError{File: s.Name, Offset: j.torn, Length: s.Size - j.torn, Reason: unfinished, Err: ErrTorn}
	}
	if j.ended > 0 && s.Size > j.ended {
		s.End = j.ended
		_ = j.log.problem(s.Name, j.ended, s.Size-j.ended, "bytes after the clean end")
		j.log.Clean = false
	}
	return nil
}

// findSeals looks for the two seals that a clean close writes. If the second seal is unfinished,
// findSeals returns the reason. In that case the first seal proves that the bytes before the second
// one were durable.
func (j *damageClassifier) findSeals() (unfinished string, err error) {
	sc := j.scanner
	if len(sc.seals) == 0 {
		return "", nil
	}
	seal := sc.seals[0]
	if second := seal.offset + recordHeader; len(sc.seals) == 1 && seal.end() == second+recordHeader && j.vouched <= second {
		torn, err := sc.unfinishedSeal(seal.header, second)
		if err != nil {
			return "", err
		}
		if torn {
			j.torn, j.vouched = second, max(j.vouched, second)
			return "the second seal is unfinished", nil
		}
	}
	j.ended = seal.end()
	j.vouched = max(j.vouched, j.ended)
	j.log.Clean = len(sc.seals) == 2 && j.segment.Size == j.ended
	return "", nil
}

// unfinishedSeal reports whether a crash may have cut off the second seal, whose header is h. Then
// the bytes at offset are a prefix of the seal, followed by zeros or nothing. Other bytes are
// damage. A complete seal has no zeros at its end, so it never looks unfinished.
func (s *scanner) unfinishedSeal(h header, offset int64) (bool, error) {
	if s.limit > offset+recordHeader {
		return false, nil
	}
	got, err := s.bytes(offset, recordHeader)
	if err != nil {
		return false, err
	}
	want := s.single[:]
	h.put(want, s.seed, offset)
	same := 0
	for same < len(got) && got[same] == want[same] {
		same++
	}
	return same < recordHeader && allZero(got[same:]), nil
}

// addProblems adds the bad bytes that were durable once to the problems of the log.
func (j *damageClassifier) addProblems() {
	for _, b := range j.scanner.bad {
		if b.start >= j.vouched {
			continue
		}
		end := min(b.end, j.vouched)
		problem := j.log.problem(j.segment.Name, b.start, end-b.start, b.reason)
		_, record := slices.BinarySearchFunc(j.scanner.lost, b.start, func(e Entry, offset int64) int { return cmp.Compare(e.Offset, offset) })
		if !b.padding && !record {
			j.log.gap = append(j.log.gap, gap{segment: j.index, problem: problem})
		}
	}
}

// findTear finds the start of the torn tail and returns the reason.
func (j *damageClassifier) findTear() string {
	for _, b := range j.scanner.bad {
		start := max(b.start, j.vouched)
		if b.padding && b.start >= j.vouched {
			start = b.record
		}
		if b.end > j.vouched && start < b.end {
			j.torn = start
			return b.reason
		}
	}
	return ""
}

// addEntries adds the valid records, marks and seals of the segment to the log.
func (j *damageClassifier) addEntries() {
	l, i, end := j.log, j.index, j.segment.End
	for _, p := range j.scanner.preambles {
		if j.endsWithin(p, end) {
			p.ID.Epoch, p.Segment = j.segment.Epoch, i
			l.Preambles = append(l.Preambles, p)
		}
	}
	l.Entries = slices.Grow(l.Entries, len(j.scanner.records))
	for _, e := range j.scanner.records {
		if j.endsWithin(e, end) {
			l.takeEntry(e, i)
		}
	}
	for _, e := range j.scanner.lost {
		if e.Offset < j.vouched {
			e.ID.Epoch, e.Segment = j.segment.Epoch, i
			e.Flags |= flagLost
			l.Lost = append(l.Lost, e)
		}
	}
	for _, m := range j.scanner.marks {
		if m.offset < end {
			l.Last = max(l.Last, m.seq)
		}
	}
	for _, seal := range j.scanner.seals {
		// In a seal, the field parent has the highest seq in use, and seq has the head.
		if seal.offset < end {
			l.Last = max(l.Last, seal.header.parent)
			l.Head = seal.header.seq
		}
	}
	s := j.segment
	s.sealed, s.last, s.head = j.sealedAt(end), l.Last, l.Head
}

// endsWithin reports whether entry e ends at or before end, where the segment ends. If the segment
// would end inside e, endsWithin adds a problem.
func (j *damageClassifier) endsWithin(e Entry, end int64) bool {
	if e.Offset+recordHeader+int64(e.Length) <= end {
		return true
	}
	if e.Offset < end {
		_ = j.log.problem(j.segment.Name, e.Offset, end-e.Offset, "record extends beyond the end of the segment")
	}
	return false
}

func (l *Log) takeEntry(e Entry, i int) {
	s := &l.Segments[i]
	if n := len(l.Entries); n > 0 && e.ID.Seq <= l.Entries[n-1].ID.Seq {
		_ = l.problem(s.Name, e.Offset, recordSize(int64(e.Length)),
			fmt.Sprintf("record %d follows record %d", e.ID.Seq, l.Entries[n-1].ID.Seq))
		return
	}
	e.ID.Epoch, e.Segment = s.Epoch, i
	l.Entries = append(l.Entries, e)
	s.Records++
	l.LastID, l.Head = e.ID, e.ID.Seq
	l.Last = max(l.Last, e.ID.Seq)
}

// setLost fills l.Lost with the records that are missing among the entries. It adds a missing
// record only if the parent of the record is certain. There are two such cases:
//
//   - The header of the record is valid, and only its payload is damaged. l.Lost has these records
//     already.
//   - Between two entries, no rewind is possible. For example, record 5 has tick 5, and record 8
//     has tick 8 and parent 7. Then records 6 and 7 continue the record before them: after a
//     rewind, record 8 would have a lower tick.
//
// In all other cases, missing records stay unknown.
func (l *Log) setLost() {
	if len(l.Problems) == 0 {
		return
	}
	found := l.Lost
	l.Lost = nil
	var before *Entry
	for i := range l.Entries {
		l.addLostBetween(before, &l.Entries[i], found)
		before = &l.Entries[i]
	}
	l.addLostBetween(before, nil, found)
}

// addLostBetween adds the missing records between two consecutive entries to l.Lost. A nil in place
// of the first entry stands for the beginning of the journal. A nil in place of the second entry
// stands for the end.
func (l *Log) addLostBetween(before, after *Entry, found []Entry) {
	if before != nil && after != nil && after.ID.Seq == before.ID.Seq+1 {
		return
	}
	from := sort.Search(len(found), func(i int) bool { return before == nil || before.before(found[i]) })
	for ; from < len(found) && (after == nil || found[from].before(*after)); from++ {
		e := &found[from]
		if (before == nil || e.ID.Seq > before.ID.Seq) && (after == nil || e.ID.Seq < after.ID.Seq) {
			l.addInferredLost(before, e)
			l.Lost = append(l.Lost, *e)
			before = e
		}
	}
	if after != nil {
		l.addInferredLost(before, after)
	}
}

// addInferredLost adds the records that are missing between two entries to l.Lost, if no rewind is
// possible there: see setLost. The bytes between the two entries must also have room for the
// headers of the missing records.
func (l *Log) addInferredLost(before, after *Entry) {
	if before == nil {
		return
	}
	missing := after.ID.Seq - before.ID.Seq - 1
	room := after.Offset - before.Offset
	for i := before.Segment; i < after.Segment; i++ {
		room += l.Segments[i].Size
	}
	if missing == 0 || after.Tick-before.Tick != missing+1 || after.Parent != after.ID.Seq-1 || missing > uint64(max(0, room))/recordHeader {
		return
	}
	for k := range missing {
		l.Lost = append(l.Lost, Entry{
			ID: ID{Seq: before.ID.Seq + k + 1}, Parent: before.ID.Seq + k, Tick: before.Tick + k + 1, Flags: flagLost,
			Segment: before.Segment, Offset: before.Offset + recordSize(int64(before.Length)),
		})
	}
}
