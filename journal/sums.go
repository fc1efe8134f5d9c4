package journal

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// sums builds the summary of a segment, so that the segment does not have to be read later. The
// summary contains the position of each record and the result of a scan. These are its parts, in
// order:
//
//	end, sealed, last, head    the result of the scan
//	two numbers                how many preambles and records follow
//	preambles                  each as differences from the preamble before it
//	records                    each as differences from the record before it
type sums struct {
	preambles, records      []byte
	preambleCount, recCount uint64

	tick uint64 // Tick of the previous record.
	due  uint64 // Seq after the previous record.
	end  int64  // End of the previous record.
	from int64  // Offset of the previous preamble.
}

func newSums(first uint64) *sums { return &sums{due: first} }

// preamble adds a preamble that begins at offset.
func (s *sums) preamble(h *header, offset, length int64) {
	b := binary.AppendUvarint(s.preambles, uint64(offset-s.from)/recordAlign)
	b = binary.AppendUvarint(b, h.seq)
	b = binary.AppendUvarint(b, uint64(length))
	s.preambles = binary.LittleEndian.AppendUint32(b, h.crc)
	s.preambleCount++
	s.from = offset
}

// record adds a record that begins at offset. h.crc is the checksum of its payload.
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

// ended returns the summary of a segment. The parameter end is the offset at which the segment
// ends. The parameter last is the highest seq in use, and head is the seq of the state that the
// next record continues.
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

// trustSummary returns a scanner of s that has already run: its findings come from the summary in
// the ledger. The parameter end is the offset at which the segment ends. trustSummary returns nil
// if the ledger has no matching summary.
func (l *Log) trustSummary(s *Segment, end int64) *scanner {
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

// sumsOf returns the summary of segment i, which is complete. It returns nil if the segment is
// damaged, so that later openings read the segment again.
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

// header returns the record header of e, without the watermark.
func (e *Entry) header() *header {
	return &header{seq: e.ID.Seq, parent: e.Parent, tick: e.Tick, flags: e.Flags, crc: e.ID.CRC}
}

// A summary is the decoded form of sums.
type summary struct {
	end                int64
	sealed             bool
	last, head         uint64
	preambles, entries []Entry
}

// readSums decodes the output of [sums.ended]. first is the seq of the segment's first record. ok
// is false if the bytes are invalid.
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

// holds reports whether e is within the segment.
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
