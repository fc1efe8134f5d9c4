package journal

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// sums is what is in a segment that has ended, so that it need not be read: where its
// records lie, and what a scan of it would tell.
//
//	end, sealed, last, head | preambles | records, each against the one before
type sums struct {
	preambles, records      []byte
	preambleCount, recCount uint64

	tick uint64 // Of the record before.
	due  uint64 // The seq after it.
	end  int64  // Where it ends.
	from int64  // Where the preamble before began.
}

func newSums(first uint64) *sums { return &sums{due: first} }

// preamble adds one that begins at offset.
func (s *sums) preamble(h *header, offset, length int64) {
	b := binary.AppendUvarint(s.preambles, uint64(offset-s.from)/recordAlign)
	b = binary.AppendUvarint(b, h.seq)
	b = binary.AppendUvarint(b, uint64(length))
	s.preambles = binary.LittleEndian.AppendUint32(b, h.crc)
	s.preambleCount++
	s.from = offset
}

// record adds one, of which crc is the checksum of the payload, that begins at offset.
func (s *sums) record(h *header, offset, length int64) {
	b := binary.AppendUvarint(s.records, uint64(offset-s.end)/recordAlign)
	b = binary.AppendUvarint(b, h.seq-s.due)
	b = binary.AppendUvarint(b, h.seq-h.parent)
	b = binary.AppendVarint(b, int64(h.tick-s.tick))
	b = binary.AppendUvarint(b, uint64(h.flags))
	b = binary.AppendUvarint(b, uint64(length))
	s.records = binary.LittleEndian.AppendUint32(b, h.crc)
	s.recCount++
	s.due, s.tick, s.end = h.seq+1, h.tick, offset+recordSize(length)
}

// ended returns the summary of a segment that ends there; last is the highest seq given
// out, head that of the state which the next record finds.
func (s *sums) ended(end int64, sealed bool, last, head uint64) []byte {
	b := make([]byte, 0, len(s.preambles)+len(s.records)+64)
	b = binary.AppendUvarint(b, uint64(end))
	b = append(b, 0)
	if sealed {
		b[len(b)-1] = 1
	}
	for _, x := range []uint64{last, head, s.preambleCount, s.recCount} {
		b = binary.AppendUvarint(b, x)
	}
	return append(append(b, s.preambles...), s.records...)
}

// believe returns what a scanner would have found in s, which ends at end, by what the
// ledger says of it; nil if it says nothing that fits.
func (l *Log) believe(s *Segment, end int64) *scanner {
	if l.ledger == nil || s.Size < end {
		return nil
	}
	listed := l.ledger.find(s.Number)
	if listed == nil || listed.salt != s.header.salt || listed.first != s.First {
		return nil
	}
	sum, ok := l.summary(listed)
	if !ok || sum.end != end {
		return nil
	}
	sc := &scanner{records: sum.entries, preambles: sum.preambles, marks: []markAt{{0, sum.last}}}
	if sum.sealed {
		sc.seals = []sealAt{{end - recordHeader, sealHeader(sum.head, sum.last, end)}}
	}
	return sc
}

// sumsOf returns the summary of segment i, which has ended; nil if there is damage in it,
// so that whoever opens the journal reads of it again.
func (l *Log) sumsOf(i int) []byte {
	s := &l.Segments[i]
	end := s.End
	if i+1 < len(l.Segments) {
		end, _ = l.statedEnd(i)
	}
	if end != s.End || l.damaged(s.Name) {
		return nil
	}
	sums := newSums(s.First)
	in := func(entries []Entry) []Entry {
		from, _ := slices.BinarySearchFunc(entries, i, func(e Entry, i int) int { return cmp.Compare(e.Segment, i) })
		to, _ := slices.BinarySearchFunc(entries, i+1, func(e Entry, i int) int { return cmp.Compare(e.Segment, i) })
		return entries[from:to]
	}
	for _, e := range in(l.Preambles) {
		sums.preamble(e.header(), e.Offset, int64(e.Length))
	}
	for _, e := range in(l.Entries) {
		sums.record(e.header(), e.Offset, int64(e.Length))
	}
	return sums.ended(end, s.sealed, s.last, s.head)
}

// header returns what stands before e, but for the watermark.
func (e *Entry) header() *header {
	return &header{seq: e.ID.Seq, parent: e.Parent, tick: e.Tick, flags: e.Flags, crc: e.ID.CRC}
}

// A summary is a decoded sums.
type summary struct {
	end                int64
	sealed             bool
	last, head         uint64
	preambles, entries []Entry
}

// readSums reads what [sums.ended] wrote, of a segment whose first record is first. ok is
// false if it makes no sense.
func readSums(b []byte, first uint64) (s summary, ok bool) {
	r := varints{b: b}
	s.end = int64(r.next())
	s.sealed = r.next() == 1
	s.last, s.head = r.next(), r.next()
	preambles, records := r.next(), r.next()
	if r.bad || s.end < segmentHeaderSize || s.end > maxSegment || preambles > uint64(len(r.b)) || records > uint64(len(r.b)) {
		return summary{}, false
	}
	at := int64(0)
	for range preambles {
		var e Entry
		at += int64(r.next() * recordAlign)
		e.Offset, e.ID.Seq, e.Length, e.Flags = at, r.next(), uint32(r.next()), FlagPreamble
		e.ID.CRC = r.crc()
		s.preambles = append(s.preambles, e)
		if r.bad || !s.holds(&e) {
			return summary{}, false
		}
	}
	s.entries = make([]Entry, 0, records)
	at, due, tick := int64(0), first, uint64(0)
	for range records {
		var e Entry
		at += int64(r.next() * recordAlign)
		e.Offset, e.ID.Seq = at, due+r.next()
		e.Parent, e.Tick = e.ID.Seq-r.next(), tick+uint64(r.signed())
		e.Flags, e.Length = uint32(r.next()), uint32(r.next())
		e.ID.CRC = r.crc()
		s.entries = append(s.entries, e)
		if r.bad || e.Parent >= e.ID.Seq || e.ID.Seq < due || !s.holds(&e) {
			return summary{}, false
		}
		at, due, tick = at+recordSize(int64(e.Length)), e.ID.Seq+1, e.Tick
	}
	return s, !r.bad && len(r.b) == 0
}

// holds reports whether e lies within the segment.
func (s *summary) holds(e *Entry) bool {
	return e.Offset >= segmentHeaderSize && e.Offset <= s.end && e.Offset+recordSize(int64(e.Length)) <= s.end
}

func (r *varints) signed() int64 {
	x := r.next()
	if x&1 != 0 {
		return ^int64(x >> 1)
	}
	return int64(x >> 1)
}

func (r *varints) crc() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}
