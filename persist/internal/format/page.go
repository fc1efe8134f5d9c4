package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"

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

// How arrays are cut into pages. Readers take any number of rows up to PageRows in a page of data, as the
// manifest says it; the rest is what writers choose.
const (
	PageRows     = digest.PageRows // Rows of a dense page, entries of a sparse one.
	maxPageBytes = 256 << 10       // Of data, unless that makes less than minPageRows.
	minPageRows  = 64              // Of data, unless these do not fit into a value.
	varyingRows  = 1024            // In a page of rows that vary in size.

	// minRepeated is how long a page is at least that another one repeats: the saves of
	// small worlds can be read by programs that do not know repeats.
	minRepeated = 1 << 10
)

// The kinds of pages: what the value of one begins with.
const (
	pageDirect     = 0 // Its content.
	pageReference  = 1 // A snapshot file that has it, under the same key.
	pageRepeat     = 2 // A column that has it, in this file or another.
	pageCompressed = 3 // Its content, compressed.
)

// maxPageHead is the size of the longest head of a page: the head of an array, a kind, a checksum, and the
// head of the content.
const maxPageHead = 1 + 1 + 5 + 5

// maxContent returns how many bytes the content of a page can have: with its head, it is one value.
func maxContent() int { return pagefile.ValueLimit() - maxPageHead }

// Fits reports whether n bytes can be the content of a page.
func Fits(n int) bool { return n <= maxContent() }

// CheckRow returns an error if a row of size bytes cannot even be a page of its own.
func CheckRow(row, size int) error {
	if Fits(size) {
		return nil
	}
	return fmt.Errorf("%w: row %d has %d bytes, a snapshot can store %d", pagefile.ErrTooLarge, row, size, maxContent())
}

// DataPageRows returns how many rows of this width make a page: a power of two,
// so that a page is at most 256 KiB unless rows are very large. It divides the 4096 rows
// of the pages that digests sum, in which snapshots copy. If rows vary, their sizes may
// allow fewer: see [FewerRows].
func DataPageRows(width int) int {
	if width < 0 {
		return varyingRows
	}
	rows := PageRows
	for rows > minPageRows && rows*width > maxPageBytes || rows > 1 && !Fits(rows*width) {
		rows /= 2
	}
	return rows
}

// FewerRows returns how many rows make a page, at most pageRows, if these are the sizes of rows side by side
// whose first one begins a page. Each page of that many rows fits into a value, if each row does.
func FewerRows(sizes []int, pageRows int) int {
	for ; pageRows > 1; pageRows /= 2 {
		fit := true
		for page := range slices.Chunk(sizes, pageRows) {
			bytes := 0
			for _, n := range page {
				bytes += n
			}
			fit = fit && Fits(bytes)
		}
		if fit {
			break
		}
	}
	return pageRows
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

	// MaxReference is the size of the longest reference: what is longer is a page. It has the heads
	// of two arrays, a kind, and three numbers of up to 5 bytes.
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

// zeros are the entries of a run as long as a page.
var zeros [2 * PageRows]byte

// NoRow is the entry of a sparse array that names no row.
const NoRow = ^uint32(0)

// DecodeSparsePage calls entries for each run of entries of a page: those from i on
// have rows from row on.
func DecodeSparsePage(src []byte, entries func(i int, row uint32, n int) error) error {
	r := sparseRuns{src: src}
	for len(r.src) > 0 {
		i, row, n := r.next()
		if n == 0 {
			return r.err
		}
		if err := entries(i, row, n); err != nil {
			return err
		}
	}
	return nil
}

// DecodeSparseRows decodes a page into the row of each index, [NoRow] for those without.
func DecodeSparseRows(src []byte, rows *[PageRows]uint32) error {
	*rows = noRows
	r := sparseRuns{src: src}
	for r.single(rows); len(r.src) > 0; r.single(rows) {
		i, row, n := r.next()
		if n == 0 {
			return r.err
		}
		run := rows[i : i+n]
		for k := range run {
			run[k] = row + uint32(k)
		}
	}
	return nil
}

// noRows is a page without entries.
var noRows = func() (rows [PageRows]uint32) {
	for i := range rows {
		rows[i] = NoRow
	}
	return rows
}()

// sparseRuns are the runs of entries of a page that is being decoded.
type sparseRuns struct {
	src []byte
	end int   // Of the last run, as an index
	row int64 // and as a row.
	err error
}

// next decodes a run: n entries from i on have rows from row on. If n is 0, there is an error.
func (r *sparseRuns) next() (i int, row uint32, n int) {
	v := varints{src: r.src}
	// The row is looked at in 64 bits, where neither a large step nor a negative one wraps.
	skip, step := v.uint(), v.int()
	to := r.row + step
	if v.bad || skip > PageRows || r.end+int(skip) >= PageRows || to != int64(uint32(to)) || uint32(to) == NoRow {
		r.err = fmt.Errorf("sparse page: bad entry after %d", r.end-1)
		return 0, 0, 0
	}
	i = r.end + int(skip)
	// A run ends with the page, and before the row that would be NoRow.
	n = 1 + zeroPairs(v.src, min(PageRows-i, int(int64(NoRow)-to))-1)
	r.src, r.end, r.row = v.src[2*(n-1):], i+n, to+int64(n)
	return i, uint32(to), n
}

// single decodes runs of one entry as long as nothing is special about them: the first number has one
// byte, the second one up to four, and they can be read together with what follows. Rows in an order of
// their own have hardly any other.
func (r *sparseRuns) single(rows *[PageRows]uint32) {
	src, end, row := r.src, r.end, r.row
	for len(src) >= 8 {
		x := binary.LittleEndian.Uint64(src)
		last := ^x & 0x80808080_00 // The second number ends with the first byte whose top bit is clear.
		z := x & (last ^ (last - 1))
		z = z>>8&0x7f | z>>9&0x3f80 | z>>10&0x1fc000 | z>>11&0xfe00000
		size := bits.TrailingZeros64(last)>>3 + 1
		i, to := end+int(x&0xff), row+(int64(z>>1)^-int64(z&1))
		if last == 0 || x&0x80 != 0 || x>>(8*size)&0xffff == 0 || i >= PageRows || uint64(to) >= uint64(NoRow) {
			break
		}
		rows[i] = uint32(to)
		src, end, row = src[size:], i+1, to+1
	}
	r.src, r.end, r.row = src, end, row
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
