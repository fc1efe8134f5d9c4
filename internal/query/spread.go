package query

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
)

// A spread has the values that a percentile is chosen from, with how often each was met.
//
// Spreads of one column share an amount of memory. While their values fit in it, percentiles are
// exact. If they do not, all values of the column are rounded toward zero to fewer significant
// bits, so that many become one: as few as it takes, whatever order they came in.
type spread struct {
	*precision
	n      map[any]int // Of int, uint64 and float64, none of which is NaN or -0, which counts as 0.
	nans   int         // Behind all others.
	values int
	order  *ranks // In place of n from the first percentile on; nil: not known.
}

// A precision is what spreads of one column share.
type precision struct {
	bits int // Significant ones that values keep.
	kept int // Values in all of the spreads.
	all  []*spread
}

const (
	wholeBits  = 64
	fewestBits = 8       // Half a percent.
	mostValues = 1 << 18 // That a precision keeps, unless it has the fewest bits.
)

// spread returns a spread of p, in which nothing is yet.
func (p *precision) spread() *spread {
	s := &spread{precision: p, n: map[any]int{}}
	p.all = append(p.all, s)
	return s
}

// add adds v, a number.
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
	// All spreads of the column are rounded, not only this one: groups of one table are to be near
	// by the same measure.
	for s.kept > mostValues && s.bits > fewestBits {
		s.bits = min(s.bits-2, 32) // 64, 32, 30, … 8.
		for _, other := range s.all {
			other.round()
		}
	}
	return nil
}

// take takes out v, which was added. Nothing may have been rounded: else it is not known which of the
// values that became one it was.
func (s *spread) take(v any) {
	s.values--
	if f, ok := v.(float64); ok && math.IsNaN(f) {
		s.nans--
		return
	}
	s.put(v, -1)
}

// numeric returns an error if v is no number.
func numeric(v any) error {
	switch v.(type) {
	case int, uint64, float64:
		return nil
	}
	return fmt.Errorf("%v is no number", Answer{v})
}

// put adds n times v, or takes it out if n is -1.
func (s *spread) put(v any, n int) {
	if v = rounded(v, s.bits); v == 0.0 {
		v = 0.0 // One of 0 and -0.
	}
	// 1 as an int and 1 as a float are two keys, and their places are next to each other.
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

// round rounds what s has.
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

// rounded returns a number with its first significant bits: the others become 0, so it moves toward
// zero and stays of its type. What was rounded to more bits before comes to the same.
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

// cut returns n with its first significant bits.
func cut(n uint64, significant int) uint64 {
	drop := max(bits.Len64(n)-significant, 0)
	return n >> drop << drop
}

// percentile returns the least value that is not below p percent of all: one of them, or what it
// was rounded to; nothing of no values.
func (s *spread) percentile(p int) Answer {
	if s.order == nil {
		s.order, s.n = ranksOf(s.n), nil
	}
	place := max(1, int(math.Ceil(float64(s.values)*float64(p)/100)))
	if v := s.order.at(place); v != nil || s.nans == 0 {
		return Answer{v}
	}
	return Answer{math.NaN()} // The place is behind all numbers, where the NaNs are.
}

// A variety counts different answers: exactly up to mostKept of them. Of more it counts those whose
// hashes are least, from which it is known how densely all hashes lie:
//
//	hash    000… 001… 01…. 1…..    how many begin with three zeros, two, one, none
//	zeros     3    2    1    0     the fewest so that at most mostKept begin with as many, or more
//
// Only those are kept, but if any may be taken out again.
type variety struct {
	hashes map[uint64]int // And how many answers have it.
	zeros  int
	with   [65]int // Hashes by how many zeros they begin with.
	least  int     // Hashes of at least that many.
	all    bool    // Every one is kept.
}

// mostKept is how many hashes a variety counts; the more, the nearer it is: one part in 256.
const mostKept = 1 << 16

func newVariety() *variety { return &variety{hashes: map[uint64]int{}} }

// add counts a, if it is another one than all before.
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
	// A hash begins with one more zero half as often, so each step halves what is kept, about.
	for before := s.zeros; s.least > mostKept; {
		s.least -= s.with[s.zeros]
		if s.zeros++; s.least <= mostKept && !s.all {
			maps.DeleteFunc(s.hashes, func(h uint64, _ int) bool { return bits.LeadingZeros64(h) < s.zeros })
			clear(s.with[before:s.zeros])
		}
	}
}

// take takes out a, which was added. All hashes must have been kept.
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

// hash returns FNV-1a of text, its bits mixed as MurmurHash3 ends: their order is what counts.
func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(text) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// count returns how many there are, about: 2^zeros times as many as those whose hashes begin so.
func (s *variety) count() int {
	return int(float64(s.least) * (math.MaxUint64 / float64(uint64(math.MaxUint64)>>s.zeros)))
}
