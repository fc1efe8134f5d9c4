package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

const (
	segmentMagic   = "STETJRNL"
	segmentVersion = 2 // Version 1 has no ledger.

	// A segment begins with two equal copies of its header, so damage to one copy does not lose the
	// records.
	segmentHeaderCopy = 128
	segmentHeaderSize = 2 * segmentHeaderCopy

	// maxSegment keeps every offset within the 32 bits of the watermark.
	maxSegment = 1<<32 - 1<<16

	segmentSuffix = ".seg"
	formerTemp    = ".tmp" // Suffix of unfinished files of an earlier version.
	maxNumber     = 1 << 62
)

// A segmentHeader is at the start of a segment. FORMAT.md describes the bytes.
type segmentHeader struct {
	version  uint32
	world    [16]byte
	epoch    uint64
	number   uint64
	first    uint64 // Seq of the first record that the segment can contain.
	start    uint64 // The bytes before this offset were durable before the segment got its name.
	previous uint64 // Number of the previous segment. 0 means none.
	prevEnd  uint64 // End of the previous segment. Readers ignore its later bytes.
	last     ID     // The last record before this segment.
	head     uint64 // Seq of the head when the segment was created.
	salt     uint64 // Random number. It makes bytes of other segments invalid in this one.
}

// newSalt returns a random salt for a new segment or ledger.
func newSalt() uint64 {
	var b [8]byte
	rand.Read(b[:]) // rand.Read never fails.
	return binary.LittleEndian.Uint64(b[:])
}

// seed returns the initial CRC value of every record header.
func (h *segmentHeader) seed() uint32 {
	return crc32.Checksum(binary.LittleEndian.AppendUint64(nil, h.salt), castagnoli)
}

// appendTo appends both copies of the header to b.
func (h *segmentHeader) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	c := make([]byte, 0, segmentHeaderCopy)
	c = append(c, segmentMagic...)
	c = le.AppendUint32(c, h.version)
	c = le.AppendUint32(c, 0) // The incompatible features: none.
	c = append(c, h.world[:]...)
	c = le.AppendUint64(c, h.epoch)
	c = le.AppendUint64(c, h.number)
	c = le.AppendUint64(c, h.first)
	c = le.AppendUint64(c, h.start)
	c = le.AppendUint64(c, h.previous)
	c = le.AppendUint64(c, h.prevEnd)
	c = le.AppendUint64(c, h.last.Epoch)
	c = le.AppendUint64(c, h.last.Seq)
	c = le.AppendUint32(c, h.last.CRC)
	c = le.AppendUint32(c, 0) // Reserved.
	c = le.AppendUint64(c, h.salt)
	c = le.AppendUint64(c, h.head)
	c = append(c, make([]byte, segmentHeaderCopy-4-len(c))...)
	c = le.AppendUint32(c, crc32.Checksum(c[len(segmentMagic):], castagnoli))
	return append(append(b, c...), c...)
}

// parse reads one copy of a segment header. The parameter number is the number of the segment. The
// CRC does not cover the magic, so a damaged magic can be told apart from another kind of file. If
// the header is invalid, parse returns the reason and the kind of error. Otherwise the reason is
// "".
func (h *segmentHeader) parse(b []byte, number uint64) (reason string, kind error) {
	le := binary.LittleEndian
	if len(b) < segmentHeaderCopy {
		return "segment header cut short", ErrCorrupt
	}
	magic := bytes.Equal(b[:8], []byte(segmentMagic))
	sum := crc32.Checksum(b[8:segmentHeaderCopy-4], castagnoli) == le.Uint32(b[segmentHeaderCopy-4:])
	switch version, features := le.Uint32(b[8:]), le.Uint32(b[12:]); {
	case !magic && !sum && !allZero(b[:segmentHeaderCopy]):
		return "not a segment of a journal", ErrForeign
	case !sum:
		return "segment header checksum does not match", ErrCorrupt
	case !magic:
		return "segment magic is damaged", ErrCorrupt
	case version == 0 || version > segmentVersion:
		return fmt.Sprintf("format version %d, this program knows %d", version, segmentVersion), ErrNewer
	case features != 0:
		return fmt.Sprintf("unknown features %#x", features), ErrNewer
	}
	h.version = le.Uint32(b[8:])
	h.world = [16]byte(b[16:32])
	h.epoch = le.Uint64(b[32:])
	h.number = le.Uint64(b[40:])
	h.first = le.Uint64(b[48:])
	h.start = le.Uint64(b[56:])
	h.previous = le.Uint64(b[64:])
	h.prevEnd = le.Uint64(b[72:])
	h.last = ID{Epoch: le.Uint64(b[80:]), Seq: le.Uint64(b[88:]), CRC: le.Uint32(b[96:])}
	h.salt = le.Uint64(b[104:])
	h.head = le.Uint64(b[112:])
	return h.check(number)
}

// check validates the fields of a header with a valid checksum.
func (h *segmentHeader) check(number uint64) (reason string, kind error) {
	switch {
	case h.number != number:
		return fmt.Sprintf("header of segment %d", h.number), ErrCorrupt
	case h.epoch == 0 || h.first == 0 || h.start < segmentHeaderSize || h.start > maxSegment || h.prevEnd > maxSegment:
		return "segment header has impossible values", ErrCorrupt
	}
	return "", nil
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// segmentName returns the file name of a segment: "00000012.seg".
func segmentName(number uint64) string { return fmt.Sprintf("%08d%s", number, segmentSuffix) }

// numbered returns the number in a file name with this suffix, and whether the name is valid.
func numbered(name, suffix string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && n < maxNumber && fmt.Sprintf("%08d%s", n, suffix) == name
}
