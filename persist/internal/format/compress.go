package format

import (
	"bytes"
	"errors"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/stet-ecs/stet/internal/pagefile"
)

// A compressed page holds one frame of Zstandard (RFC 8878), and zeros behind it if it
// would stand for more than it may:
//
//	[3, crc, [size, sum, frame 0 0 0 ...]]
//	    |     |     |    '-- at least 1/256 of size
//	    |     |     '-- of frame and zeros, compared before anything is made of them
//	    |     '-- of the content, in bytes
//	    '-- of the content, as in all kinds of pages
const (
	// mostShrunk is how many bytes a byte of a compressed page stands for, at most: a file
	// from a stranger takes no more memory than that many times its size.
	mostShrunk = 256

	// leastSaved is the part of a page that compression must save; else it is stored plain.
	leastSaved = 8

	// minCompressed is how long a page is at least for which that is more than the longer
	// head takes.
	minCompressed = 128

	// compressionWindow is how far back a match is looked for: all of a page, as most are.
	compressionWindow = maxPageBytes
)

// encoders have about 2 MB each, which are let go of when nobody compresses.
var encoders = sync.Pool{New: func() any {
	return must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true), zstd.WithWindowSize(compressionWindow)))
}}

// decoders never make a result longer than the buffer that they are given.
var decoders = sync.Pool{New: func() any {
	return must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true)))
}}

// must returns v: what is said of encoders and decoders is the same each time.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// CompressedHead makes e hold the beginning of the value of a page that holds content
// compressed, as far as what follows: that is returned, and lies in buf, which is used
// again. If content does not shrink by an eighth it returns content, and e is as
// [PageHead] makes it.
func CompressedHead(e *Encoder, buf *[]byte, content []byte) (rest []byte, crc uint32) {
	if len(content) < minCompressed || len(content) > pagefile.MaxValueSize { // Which the file refuses.
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

// compress appends content, compressed and padded, to dst, which is empty. Only a page of next to nothing
// but repeats is padded.
func compress(dst, content []byte) []byte {
	c := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(c)
	frame := c.EncodeAll(content, dst)
	if least := leastCompressed(len(content)); len(frame) < least {
		frame = append(frame, make([]byte, least-len(frame))...)
	}
	return frame
}

// leastCompressed returns how many bytes a page of that size has at least, compressed.
func leastCompressed(size int) int { return (size + mostShrunk - 1) / mostShrunk }

// compressed reads the content of a compressed page, whose checksum is to be compared.
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

// decompress returns the content of a frame, which has size bytes.
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

// frameEnd returns where a frame ends whose blocks begin at an offset. The decoder does not tell, and
// would go on with another frame behind it. A block begins with three
// bytes: whether it is the last one, two bits that say of which type it is, how long it is.
func frameEnd(frame []byte, at int) (end int, ok bool) {
	const repeatedByte = 1 // The type of a block of one byte, which stands for many.
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
