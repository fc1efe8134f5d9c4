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

// An edit is a part of what says what a large row is by what it was: bytes [from, to) of its
// old encoding are removed, and bytes [at, end) of the new one come in their place.
//
//	then  | kept | removed | kept    | removed | kept |
//	now   | kept | given     | kept    | given | kept |
//
//	edits   number of them, then for each: skipped, removed, given, the bytes given
//
//	abc10def to abc7def   1   3 2 1 7
//
// All numbers are varints; skipped counts the bytes of the old row since what the last edit
// removed. Each edit begins and ends where the rows differ, and at least editsApart bytes are
// kept between two, so that one change has one text.
type edit struct{ from, to, at, end int }

// editsApart is how many equal bytes end an edit: another one costs about as many.
const editsApart = 8

// EditedRows are rows of a storage that a tick gives by edits. It keeps its memory when it is
// begun again, unless that is large.
type EditedRows struct {
	Ranges []raw.Range // Ascending, apart from each other.
	Edits  []byte      // Of these rows, one after the other.
	edits  []edit
}

// Begin makes e empty.
func (e *EditedRows) Begin() { e.Ranges, e.Edits = e.Ranges[:0], grow.Keep(e.Edits) }

// Add adds row, which was then and is now, unless it is not large or its edits are no shorter
// than itself: it is to be given whole then. Rows come in ascending order.
func (e *EditedRows) Add(row int, then, now []byte) {
	if len(now) <= raw.LargeRow {
		return
	}
	// The least size first: it refuses most of the rows that are given whole before they are copied.
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

// giveBack gives the memory of edits back if that is large.
func (e *EditedRows) giveBack() {
	if cap(e.edits) > grow.MaxKept/int(unsafe.Sizeof(edit{})) {
		e.edits = nil
	}
}

// leastSize returns how many bytes edits take at least: three numbers, of a byte or more each, and
// what is given.
func leastSize(edits []edit) (n int) {
	for _, d := range edits {
		n += 3 + d.end - d.at
	}
	return n
}

// encodeEdits appends edits that lead to the row now.
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

// appendEdits appends what leads from one row to another. What they end with in common is kept.
// Before that, spans that differ are edits, as many bytes as both have; the longer one has a rest,
// which is the last. So what is inserted or removed at one place is one edit, whatever changed
// before it: the lengths that are encoded there change with it.
func appendEdits(dst []edit, then, now []byte) []edit {
	if len(then) == len(now) {
		return appendSpans(dst, then, now)
	}
	// What both begin with does not count as an end: "aa" that becomes "aaa" has one of them only.
	n := min(len(then), len(now))
	first := differs(then[:n], now[:n], 0)
	same := sameEnd(then[first:], now[first:])
	from, at := len(then)-same, len(now)-same
	n = min(from, at)
	dst = appendSpans(dst, then[:n], now[:n])
	// Up to n bytes lie side by side. Behind them one of the two has nothing left, the other its rest.
	if k := len(dst) - 1; k >= 0 && n-dst[k].to < editsApart {
		dst[k].to, dst[k].end = from, at
		return dst
	}
	return append(dst, edit{n, from, n, at})
}

// sameEnd returns how many bytes a and b end with that are equal.
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

// appendSpans appends the spans in which a and b, which are equally long, differ.
func appendSpans(dst []edit, a, b []byte) []edit {
	for at := differs(a, b, 0); at < len(a); {
		end, next := spanEnd(a, b, at)
		dst = append(dst, edit{at, end, at, end})
		at = next
	}
	return dst
}

// differs returns the first place from at on where a and b, which are equally long, differ, or
// their length. Long equal parts are compared at once.
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

// spanEnd returns the end of the span that begins at at, and where the next one begins. Within
// a word that differs nothing ends: at most six of its bytes lie between two others.
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
		// The upper half of this word differs, so at most three equal bytes end it. Words of which
		// both halves differ begin with three at most. That is less than editsApart: between them no
		// span ends, and rows of which most bytes changed are gone through without a closer look.
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

// dense returns how many bytes a and b begin with in words of which both halves differ.
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

// word returns the eight bytes of b from at on.
func word(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// ErrEdits says that edits do not fit the row that they change.
var ErrEdits = errors.New("edits that do not fit what the row was")

// AppendEdited appends row, of type t, as the first of edits change it, to dst, and returns the
// edits of the rows behind it. The edits were decoded; whether they lead to a row is looked at.
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

// repeats reports whether an edit begins or ends with what was there before. None that was written
// does: it would be shorter without, and a change have two texts.
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

// nextEdits cuts the edits of a row off, and returns them.
func (v *varints) nextEdits() []byte {
	from := v.src
	for range v.uint() {
		v.edit()
	}
	return from[:len(from)-len(v.src)]
}

// EachEdited calls f with each row that p edits, ascending, as it is then, which is valid until
// f returns. The rows are of type t, and were what was returns.
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

// EditsOf returns the edits of a row; nil: p has none.
func (p *StoragePatch) EditsOf(row int) []byte {
	return p.EditingOnly(func(other int) bool { return other == row }).Edits
}

// EditingOnly returns p without the edits of rows for which edits returns false.
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

// Whole returns p with all rows that it edits given: they are of type t, and were what was
// returns. Values of both kinds are brought into the order of their rows, for who takes rows only.
func (p StoragePatch) Whole(t *layout.Type, was func(row int) []byte) (StoragePatch, error) {
	if len(p.EditRanges) == 0 {
		return p, nil
	}
	written, rest := p.Written(), p.Values
	var values []byte
	given := p.ValueRanges
	upTo := func(end int) error { // Appends what p gives of the rows before end.
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

// sizeOf returns how many bytes the first n rows in src, which are of type t, have.
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

// Written returns the rows that p gives or edits, ascending and disjoint.
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

// appendRange appends r, which becomes a part of the last range if it follows that.
func appendRange(ranges []raw.Range, r raw.Range) []raw.Range {
	if k := len(ranges) - 1; k >= 0 && ranges[k].First+ranges[k].N == r.First {
		ranges[k].N += r.N
		return ranges
	}
	return append(ranges, r)
}

// edits reads the edits of so many rows.
func (d *decoder) edits(rows int) []byte {
	edits := d.bin()
	v := varints{src: edits}
	for row := range rows { // A row takes a byte at least, so hostile counts end soon.
		if d.err != nil {
			return nil
		}
		if err := v.rowEdits(); err != nil {
			d.fail("edits of the %dth row: %w", row+1, err)
		}
	}
	if len(v.src) > 0 {
		d.fail("%d bytes behind the edits of %d rows", len(v.src), rows)
	}
	return edits
}

// rowEdits reads the edits of a row, and returns what is wrong with them.
func (v *varints) rowEdits() error {
	n := v.uint()
	if v.bad || n > uint64(len(v.src))/3 { // An edit has three numbers.
		return ErrShort
	}
	for i := range n {
		skipped, removed, given := v.edit()
		switch {
		case v.bad:
			return ErrShort
		case removed == 0 && len(given) == 0:
			return errors.New("one that changes nothing")
		case i > 0 && skipped < editsApart:
			return fmt.Errorf("one %d bytes behind another", skipped)
		}
	}
	return nil
}
