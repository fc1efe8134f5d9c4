package query

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
)

// A spread has the values for a percentile, with their counts.
//
// Spreads of one column share a memory limit. While their values fit, percentiles are exact.
// Otherwise all values of the column are rounded toward zero to fewer significant bits, so that
// many become equal. The number of bits depends only on the values, not on their order.
type spread struct {
	*precision
	// n has the count of each value. Values have type int, uint64 or float64, without NaN. -0
	// counts as 0.
	n      map[any]int
	nans   int // Number of NaNs, which come after all other values.
	values int
	order  *ranks // Nil until a percentile is read, then used instead of n.
}

// A precision is the number of bits that the spreads of one column use. They share one precision.
type precision struct {
	bits int // Significant bits of values.
	kept int // Number of distinct values in all spreads.
	all  []*spread
}

const (
	wholeBits  = 64
	fewestBits = 8 // The least precision: values have a relative error of half a percent.
	// mostValues is the maximum number of distinct values in all spreads of a precision. It does
	// not apply once the precision is down to fewestBits.
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
	// Round all spreads of the column, not only this one, so that all groups of a table have the
	// same precision.
	for s.kept > mostValues && s.bits > fewestBits {
		// The bits decrease in the steps 64, 32, 30, … 8.
		s.bits = min(s.bits-2, 32)
		for _, other := range s.all {
			other.round()
		}
	}
	return nil
}

// take removes v, which was added before. The values of s must not be rounded, because a rounded
// value may stand for several values.
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
		// v == 0.0 also holds for -0, so this turns -0 into 0.
		v = 0.0
	}
	// The int 1 and the float 1 count as two values, at adjacent positions.
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

// round rounds the values of s to the current bits.
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

// rounded rounds a number toward zero to its first significant bits. The type stays the same.
// Rounding in several steps returns the same as in one.
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

// cut returns n with only its first significant bits.
func cut(n uint64, significant int) uint64 {
	drop := max(bits.Len64(n)-significant, 0)
	return n >> drop << drop
}

// percentile returns the least value such that at least p percent of all values are not greater.
// The value may be rounded. It returns nil if there are no values.
func (s *spread) percentile(p int) Answer {
	if s.order == nil {
		s.order, s.n = ranksOf(s.n), nil
	}
	place := max(1, int(math.Ceil(float64(s.values)*float64(p)/100)))
	if v := s.order.at(place); v != nil || s.nans == 0 {
		return Answer{v}
	}
	// No number has this position, so it belongs to a NaN.
	return Answer{math.NaN()}
}

// A variety counts distinct answers. The count is exact up to mostKept answers. Above that, variety
// stores only the answers with the least hashes, and estimates the count from the density of these
// hashes:
//
//	hash    000… 001… 01…. 1…..    hashes, grouped by leading zero bits
//	zeros     3    2    1    0     at most mostKept hashes have this many zero bits or more
//
// The field zeros is the least such number. Hashes with fewer zero bits are dropped, unless answers
// may be removed again. The field all is set then.
type variety struct {
	hashes map[uint64]int // Number of answers with each hash.
	zeros  int
	with   [65]int // Number of distinct hashes, by leading zero bits.
	least  int     // Number of distinct hashes that have zeros or more leading zero bits.
	all    bool    // If set, no hash is dropped.
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
	// Each step requires one more zero bit, so it halves the number of hashes, approximately.
	for before := s.zeros; s.least > mostKept; {
		s.least -= s.with[s.zeros]
		if s.zeros++; s.least <= mostKept && !s.all {
			maps.DeleteFunc(s.hashes, func(h uint64, _ int) bool { return bits.LeadingZeros64(h) < s.zeros })
			clear(s.with[before:s.zeros])
		}
	}
}

// take removes a, which was added before. It requires that all is set.
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

// hash returns the FNV-1a hash of text, mixed by the finalizer of MurmurHash3 to make the leading
// bits uniform.
func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(text) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// count returns the estimated number of distinct answers: 2^zeros times least.
func (s *variety) count() int {
	return int(float64(s.least) * (math.MaxUint64 / float64(uint64(math.MaxUint64)>>s.zeros)))
}
