package layout

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// String returns v as readable text on one line.
//
//	{Alive:true HP:-3 At:[1 2.5] Owner:12v3 Name:"orc" Items:nil Image:0x0102…(+94 bytes)}
//
// An integer with a name is printed as its name: see [Type.NameOf].
func (v Value) String() string { return string(v.appendText(nil)) }

// MarshalJSON returns v as JSON. Structs become objects in declared order. Integers have all
// digits, and floats have the fewest digits that identify them. Constants stay numbers. Other
// values are written as follows:
//
//	NaN, infinities   "NaN", "+Inf", "-Inf"
//	complex           [real, imaginary]
//	entity            "12v3": index, generation
//	bytes             base64
//	map               object, if its keys are scalars or strings; else [[key, value], …]
//	pointer           its target, or null
//	nil               null
//
// Bytes of a string that are not UTF-8 become U+FFFD.
func (v Value) MarshalJSON() ([]byte, error) { return v.appendJSON(nil, false), nil }

// AppendExact appends v as lossless JSON: [Type.AppendRow] converts it back to the same row. The
// output differs from [Value.MarshalJSON] for these values:
//
//	NaN                 "NaN" for the bits of math.NaN, else with its bits:
//	                    "NaN:7ff8000000000123"
//	string              {"base64": "…"}, if its bytes are not UTF-8
//	map                 [[key, value], …], also if a key is a string that is not UTF-8
//	pointer             [target], or null
func (v Value) AppendExact(dst []byte) []byte { return v.appendJSON(dst, true) }

// appendText appends v in the form that String returns.
func (v Value) appendText(dst []byte) []byte {
	if v.IsNil() {
		return append(dst, "nil"...)
	}
	switch v.typ.Kind {
	case String:
		return strconv.AppendQuote(dst, v.text)
	case Bytes:
		return appendHex(dst, v.text)
	case Struct:
		return append(v.appendTextItems(append(dst, '{')), '}')
	case Array, Slice:
		return append(v.appendTextItems(append(dst, '[')), ']')
	case Map:
		return append(v.appendTextItems(append(dst, "map["...)), ']')
	case Pointer:
		return v.items[0].appendText(append(dst, '&'))
	case Complex64, Complex128:
		return v.appendComplex(dst)
	}
	if v.typ.Named() {
		if name := v.typ.NameOf(int64(v.bits)); name != "" {
			return append(dst, name...)
		}
	}
	return v.appendScalar(dst)
}

// appendHex appends the first bytes of text in hexadecimal, and the number of the other bytes.
func appendHex(dst []byte, text string) []byte {
	const most = 16
	const digits = "0123456789abcdef"
	shown := text[:min(len(text), most)]
	dst = append(dst, "0x"...)
	for i := range len(shown) {
		dst = append(dst, digits[shown[i]>>4], digits[shown[i]&15])
	}
	if more := len(text) - len(shown); more > 0 {
		dst = append(dst, "…(+"...)
		dst = strconv.AppendInt(dst, int64(more), 10)
		dst = append(dst, " bytes)"...)
	}
	return dst
}

// appendTextItems appends the fields, elements or entries of v, separated by spaces.
func (v Value) appendTextItems(dst []byte) []byte {
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ' ')
		}
		switch v.typ.Kind {
		case Struct:
			dst = append(append(dst, v.Name(i)...), ':')
		case Map:
			dst = append(v.Key(i).appendText(dst), ':')
		}
		dst = v.Index(i).appendText(dst)
	}
	return dst
}

// appendComplex appends a complex number: (1-2i).
func (v Value) appendComplex(dst []byte) []byte {
	dst = v.appendFloat(append(dst, '('), v.bits)
	imaginary := v.appendFloat(nil, v.imag)
	if imaginary[0] != '-' && imaginary[0] != '+' {
		dst = append(dst, '+')
	}
	return append(append(dst, imaginary...), "i)"...)
}

// appendScalar appends a bool, integer, float or entity.
func (v Value) appendScalar(dst []byte) []byte {
	switch k := v.typ.Kind; {
	case k == Bool:
		return strconv.AppendBool(dst, v.bits != 0)
	case k == Entity:
		dst = strconv.AppendUint(dst, v.bits&math.MaxUint32, 10)
		return strconv.AppendUint(append(dst, 'v'), v.bits>>32, 10)
	case k.signed():
		return strconv.AppendInt(dst, int64(v.bits), 10)
	case k.unsigned():
		return strconv.AppendUint(dst, v.bits, 10)
	}
	return v.appendFloat(dst, v.bits)
}

// floatSize returns the number of bits of the float v. If v is a complex number, it returns the
// number of bits of each part.
func (v Value) floatSize() int {
	if v.typ.Kind == Float32 || v.typ.Kind == Complex64 {
		return 32
	}
	return 64
}

// appendFloat appends the float with the given bits, with the fewest digits that identify it. It
// uses exponents only for very large or small numbers.
func (v Value) appendFloat(dst []byte, bits uint64) []byte {
	size := v.floatSize()
	x, format := v.float(bits), byte('f')
	if abs := math.Abs(x); abs != 0 && abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	return strconv.AppendFloat(dst, x, format, -1, size)
}

// appendJSON appends v in the form of AppendExact if exact is set, and of MarshalJSON otherwise.
func (v Value) appendJSON(dst []byte, exact bool) []byte {
	if v.IsNil() {
		return append(dst, "null"...)
	}
	switch v.typ.Kind {
	case String:
		if exact && !utf8.ValidString(v.text) {
			dst = base64.StdEncoding.AppendEncode(append(dst, `{"base64":"`...), []byte(v.text))
			return append(dst, `"}`...)
		}
		return appendJSONString(dst, v.text)
	case Bytes:
		dst = base64.StdEncoding.AppendEncode(append(dst, '"'), []byte(v.text))
		return append(dst, '"')
	case Entity:
		return append(v.appendScalar(append(dst, '"')), '"')
	case Struct:
		return v.appendJSONList(dst, '{', '}', exact)
	case Array, Slice:
		return v.appendJSONList(dst, '[', ']', exact)
	case Map:
		if v.typ.Key.Kind == Struct || v.typ.Key.Kind == Array || exact && !v.textKeys() {
			return v.appendJSONPairs(dst, exact)
		}
		return v.appendJSONList(dst, '{', '}', exact)
	case Pointer:
		if exact {
			return v.appendJSONList(dst, '[', ']', exact)
		}
		return v.items[0].appendJSON(dst, exact)
	case Float32, Float64:
		return v.appendJSONFloat(dst, v.bits, exact)
	case Complex64, Complex128:
		dst = v.appendJSONFloat(append(dst, '['), v.bits, exact)
		return append(v.appendJSONFloat(append(dst, ','), v.imag, exact), ']')
	}
	return v.appendScalar(dst)
}

// appendJSONString appends s in quotes.
func appendJSONString(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Encode never fails for a string. It appends a newline.
	_ = e.Encode(s)
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// appendJSONFloat appends the float with the given bits. It adds quotes if JSON cannot represent
// the number.
func (v Value) appendJSONFloat(dst []byte, bits uint64, exact bool) []byte {
	if exact && math.IsNaN(v.float(bits)) {
		return v.appendNaN(dst, bits)
	}
	if x := v.float(bits); math.IsNaN(x) || math.IsInf(x, 0) {
		return append(v.appendFloat(append(dst, '"'), bits), '"')
	}
	return v.appendFloat(dst, bits)
}

// plainNaN maps the size of a float in bits to the bits of math.NaN.
var plainNaN = map[int]uint64{
	32: uint64(math.Float32bits(float32(math.NaN()))),
	64: math.Float64bits(math.NaN()),
}

// appendNaN appends "NaN" for the bits of math.NaN. For another NaN, it also appends the bits.
func (v Value) appendNaN(dst []byte, bits uint64) []byte {
	size := v.floatSize()
	if bits == plainNaN[size] {
		return append(dst, `"NaN"`...)
	}
	return fmt.Appendf(dst, `"NaN:%0*x"`, size/4, bits)
}

// appendJSONList appends the fields, elements or entries of v between the brackets open and end. An
// entry is a member of an object.
func (v Value) appendJSONList(dst []byte, open, end byte, exact bool) []byte {
	dst = append(dst, open)
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch v.typ.Kind {
		case Struct:
			dst = append(appendJSONString(dst, v.Name(i)), ':')
		case Map:
			dst = append(v.Key(i).appendJSONKey(dst), ':')
		}
		dst = v.Index(i).appendJSON(dst, exact)
	}
	return append(dst, end)
}

// appendJSONKey appends v as the name of a JSON member.
func (v Value) appendJSONKey(dst []byte) []byte {
	if v.typ.Kind == String {
		return appendJSONString(dst, v.text)
	}
	return append(v.appendScalar(append(dst, '"')), '"')
}

// appendJSONPairs appends a map as an array of [key, value].
func (v Value) appendJSONPairs(dst []byte, exact bool) []byte {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = v.Key(i).appendJSON(append(dst, '['), exact)
		dst = v.Index(i).appendJSON(append(dst, ','), exact)
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

// textKeys reports whether all keys of v are scalars or UTF-8 strings.
func (v Value) textKeys() bool {
	for i := range v.Len() {
		if !utf8.ValidString(v.Key(i).text) {
			return false
		}
	}
	return true
}
