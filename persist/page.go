package persist

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/pagefile"
)

// Columns of a snapshot file. Component number c has four: its sparse, dense and
// data arrays, and one to spare.
const (
	manifestColumn = 0
	registryColumn = 1
	firstColumn    = 8

	sparseArray = 0
	denseArray  = 1
	dataArray   = 2
)

func column(component, array int) uint32 { return uint32(firstColumn + 4*component + array) }

const (
	pageRows      = digest.PageRows // Rows of a dense page, entries of a sparse one.
	maxPageBytes  = 256 << 10
	minPageRows   = 64
	varyingRows   = 1024
	pageDirect    = 0
	pageReference = 1
)

// dataPageRows returns how many rows of this width make a page: a power of two,
// so that a page is at most 256 KiB unless rows are very large.
func dataPageRows(width int) int {
	if width < 0 {
		return varyingRows
	}
	rows := pageRows
	for rows > minPageRows && rows*width > maxPageBytes {
		rows /= 2
	}
	return rows
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A pageRef says where a page lies that did not change: the file that holds it,
// and its checksum. It never names another reference.
type pageRef struct {
	file uint32
	crc  uint32
}

// pageHead makes e hold the beginning of the value of a page that holds content,
// [0, crc, content], as far as the content.
func pageHead(e *encoder, content []byte) (crc uint32) {
	crc = crc32.Checksum(content, castagnoli)
	e.buf = e.buf[:0]
	e.array(3)
	e.uint(pageDirect)
	e.uint(uint64(crc))
	e.binLen(len(content))
	return crc
}

// appendReference appends the value of a page that another file holds:
// [1, crc, file].
func appendReference(e *encoder, r pageRef) {
	e.array(3)
	e.uint(pageReference)
	e.uint(uint64(r.crc))
	e.uint(uint64(r.file))
}

// decodePage reads the value of a page: its content, or where that is.
func decodePage(value []byte) (content []byte, ref pageRef, err error) {
	d := decoder{src: value}
	d.array(3)
	kind := d.count("page kind", pageReference)
	ref.crc = uint32(d.count("page checksum", 1<<32-1))
	if kind == pageReference {
		ref.file = uint32(d.count("file number", 1<<32-1))
		if ref.file == 0 {
			d.fail("reference to file 0")
		}
	} else if content = d.bin(); d.err == nil && crc32.Checksum(content, castagnoli) != ref.crc {
		d.fail("page checksum does not match")
	}
	return content, ref, d.end()
}

// appendSparsePage appends the entries of a page of a sparse array: for each
// one with a row, the entries skipped since the last and the row less the last
// row (zigzag), as varints. It reports whether there is any.
func appendSparsePage(dst []byte, rows []uint32) ([]byte, bool) {
	next, last := 0, int64(-1)
	for i := 0; i < len(rows); {
		r := rows[i]
		if r == noRow {
			i++
			continue
		}
		n := consecutive(rows[i:])
		dst = binary.AppendUvarint(dst, uint64(i-next))
		dst = appendInt(dst, int64(r)-last-1)
		dst = append(dst, zeros[:2*(n-1)]...) // The next index has the next row.
		i += n
		next, last = i, int64(r)+int64(n)-1
	}
	return dst, next > 0
}

// consecutive returns how many of rows follow each other.
func consecutive(rows []uint32) (n int) {
	first := rows[0]
	for n < len(rows) && rows[n]-first == uint32(n) && rows[n] != noRow {
		n++
	}
	return n
}

var zeros [2 * pageRows]byte

const noRow = ^uint32(0)

// decodeSparsePage calls entries for each run of entries of a page: those from i on
// have rows from row on.
func decodeSparsePage(src []byte, entries func(i int, row uint32, n int) error) error {
	v := varints{src: src}
	next, last := 0, int64(-1)
	for v.more() {
		skip, step := v.uint(), v.int()
		row := last + 1 + step
		if v.bad || skip > pageRows || next+int(skip) >= pageRows || row != int64(uint32(row)) || uint32(row) == noRow {
			return fmt.Errorf("sparse page: bad entry after %d", next-1)
		}
		next += int(skip)
		n := 1 + zeroPairs(v.src, min(pageRows-next, int(int64(noRow)-row))-1)
		v.src = v.src[2*(n-1):]
		if err := entries(next, uint32(row), n); err != nil {
			return err
		}
		next, last = next+n, row+int64(n)-1
	}
	if v.bad {
		return fmt.Errorf("sparse page: %w", errShort)
	}
	return nil
}

// zeroPairs returns how many pairs of zeros src begins with, at most limit. Most
// entries are such a pair: the next index has the next row.
func zeroPairs(src []byte, limit int) (n int) {
	limit = min(limit, len(src)/2)
	for n+4 <= limit && binary.LittleEndian.Uint64(src[2*n:]) == 0 {
		n += 4
	}
	for n < limit && src[2*n]|src[2*n+1] == 0 {
		n++
	}
	return n
}

func key(column uint32, page int) pagefile.Key {
	return pagefile.Key{Column: column, Page: uint32(page)}
}
