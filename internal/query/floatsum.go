package query

import (
	"math"
	"math/big"
)

// A floatSum is an exact sum of floats. The sum does not depend on the order of the floats, and an
// added float can be removed again.
//
// The sum is a number with 68 digits in base 2^32. The unit of digit 0 is 2^-1074, the least float.
// An added float changes up to three digits. Digits are signed and may exceed the base. carry()
// runs before a digit exceeds 64 bits.
//
// See Radford Neal, "Fast exact summation using small and large superaccumulators" (2015).
type floatSum struct {
	digits [68]int64
	since  int // Number of floats added since the last carry.

	nan, up, down int // Numbers of NaNs and infinities, which have no digits.
}

const (
	digitBits = 32
	leastBits = 1074    // The least float is 2^-1074.
	maxAdded  = 1 << 30 // Each float adds less than 2^32 to a digit.
)

// add adds f if n is 1, and subtracts f if n is -1.
func (s *floatSum) add(f float64, n int) {
	bits := math.Float64bits(f)
	exponent, mantissa := int(bits>>52&0x7ff), bits&(1<<52-1)
	switch {
	case exponent == 0x7ff && mantissa != 0:
		s.nan += n
		return
	case exponent == 0x7ff && f > 0:
		s.up += n
		return
	case exponent == 0x7ff:
		s.down += n
		return
	// A normal float has an implicit leading bit.
	case exponent > 0:
		mantissa |= 1 << 52
		exponent--
	}
	sign := int64(n)
	if f < 0 {
		sign = -sign
	}
	// f is the mantissa times 2^(exponent-1074). Shifted into place, the mantissa has up to three
	// digits of 32 bits.
	const low = 1<<digitBits - 1
	i, shift := exponent/digitBits, exponent%digitBits
	s.digits[i] += sign * int64(mantissa<<shift&low)
	mantissa >>= digitBits - shift
	s.digits[i+1] += sign * int64(mantissa&low)
	s.digits[i+2] += sign * int64(mantissa>>digitBits)
	if s.since++; s.since == maxAdded {
		s.carry()
	}
}

// carry makes all digits except the last non-negative and less than the base.
func (s *floatSum) carry() {
	s.since = 0
	for i := range len(s.digits) - 1 {
		s.digits[i+1] += s.digits[i] >> digitBits
		s.digits[i] &= 1<<digitBits - 1
	}
}

// near returns the float nearest to the sum.
func (s *floatSum) near() float64 {
	switch {
	case s.nan > 0 || s.up > 0 && s.down > 0:
		return math.NaN()
	case s.up > 0:
		return math.Inf(1)
	case s.down > 0:
		return math.Inf(-1)
	}
	s.carry()
	sum, digit := new(big.Int), new(big.Int)
	for i := len(s.digits) - 1; i >= 0; i-- {
		sum.Lsh(sum, digitBits).Add(sum, digit.SetInt64(s.digits[i]))
	}
	exact := new(big.Float).SetInt(sum)
	near, _ := exact.SetMantExp(exact, -leastBits).Float64()
	return near
}
