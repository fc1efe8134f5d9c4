package format

import (
	"bytes"
	"errors"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// The value of a compressed page is [3, crc, [size, sum, bytes]]. The bytes contain one frame of
// Zstandard (RFC 8878):
//
//	3       the kind of the page
//	crc     checksum of the content, as in all kinds of pages
//	size    length of the content
//	sum     checksum of the bytes, verified before decompression
//	bytes   the frame, and then zeros up to a length of at least 1/256 of size
const (
	// mostShrunk is the maximum ratio of content to compressed bytes. It bounds the memory that an
	// untrusted file can take.
	mostShrunk = 256

	// Compression must save at least 1/leastSaved of a page. Otherwise the page is stored
	// uncompressed.
	leastSaved = 8

	// minCompressed is the minimum length of content that is compressed. A compressed page has a
	// longer head, so compressing shorter content saves nothing.
	minCompressed = 128

	// compressionWindow is the maximum distance in bytes between a repeated sequence and its
	// earlier copy. It covers a whole page in most cases.
	compressionWindow = maxPageBytes
)

// encoders take about 2 MB each. The pool releases them when no page is compressed.
var encoders = sync.Pool{New: func() any {
	return must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true), zstd.WithWindowSize(compressionWindow)))
}}

// decoders never write more than the capacity of the given buffer.
var decoders = sync.Pool{New: func() any {
	return must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true)))
}}

// must returns v. The options of encoders and decoders are constant, so err is always nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// CompressedHead compresses content. The value of the page has two parts. CompressedHead writes the
// first part to e. It returns the second part, which is in the reused buffer buf. If compression
// saves less than an eighth, the second part is content itself, and e contains the result of
// [PageHead].
func CompressedHead(e *Encoder, buf *[]byte, content []byte) (rest []byte, crc uint32) {
	// Content longer than MaxValueSize cannot be stored.
	if len(content) < minCompressed || len(content) > pagefile.MaxValueSize {
		return content, PageHead(e, content)
	}
	frame := compress((*buf)[:0], content)
	*buf = frame
	if len(frame) > len(content)-len(content)/leastSaved {
		return content, PageHead(e, content)
	}
	crc = crc32.Checksum(content, castagnoli)
	e.Buf = e.Buf[:0]
	e.array(3)
	e.Uint(pageCompressed)
	e.Uint(uint64(crc))
	e.array(3)
	e.Uint(uint64(len(content)))
	e.Uint(uint64(crc32.Checksum(frame, castagnoli)))
	e.binLen(len(frame))
	return frame, crc
}

// compress compresses content and pads the frame to the minimum length. It appends the result to
// dst, which is empty. Padding is needed only if content shrinks to less than 1/256.
func compress(dst, content []byte) []byte {
	c := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(c)
	frame := c.EncodeAll(content, dst)
	if least := leastCompressed(len(content)); len(frame) < least {
		frame = append(frame, make([]byte, least-len(frame))...)
	}
	return frame
}

// leastCompressed returns the minimum number of bytes of a compressed page with this content size.
func leastCompressed(size int) int { return (size + mostShrunk - 1) / mostShrunk }

// compressed reads the content of a compressed page. The caller verifies the checksum of the
// content.
func (d *decoder) compressed() []byte {
	d.array(3)
	size := d.uint()
	sum := d.uint32("checksum of a frame")
	frame := d.bin()
	switch {
	case d.err != nil:
		return nil
	case crc32.Checksum(frame, castagnoli) != sum:
		d.fail("checksum of the compressed page does not match")
	case size == 0 || size > pagefile.MaxValueSize || size > mostShrunk*uint64(len(frame)):
		d.fail("%d bytes in %d compressed ones", size, len(frame))
	}
	if d.err != nil {
		return nil
	}
	content, err := decompress(frame, int(size))
	if err != nil {
		d.fail("compressed page: %w", err)
	}
	return content
}

var (
	errFrame  = errors.New("not one frame of that size, without a dictionary or a checksum")
	errBehind = errors.New("bytes behind the frame")
)

// decompress returns the content of a frame. size is the size of the content in bytes.
func decompress(frame []byte, size int) ([]byte, error) {
	var h zstd.Header
	err := h.Decode(frame)
	if err != nil || h.Skippable || !h.HasFCS || h.FrameContentSize != uint64(size) || h.DictionaryID != 0 || h.HasCheckSum {
		return nil, errFrame
	}
	end, ok := frameEnd(frame, h.HeaderSize)
	if !ok {
		return nil, ErrShort
	}
	if len(frame) != max(end, leastCompressed(size)) || !allZero(frame[end:]) {
		return nil, errBehind
	}
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	content, err := d.DecodeAll(frame[:end], make([]byte, 0, size+16))
	if err == nil && len(content) != size {
		err = errFrame
	}
	return content, err
}

// frameEnd returns the end of a frame. The parameter at is the offset of the first block. The
// decoder does not report where the frame ends, and would also decode a second frame after it. A
// block begins with three bytes: a bit for the last block, two bits for the type, and the length.
func frameEnd(frame []byte, at int) (end int, ok bool) {
	const repeatedByte = 1 // The type of a block with one byte that is repeated.
	for len(frame)-at >= 3 {
		head := uint32(frame[at]) | uint32(frame[at+1])<<8 | uint32(frame[at+2])<<16
		size := int(head >> 3)
		if head>>1&3 == repeatedByte {
			size = 1
		}
		if at += 3 + size; at > len(frame) {
			break
		}
		if head&1 == 1 {
			return at, true
		}
	}
	return 0, false
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
