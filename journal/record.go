package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// An ID names the state that a record leads to. A lost tail frees its seqs for
// other records, so a seq alone does not name a state; epoch and checksum make
// the difference. The zero ID is the state before the first record.
type ID struct {
	Epoch uint64 // Raised by every opening for writing, from 1; see [Options.Epoch].
	Seq   uint64 // Position in the journal, from 1.
	CRC   uint32 // CRC-32C of the payload.
}

// IsZero reports whether id is the state before the first record.
func (id ID) IsZero() bool { return id == ID{} }

// String returns id as epoch, seq and checksum: "2/88/1c0ffee5".
func (id ID) String() string { return fmt.Sprintf("%d/%d/%08x", id.Epoch, id.Seq, id.CRC) }

// A Record is one node of the tree: the change that leads from its parent's
// state to its own.
type Record struct {
	ID      ID
	Parent  uint64 // Seq of the record it continues; 0: none. Less than ID.Seq.
	Tick    uint64 // The caller's.
	Flags   uint32 // The caller's, within FlagsUser.
	Payload []byte
}

// Flags of a record. The caller owns the lower half, the journal the upper.
const (
	// FlagsUser masks the flags that belong to the caller.
	FlagsUser uint32 = 0x0000ffff

	// FlagPreamble marks a record outside the tree that describes the records
	// after it, up to the next preamble or the end of its segment.
	FlagPreamble uint32 = 1 << 31

	flagMark uint32 = 1 << 30 // No payload: carries the watermark.
	flagSeal uint32 = 1 << 29 // No payload: ends a segment.
	flagMore uint32 = 1 << 28 // The payload goes on in the next record.
	flagPart uint32 = 1 << 27 // The payload began in the record before.
	flagLost uint32 = 1 << 26 // In memory only, see [Entry.Lost].

	flagsKnown = FlagsUser | FlagPreamble | flagMark | flagSeal | flagMore | flagPart
)

const (
	// MaxPayload bounds the payload of one record on disk. [Journal.Append]
	// parts a longer one.
	MaxPayload = 256 << 20

	// MaxAppend bounds the payload that Append takes, all parts together.
	MaxAppend = 2 << 30

	recordMagic  = 0xc3d2e7a5
	recordHeader = 48
	recordAlign  = 8

	// sealCRC fills the payload checksum of a seal. It is not zero anywhere,
	// so that one flipped bit never makes a seal look like an unfinished one.
	sealCRC = 0x5ea15ea1
)

// A Sum is the checksum of the beginning of a payload. A payload of more than the
// cache holds is summed in half the time if each piece is as soon as it is there.
type Sum struct {
	n   int
	crc uint32
}

// Add adds to s what payload has beyond what s covers. The bytes before that are
// those of the calls before.
func (s *Sum) Add(payload []byte) {
	s.crc = crc32.Update(s.crc, castagnoli, payload[s.n:])
	s.n = len(payload)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A header is what stands before every payload:
//
//	0      4      8      16       24     32       36      40       44      48
//	+------+------+------+--------+------+--------+-------+--------+-------+
//	| magic| CRC  | seq  | parent | tick | synced | flags | length | crc   |
//	+------+------+------+--------+------+--------+-------+--------+-------+
type header struct {
	seq    uint64
	parent uint64
	tick   uint64
	synced uint32 // Watermark: the segment is durable up to here.
	flags  uint32
	length uint32 // Of the payload, without padding.
	crc    uint32 // Of the payload and of the parts before it.
}

// put writes h into b, which is recordHeader bytes long. The CRC binds the
// header to its segment by seed and to its place by offset: for computing it,
// the offset stands where magic and CRC will.
func (h *header) put(b []byte, seed uint32, offset int64) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], uint64(offset))
	le.PutUint64(b[8:], h.seq)
	le.PutUint64(b[16:], h.parent)
	le.PutUint64(b[24:], h.tick)
	le.PutUint32(b[32:], h.synced)
	le.PutUint32(b[36:], h.flags)
	le.PutUint32(b[40:], h.length)
	le.PutUint32(b[44:], h.crc)
	crc := crc32.Update(seed, castagnoli, b[:recordHeader])
	le.PutUint32(b[0:], recordMagic)
	le.PutUint32(b[4:], crc)
}

// parse reads the header in b, overwriting its first bytes, and reports whether
// it was written at this offset of this segment.
func (h *header) parse(b []byte, seed uint32, offset int64) bool {
	le := binary.LittleEndian
	crc := le.Uint32(b[4:])
	if le.Uint32(b) != recordMagic {
		return false
	}
	le.PutUint64(b, uint64(offset))
	if crc32.Update(seed, castagnoli, b[:recordHeader]) != crc {
		return false
	}
	h.seq = le.Uint64(b[8:])
	h.parent = le.Uint64(b[16:])
	h.tick = le.Uint64(b[24:])
	h.synced = le.Uint32(b[32:])
	h.flags = le.Uint32(b[36:])
	h.length = le.Uint32(b[40:])
	h.crc = le.Uint32(b[44:])
	return true
}

// kind returns the flags that say what the record is; 0 is a record of the
// tree.
func (h *header) kind() uint32 { return h.flags & (FlagPreamble | flagMark | flagSeal) }

// sameTick reports whether h and next belong to one appended payload.
func (h *header) sameTick(next *header) bool {
	const parts = flagMore | flagPart
	return h.seq == next.seq && h.parent == next.parent && h.tick == next.tick && h.flags&^parts == next.flags&^parts
}

// recordSize returns the bytes that a record with this payload takes.
func recordSize(length int64) int64 {
	return recordHeader + (length+recordAlign-1)&^(recordAlign-1)
}

// sealHeader returns a seal, but for its watermark. Its tick is the size of the
// segment, its parent the last seq given out.
func sealHeader(head, last uint64, end int64) header {
	return header{seq: head, parent: last, tick: uint64(end), flags: flagSeal, crc: sealCRC}
}
