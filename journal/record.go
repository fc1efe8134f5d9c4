package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// An ID identifies the state after a record. The seq alone is ambiguous: after a crash, other
// records use the seqs of a lost tail again. Epoch and checksum distinguish these records. The zero
// ID is the state before the first record.
type ID struct {
	Epoch uint64 // Increased by every opening for writing, starting at 1; see [Options.Epoch].
	Seq   uint64 // Position in the journal, starting at 1.
	CRC   uint32 // CRC-32C of the payload.
}

// IsZero reports whether id is the state before the first record.
func (id ID) IsZero() bool { return id == ID{} }

// String returns id as epoch, seq and checksum: "2/88/1c0ffee5".
func (id ID) String() string { return fmt.Sprintf("%d/%d/%08x", id.Epoch, id.Seq, id.CRC) }

// A Record is one node of the tree. It contains the change from the state of its parent to the
// state after the record.
type Record struct {
	ID ID
	// Seq of the record that this record continues, less than ID.Seq. 0 means no parent.
	Parent  uint64
	Tick    uint64 // Set by the caller.
	Flags   uint32 // Set by the caller, within FlagsUser.
	Payload []byte
}

// Flags of a record. The lower half belongs to the caller, the upper half to the journal.
const (
	// FlagsUser masks the flags that belong to the caller.
	FlagsUser uint32 = 0x0000ffff

	// FlagPreamble marks a preamble. A preamble is not part of the tree of records. It describes
	// the records that follow, up to the next preamble or the end of its segment.
	FlagPreamble uint32 = 1 << 31

	flagMark uint32 = 1 << 30 // A record without payload that carries the watermark.
	flagSeal uint32 = 1 << 29 // A record without payload that ends a segment.
	flagMore uint32 = 1 << 28 // The payload continues in the next record.
	flagPart uint32 = 1 << 27 // The payload began in the previous record.
	flagLost uint32 = 1 << 26 // Only used in memory; see [Entry.Lost].

	flagsKnown = FlagsUser | FlagPreamble | flagMark | flagSeal | flagMore | flagPart
)

const (
	// maxPayload is the maximum length of the payload of one record on disk. [Journal.Append]
	// splits a longer payload.
	maxPayload = 256 << 20

	// MaxAppend is the maximum length of a payload that Append accepts, all parts together.
	MaxAppend = 2 << 30

	recordMagic  = 0xc3d2e7a5
	recordHeader = 48
	recordAlign  = 8

	// sealCRC replaces the payload checksum of a seal. No byte of it is zero. So a seal with one
	// flipped bit never looks like an unfinished seal.
	sealCRC = 0x5ea15ea1
)

// A Sum is the checksum of the first bytes of a payload. For a payload that is larger than the CPU
// cache, sum each block right after producing it. This takes half the time of a sum at the end.
type Sum struct {
	n   int
	crc uint32
}

// Add extends s to all bytes of payload. The bytes that s covers already must be the same as in the
// earlier calls.
func (s *Sum) Add(payload []byte) {
	s.crc = crc32.Update(s.crc, castagnoli, payload[s.n:])
	s.n = len(payload)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A header precedes every payload:
//
//	0      4      8      16       24     32       36      40       44      48
//	+------+------+------+--------+------+--------+-------+--------+-------+
//	| magic| CRC  | seq  | parent | tick | synced | flags | length | crc   |
//	+------+------+------+--------+------+--------+-------+--------+-------+
type header struct {
	seq    uint64
	parent uint64
	tick   uint64
	synced uint32 // Watermark: the segment is durable up to this offset.
	flags  uint32
	length uint32 // Length of the payload in bytes, without padding.
	crc    uint32 // CRC of the payload and of the parts before it.
}

// put writes h into b, which is recordHeader bytes long. The CRC covers the seed of the segment and
// the offset of the header. So a header is valid only at this place in this segment.
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

// parse reads the header in b and overwrites its first bytes. It reports whether the header was
// written at this offset of this segment.
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

// kind returns the flags that select the kind of record. 0 is a record of the tree.
func (h *header) kind() uint32 { return h.flags & (FlagPreamble | flagMark | flagSeal) }

// sameTick reports whether h and next are parts of the same payload.
func (h *header) sameTick(next *header) bool {
	const parts = flagMore | flagPart
	return h.seq == next.seq && h.parent == next.parent && h.tick == next.tick && h.flags&^parts == next.flags&^parts
}

// recordSize returns the number of bytes that a record with this payload occupies.
func recordSize(length int64) int64 {
	return recordHeader + (length+recordAlign-1)&^(recordAlign-1)
}

// sealHeader returns the header of a seal, without the watermark. Some fields have another meaning
// in a seal. seq is the head, parent is the highest seq in use, and tick is the end of the segment.
func sealHeader(head, last uint64, end int64) header {
	return header{seq: head, parent: last, tick: uint64(end), flags: flagSeal, crc: sealCRC}
}
