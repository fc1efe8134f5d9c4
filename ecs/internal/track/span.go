package track

import (
	"math/bits"
	"slices"
	"unsafe"
)

// A Span is a range of N rows that begins with Row, with their old values in the memory of a log.
type Span struct {
	Row, N uint32
	old    unsafe.Pointer
}

// Old returns the old values of the rows of s. The span must come from the log of c.
func (c *Column[T]) Old(s *Span) []T { return rowsAt[T](s.old, int(s.N)) }

// OldRow returns the old value of the first row of s.
func (c *Column[T]) OldRow(s *Span) *T { return (*T)(s.old) }

// Spans is a list of spans, ordered by their first rows. Reset empties the list, and the next Read
// reuses its memory.
type Spans struct {
	all []Span
	// Keys that sort the spans: one for each span, or none if the field all is already sorted. The
	// upper half of a key is the first row of the span. The lower half is the position of the span
	// in the field all.
	order []uint64
	// Second buffer of the sort.
	other []uint64
}

// Len returns the number of spans.
func (s *Spans) Len() int { return len(s.all) }

// At returns the i-th span.
func (s *Spans) At(i int) *Span {
	if i < len(s.order) {
		i = int(uint32(s.order[i]))
	}
	return &s.all[i]
}

// Seek returns the first position at or after k whose span ends after the given row, or s.Len(). It
// is fast if the result is near k.
func (s *Spans) Seek(k int, row uint32) int {
	behind := func(k int) bool { return s.At(k).Row+s.At(k).N > row }
	for next := min(k+8, s.Len()); k < next; k++ {
		if behind(k) {
			return k
		}
	}
	return Search(k, s.Len(), behind)
}

// Spans returns all spans. If order is empty, all is sorted by row. Otherwise the i-th span by row
// is all[uint32(order[i])].
func (s *Spans) Spans() (all []Span, order []uint64) { return s.all, s.order }

// Reset empties s and drops its references to the memory of logs.
func (s *Spans) Reset() {
	clear(s.all)
	s.all, s.order = s.all[:0], s.order[:0]
}

// Add adds n rows, beginning with the given row, without old values. Call Sort afterwards.
func (s *Spans) Add(row, n uint32) { s.all = append(s.all, Span{row, n, nil}) }

// Read fills s with the rows in the logs of l from position k on. Each row occurs once, with its
// oldest value in these logs. This value was live when log k was opened. Before the call, s must be
// empty. The logs must not be bare. s is valid until the logs change.
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

// digits is the maximum number of bits that one pass of the sort handles.
const digits = 11

// Sort brings s into ascending order. It makes one pass if the spans are already in order, and a
// radix sort otherwise. A radix sort is faster here than comparisons, because mispredicted branches
// cost more than moving the keys.
func (s *Spans) Sort() {
	n := len(s.all)
	s.order = sized(s.order, n)
	last, falls, ones := int64(0), int64(0), uint32(0)
	for i := range s.all {
		row := s.all[i].Row
		s.order[i] = uint64(row)<<32 | uint64(i)
		// falls becomes negative if a row is smaller than the row before it.
		falls |= int64(row) - last
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

// distribute sorts src into dst by one digit of the keys. The digit consists of the bits [shift,
// shift+width) of a key. Keys with equal digits keep their order.
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

// sized returns a slice with n elements of undefined contents. It reuses s if s has the capacity.
func sized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, max(n, 2*cap(s)))
}
