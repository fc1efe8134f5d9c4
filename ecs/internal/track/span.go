package track

import (
	"math/bits"
	"slices"
	"unsafe"
)

// A Span is N rows from Row on, and what they were, in memory of a log.
type Span struct {
	Row, N uint32
	old    unsafe.Pointer
}

// Old returns what the rows of s were, of which c's log said so.
func (c *Column[T]) Old(s *Span) []T { return rowsAt[T](s.old, int(s.N)) }

// OldRow is Old of the first row.
func (c *Column[T]) OldRow(s *Span) *T { return (*T)(s.old) }

// Spans is a list of spans in the order of their first rows. It keeps its memory when it
// is read anew.
type Spans struct {
	all   []Span
	order []uint64 // First row and, in the low half, position in all; none if all is ascending.
	other []uint64 // Memory for another one.
}

// Len returns how many there are.
func (s *Spans) Len() int { return len(s.all) }

// At returns the i-th one.
func (s *Spans) At(i int) *Span {
	if i < len(s.order) {
		i = int(uint32(s.order[i]))
	}
	return &s.all[i]
}

// Seek returns the first position from k on whose span ends behind row, or s.Len(). It is soon
// found if it is one of the next.
func (s *Spans) Seek(k int, row uint32) int {
	behind := func(k int) bool { return s.At(k).Row+s.At(k).N > row }
	for next := min(k+8, s.Len()); k < next; k++ {
		if behind(k) {
			return k
		}
	}
	return Search(k, s.Len(), behind)
}

// Spans returns all, and where in it those in order lie, in the low halves of order; if that
// is empty, it is in order itself.
func (s *Spans) Spans() (all []Span, order []uint64) { return s.all, s.order }

// Reset makes s empty. It does not lead to memory of logs then.
func (s *Spans) Reset() {
	clear(s.all)
	s.all, s.order = s.all[:0], s.order[:0]
}

// Add adds n rows from row on, of which no log says what they were. Sort must follow.
func (s *Spans) Add(row, n uint32) { s.all = append(s.all, Span{row, n, nil}) }

// Read makes s, which is empty, the oldest rows that the logs of l from k on hold, each
// once: those that were live when log k was opened. The logs must not be bare, and s is
// valid until they change.
func (s *Spans) Read(l *Log, k int) {
	if l.pieces > 1 {
		s.readLarge(l, k)
		return
	}
	logs := l.logs[min(k, len(l.logs)):]
	if len(logs) == 1 && !logs[0].repeats {
		for _, c := range logs[0].chunks {
			at := 0
			s.all = slices.Grow(s.all, len(c.runs))
			for _, r := range c.runs {
				s.all = append(s.all, Span{r.Row, r.N, c.rows.at(at, l.size)})
				at += int(r.N)
			}
		}
	} else {
		l.oldest(k, func(row int, p unsafe.Pointer, n int) { s.all = append(s.all, Span{uint32(row), uint32(n), p}) })
	}
	s.Sort()
}

// digits is how many bits of a row a pass of the sort looks at, at most.
const digits = 11

// Sort makes s ascending. It is one look at spans that are, and a radix sort of others, as
// what a comparison guesses wrong costs more than what a pass moves.
func (s *Spans) Sort() {
	n := len(s.all)
	s.order = sized(s.order, n)
	last, falls, ones := int64(0), int64(0), uint32(0)
	for i := range s.all {
		row := s.all[i].Row
		s.order[i] = uint64(row)<<32 | uint64(i)
		falls |= int64(row) - last // Negative if one is.
		last, ones = int64(row), ones|row
	}
	if falls >= 0 {
		s.order = s.order[:0]
		return
	}
	s.other = sized(s.other, n)
	width := bits.Len32(ones)
	passes := (width + digits - 1) / digits
	width = (width + passes - 1) / passes
	for pass := range passes {
		distribute(s.other, s.order, 32+pass*width, width)
		s.order, s.other = s.other, s.order
	}
}

// distribute makes dst what src is in the order of width bits from bit shift on, and
// otherwise as it was.
func distribute(dst, src []uint64, shift, width int) {
	var at [1 << digits]uint32
	mask := uint64(1)<<(width&63) - 1
	for _, key := range src {
		at[key>>(shift&63)&mask&(1<<digits-1)]++
	}
	sum := uint32(0)
	for i := range at[:mask+1] {
		at[i], sum = sum, sum+at[i]
	}
	for _, key := range src {
		k := &at[key>>(shift&63)&mask&(1<<digits-1)]
		dst[*k] = key
		*k++
	}
}

// sized returns s with n elements, whatever they are.
func sized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, max(n, 2*cap(s)))
}
