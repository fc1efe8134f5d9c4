package layout

import (
	"encoding/binary"
	"math"
	"slices"
)

// A shift copies some bytes of a packed row to their position in a row of another layout. Shifts
// are compiled once, like moves, and each shift runs for all rows of a block before the next.
type shift struct {
	// Offsets of the bytes in the old and the new row.
	from, to int
	// Number of bytes to copy. 0 if the shift widens a number, or is a loop.
	size int

	// For a number: the old and the new kind.
	fromKind, toKind Kind

	// For a loop: body runs for count elements. The elements are fromStep bytes apart in the old
	// row and toStep bytes in the new row.
	count            int
	fromStep, toStep int
	body             []shift
}

// collectShifts appends the shifts for a pair of fixed layouts. from and to are the offsets of the
// values in their rows.
func collectShifts(shifts []shift, pair *match, from, to int) []shift {
	if pair.same {
		return addShift(shifts, shift{from: from, to: to, size: pair.from.Width()})
	}
	switch pair.from.Kind {
	case Struct:
		starts := make([]int, len(pair.to.Fields))
		for k, g := range pair.to.Fields {
			starts[k] = to
			to += g.Type.Width()
		}
		for i, f := range pair.from.Fields {
			if k := pair.targets[i]; k >= 0 {
				shifts = collectShifts(shifts, pair.fields[i], from, starts[k])
			}
			from += f.Type.Width()
		}
		return shifts
	case Array:
		return collectArrayShifts(shifts, pair, from, to)
	case Complex64:
		return append(shifts,
			shift{from: from, to: to, fromKind: Float32, toKind: Float64},
			shift{from: from + 4, to: to + 8, fromKind: Float32, toKind: Float64})
	}
	return append(shifts, shift{from: from, to: to, fromKind: pair.from.Kind, toKind: pair.to.Kind})
}

// collectArrayShifts implements collectShifts for arrays.
func collectArrayShifts(shifts []shift, pair *match, from, to int) []shift {
	n, fromStep, toStep := min(pair.from.Len, pair.to.Len), pair.from.Elem.Width(), pair.to.Elem.Width()
	if pair.elem.same {
		return addShift(shifts, shift{from: from, to: to, size: n * fromStep})
	}
	body := collectShifts(nil, pair.elem, 0, 0)
	if n == 0 || len(body) == 0 {
		return shifts
	}
	return append(shifts, shift{from: from, to: to, count: n, fromStep: fromStep, toStep: toStep, body: body})
}

// addShift appends the copy s, or extends the last shift if s follows it directly.
func addShift(shifts []shift, s shift) []shift {
	if s.size == 0 {
		return shifts
	}
	if n := len(shifts); n > 0 {
		last := &shifts[n-1]
		if last.size > 0 && last.from+last.size == s.from && last.to+last.size == s.to {
			last.size += s.size
			return shifts
		}
	}
	return append(shifts, s)
}

// shift converts the n rows of src and appends them to dst.
func (c *Conversion) shift(dst, src []byte, n int) []byte {
	start := len(dst)
	dst = slices.Grow(dst, n*c.toWidth)[:start+n*c.toWidth]
	out := dst[start:]
	clear(out)
	var numbers [blockRows]uint64
	for first := 0; first < n; first += blockRows {
		s := shifting{src[first*c.fromWidth:], out[first*c.toWidth:], c.fromWidth, c.toWidth, numbers[:min(blockRows, n-first)]}
		s.run(c.shifts, 0, 0)
	}
	return dst
}

// A shifting converts one block of rows. It holds the bytes of the old and the new rows.
type shifting struct {
	from, to           []byte
	fromWidth, toWidth int
	// Scratch space with one number per row.
	numbers []uint64
}

// run applies the shifts to all rows of the block. The offsets in the shifts are relative to from
// in the old row, and to the parameter to in the new row.
func (s *shifting) run(shifts []shift, from, to int) {
	for k := range shifts {
		p := &shifts[k]
		switch {
		case p.size > 0:
			s.copy(from+p.from, to+p.to, p.size)
		case p.body != nil:
			for i := range p.count {
				s.run(p.body, from+p.from+i*p.fromStep, to+p.to+i*p.toStep)
			}
		default:
			s.load(from+p.from, p.fromKind.bits()/8)
			if p.fromKind.signed() {
				extendSigns(s.numbers, p.fromKind.bits())
			}
			widenAll(s.numbers, p.fromKind, p.toKind)
			s.store(to+p.to, p.toKind.bits()/8)
		}
	}
}

// copy copies the given number of bytes of each row.
func (s *shifting) copy(from, to, size int) {
	switch size {
	case 1, 2, 4, 8:
		s.load(from, size)
		s.store(to, size)
		return
	}
	for range s.numbers {
		copy(s.to[to:to+size], s.from[from:from+size])
		from, to = from+s.fromWidth, to+s.toWidth
	}
}

// load reads a number of this size from each row.
func (s *shifting) load(from, size int) {
	src := s.from
	switch size {
	case 1:
		for i := range s.numbers {
			s.numbers[i] = uint64(src[from])
			from += s.fromWidth
		}
	case 2:
		for i := range s.numbers {
			s.numbers[i] = uint64(binary.LittleEndian.Uint16(src[from:]))
			from += s.fromWidth
		}
	case 4:
		for i := range s.numbers {
			s.numbers[i] = uint64(binary.LittleEndian.Uint32(src[from:]))
			from += s.fromWidth
		}
	default:
		for i := range s.numbers {
			s.numbers[i] = binary.LittleEndian.Uint64(src[from:])
			from += s.fromWidth
		}
	}
}

// extendSigns extends signed integers of the given number of bits to 64 bits.
func extendSigns(numbers []uint64, bits int) {
	unused := 64 - bits
	for i, x := range numbers {
		numbers[i] = uint64(int64(x<<unused) >> unused)
	}
}

// store writes a number of this size to each row.
func (s *shifting) store(to, size int) {
	dst := s.to
	switch size {
	case 1:
		for _, x := range s.numbers {
			dst[to] = uint8(x)
			to += s.toWidth
		}
	case 2:
		for _, x := range s.numbers {
			binary.LittleEndian.PutUint16(dst[to:], uint16(x))
			to += s.toWidth
		}
	case 4:
		for _, x := range s.numbers {
			binary.LittleEndian.PutUint32(dst[to:], uint32(x))
			to += s.toWidth
		}
	default:
		for _, x := range s.numbers {
			binary.LittleEndian.PutUint64(dst[to:], x)
			to += s.toWidth
		}
	}
}

// widenAll converts numbers to floats. Integers that become wider integers are unchanged: they
// already have 64 bits.
func widenAll(numbers []uint64, from, to Kind) {
	if to != Float32 && to != Float64 {
		return
	}
	for i, x := range numbers {
		numbers[i] = widen(x, from, to)
	}
}

// widen converts the number with the bits x between two kinds. It returns the bits of the result.
func widen(x uint64, from, to Kind) uint64 {
	switch {
	case from == Float32 && to == Float64:
		return widenFloat(uint32(x))
	case to == Float32 && from != Float32:
		// Only integers of up to 16 bits become a float32, so x fits into an int64.
		return uint64(math.Float32bits(float32(int64(x))))
	case to == Float64 && from != Float64:
		return math.Float64bits(float64(int64(x)))
	}
	return x
}

// widenFloat returns the bits of the float64 that equals the float32 with the given bits. It keeps
// the bits of a NaN on all machines, unlike a conversion by the processor.
func widenFloat(bits uint32) uint64 {
	const exponent, fraction = 0x7f800000, 0x007fffff
	if bits&exponent == exponent && bits&fraction != 0 {
		return uint64(bits>>31)<<63 | 0x7ff<<52 | uint64(bits&fraction)<<29
	}
	return math.Float64bits(float64(math.Float32frombits(bits)))
}
