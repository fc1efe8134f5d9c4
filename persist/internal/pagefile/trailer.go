package pagefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/stet-ecs/stet/disk"
)

const (
	// blockSize is the number of bytes that one checksum covers. A block must be read completely to
	// verify it, so it is about as large as a value.
	blockSize = 64 << 10

	footerSize    = 64
	tableEntry    = 4
	formatVersion = 1
)

// footerMagic begins the footer.
var footerMagic = [8]byte{'S', 't', 'e', 't', 'P', 'a', 'g', 'e'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A trailer follows bbolt's last page. It is a table with the CRC-32C of each block, and a footer.
// The footer, little-endian:
//
//	0       8         12      16       24          28         32       40      48         60
//	+-------+---------+-------+--------+-----------+----------+--------+-------+----------+-----+
//	| magic | version | flags | length | blockSize | tableCRC | blocks | pages | reserved | CRC |
//	+-------+---------+-------+--------+-----------+----------+--------+-------+----------+-----+
//
// The last field is the CRC of the fields before it. One of them is tableCRC, so the CRC depends on
// all blocks. Magic, version, flags, CRC and the size of the footer are the same in every version.
// So a newer file can be told apart from a damaged one.
type trailer struct {
	length   int64    // Bytes before the trailer.
	pages    uint64   // Pages in the file.
	table    []uint32 // CRC-32C of each block.
	tableCRC uint32
}

// blockCount returns the number of blocks in length bytes.
func blockCount(length int64) int64 { return (length + blockSize - 1) / blockSize }

// size returns the size of the encoded trailer.
func (t *trailer) size() int64 { return int64(len(t.table))*tableEntry + footerSize }

// info describes the file with this trailer.
func (t *trailer) info() Info {
	return Info{
		Size:   t.length + t.size(),
		Pages:  t.pages,
		Blocks: int64(len(t.table)),
		CRC:    t.tableCRC,
	}
}

// encode returns the trailer's bytes and sets tableCRC.
func (t *trailer) encode() []byte {
	buf := make([]byte, 0, t.size())
	for _, sum := range t.table {
		buf = binary.LittleEndian.AppendUint32(buf, sum)
	}
	t.tableCRC = crc32.Checksum(buf, castagnoli)
	start := len(buf)
	buf = append(buf, footerMagic[:]...)
	buf = binary.LittleEndian.AppendUint32(buf, formatVersion)
	buf = binary.LittleEndian.AppendUint32(buf, 0) // The flags: no incompatible features.
	buf = binary.LittleEndian.AppendUint64(buf, uint64(t.length))
	buf = binary.LittleEndian.AppendUint32(buf, blockSize)
	buf = binary.LittleEndian.AppendUint32(buf, t.tableCRC)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(t.table)))
	buf = binary.LittleEndian.AppendUint64(buf, t.pages)
	buf = append(buf, make([]byte, 12)...) // Reserved.
	return binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf[start:], castagnoli))
}

// readTrailer reads and checks the trailer of a file with the given size. It starts with the
// footer, which gives the position of the table. It allocates at most 1/16,384 of the size.
func readTrailer(r io.ReaderAt, name string, size int64) (*trailer, error) {
	if size < footerSize {
		return nil, noTrailer(r, name, size)
	}
	footer := make([]byte, footerSize)
	at := size - footerSize
	if err := readFull(r, name, footer, at); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(footer, footerMagic[:]) {
		return nil, noTrailer(r, name, size)
	}
	t, err := decodeFooter(footer, name, size)
	if err != nil {
		return nil, err
	}
	table := make([]byte, at-t.length)
	if err := readFull(r, name, table, t.length); err != nil {
		return nil, err
	}
	if crc32.Checksum(table, castagnoli) != t.tableCRC {
		return nil, corrupt(name, t.length, int64(len(table)), "checksum of the block table differs")
	}
	t.table = make([]uint32, len(table)/tableEntry)
	for i := range t.table {
		t.table[i] = binary.LittleEndian.Uint32(table[i*tableEntry:])
	}
	return t, nil
}

// decodeFooter checks a footer with a valid magic against the file's size. The returned trailer has
// no table yet. The checksum is checked first, then the version, then the other fields. So a newer
// footer with a valid checksum is not reported as damaged.
func decodeFooter(footer []byte, name string, size int64) (*trailer, error) {
	damaged := func(reason string, args ...any) error {
		return corrupt(name, size-footerSize, footerSize, fmt.Sprintf(reason, args...))
	}
	if crc32.Checksum(footer[:60], castagnoli) != binary.LittleEndian.Uint32(footer[60:]) {
		return nil, damaged("checksum of the footer differs")
	}
	version := binary.LittleEndian.Uint32(footer[8:])
	flags := binary.LittleEndian.Uint32(footer[12:])
	if version > formatVersion || flags != 0 {
		return nil, fmt.Errorf("%w: %s has format %d with features %#x, this program supports format %d",
			disk.ErrNewer, name, version, flags, formatVersion)
	}
	if version == 0 {
		return nil, damaged("format version 0")
	}
	if n := binary.LittleEndian.Uint32(footer[24:]); n != blockSize {
		return nil, damaged("block size %d, want %d", n, blockSize)
	}
	if !bytes.Equal(footer[48:60], make([]byte, 12)) {
		return nil, damaged("reserved bytes are not zero")
	}
	length := binary.LittleEndian.Uint64(footer[16:])
	if length > uint64(size) || length%pageSize != 0 || length < minPages*pageSize {
		return nil, damaged("%d bytes before the trailer in a file of %d", length, size)
	}
	blocks := blockCount(int64(length))
	if n := binary.LittleEndian.Uint64(footer[32:]); n != uint64(blocks) {
		return nil, damaged("%d blocks, want %d", n, blocks)
	}
	if want := int64(length) + blocks*tableEntry + footerSize; size != want {
		return nil, damaged("the file has %d bytes, want %d", size, want)
	}
	return &trailer{
		length:   int64(length),
		pages:    binary.LittleEndian.Uint64(footer[40:]),
		tableCRC: binary.LittleEndian.Uint32(footer[28:]),
	}, nil
}

// boltPrefix begins every bbolt file of a little-endian machine. It is the header of page 0, a meta
// page, and bbolt's magic number.
var boltPrefix = []byte{
	0, 0, 0, 0, 0, 0, 0, 0, flagMeta, 0, 0, 0, 0, 0, 0, 0,
	0xED, 0xDA, 0x0C, 0xED,
}

// noTrailer returns the error for a file without a footer. A file that begins like a bbolt file
// counts as a page file that was cut short or damaged at its end.
func noTrailer(r io.ReaderAt, name string, size int64) error {
	start := make([]byte, min(size, int64(len(boltPrefix))))
	if err := readFull(r, name, start, 0); err != nil {
		return err
	}
	if !bytes.HasPrefix(boltPrefix, start) {
		return &disk.DamageError{File: name, Offset: -1, Reason: "it is neither a save nor a snapshot", Err: disk.ErrForeign}
	}
	length := min(size, footerSize)
	return corrupt(name, size-length, length,
		"no footer at the end: cut short, damaged, or a bbolt file of another program")
}
