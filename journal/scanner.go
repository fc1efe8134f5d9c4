package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// windowSize is the number of file bytes that a scanner holds in memory.
const windowSize = 64 << 10

// A scanner splits the bytes of one segment into valid records and bad ranges. It does not decide
// whether bad bytes are torn or corrupt, because that is known only at the end of the segment.
//
//	for every offset where a record should begin:
//		invalid header                   bad, up to the next valid header
//		valid header, invalid content    bad, up to the end that the header states
//		both valid                       a record, mark or seal
//
// Every byte is read once, whatever the headers state.
type scanner struct {
	file  io.ReaderAt
	name  string
	seed  uint32
	start int64 // Offset of the first byte to scan.
	limit int64 // Offset after the last byte to scan.

	shared *scanWindow
	window []byte // Bytes of the file, in the buffer that all scanners share.
	base   int64  // File offset of window[0].
	filled int
	single [recordHeader]byte

	records   []Entry // Valid records of the tree.
	lost      []Entry // Records with a valid header and an invalid payload.
	preambles []Entry
	marks     []markAt
	seals     []sealAt
	bad       []badRange
	vouched   int64       // The highest watermark of a valid header.
	sound     soundPrefix // The longest prefix without bad bytes so far.

	due uint64 // Seq of the next record.
	// Set if the next record must have the seq due: no bad bytes follow the last record.
	certain bool

	parts     *header // Header of the last part of an unfinished payload, or nil.
	partStart int64
	partSize  int64 // Payload bytes of the parts so far.
}

type markAt struct {
	offset int64
	seq    uint64
}

type sealAt struct {
	offset int64
	header header
}

// end returns the end of the segment according to the seal.
func (s sealAt) end() int64 { return int64(s.header.tick) }

// A badRange is a range [start, end) of bad bytes. If padding is set, only the padding after a
// valid record is bad. Then the field record has the offset of that record.
type badRange struct {
	start, end int64
	reason     string
	padding    bool
	record     int64
}

// newScanner returns a scanner for the records of s up to the offset in the parameter limit. The
// scanner uses the parameter window as its buffer.
func newScanner(f io.ReaderAt, s *Segment, limit int64, window *scanWindow) *scanner {
	sc := &scanner{
		file:    f,
		name:    s.Name,
		seed:    s.header.seed(),
		start:   segmentHeaderSize,
		limit:   limit,
		shared:  window,
		window:  window.bytes,
		vouched: int64(s.header.start),
		due:     s.First,
		certain: true,
	}
	sc.sound = sc.soundUpTo(sc.start)
	return sc
}

// run scans the whole segment. It returns an error only if a read fails or the context ends.
func (s *scanner) run() error {
	for offset := s.start; offset < s.limit; {
		next, err := s.step(offset)
		if err != nil {
			return err
		}
		if offset = next; len(s.bad) == 0 && s.parts == nil {
			s.sound = s.soundUpTo(offset)
		}
	}
	s.dropParts(s.limit)
	return nil
}

// step scans the record or bad range at offset and returns its end.
func (s *scanner) step(offset int64) (int64, error) {
	var h header
	reason, err := s.header(&h, offset)
	if err != nil {
		return 0, err
	}
	if reason != "" {
		next, err := s.findHeader(offset + recordAlign)
		s.addBad(offset, next, reason)
		return next, err
	}
	s.vouched = max(s.vouched, int64(h.synced))
	if h.flags&flagPart == 0 {
		s.dropParts(offset)
	}
	end := min(offset+recordSize(int64(h.length)), s.limit)
	reason, err = s.content(&h, offset)
	if err != nil {
		return 0, err
	}
	if reason != "" {
		if h.kind() == 0 && h.flags&(flagMore|flagPart) == 0 && s.order(&h) == "" {
			s.lost = append(s.lost, h.entry(offset))
		}
		s.addBad(offset, end, reason)
		return end, nil
	}
	s.add(&h, offset)
	return end, s.checkPadding(&h, offset)
}

// header reads the header at offset. If the header is invalid, it returns the reason.
func (s *scanner) header(h *header, offset int64) (string, error) {
	b, err := s.bytes(offset, recordHeader)
	if err != nil {
		return "", err
	}
	if len(b) < recordHeader {
		return "record header cut short", nil
	}
	if binary.LittleEndian.Uint32(b) != recordMagic {
		if allZero(b) {
			return "zeros where a record should begin", nil
		}
		return "no record begins here", nil
	}
	copy(s.single[:], b)
	if !h.parse(s.single[:], s.seed, offset) {
		return "record header checksum does not match", nil
	}
	return h.impossible(offset), nil
}

// impossible returns why the fields of a header with a valid checksum are contradictory, or "".
func (h *header) impossible(offset int64) string {
	kind := h.kind()
	switch {
	case h.flags&^flagsKnown != 0:
		return fmt.Sprintf("unknown flags %#x", h.flags&^flagsKnown)
	case kind&(kind-1) != 0:
		return "record of two kinds"
	case kind != 0 && h.flags&(flagMore|flagPart) != 0:
		return "flag of a part on a record without parts"
	case int64(h.synced) > offset:
		return "watermark after its own record"
	case h.length > maxPayload:
		return fmt.Sprintf("payload of %d bytes", h.length)
	case kind&(flagMark|flagSeal) != 0 && h.length != 0:
		return "mark or seal with a payload"
	case kind == flagSeal && (h.crc != sealCRC || int64(h.tick) != offset+recordHeader && int64(h.tick) != offset+2*recordHeader):
		return "seal states another end"
	case kind == 0 && h.parent >= h.seq:
		return fmt.Sprintf("parent %d of record %d is not an earlier one", h.parent, h.seq)
	}
	return ""
}

// findHeader returns the offset of the first valid header at or after offset. It returns s.limit if
// it finds none.
func (s *scanner) findHeader(offset int64) (int64, error) {
	var h header
	for {
		b, err := s.atLeast(offset, recordHeader)
		if err != nil || len(b) < recordHeader {
			return s.limit, err
		}
		whole := offset + int64(len(b)) - recordHeader
		for ; offset <= whole; offset += recordAlign {
			if binary.LittleEndian.Uint32(b) == recordMagic {
				reason, err := s.header(&h, offset)
				if reason == "" || err != nil {
					return offset, err
				}
			}
			b = b[recordAlign:]
		}
	}
}

// content checks everything of a record except its header and padding.
func (s *scanner) content(h *header, offset int64) (string, error) {
	if offset+recordHeader+int64(h.length) > s.limit {
		return "payload cut short", nil
	}
	if reason := s.order(h); reason != "" {
		return reason, nil
	}
	if h.kind() == flagSeal {
		return "", nil // The payload checksum of a seal is a constant.
	}
	crc := uint32(0)
	if h.flags&flagPart != 0 {
		crc = s.parts.crc
	}
	for at, left := offset+recordHeader, int64(h.length); left > 0; {
		b, err := s.atLeast(at, 1)
		if err != nil {
			return "", err
		}
		if len(b) == 0 {
			return "payload cut short", nil // The file shrank.
		}
		b = b[:min(left, int64(len(b)))]
		crc = crc32.Update(crc, castagnoli, b)
		at, left = at+int64(len(b)), left-int64(len(b))
	}
	if crc != h.crc {
		return "payload checksum does not match", nil
	}
	return "", nil
}

// order returns why a record is invalid at this position of the sequence, or "".
func (s *scanner) order(h *header) string {
	if h.flags&flagPart != 0 {
		if s.parts == nil || !s.parts.sameTick(h) {
			return "part without the parts before it"
		}
		if s.partSize+int64(h.length) > MaxAppend {
			return "parts are too long together"
		}
		return ""
	}
	if h.kind() == 0 && (h.seq < s.due || h.seq > s.due && s.certain) {
		return fmt.Sprintf("record %d where %d is due", h.seq, s.due)
	}
	return ""
}

// add adds a valid record, mark or seal to the findings.
func (s *scanner) add(h *header, offset int64) {
	switch h.kind() {
	case flagMark:
		s.marks = append(s.marks, markAt{offset, h.seq})
	case flagSeal:
		s.seals = append(s.seals, sealAt{offset, *h})
	case FlagPreamble:
		s.preambles = append(s.preambles, h.entry(offset))
	default:
		s.addRecord(h, offset)
	}
}

// addRecord adds a valid record of the tree, or one part of it, to the findings.
func (s *scanner) addRecord(h *header, offset int64) {
	if h.flags&flagPart == 0 {
		s.partStart, s.partSize = offset, 0
	}
	s.partSize += int64(h.length)
	if h.flags&flagMore != 0 {
		part := *h
		s.parts = &part
		return
	}
	e := h.entry(s.partStart)
	e.Length = uint32(s.partSize)
	s.records = append(s.records, e)
	s.parts = nil
	s.due, s.certain = h.seq+1, true
}

func (h *header) entry(offset int64) Entry {
	return Entry{
		ID:     ID{Seq: h.seq, CRC: h.crc},
		Parent: h.parent,
		Tick:   h.tick,
		Flags:  h.flags & (FlagsUser | FlagPreamble),
		Length: h.length,
		Offset: offset,
	}
}

// dropParts discards the parts of an unfinished payload. They become a bad range that ends at the
// given offset.
func (s *scanner) dropParts(end int64) {
	if s.parts == nil {
		return
	}
	s.parts = nil
	s.bad = append(s.bad, badRange{start: s.partStart, end: end, reason: "the last parts of the payload are missing"})
	s.certain = false
}

func (s *scanner) addBad(start, end int64, reason string) {
	s.dropParts(start)
	s.bad = append(s.bad, badRange{start: start, end: end, reason: reason})
	s.certain = false
}

// checkPadding reports padding that is not zero. So a flipped bit is detected even in the padding.
// If the padding is cut off, the record is unfinished, but its payload is valid.
func (s *scanner) checkPadding(h *header, offset int64) error {
	start := offset + recordHeader + int64(h.length)
	end := offset + recordSize(int64(h.length))
	if start == end {
		return nil
	}
	b, err := s.bytes(start, int(end-start))
	if err != nil || int64(len(b)) == end-start && allZero(b) {
		return err
	}
	if h.flags&(flagMore|flagPart) != 0 {
		offset = s.partStart
	}
	s.bad = append(s.bad, badRange{start: start, end: min(end, s.limit), padding: true, record: offset, reason: "padding is not zero"})
	return nil
}

// bytes returns the n bytes that begin at offset. n must not exceed windowSize. If s.limit cuts the
// range short, bytes returns fewer than n bytes. They are valid until the next call.
func (s *scanner) bytes(offset int64, n int) ([]byte, error) {
	b, err := s.atLeast(offset, n)
	return b[:min(n, len(b))], err
}

// atLeast returns at least n bytes that begin at offset. It moves the window if the window does not
// contain them. If s.limit cuts the range short, atLeast returns fewer than n bytes.
func (s *scanner) atLeast(offset int64, n int) ([]byte, error) {
	left := s.limit - offset
	if left <= 0 {
		return nil, nil
	}
	if skip := offset - s.base; skip >= 0 && skip+min(int64(n), left) <= int64(s.filled) {
		return s.window[skip:s.filled], nil
	}
	if err := s.shared.moved(offset); err != nil {
		return nil, err
	}
	filled, err := readAt(s.file, s.name, s.window[:min(windowSize, left)], offset)
	if err != nil {
		return nil, err
	}
	s.base, s.filled = offset, filled
	return s.window[:filled], nil
}
