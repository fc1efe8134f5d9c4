package journal

import (
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/stet-ecs/stet/disk"
)

// WithPartSize makes Append split payloads longer than n, instead of maxPayload.
func (opt Options) WithPartSize(n int64) Options {
	opt.partSize = n
	return opt
}

// A HostileHeader is a record header with arbitrary fields and a valid checksum.
type HostileHeader struct {
	Seq, Parent, Tick          uint64
	Synced, Flags, Length, CRC uint32
}

// Flags that only the journal sets.
const (
	FlagMark = flagMark
	FlagSeal = flagSeal
	FlagMore = flagMore
	FlagPart = flagPart
	SealCRC  = sealCRC
)

// HostileSalt is the salt of the segments that HostileSegment begins.
const HostileSalt = 0x0123456789abcdef

// HostileSegment begins a segment with a valid header.
func HostileSegment(number, epoch, first, previous, prevEnd uint64, last ID) []byte {
	h := segmentHeader{
		version: 1, // In version 1 a segment needs no ledger.
		number:  number, epoch: epoch, first: first, start: segmentHeaderSize,
		previous: previous, prevEnd: prevEnd, last: last, salt: HostileSalt, head: last.Seq,
	}
	return h.appendTo(nil)
}

// AppendTo appends h as the next record header of a hostile segment.
func (h HostileHeader) AppendTo(b []byte) []byte {
	offset := len(b)
	b = append(b, make([]byte, recordHeader)...)
	s := segmentHeader{salt: HostileSalt}
	r := header{seq: h.Seq, parent: h.Parent, tick: h.Tick, synced: h.Synced, flags: h.Flags, length: h.Length, crc: h.CRC}
	r.put(b[offset:], s.seed(), int64(offset))
	return b
}

// SumSegmentHeader sets the checksum of one copy of a header.
func SumSegmentHeader(b []byte) {
	binary.LittleEndian.PutUint32(b[segmentHeaderCopy-4:], crc32.Checksum(b[8:segmentHeaderCopy-4], castagnoli))
}

// SetRenewSize sets renewSize until reset is called.
func SetRenewSize(n int64) (reset func()) {
	before := renewSize
	renewSize = n
	return func() { renewSize = before }
}

// LedgerWith returns a ledger with these features and entries, all with valid checksums. A feature
// whose name begins with ! is required.
func LedgerWith(number uint64, world [16]byte, features []string, kinds []uint32, entries [][]byte) []byte {
	h := ledgerHeader{world: world, number: number, salt: HostileSalt}
	w := ledgerWriter{header: h, stage: h.encode()}
	for _, f := range features {
		name, required := strings.CutPrefix(f, "!")
		w.features = append(w.features, feature{name, required})
	}
	w.enterAll()
	for i, kind := range kinds {
		w.add(kind, entries[i])
	}
	return w.stage
}

// Features returns the feature names in the form that LedgerWith takes: a required feature begins
// with !.
func (l *Log) Features() (names []string) {
	for _, f := range l.ledger.features {
		names = append(names, map[bool]string{true: "!"}[f.required]+f.name)
	}
	return names
}

// Everything returns all fields of l for comparison.
func (l *Log) Everything() any {
	all := &Log{
		Problems: append([]*disk.DamageError{}, l.Problems...), Torn: l.Torn, TornTails: append([]Range{}, l.TornTails...),
		Lost: append([]Entry{}, l.Lost...), Segments: append([]Segment{}, l.Segments...), Entries: append([]Entry{}, l.Entries...), Preambles: append([]Entry{}, l.Preambles...),
		World: l.World, Epoch: l.Epoch, Head: l.Head, Last: l.Last, LastID: l.LastID, Clean: l.Clean,
		Unsure: l.Unsure, Note: append([]byte{}, l.Note...), gone: l.gone, gap: append([]gap{}, l.gap...),
	}
	return all
}

// Idle returns the size of the free buffers in bytes, and the capacity of the queue in items.
func (j *Journal) Idle() (buffers int64, items int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.freed, j.room()
}
