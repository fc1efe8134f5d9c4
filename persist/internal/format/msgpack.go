package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The bytes of a store are MessagePack values, which an Encoder writes and a decoder reads. Lists
// of small numbers are stored as varints inside a bin. A decoder must check each length before it
// allocates, and must never panic. This package has its own code for msgpack: a library would add
// 0.5 MB to a program in a browser.

// An Encoder appends msgpack values to a buffer that is reused. Integers and lengths get their
// shortest form.
type Encoder struct {
	Buf []byte
}

// NewEncoder returns an encoder with its own buffer.
func NewEncoder() *Encoder { return new(Encoder) }

// array begins an array of n values.
func (e *Encoder) array(n int) { e.head(uint64(n), 0x90, 16, 0, 0xdc) }

// Uint writes an unsigned number.
func (e *Encoder) Uint(v uint64) { e.head(v, 0, 0x80, 0xcc, 0xcd) }

// int writes a number. Numbers from 0 are written as unsigned numbers.
func (e *Encoder) int(v int64) {
	switch {
	case v >= 0:
		e.Uint(uint64(v))
	case v >= -32:
		e.Buf = append(e.Buf, byte(v))
	case v >= math.MinInt8:
		e.Buf = append(e.Buf, 0xd0, byte(v))
	case v >= math.MinInt16:
		e.Buf = binary.BigEndian.AppendUint16(append(e.Buf, 0xd1), uint16(v))
	case v >= math.MinInt32:
		e.Buf = binary.BigEndian.AppendUint32(append(e.Buf, 0xd2), uint32(v))
	default:
		e.Buf = binary.BigEndian.AppendUint64(append(e.Buf, 0xd3), uint64(v))
	}
}

// head writes a number or a length v in the first of these forms that v fits into:
//
//	v < limit        one byte: small + v
//	v of 1 byte      code8, v; only if code8 is not 0
//	v of 2 bytes     code16, v
//	v of 4 bytes     code16+1, v
//	v of 8 bytes     code16+2, v
func (e *Encoder) head(v uint64, small byte, limit uint64, code8, code16 byte) {
	switch {
	case v < limit:
		e.Buf = append(e.Buf, small|byte(v))
	case v <= math.MaxUint8 && code8 != 0:
		e.Buf = append(e.Buf, code8, byte(v))
	case v <= math.MaxUint16:
		e.Buf = binary.BigEndian.AppendUint16(append(e.Buf, code16), uint16(v))
	case v <= math.MaxUint32:
		e.Buf = binary.BigEndian.AppendUint32(append(e.Buf, code16+1), uint32(v))
	default:
		e.Buf = binary.BigEndian.AppendUint64(append(e.Buf, code16+2), v)
	}
}

// nil writes nil, which stands for an absent value.
func (e *Encoder) nil() { e.Buf = append(e.Buf, 0xc0) }

// binLen begins a bin of n bytes. The caller appends the bytes.
func (e *Encoder) binLen(n int) { e.head(uint64(n), 0, 0, 0xc4, 0xc5) }

// str writes a text.
func (e *Encoder) str(s string) {
	e.head(uint64(len(s)), 0xa0, 32, 0xd9, 0xda)
	e.Buf = append(e.Buf, s...)
}

// bool writes a truth value.
func (e *Encoder) bool(v bool) {
	if v {
		e.Buf = append(e.Buf, 0xc3)
	} else {
		e.Buf = append(e.Buf, 0xc2)
	}
}

// bin writes bytes. An empty b becomes an empty bin, never nil.
func (e *Encoder) bin(b []byte) {
	e.binLen(len(b))
	e.Buf = append(e.Buf, b...)
}

// A decoder reads msgpack values from untrusted bytes. Its error is sticky: after an error, no
// input is left, and every method returns zero. So a loop ends soon, even if the input claims a
// billion elements.
//
// A decoder accepts the forms that an Encoder writes, and also longer forms of numbers and lengths.
// No length may exceed the remaining bytes. So the size of the decoded values is bounded by a
// constant factor times the size of src.
type decoder struct {
	src []byte
	err error
}

// ErrShort reports that the bytes end inside a value.
var ErrShort = errors.New("value cut short")

// fail sets the first error and drops the remaining input.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	d.src = nil
}

// take returns the next n bytes, which share memory with the source. n is an unchecked length: with
// 32-bit ints it can be negative.
func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.src) {
		d.fail("%w", ErrShort)
		return nil
	}
	b := d.src[:n]
	d.src = d.src[n:]
	return b
}

// byte reads the first byte of a value: its type code.
func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

// bigEndian reads an unsigned number of n bytes.
func (d *decoder) bigEndian(n int) (v uint64) {
	for _, b := range d.take(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

// array reads the length of an array, which must be n.
func (d *decoder) array(n int) {
	if got := d.arrayLen(); d.err == nil && got != n {
		d.fail("array of %d values, want %d", got, n)
	}
}

// arrayLen reads the length of an array. It is at most the number of bytes left.
func (d *decoder) arrayLen() int {
	n := 0
	switch c := d.byte(); {
	case c&0xf0 == 0x90:
		n = int(c & 0x0f)
	case c == 0xdc:
		n = int(d.bigEndian(2))
	case c == 0xdd:
		n = int(d.bigEndian(4))
	default:
		d.fail("code %#02x, want an array", c)
	}
	if n < 0 || n > len(d.src) { // With 32-bit ints, a large length can be negative.
		d.fail("array of %d values in %d bytes", n, len(d.src))
		return 0
	}
	return n
}

// uint reads an unsigned integer in any of its forms.
func (d *decoder) uint() uint64 {
	switch c := d.byte(); {
	case c < 0x80:
		return uint64(c)
	case c >= 0xcc && c <= 0xcf: // A code for a number of 1, 2, 4 or 8 bytes.
		return d.bigEndian(1 << (c - 0xcc))
	default:
		d.fail("code %#02x, want an unsigned integer", c)
		return 0
	}
}

// ErrTooLarge reports valid data that needs more than the 32-bit address space of this machine.
var ErrTooLarge = errors.New("too large for a program of 32 bits; read it with one of 64 bits")

// count reads an unsigned integer. An integer above the given limit is an error.
func (d *decoder) count(what string, limit uint64) int {
	v := d.uint()
	switch {
	case v > limit:
		d.fail("%s is %d, at most %d", what, v, limit)
		return 0
	case v > math.MaxInt:
		d.fail("%s is %d: %w", what, v, ErrTooLarge)
		return 0
	}
	return int(v)
}

// uint32 reads an unsigned integer of 32 bits.
func (d *decoder) uint32(what string) uint32 {
	v := d.uint()
	if v > math.MaxUint32 {
		d.fail("%s is %d, at most %d", what, v, uint32(math.MaxUint32))
		return 0
	}
	return uint32(v)
}

// int reads a signed integer. Integers from 0 are written as unsigned integers.
func (d *decoder) int() int64 {
	if len(d.src) > 0 {
		switch c := d.src[0]; {
		case c >= 0xe0: // A code that is itself a number from -32 to -1.
			d.byte()
			return int64(int8(c))
		case c >= 0xd0 && c <= 0xd3:
			d.byte()
			n := 1 << (c - 0xd0)
			shift := 64 - 8*n // Shifting left and right again extends the sign.
			return int64(d.bigEndian(n)<<shift) >> shift
		}
	}
	return int64(d.uint())
}

// bool reads a boolean.
func (d *decoder) bool() bool {
	switch c := d.byte(); c {
	case 0xc2, 0xc3:
		return c == 0xc3
	default:
		d.fail("code %#02x, want a bool", c)
		return false
	}
}

// isNil reports whether the next value is nil. If so, it reads the value.
func (d *decoder) isNil() bool {
	if len(d.src) > 0 && d.src[0] == 0xc0 {
		d.src = d.src[1:]
		return true
	}
	return false
}

// bin reads bytes. They share memory with the source.
func (d *decoder) bin() []byte {
	switch c := d.byte(); c {
	case 0xc4, 0xc5, 0xc6:
		return d.take(int(d.bigEndian(1 << (c - 0xc4))))
	default:
		d.fail("code %#02x, want bytes", c)
		return nil
	}
}

// str reads a text.
func (d *decoder) str() string {
	switch c := d.byte(); {
	case c&0xe0 == 0xa0:
		return string(d.take(int(c & 0x1f)))
	case c >= 0xd9 && c <= 0xdb:
		return string(d.take(int(d.bigEndian(1 << (c - 0xd9)))))
	default:
		d.fail("code %#02x, want a string", c)
		return ""
	}
}

// end returns the decoder's error. If it is nil, end returns an error if input is left.
func (d *decoder) end() error {
	if d.err == nil && len(d.src) > 0 {
		d.fail("%d bytes left over", len(d.src))
	}
	return d.err
}

// varints reads the variable-length numbers in a bin. Ranges, operations and sparse pages are lists
// of variable-length numbers. After invalid input, the field bad is set and all reads return zero.
// A caller checks this field after it has read a group of numbers.
type varints struct {
	src []byte
	bad bool
}

// more reports whether another number follows.
func (v *varints) more() bool { return len(v.src) > 0 && !v.bad }

// count returns how many numbers are left. Only the last byte of a number has a clear top bit.
func (v *varints) count() (n int) {
	for _, b := range v.src {
		n += int(^b >> 7)
	}
	return n
}

// uint reads an unsigned number.
func (v *varints) uint() uint64 {
	x, n := uvarint(v.src)
	if n == 0 {
		v.bad, v.src = true, nil
		return 0
	}
	v.src = v.src[n:]
	return x
}

// uvarint reads a number and returns it with its length in bytes. The length is 0 if the number is
// invalid.
func uvarint(src []byte) (x uint64, n int) {
	if len(src) > 0 && src[0] < 0x80 { // Fast path: most numbers take one byte.
		return uint64(src[0]), 1
	}
	x, n = binary.Uvarint(src)
	return x, max(n, 0)
}

// int reads a number in zigzag form: 0, -1, 1, -2, … are 0, 1, 2, 3, …
func (v *varints) int() int64 {
	x := v.uint()
	return int64(x>>1) ^ -int64(x&1)
}
