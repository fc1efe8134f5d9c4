package query

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
)

// A spread has the values for a percentile, with their counts.
//
// All spreads of one column together may have mostValues distinct values. If there are more, all
// values of the column are rounded toward zero to fewer bits, so that many become equal. The final
// number of bits is the same for any order of the values.
type spread struct {
	*precision
	// n has the count of each int, uint64 or float64. -0 counts as 0, and NaN is counted in nans.
	n      map[any]int
	nans   int // Number of NaNs, which come after all other values.
	values int
	// Nil until the first percentile is read. From then on, it is used instead of n.
	order *ranks
}

// A precision is the number of bits of the values in one column.
type precision struct {
	bits int // Significant bits of values.
	kept int // Number of distinct values in all spreads.
	all  []*spread
}

const (
	wholeBits  = 64
	fewestBits = 8 // Least number of bits: values have a relative error of half a percent.
	// mostValues is the maximum number of distinct values in all spreads of a precision. With
	// fewestBits, there is no maximum.
	mostValues = 1 << 18
)

// spread returns an empty spread of p.
func (p *precision) spread() *spread {
	s := &spread{precision: p, n: map[any]int{}}
	p.all = append(p.all, s)
	return s
}

// add adds the number v to the spread.
func (s *spread) add(v any) error {
	if err := numeric(v); err != nil {
		return err
	}
	s.values++
	if f, ok := v.(float64); ok && math.IsNaN(f) {
		s.nans++
		return nil
	}
	s.put(v, 1)
	// Round all spreads of the column, so that all groups of a table have the same precision.
	for s.kept > mostValues && s.bits > fewestBits {
		// The bits decrease in the steps 64, 32, 30, … 8.
		s.bits = min(s.bits-2, 32)
		for _, other := range s.all {
			other.round()
		}
	}
	return nil
}

// take removes v, which was added before. It must not be called after values were rounded.
func (s *spread) take(v any) {
	s.values--
	if f, ok := v.(float64); ok && math.IsNaN(f) {
		s.nans--
		return
	}
	s.put(v, -1)
}

// numeric returns an error if v is not a number.
func numeric(v any) error {
	switch v.(type) {
	case int, uint64, float64:
		return nil
	}
	return fmt.Errorf("%v is not a number", Answer{v})
}

// put adds n to the count of v; n may be -1.
func (s *spread) put(v any, n int) {
	if v = rounded(v, s.bits); v == 0.0 {
		// v may be -0, which equals 0. Replace it, so that both are one key.
		v = 0.0
	}
	// The int 1 and the float 1 are different keys, so they count as two values.
	if s.order != nil {
		s.kept += s.order.add(v, n)
		return
	}
	before := len(s.n)
	if s.n[v] += n; s.n[v] == 0 {
		delete(s.n, v)
	}
	s.kept += len(s.n) - before
}

// round rounds the values of s to the current number of bits.
func (s *spread) round() {
	old := s.n
	if s.order != nil {
		old = s.order.counts()
	}
	s.kept -= len(old)
	s.n, s.order = map[any]int{}, nil
	for v, n := range old {
		s.put(v, n)
	}
}

// rounded rounds a number of any type toward zero to the given number of significant bits. Rounding
// to 32 bits and then to 8 bits returns the same as rounding to 8 bits.
func rounded(v any, significant int) any {
	if significant == wholeBits {
		return v
	}
	switch v := v.(type) {
	case int:
		size := uint64(v)
		if v < 0 {
			size = -size
		}
		if size = cut(size, significant); v < 0 {
			size = -size
		}
		return int(size)
	case uint64:
		return cut(v, significant)
	case float64:
		const mantissa = 52
		drop := max(mantissa+1-significant, 0)
		return math.Float64frombits(math.Float64bits(v) >> drop << drop)
	}
	return v
}

// cut returns n with only the given number of leading bits.
func cut(n uint64, significant int) uint64 {
	drop := max(bits.Len64(n)-significant, 0)
	return n >> drop << drop
}

// percentile returns the smallest value v for which at least p percent of all values are at most v.
// For example, the percentile 50 of 1, 2, 3 and 4 is 2. Without values, percentile returns nil.
func (s *spread) percentile(p int) Answer {
	if s.order == nil {
		s.order, s.n = ranksOf(s.n), nil
	}
	place := max(1, int(math.Ceil(float64(s.values)*float64(p)/100)))
	if v := s.order.at(place); v != nil || s.nans == 0 {
		return Answer{v}
	}
	// NaN comes after all numbers.
	return Answer{math.NaN()}
}

// A variety counts distinct answers. It stores a hash of each answer. If there are more than
// mostKept hashes, it keeps only hashes with at least s.zeros leading zero bits. About one of
// 2^s.zeros hashes has so many. So the number of answers can be estimated from the number of hashes
// that are left.
//
// s.zeros is the smallest number that leaves at most mostKept hashes. If s.all is true, the other
// hashes are stored too, but not counted.
type variety struct {
	hashes map[uint64]int // Number of answers with each hash.
	zeros  int
	with   [65]int // Number of distinct hashes, by leading zero bits.
	// least is the number of distinct hashes with at least s.zeros leading zero bits.
	least int
	all   bool // True if answers may be removed, so that no hash is dropped.
}

// mostKept is the maximum number of hashes in a variety. The error of an estimate is about one part
// in 256.
const mostKept = 1 << 16

func newVariety() *variety { return &variety{hashes: map[uint64]int{}} }

// add adds the answer a.
func (s *variety) add(a Answer) {
	h := hash(a.Key())
	zeros := bits.LeadingZeros64(h)
	if zeros < s.zeros && !s.all {
		return
	}
	if s.hashes[h]++; s.hashes[h] > 1 {
		return
	}
	s.with[zeros]++
	if zeros >= s.zeros {
		s.least++
	}
	// Each step halves the number of hashes, approximately.
	for before := s.zeros; s.least > mostKept; {
		s.least -= s.with[s.zeros]
		if s.zeros++; s.least <= mostKept && !s.all {
			maps.DeleteFunc(s.hashes, func(h uint64, _ int) bool { return bits.LeadingZeros64(h) < s.zeros })
			clear(s.with[before:s.zeros])
		}
	}
}

// take removes the answer a, which was added before. It may be called only if s.all is true.
func (s *variety) take(a Answer) {
	h := hash(a.Key())
	if s.hashes[h]--; s.hashes[h] > 0 {
		return
	}
	delete(s.hashes, h)
	zeros := bits.LeadingZeros64(h)
	s.with[zeros]--
	if zeros >= s.zeros {
		s.least--
	}
	for s.zeros > 0 && s.least+s.with[s.zeros-1] <= mostKept {
		s.zeros--
		s.least += s.with[s.zeros]
	}
}

// hash returns the FNV-1a hash of text, mixed by the finalizer of MurmurHash3, so that the leading
// bits are uniform.
func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(text) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// count returns the estimated number of distinct answers: s.least times 2^s.zeros. It is exact
// while s.zeros is 0.
func (s *variety) count() int {
	return int(float64(s.least) * (math.MaxUint64 / float64(uint64(math.MaxUint64)>>s.zeros)))
}
