package format

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
	ManifestColumn = 0
	RegistryColumn = 1
	FirstColumn    = 8

	SparseArray = 0
	DenseArray  = 1
	DataArray   = 2
)

// Column returns the column of pages that an array of a component lies in.
func Column(component, array int) uint32 { return uint32(FirstColumn + 4*component + array) }

// How arrays are cut into pages.
const (
	PageRows     = digest.PageRows // Rows of a dense page, entries of a sparse one.
	maxPageBytes = 256 << 10
	minPageRows  = 64
	varyingRows  = 1024

	// minRepeated is how long a page is at least that another one repeats: the saves of
	// small worlds can be read by programs that do not know repeats.
	minRepeated = 1 << 10
)

// The kinds of pages: what the value of one begins with.
const (
	pageDirect     = 0
	pageReference  = 1
	pageRepeat     = 2
	pageCompressed = 3
)

// DataPageRows returns how many rows of this width make a page: a power of two,
// so that a page is at most 256 KiB unless rows are very large. It divides the 4096 rows
// of the pages that digests sum, in which snapshots copy.
func DataPageRows(width int) int {
	if width < 0 {
		return varyingRows
	}
	rows := PageRows
	for rows > minPageRows && rows*width > maxPageBytes {
		rows /= 2
	}
	return rows
}

// castagnoli is the polynomial of all checksums.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A PageRef says where the content of a page lies: in a file that held it before, or in
// another column whose page of the same number has the same content. It never names
// another reference.
//
//	dense of A, page 7 | content of page 7      |
//	dense of B, page 7 | Column: dense of A     |   both storages have one order
type PageRef struct {
	File   uint32 // 0: the file that has the reference.
	CRC    uint32 // Of the content.
	Column uint32 // 0: that of the page itself.

	// Compressed says of a page that holds its content that it is compressed there.
	Compressed bool
}

// Elsewhere reports whether r says that the content of a page is not in its value.
func (r PageRef) Elsewhere() bool { return r.File != 0 || r.Column != 0 }

// Of returns the key under which the content of the page k lies.
func (r PageRef) Of(k pagefile.Key) pagefile.Key {
	if r.Column != 0 {
		k.Column = r.Column
	}
	return k
}

// Repeatable reports whether a page that is so long, of such an array, may repeat
// another one of the same kind: data does not, as rows of entities follow each other in
// one order in several storages, and values do not.
func Repeatable(kind, size int) bool { return kind != DataArray && size >= minRepeated }

// MayRepeat reports whether a page of column may repeat one of another: an earlier one
// that holds the same kind of array.
func MayRepeat(column, other uint32) bool {
	if column < FirstColumn || other >= column {
		return false
	}
	if other == RegistryColumn {
		return column%4 == DenseArray
	}
	return other >= FirstColumn && other%4 == column%4 && column%4 != DataArray
}

const (
	// MaxRepeated is how many bytes of entities a page stands for, at most, that repeats
	// another.
	MaxRepeated = 8 * PageRows

	// MaxReference is the size of the longest reference: what is longer is a page.
	MaxReference = 1 + 1 + 5 + 1 + 5 + 5
)

// PageHead makes e hold the beginning of the value of a page that holds content,
// [0, crc, content], as far as the content.
func PageHead(e *Encoder, content []byte) (crc uint32) {
	crc = crc32.Checksum(content, castagnoli)
	e.Buf = e.Buf[:0]
	e.array(3)
	e.Uint(pageDirect)
	e.Uint(uint64(crc))
	e.binLen(len(content))
	return crc
}

// AppendReference appends the value of a page that another file holds, [1, crc, file], or
// of one that repeats another column's, [2, crc, [file, column]].
func AppendReference(e *Encoder, r PageRef) {
	e.array(3)
	if r.Column == 0 {
		e.Uint(pageReference)
		e.Uint(uint64(r.CRC))
		e.Uint(uint64(r.File))
		return
	}
	e.Uint(pageRepeat)
	e.Uint(uint64(r.CRC))
	e.array(2)
	e.Uint(uint64(r.File))
	e.Uint(uint64(r.Column))
}

// DecodePage reads the value of a page: its content, or where that is. The content is a
// part of value, unless it was compressed.
func DecodePage(value []byte) (content []byte, ref PageRef, err error) {
	d := decoder{src: value}
	d.array(3)
	kind := d.count("page kind", pageCompressed)
	ref.CRC = d.uint32("page checksum")
	switch kind {
	case pageDirect:
		content = d.bin()
	case pageCompressed:
		content, ref.Compressed = d.compressed(), true
	case pageReference:
		if ref.File = d.uint32("file number"); d.err == nil && ref.File == 0 {
			d.fail("reference to file 0")
		}
	case pageRepeat:
		d.array(2)
		ref.File = d.uint32("file number")
		if ref.Column = d.uint32("column"); d.err == nil && ref.Column < RegistryColumn {
			d.fail("reference to column %d", ref.Column)
		}
	}
	if d.err == nil && content != nil && crc32.Checksum(content, castagnoli) != ref.CRC {
		d.fail("page checksum does not match")
	}
	return content, ref, d.end()
}

// AppendSparsePage appends the entries of a page of a sparse array: for each
// one with a row, the entries skipped since the last and the row less the row after the
// last one (zigzag), as varints. It reports whether there is any.
//
//	rows   | none | none | 7 | 8 | 9 | none | 3 |
//	bytes        2 14       0 0 0 0         1 13      3 - 10 is -7, in zigzag 13
//
// Entities that were created together have rows that follow each other, so most entries
// are two zeros, which are appended and read many at a time.
func AppendSparsePage(dst []byte, rows []uint32) ([]byte, bool) {
	next, last := 0, int64(-1)
	for i := 0; i < len(rows); {
		r := rows[i]
		if r == NoRow {
			i++
			continue
		}
		n := consecutive(rows[i:])
		dst = binary.AppendUvarint(dst, uint64(i-next))
		dst = binary.AppendVarint(dst, int64(r)-last-1)
		dst = append(dst, zeros[:2*(n-1)]...) // The next index has the next row.
		i += n
		next, last = i, int64(r)+int64(n)-1
	}
	return dst, next > 0
}

// consecutive returns how many of rows follow each other.
func consecutive(rows []uint32) (n int) {
	first := rows[0]
	for n < len(rows) && rows[n]-first == uint32(n) && rows[n] != NoRow {
		n++
	}
	return n
}

var zeros [2 * PageRows]byte

// NoRow is the entry of a sparse array that names no row.
const NoRow = ^uint32(0)

// DecodeSparsePage calls entries for each run of entries of a page: those from i on
// have rows from row on.
func DecodeSparsePage(src []byte, entries func(i int, row uint32, n int) error) error {
	v := varints{src: src}
	next, last := 0, int64(-1)
	for v.more() {
		skip, step := v.uint(), v.int()
		row := last + 1 + step
		if v.bad || skip > PageRows || next+int(skip) >= PageRows || row != int64(uint32(row)) || uint32(row) == NoRow {
			return fmt.Errorf("sparse page: bad entry after %d", next-1)
		}
		next += int(skip)
		n := 1 + zeroPairs(v.src, min(PageRows-next, int(int64(NoRow)-row))-1)
		v.src = v.src[2*(n-1):]
		if err := entries(next, uint32(row), n); err != nil {
			return err
		}
		next, last = next+n, row+int64(n)-1
	}
	if v.bad {
		return fmt.Errorf("sparse page: %w", ErrShort)
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

// Key returns the key of a page in a snapshot file.
func Key(column uint32, page int) pagefile.Key {
	return pagefile.Key{Column: column, Page: uint32(page)}
}
