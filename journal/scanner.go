package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// windowSize is how much of a file a scanner holds in memory.
const windowSize = 64 << 10

// A scanner sorts the bytes of one segment into records that hold and ranges
// that do not. It does not judge: whether bad bytes are torn or corrupt is
// known only at the end of the segment.
//
//	for every place where a record should begin:
//		header does not hold             bad, up to the next header that does
//		header holds, the rest does not  bad, up to the end the header states
//		all holds                        a record, mark or seal
//
// Every byte is looked at once, whatever the headers say.
type scanner struct {
	file  io.ReaderAt
	name  string
	seed  uint32
	start int64 // The first byte that is looked at.
	limit int64 // The first that is not.

	shared *scanWindow
	window []byte // Of shared.
	base   int64  // File offset of window[0].
	filled int
	single [recordHeader]byte

	records   []Entry // Of the tree.
	lost      []Entry // Those of which only the header holds.
	preambles []Entry
	marks     []markAt
	seals     []sealAt
	bad       []badRange
	vouched   int64 // The highest watermark of a header that holds.
	sound     sound // The last there is.

	due     uint64 // Seq of the next record.
	certain bool   // No bad range came since the last record.

	parts     *header // The last part of an unfinished payload; nil: none.
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

// end returns where the seal says that the segment ends.
func (s sealAt) end() int64 { return int64(s.header.tick) }

// A badRange is [start, end). If padding, the range is the padding of the
// record that begins at record and is good.
type badRange struct {
	start, end int64
	reason     string
	padding    bool
	record     int64
}

// newScanner returns a scanner of the records of s up to limit. The window is
// its memory.
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

// run scans the whole segment. Its only errors are failed reads and the end of
// the context.
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

// step scans what begins at offset and returns where it ends.
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

// header reads the header at offset, or says why there is none.
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

// impossible says what a well-summed header must not say, or "".
func (h *header) impossible(offset int64) string {
	kind := h.kind()
	switch {
	case h.flags&^flagsKnown != 0:
		return fmt.Sprintf("unknown flags %#x", h.flags&^flagsKnown)
	case kind&(kind-1) != 0:
		return "record of two kinds"
	case kind != 0 && h.flags&(flagMore|flagPart) != 0:
		return "part of what has no parts"
	case int64(h.synced) > offset:
		return "watermark behind its own record"
	case h.length > MaxPayload:
		return fmt.Sprintf("payload of %d bytes", h.length)
	case kind&(flagMark|flagSeal) != 0 && h.length != 0:
		return "mark or seal with a payload"
	case kind == flagSeal && (h.crc != sealCRC || int64(h.tick) != offset+recordHeader && int64(h.tick) != offset+2*recordHeader):
		return "seal of another end"
	case kind == 0 && h.parent >= h.seq:
		return fmt.Sprintf("parent %d of record %d is not an earlier one", h.parent, h.seq)
	}
	return ""
}

// findHeader returns the first place from offset on where a header holds, or
// the limit.
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

// content checks everything of a record but its header and padding.
func (s *scanner) content(h *header, offset int64) (string, error) {
	if offset+recordHeader+int64(h.length) > s.limit {
		return "payload cut short", nil
	}
	if reason := s.order(h); reason != "" {
		return reason, nil
	}
	if h.kind() == flagSeal {
		return "", nil // Its payload checksum is a constant.
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

// order says what is wrong with a record at this place of the sequence, or "".
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

// add notes a good record, mark or seal.
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

// addRecord notes a good record of the tree, or one part of it.
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

// dropParts gives up the parts of a payload that does not go on at end.
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

// checkPadding makes every bit count. A record whose padding is cut off is
// unfinished, but its payload is good.
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

// bytes returns n bytes from offset, at most windowSize, and fewer at the
// limit. They are valid until the next call.
func (s *scanner) bytes(offset int64, n int) ([]byte, error) {
	b, err := s.atLeast(offset, n)
	return b[:min(n, len(b))], err
}

// atLeast returns what the window holds from offset on, and moves the window if
// that is less than n bytes. At the limit there are fewer.
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
