package layout

import (
	"encoding/binary"
	"fmt"
	"math"
)

// First bytes of msgpack values. codeUint8 and codeInt8 are followed by the codes for 16, 32 and 64
// bits, which have no names here.
const (
	codeNil     = 0xc0
	codeFalse   = 0xc2
	codeTrue    = 0xc3
	codeFloat32 = 0xca
	codeFloat64 = 0xcb
	codeUint8   = 0xcc
	codeInt8    = 0xd0

	maxPositive = 0x7f // Integers from 0 to maxPositive are encoded as a single byte.
	// Integers from minNegative to -1 are encoded as a single byte too, as an int8.
	minNegative = -32
)

// A form describes how msgpack encodes the length of one family of values. Small lengths are part
// of the code byte. Larger lengths follow the code byte in 1, 2 or 4 bytes.
type form struct {
	name string
	// For a length below the field fixed, the code byte is the sum of the field code and the
	// length.
	code   byte
	fixed  int
	code8  byte // 0 if the family has no code for lengths of one byte.
	code16 byte
	code32 byte
}

var (
	strForm   = form{"string", 0xa0, 32, 0xd9, 0xda, 0xdb}
	binForm   = form{"bytes", 0, 0, 0xc4, 0xc5, 0xc6}
	arrayForm = form{"array", 0x90, 16, 0, 0xdc, 0xdd}
	mapForm   = form{"map", 0x80, 16, 0, 0xde, 0xdf}
)

// appendLength appends the shortest head for n elements or bytes. It panics if n exceeds the limit
// of msgpack, 4 GiB.
func appendLength(dst []byte, f *form, n int) []byte {
	switch {
	case n < f.fixed:
		return append(dst, f.code+byte(n))
	case n <= math.MaxUint8 && f.code8 != 0:
		return append(dst, f.code8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, f.code16), uint16(n))
	case uint64(n) <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, f.code32), uint32(n))
	}
	panic(fmt.Sprintf("layout: a %s of length %d cannot be encoded; split the value", f.name, n))
}

// appendUint appends x in its shortest form.
func appendUint(dst []byte, x uint64) []byte {
	switch {
	case x <= maxPositive:
		return append(dst, byte(x))
	case x <= math.MaxUint8:
		return append(dst, codeUint8, byte(x))
	case x <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, codeUint8+1), uint16(x))
	case x <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, codeUint8+2), uint32(x))
	}
	return binary.BigEndian.AppendUint64(append(dst, codeUint8+3), x)
}

// appendInt appends x in its shortest form, which is unsigned for x >= 0.
func appendInt(dst []byte, x int64) []byte {
	switch {
	case x >= 0:
		return appendUint(dst, uint64(x))
	case x >= minNegative:
		return append(dst, byte(x))
	case x >= math.MinInt8:
		return append(dst, codeInt8, byte(x))
	case x >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, codeInt8+1), uint16(x))
	case x >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, codeInt8+2), uint32(x))
	}
	return binary.BigEndian.AppendUint64(append(dst, codeInt8+3), uint64(x))
}

// appendBool appends x.
func appendBool(dst []byte, x bool) []byte {
	if x {
		return append(dst, codeTrue)
	}
	return append(dst, codeFalse)
}

// appendFloat32 appends the float with the given bits.
func appendFloat32(dst []byte, bits uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, codeFloat32), bits)
}

// appendFloat64 appends the float with the given bits.
func appendFloat64(dst []byte, bits uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, codeFloat64), bits)
}

// appendString appends s as str.
func appendString(dst []byte, s string) []byte {
	return append(appendLength(dst, &strForm, len(s)), s...)
}
