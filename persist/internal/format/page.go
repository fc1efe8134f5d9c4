package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"

	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// Columns of a snapshot file. Each component has four columns: its sparse, dense and data arrays,
// and a reserved column.
const (
	ManifestColumn = 0
	RegistryColumn = 1
	FirstColumn    = 8

	SparseArray = 0
	DenseArray  = 1
	DataArray   = 2
)

// Column returns the column of an array of a component.
func Column(component, array int) uint32 { return uint32(FirstColumn + 4*component + array) }

// Sizes of pages. Readers take the number of rows of a data page from the manifest, and accept any
// number up to PageRows. Only writers use the other values.
const (
	PageRows = digest.PageRows // Rows of a dense page, and entries of a sparse page.
	// Maximum size of a data page in bytes. A page of minPageRows rows may be larger.
	maxPageBytes = 256 << 10
	// Minimum number of rows of a data page. Only if so many rows do not fit into a value, a page
	// has fewer rows.
	minPageRows = 64
	varyingRows = 1024 // Rows of a data page if rows vary in size.

	// minRepeated is the minimum length of a repeated page. Most pages of small worlds are shorter.
	// So programs that do not support repeated pages can read the saves of these worlds.
	minRepeated = 1 << 10
)

// The kinds of pages. The value of a page begins with its kind.
const (
	pageDirect     = 0 // The content follows.
	pageReference  = 1 // The content is in another snapshot file, under the same key.
	pageRepeat     = 2 // The content is under another column, in this file or another file.
	pageCompressed = 3 // The compressed content follows.
)

// maxPageHead is the maximum size of a page's head: the head of an array, a kind, a checksum, and
// the head of the content.
const maxPageHead = 1 + 1 + 5 + 5

// maxContent returns the maximum size of a page's content. Content and head are one value.
func maxContent() int { return pagefile.ValueLimit() - maxPageHead }

// Fits reports whether n bytes can be the content of a page.
func Fits(n int) bool { return n <= maxContent() }

// CheckRow returns an error if a row of size bytes is too large even for a page of its own.
func CheckRow(row, size int) error {
	if Fits(size) {
		return nil
	}
	return fmt.Errorf("%w: row %d has %d bytes, a snapshot can store %d", pagefile.ErrTooLarge, row, size, maxContent())
}

// DataPageRows returns how many rows of this width are in a page. It is a power of two of at most
// 4096. So it divides the 4096 rows of a digest page, which snapshots copy as a unit. A page has at
// most 256 KiB, unless rows are very large. If rows vary in size, the number may be too high: see
// [FewerRows].
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

// FewerRows returns pageRows, halved as often as necessary: each page must fit into a value. sizes
// are the sizes of consecutive rows, and the first row begins a page. Each row must fit into a
// value alone.
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

// A PageRef says where the content of a page is. It is in the same page of an older file, or in the
// page with the same number of another column. A PageRef never refers to another reference.
//
// For example, the dense arrays of A and B are equal if both storages have one order of entities.
// Then page 7 of B refers to page 7 of A: Column is the column of A's dense array.
type PageRef struct {
	File   uint32 // 0 means the file that contains the reference.
	CRC    uint32 // Checksum of the content.
	Column uint32 // 0 means the column of the page itself.

	// Compressed is set for a page that contains its own content in compressed form.
	Compressed bool
}

// Elsewhere reports whether the content is not in the page's own value.
func (r PageRef) Elsewhere() bool { return r.File != 0 || r.Column != 0 }

// Of returns the key under which the content of page k is stored.
func (r PageRef) Of(k pagefile.Key) pagefile.Key {
	if r.Column != 0 {
		k.Column = r.Column
	}
	return k
}

// Repeatable reports whether a page of this size may repeat another page of the same kind of array.
// Dense and sparse pages often repeat, because several storages have the same order of entities.
// Data pages do not.
func Repeatable(kind, size int) bool { return kind != DataArray && size >= minRepeated }

// MayRepeat reports whether a page of the first column may repeat a page of the second column. The
// second column must be an earlier column with the same kind of array.
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
	// MaxRepeated is the maximum size of a page of entities that is repeated, in bytes.
	MaxRepeated = 8 * PageRows

	// MaxReference is the maximum size of an encoded reference. A longer value is a page. A
	// reference has the heads of two arrays, a kind, and three numbers of up to 5 bytes.
	MaxReference = 1 + 1 + 5 + 1 + 5 + 5
)

// PageHead writes to e the beginning of a page's value, [0, crc, content], up to the content.
func PageHead(e *Encoder, content []byte) (crc uint32) {
	crc = crc32.Checksum(content, castagnoli)
	e.Buf = e.Buf[:0]
	e.array(3)
	e.Uint(pageDirect)
	e.Uint(uint64(crc))
	e.binLen(len(content))
	return crc
}

// AppendReference appends the value of a page without content. It is [1, crc, file] for a page in
// another file. It is [2, crc, [file, column]] for a page that repeats a page of another column.
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

// DecodePage decodes the value of a page. It returns the content or a reference to it. An
// uncompressed content shares memory with the value.
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

// AppendSparsePage appends the entries of a page of a sparse array, and reports whether any entry
// has a row. An entry without a row takes no bytes. An entry with a row is two varints:
//
//   - the number of skipped entries
//   - the difference to the row that follows the row of the previous entry, in zigzag
//
// In this example, each pair of bytes is below its entry. The row after 9 would be 10, so row 3
// differs by -7, which is 13 in zigzag:
//
//	rows   | none | none | 7 | 8 | 9 | none | 3 |
//	bytes        2 14       0 0 0 0         1 13
//
// Entities that were created together have consecutive rows, so most entries are two zeros. These
// zeros are appended and read in bulk.
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
		// Two zeros for each further entry of the run.
		dst = append(dst, zeros[:2*(n-1)]...)
		i += n
		next, last = i, int64(r)+int64(n)-1
	}
	return dst, next > 0
}

// consecutive returns the number of leading rows that are consecutive.
func consecutive(rows []uint32) (n int) {
	first := rows[0]
	for n < len(rows) && rows[n]-first == uint32(n) && rows[n] != NoRow {
		n++
	}
	return n
}

// zeros are the entries of a run that fills a page.
var zeros [2 * PageRows]byte

// NoRow is the entry of an index without a row.
const NoRow = ^uint32(0)

// DecodeSparsePage calls the function entries for each run in a page. The run has n entries and
// begins with index i. The rows of its entries are consecutive and begin with the argument row.
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

// DecodeSparseRows decodes a page into the row of each index, or [NoRow].
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

// sparseRuns decodes the runs in a page of a sparse array.
type sparseRuns struct {
	src []byte
	end int   // Index after the last run.
	row int64 // Row after the last run.
	err error
}

// next decodes a run: n entries from index i on, whose rows are consecutive. The result row is the
// row of the first entry. If the run is invalid, n is 0, and the field err is set.
func (r *sparseRuns) next() (i int, row uint32, n int) {
	v := varints{src: r.src}
	// The row is computed in 64 bits, so neither a large nor a negative step overflows.
	skip, step := v.uint(), v.int()
	to := r.row + step
	if v.bad || skip > PageRows || r.end+int(skip) >= PageRows || to != int64(uint32(to)) || uint32(to) == NoRow {
		r.err = fmt.Errorf("sparse page: bad entry after %d", r.end-1)
		return 0, 0, 0
	}
	i = r.end + int(skip)
	// A run ends before the first entry that is not two zeros. It also ends at the end of the page,
	// and before a row equal to NoRow.
	n = 1 + zeroPairs(v.src, min(PageRows-i, int(int64(NoRow)-to))-1)
	r.src, r.end, r.row = v.src[2*(n-1):], i+n, to+int64(n)
	return i, uint32(to), n
}

// single decodes runs of one entry, faster than next(). It reads both numbers of an entry at once.
// The first number must have one byte, and the second number up to four. single stops before the
// first other entry. If the rows have another order than the indices, almost all entries are like
// this.
func (r *sparseRuns) single(rows *[PageRows]uint32) {
	src, end, row := r.src, r.end, r.row
	for len(src) >= 8 {
		x := binary.LittleEndian.Uint64(src)
		// The second number ends with the first byte whose top bit is clear.
		last := ^x & 0x80808080_00
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

// zeroPairs counts the pairs of zeros at the start of src, up to the given limit. Most entries of a
// page are a pair of zeros, which means that the next index has the next row.
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
