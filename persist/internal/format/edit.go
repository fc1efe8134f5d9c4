package format

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/grow"
)

// An edit is one change in a large row. It replaces bytes [from, to) of the old encoding by bytes
// [at, end) of the new encoding.
//
//	old   | kept | removed | kept    | removed | kept |
//	new   | kept | given     | kept    | given | kept |
//
// The edits of a row are encoded as their number, followed by these values for each edit:
//
//	skipped   number of kept bytes before the edit
//	removed   number of removed bytes
//	given     number of new bytes
//	bytes     the new bytes
//
// For example, 1 3 2 1 7 changes abc10def to abc7def. It has one edit, which keeps 3 bytes, removes
// 2 bytes and adds 1 byte, the digit 7.
//
// All numbers are varints. Each edit begins and ends with differing bytes, and at least editsApart
// bytes between two edits are kept. So a change has exactly one encoding.
type edit struct{ from, to, at, end int }

// editsApart is the minimum number of equal bytes between two edits. Beginning another edit costs
// about as many bytes.
const editsApart = 8

// EditedRows are the rows of a storage that a tick stores as edits. Begin reuses the memory unless
// it is large.
type EditedRows struct {
	Ranges []raw.Range // Ascending and disjoint.
	Edits  []byte      // The edits of Ranges, in order.
	edits  []edit
}

// Begin empties e.
func (e *EditedRows) Begin() { e.Ranges, e.Edits = e.Ranges[:0], grow.Keep(e.Edits) }

// Add adds the edits that change a row from its old to its new encoding. It adds nothing if the new
// row is not large, or if the edits are as long as the new row. Then the caller stores the whole
// row. Rows are added in ascending order.
func (e *EditedRows) Add(row int, then, now []byte) {
	if len(now) <= raw.LargeRow {
		return
	}
	// The minimum size of the edits is checked before they are encoded. So few bytes are copied in
	// vain.
	e.edits = appendEdits(e.edits[:0], then, now)
	defer e.giveBack()
	if leastSize(e.edits) >= len(now) {
		return
	}
	start := len(e.Edits)
	e.Edits = encodeEdits(e.Edits, e.edits, now)
	if len(e.Edits)-start >= len(now) {
		e.Edits = e.Edits[:start]
		return
	}
	e.Ranges = appendRange(e.Ranges, raw.Range{First: row, N: 1})
}

// giveBack releases the memory of edits if it is large.
func (e *EditedRows) giveBack() {
	if cap(e.edits) > grow.MaxKept/int(unsafe.Sizeof(edit{})) {
		e.edits = nil
	}
}

// leastSize returns the minimum encoded size of edits: three numbers of at least one byte each, and
// the new bytes.
func leastSize(edits []edit) (n int) {
	for _, d := range edits {
		n += 3 + d.end - d.at
	}
	return n
}

// encodeEdits appends the encoded edits. now: the new row.
func encodeEdits(dst []byte, edits []edit, now []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(edits)))
	last := 0
	for _, d := range edits {
		dst = binary.AppendUvarint(dst, uint64(d.from-last))
		dst = binary.AppendUvarint(dst, uint64(d.to-d.from))
		dst = binary.AppendUvarint(dst, uint64(d.end-d.at))
		dst = append(dst, now[d.at:d.end]...)
		last = d.to
	}
	return dst
}

// appendEdits appends the edits that change an old row into a new one. then: the old row, now: the
// new row.
//
//   - If the lengths differ, the common suffix is kept. Only the bytes before it are compared.
//   - The bytes are compared one by one. Each span of differing bytes is an edit.
//   - The remaining bytes of the longer row belong to the last edit.
//
// So bytes inserted or removed at one place are one edit. A changed length field before that place
// is another edit.
func appendEdits(dst []edit, then, now []byte) []edit {
	if len(then) == len(now) {
		return appendSpans(dst, then, now)
	}
	// A byte cannot belong to both the common prefix and the common suffix. So the search for the
	// suffix begins after the prefix. For example, if "aa" becomes "aaa", the prefix is "aa", and
	// the suffix is empty.
	n := min(len(then), len(now))
	first := differs(then[:n], now[:n], 0)
	same := sameEnd(then[first:], now[first:])
	from, at := len(then)-same, len(now)-same
	n = min(from, at)
	dst = appendSpans(dst, then[:n], now[:n])
	// dst covers the first n bytes of both rows. Then one row has no bytes left before the suffix.
	// The bytes that the other row has left extend the last edit, or are an edit of their own.
	if k := len(dst) - 1; k >= 0 && n-dst[k].to < editsApart {
		dst[k].to, dst[k].end = from, at
		return dst
	}
	return append(dst, edit{n, from, n, at})
}

// sameEnd returns the length of the common suffix of a and b.
func sameEnd(a, b []byte) (n int) {
	limit := min(len(a), len(b))
	for n+8 <= limit && word(a, len(a)-n-8) == word(b, len(b)-n-8) {
		n += 8
	}
	for n < limit && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// appendSpans appends an edit for each span in which a and b differ. a and b have the same length.
func appendSpans(dst []edit, a, b []byte) []edit {
	for at := differs(a, b, 0); at < len(a); {
		end, next := spanEnd(a, b, at)
		dst = append(dst, edit{at, end, at, end})
		at = next
	}
	return dst
}

// differs returns the index of the first difference between a and b. at: the index at which the
// search starts. Without a difference, differs returns the length of a, which is also that of b.
// Long equal parts are compared in blocks.
func differs(a, b []byte, at int) int {
	const block = 256
	for at+block <= len(a) && string(a[at:at+block]) == string(b[at:at+block]) {
		at += block
	}
	for ; at+8 <= len(a); at += 8 {
		if x := word(a, at) ^ word(b, at); x != 0 {
			return at + bits.TrailingZeros64(x)/8
		}
	}
	for at < len(a) && a[at] == b[at] {
		at++
	}
	return at
}

// spanEnd returns the end of a span and the start of the next span. at: the start of the span. A
// span ends before editsApart equal bytes. The loop compares words of eight bytes. Two differing
// bytes in a word have at most six equal bytes between them, so they belong to the same span.
func spanEnd(a, b []byte, at int) (end, next int) {
	end = at + 1
	for w := at; w+8 <= len(a); w += 8 {
		x := word(a, w) ^ word(b, w)
		if x == 0 && w+8-end < editsApart {
			continue
		}
		if x == 0 {
			return end, differs(a, b, w+8)
		}
		if first := w + bits.TrailingZeros64(x)/8; first-end >= editsApart {
			return end, first
		}
		// The upper half of this word differs. dense() counts the words after it in which both
		// halves differ. There are never editsApart equal bytes between two of these words, so the
		// span continues.
		if x>>32 != 0 {
			if n := dense(a[w+8:], b[w+8:]); n > 0 {
				w += n
				x = word(a, w) ^ word(b, w)
			}
		}
		end = w + 8 - bits.LeadingZeros64(x)/8
	}
	for next = max(end, len(a)-8); next < len(a); next++ {
		switch {
		case a[next] == b[next]:
		case next-end >= editsApart:
			return end, next
		default:
			end = next + 1
		}
	}
	return end, next
}

// dense returns the number of bytes before the first word of which a half is equal in a and b.
func dense(a, b []byte) (n int) {
	differ := func(a, b []byte) bool {
		x := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b)
		return uint32(x) != 0 && x>>32 != 0
	}
	for len(a) >= 32 && len(b) >= 32 && differ(a, b) && differ(a[8:], b[8:]) && differ(a[16:], b[16:]) && differ(a[24:], b[24:]) {
		a, b, n = a[32:], b[32:], n+32
	}
	for len(a) >= 8 && len(b) >= 8 && differ(a, b) {
		a, b, n = a[8:], b[8:], n+8
	}
	return n
}

// word returns eight bytes of b. at: the index of the first of them.
func word(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// ErrEdits reports edits that do not fit the row that they change.
var ErrEdits = errors.New("edits do not match the old row")

// AppendEdited applies edits to a row of type t, and appends the new row to dst. The parameter
// edits begins with the edits of this row. The result rest is the bytes after them. The edits were
// checked when the tick was decoded. AppendEdited also checks that the new row is valid.
func AppendEdited(dst []byte, t *layout.Type, row, edits []byte) (edited, rest []byte, err error) {
	v, start := varints{src: edits}, len(dst)
	for range v.uint() {
		skipped, removed, given := v.edit()
		if skipped > uint64(len(row)) || removed > uint64(len(row))-skipped {
			return dst, nil, ErrEdits
		}
		dst = append(dst, row[:skipped]...)
		was := row[skipped : skipped+removed]
		if row = row[skipped+removed:]; repeats(was, given) {
			return dst, nil, ErrEdits
		}
		dst = append(dst, given...)
	}
	dst = append(dst, row...)
	return dst, v.src, t.Check(dst[start:], 1)
}

// repeats reports whether the old and the new bytes of an edit begin or end with the same byte.
// Such an edit is invalid, because a shorter edit does the same.
func repeats(was, given []byte) bool {
	n, m := len(was), len(given)
	return n > 0 && m > 0 && (was[0] == given[0] || was[n-1] == given[m-1])
}

// edit reads an edit.
func (v *varints) edit() (skipped, removed uint64, given []byte) {
	skipped, removed = v.uint(), v.uint()
	n := v.uint()
	if n > uint64(len(v.src)) {
		v.bad, v.src = true, nil
		return 0, 0, nil
	}
	given, v.src = v.src[:n:n], v.src[n:]
	return skipped, removed, given
}

// nextEdits reads and returns the edits of one row.
func (v *varints) nextEdits() []byte {
	from := v.src
	for range v.uint() {
		v.edit()
	}
	return from[:len(from)-len(v.src)]
}

// EachEdited calls f with each edited row of p in ascending order, and its new encoding. The
// encoding is valid until f returns. The rows have type t. The function was() returns the old
// encoding of a row.
func (p *StoragePatch) EachEdited(t *layout.Type, was func(row int) []byte, f func(row int, edited []byte)) error {
	var buf []byte
	edits := p.Edits
	for _, r := range p.EditRanges {
		for row := r.First; row < r.First+r.N; row++ {
			var err error
			if buf, edits, err = AppendEdited(buf[:0], t, was(row), edits); err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			}
			f(row, buf)
		}
	}
	return nil
}

// EditsOf returns the edits of a row, or nil if p does not edit the row.
func (p *StoragePatch) EditsOf(row int) []byte {
	return p.EditingOnly(func(other int) bool { return other == row }).Edits
}

// EditingOnly returns p with only the edits of the rows for which the function edits returns true.
func (p StoragePatch) EditingOnly(edits func(row int) bool) StoragePatch {
	v, kept := varints{src: p.Edits}, EditedRows{}
	for _, r := range p.EditRanges {
		for row := r.First; row < r.First+r.N; row++ {
			if of := v.nextEdits(); edits(row) {
				kept.Edits = append(kept.Edits, of...)
				kept.Ranges = appendRange(kept.Ranges, raw.Range{First: row, N: 1})
			}
		}
	}
	p.EditRanges, p.Edits = kept.Ranges, kept.Edits
	return p
}

// Whole returns p with whole values in place of edits, for callers that do not support edits. The
// rows have type t. The function was() returns the old encoding of a row. The values of the result
// are in the order of their rows.
func (p StoragePatch) Whole(t *layout.Type, was func(row int) []byte) (StoragePatch, error) {
	if len(p.EditRanges) == 0 {
		return p, nil
	}
	written, rest := p.Written(), p.Values
	var values []byte
	given := p.ValueRanges
	upTo := func(end int) error { // Appends the whole values of the rows before end.
		for ; len(given) > 0 && given[0].First < end; given = given[1:] {
			n, err := sizeOf(t, rest, given[0].N)
			if err != nil {
				return err
			}
			values, rest = append(values, rest[:n]...), rest[n:]
		}
		return nil
	}
	var fault error
	err := p.EachEdited(t, was, func(row int, edited []byte) {
		if fault == nil {
			fault = upTo(row)
		}
		values = append(values, edited...)
	})
	if err = cmp.Or(err, fault); err == nil {
		err = upTo(p.After)
	}
	p.ValueRanges, p.Values, p.EditRanges, p.Edits = written, append(values, rest...), nil, nil
	return p, err
}

// sizeOf returns the number of bytes of the first n rows in src. The rows have type t.
func sizeOf(t *layout.Type, src []byte, n int) (size int, err error) {
	if width := t.Width(); width >= 0 {
		if size = n * width; size > len(src) {
			return 0, ErrShort
		}
		return size, nil
	}
	for range n {
		row, _, err := t.Next(src[size:])
		if err != nil {
			return 0, err
		}
		size += len(row)
	}
	return size, nil
}

// Written returns the rows whose values p contains or edits, ascending and disjoint.
func (p *StoragePatch) Written() []raw.Range {
	if len(p.EditRanges) == 0 {
		return p.ValueRanges
	}
	var all []raw.Range
	values, edits := p.ValueRanges, p.EditRanges
	for len(values)+len(edits) > 0 {
		next := &values
		if len(values) == 0 || len(edits) > 0 && edits[0].First < values[0].First {
			next = &edits
		}
		all = appendRange(all, (*next)[0])
		*next = (*next)[1:]
	}
	return all
}

// appendRange appends r, or extends the last range if r follows it directly.
func appendRange(ranges []raw.Range, r raw.Range) []raw.Range {
	if k := len(ranges) - 1; k >= 0 && ranges[k].First+ranges[k].N == r.First {
		ranges[k].N += r.N
		return ranges
	}
	return append(ranges, r)
}

// edits reads the edits of this many rows.
func (d *decoder) edits(rows int) []byte {
	edits := d.bin()
	v := varints{src: edits}
	for row := range rows { // A row takes at least one byte, so hostile counts fail soon.
		if d.err != nil {
			return nil
		}
		if err := v.rowEdits(); err != nil {
			d.fail("edits of the %dth row: %w", row+1, err)
		}
	}
	if len(v.src) > 0 {
		d.fail("%d bytes after the edits of %d rows", len(v.src), rows)
	}
	return edits
}

// rowEdits reads the edits of a row and returns an error if they are invalid.
func (v *varints) rowEdits() error {
	n := v.uint()
	// Each edit takes at least three bytes: its three numbers.
	if v.bad || n > uint64(len(v.src))/3 {
		return ErrShort
	}
	for i := range n {
		skipped, removed, given := v.edit()
		switch {
		case v.bad:
			return ErrShort
		case removed == 0 && len(given) == 0:
			return errors.New("an edit changes nothing")
		case i > 0 && skipped < editsApart:
			return fmt.Errorf("an edit is only %d bytes after another", skipped)
		}
	}
	return nil
}
