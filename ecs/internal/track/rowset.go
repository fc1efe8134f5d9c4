package track

import (
	"math/bits"
	"unsafe"
)

// A Run is a range of N consecutive rows that starts at Row.
type Run struct{ Row, N uint32 }

// A RowSet is a set of row numbers, one bit each. It is scratch space. Each user leaves the set
// empty and clears only the words that it wrote.
type RowSet struct{ words []uint64 }

// Add adds the rows of r. It calls added for the rows that were not in the set before, in ascending
// order. Each call passes n consecutive rows, beginning with the given row. If all rows of r are
// new, Add makes a single call. Otherwise each call passes rows of one block of 64 rows.
func (s *RowSet) Add(r Run, added func(row, n uint32)) {
	for need := int(r.Row+r.N+63) / 64; len(s.words) < need; {
		s.words = append(s.words, make([]uint64, max(16, need-len(s.words)))...)
	}
	if s.fill(r) {
		added(r.Row, r.N)
		return
	}
	for row, end := r.Row, r.Row+r.N; row < end; {
		stop := min(row|63+1, end)
		fresh := blockMask(row, stop) &^ s.words[row>>6]
		s.words[row>>6] |= fresh
		for fresh != 0 {
			from := uint32(bits.TrailingZeros64(fresh))
			n := uint32(bits.TrailingZeros64(^(fresh >> from)))
			added(row&^63+from, n)
			fresh &^= (1<<n - 1) << from
		}
		row = stop
	}
}

// fill adds all rows of r if the set contains none of them, and returns whether it added them.
func (s *RowSet) fill(r Run) bool {
	end := r.Row + r.N
	for row := r.Row; row < end; row = row | 63 + 1 {
		if s.words[row>>6]&blockMask(row, min(row|63+1, end)) != 0 {
			return false
		}
	}
	for row := r.Row; row < end; row = row | 63 + 1 {
		s.words[row>>6] |= blockMask(row, min(row|63+1, end))
	}
	return true
}

// remove removes the rows of r.
func (s *RowSet) remove(r Run) {
	end := r.Row + r.N
	for row := r.Row; row < end; row = row | 63 + 1 {
		s.words[row>>6] &^= blockMask(row, min(row|63+1, end))
	}
}

// blockMask returns the bits of rows [from, to) within their block of 64 rows. All rows must be in
// the same block.
func blockMask(from, to uint32) uint64 {
	return ^uint64(0) << (from & 63) & (^uint64(0) >> (63 - (to-1)&63))
}

// Drain empties the set. It calls f for all rows that were in the set, in ascending order, as
// ranges [lo, hi). Each range is within one block of 64 rows.
func (s *RowSet) Drain(f func(lo, hi int)) {
	for i, word := range s.words {
		for word != 0 {
			from := bits.TrailingZeros64(word)
			n := bits.TrailingZeros64(^(word >> from))
			f(i<<6+from, i<<6+from+n)
			word &^= (1<<n - 1) << from
		}
		s.words[i] = 0
	}
}

// Bytes returns the memory size of the set.
func (s *RowSet) Bytes() int64 { return room(s.words) }

// room returns the memory size of the slice s in bytes, including its spare capacity.
func room[T any](s []T) int64 {
	var zero T
	return int64(cap(s)) * int64(unsafe.Sizeof(zero))
}
