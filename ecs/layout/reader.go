package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// A reader reads canonical msgpack values from the front of src. It only accepts the shortest form
// of a value.
//
// The input may claim any length for a list. So for each element that is not read yet, the reader
// reserves at least one byte of src. It rejects a list whose elements do not fit into the other
// bytes. So the number of all elements never exceeds the number of bytes.
type reader struct {
	src      []byte // The unread bytes.
	reserved int    // Bytes of src that are reserved for unread elements.
}

// number reads the first byte of a value, and then a big-endian integer of the given size in bytes.
// It reads nothing if bytes are missing.
func (r *reader) number(size int) (uint64, *DataError) {
	if len(r.src) < 1+size {
		return 0, bad("cut short")
	}
	digits := r.src[1 : 1+size]
	r.src = r.src[1+size:]
	switch size {
	case 0:
		return 0, nil
	case 1:
		return uint64(digits[0]), nil
	case 2:
		return uint64(binary.BigEndian.Uint16(digits)), nil
	case 4:
		return uint64(binary.BigEndian.Uint32(digits)), nil
	}
	return binary.BigEndian.Uint64(digits), nil
}

// code returns the first byte of the next value without reading it.
func (r *reader) code() (byte, *DataError) {
	if len(r.src) == 0 {
		return 0, bad("cut short")
	}
	return r.src[0], nil
}

// isNil reports whether the next value is nil. If so, it reads that value.
func (r *reader) isNil() bool {
	if len(r.src) == 0 || r.src[0] != codeNil {
		return false
	}
	r.src = r.src[1:]
	return true
}

// uint reads a non-negative integer. The text want describes the expected value in errors.
func (r *reader) uint(want string) (uint64, *DataError) {
	code, err := r.code()
	if err != nil {
		return 0, err
	}
	if code <= maxPositive {
		r.src = r.src[1:]
		return uint64(code), nil
	}
	if code < codeUint8 || code > codeUint8+3 {
		return 0, unexpected(want, code)
	}
	size := 1 << (code - codeUint8)
	x, err := r.number(size)
	if err != nil {
		return 0, err
	}
	if size > 1 && x>>(size*4) == 0 || x <= maxPositive {
		return 0, bad("integer is not in its shortest form")
	}
	return x, nil
}

// int reads an integer.
func (r *reader) int() (int64, *DataError) {
	code, err := r.code()
	switch {
	case err != nil:
		return 0, err
	case code >= 0xe0:
		r.src = r.src[1:]
		return int64(int8(code)), nil
	case code >= codeInt8 && code <= codeInt8+3:
		return r.negative(1 << (code - codeInt8))
	}
	x, err := r.uint("an integer")
	if err == nil && x > math.MaxInt64 {
		err = bad("integer is out of range")
	}
	return int64(x), err
}

// negative reads the code of a negative integer, and then the integer, of the given size in bytes.
func (r *reader) negative(size int) (int64, *DataError) {
	bits, err := r.number(size)
	if err != nil {
		return 0, err
	}
	unused := 64 - 8*size
	x := int64(bits<<unused) >> unused
	// shorter is the smallest number that fits into half the size.
	shorter := int64(minNegative)
	if size > 1 {
		shorter = -1 << (size*4 - 1)
	}
	if x >= shorter {
		return 0, bad("integer is not in its shortest form")
	}
	return x, nil
}

// unsigned reads an unsigned integer. The parameters are its size in files and its size in memory,
// in bits. On 32-bit processors a uint has 64 bits in files and 32 in memory.
func (r *reader) unsigned(bits, memory int) (uint64, *DataError) {
	x, err := r.uint("an unsigned integer")
	fits := func(bits int) bool { return bits == 64 || x>>bits == 0 }
	switch {
	case err != nil:
	case !fits(bits):
		err = bad(fmt.Sprintf("%d does not fit into %d bits", x, bits))
	case !fits(memory):
		err = narrow(x)
	}
	return x, err
}

// signed reads a signed integer. The parameters are its size in files and its size in memory, in
// bits. On 32-bit processors an int has 64 bits in files and 32 in memory.
func (r *reader) signed(bits, memory int) (int64, *DataError) {
	x, err := r.int()
	fits := func(bits int) bool { return x>>(bits-1) == 0 || x>>(bits-1) == -1 }
	switch {
	case err != nil:
	case !fits(bits):
		err = bad(fmt.Sprintf("%d does not fit into %d bits", x, bits))
	case !fits(memory):
		err = narrow(x)
	}
	return x, err
}

// bool reads a bool.
func (r *reader) bool() (bool, *DataError) {
	code, err := r.code()
	if err != nil {
		return false, err
	}
	if code != codeFalse && code != codeTrue {
		return false, unexpected("a bool", code)
	}
	r.src = r.src[1:]
	return code == codeTrue, nil
}

// float reads the bits of a float with this code and size in bytes.
func (r *reader) float(want byte, size int) (uint64, *DataError) {
	code, err := r.code()
	if err != nil {
		return 0, err
	}
	if code != want {
		return 0, unexpected(fmt.Sprintf("a float of %d bits", size*8), code)
	}
	return r.number(size)
}

// length reads the first bytes of an array, a map, a string or bytes, and returns the length. f is
// the form of that kind of value.
func (r *reader) length(f *form) (int, *DataError) {
	code, err := r.code()
	switch {
	case err != nil:
		return 0, err
	case f.fixed > 0 && code >= f.code && int(code-f.code) < f.fixed:
		r.src = r.src[1:]
		return int(code - f.code), nil
	case code == f.code8 && f.code8 != 0:
		return r.longLength(1, f.fixed)
	case code == f.code16 && f.code8 != 0:
		return r.longLength(2, math.MaxUint8+1)
	case code == f.code16:
		return r.longLength(2, f.fixed)
	case code == f.code32:
		return r.longLength(4, math.MaxUint16+1)
	}
	return 0, unexpected("a value of kind "+f.name, code)
}

// longLength reads a length that is stored in the given number of bytes. Lengths below the
// parameter least are errors, because they have a shorter form. Lengths above the number of
// remaining bytes are errors too.
func (r *reader) longLength(size, least int) (int, *DataError) {
	n, err := r.number(size)
	if err != nil {
		return 0, err
	}
	if n < uint64(least) {
		return 0, bad("length is not in its shortest form")
	}
	if n > uint64(len(r.src)) {
		return 0, tooLong(n, len(r.src))
	}
	return int(n), nil
}

// bytes reads a value of family f and returns its content, which shares memory with src.
func (r *reader) bytes(f *form) ([]byte, *DataError) {
	n, err := r.length(f)
	if err != nil {
		return nil, err
	}
	if n > len(r.src) {
		return nil, tooLong(uint64(n), len(r.src))
	}
	content := r.src[:n:n]
	r.src = r.src[n:]
	return content, nil
}

// open reads the head of an array or map and returns the number of elements. For each element, it
// reserves least bytes: the minimum size of an element. Before an element is read, the caller
// releases these bytes with element().
func (r *reader) open(f *form, least int) (int, *DataError) {
	n, err := r.length(f)
	if err != nil {
		return 0, err
	}
	return n, r.reserve(n, least)
}

// expect is like open(), for a list that must have n elements.
func (r *reader) expect(f *form, n, least int) *DataError {
	if err := r.exactly(f, n); err != nil {
		return err
	}
	return r.reserve(n, least)
}

// reserve reserves the given number of bytes for each of n elements, if src has enough bytes.
func (r *reader) reserve(n, least int) *DataError {
	if err := r.fits(n, least); err != nil {
		return err
	}
	r.reserved += n * least
	return nil
}

// fits returns an error if src is too short for n elements of the given minimum size.
func (r *reader) fits(n, least int) *DataError {
	if left := len(r.src) - r.reserved; left < 0 || n > left/least {
		return tooLong(uint64(n), max(left, 0))
	}
	return nil
}

// element releases the bytes that open() reserved for one element.
func (r *reader) element(least int) { r.reserved -= least }

// exactly reads the head of a value of family f. The length in the head must equal the parameter
// want.
func (r *reader) exactly(f *form, want int) *DataError {
	n, err := r.length(f)
	if err == nil && n != want {
		err = bad(fmt.Sprintf("%s of length %d, want %d", f.name, n, want))
	}
	return err
}

// literal reads the given bytes, which are the key of a field. It returns false if src does not
// begin with them.
func (r *reader) literal(want []byte) bool {
	rest, found := bytes.CutPrefix(r.src, want)
	if found {
		r.src = rest
	}
	return found
}

// end returns an error if src is not empty.
func (r *reader) end() *DataError {
	if len(r.src) > 0 {
		return bad(fmt.Sprintf("%d bytes are left over", len(r.src)))
	}
	return nil
}

// A keyOrder checks that the encoded keys of a map are in strictly ascending order.
type keyOrder struct{ last []byte }

// next returns an error unless the key that was just read is greater than the previous key. The
// parameters are the unread bytes before and after the key was read.
func (o *keyOrder) next(before, after []byte) *DataError {
	key := before[:len(before)-len(after)]
	// For the first key, o.last is nil. A key has at least one byte.
	switch bytes.Compare(key, o.last) {
	case 0:
		return bad("map has a key twice")
	case -1:
		return bad("map keys are out of order")
	}
	o.last = key
	return nil
}

// unexpected returns the error for a value with an unexpected first byte.
func unexpected(want string, code byte) *DataError {
	return bad(fmt.Sprintf("want %s, found %s", want, found(code)))
}

// found returns what kind of value begins with the byte code, for error texts.
func found(code byte) string {
	switch {
	case code <= maxPositive, code >= codeUint8 && code <= codeUint8+3:
		return "an unsigned integer"
	case code >= 0xe0, code >= codeInt8 && code <= codeInt8+3:
		return "a negative integer"
	case code == codeNil:
		return "nil"
	case code == 0xc2 || code == 0xc3:
		return "a bool"
	case code == 0xca:
		return "a float of 32 bits"
	case code == 0xcb:
		return "a float of 64 bits"
	case code>>4 == 0x8, code == 0xde || code == 0xdf:
		return "a map"
	case code>>4 == 0x9, code == 0xdc || code == 0xdd:
		return "an array"
	case code>>5 == 0x5, code >= 0xd9 && code <= 0xdb:
		return "a string"
	case code >= 0xc4 && code <= 0xc6:
		return "bytes"
	}
	return fmt.Sprintf("a value of unknown type (%#02x)", code)
}

// tooLong returns the error for a length that exceeds the remaining bytes.
func tooLong(n uint64, left int) *DataError {
	return bad(fmt.Sprintf("length %d, but %d bytes are left", n, left))
}
