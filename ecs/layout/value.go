package layout

import "math"

// A Value is the content of one row as an ordered tree. [Type.Value] returns a Value. A program can
// read it without the Go type, print it, and marshal it as JSON. The zero Value has no type and
// prints as nil.
//
// Methods that do not apply to a Value's kind return zero. So Key of a struct returns the zero
// Value. For the kinds to which they apply, Index, Key and Name panic if i is Len or more.
type Value struct {
	typ *Type
	// Set for nil: bytes, a slice, a map or a pointer.
	empty bool
	// A bool, an integer (sign extended), the bits of a float, or an entity.
	bits uint64
	imag uint64 // Imaginary part of a complex number, as float bits.
	text string // Content of String and Bytes.
	// Fields, elements, alternating keys and values, or the target of a pointer.
	items []Value
}

// Type returns the description of v, or nil for the zero Value.
func (v Value) Type() *Type { return v.typ }

// Kind returns the kind of v, or 0 for the zero Value.
func (v Value) Kind() Kind {
	if v.typ == nil {
		return 0
	}
	return v.typ.Kind
}

// IsNil reports whether v is a nil slice, map or pointer, nil bytes, or the zero
// Value.
func (v Value) IsNil() bool { return v.empty || v.typ == nil }

// Bool returns the value of a bool.
func (v Value) Bool() bool { return v.Kind() == Bool && v.bits != 0 }

// Int returns the value of a signed integer.
func (v Value) Int() int64 {
	if v.Kind().signed() {
		return int64(v.bits)
	}
	return 0
}

// Uint returns the value of an unsigned integer, or an entity as generation<<32 | index.
func (v Value) Uint() uint64 {
	if v.Kind().unsigned() || v.Kind() == Entity {
		return v.bits
	}
	return 0
}

// Float returns the value of a float.
func (v Value) Float() float64 {
	if k := v.Kind(); k == Float32 || k == Float64 {
		return v.float(v.bits)
	}
	return 0
}

// Complex returns the value of a complex number.
func (v Value) Complex() complex128 {
	if k := v.Kind(); k == Complex64 || k == Complex128 {
		return complex(v.float(v.bits), v.float(v.imag))
	}
	return 0
}

// Text returns the content of a string or of bytes.
func (v Value) Text() string { return v.text }

// Len returns the number of values in v: fields, elements, entries of a map, or 1 for a non-nil
// pointer.
func (v Value) Len() int {
	if v.Kind() == Map {
		return len(v.items) / 2
	}
	return len(v.items)
}

// Index returns field or element i, the value of map entry i, or the target of a pointer. It
// returns the zero Value if v is a scalar, a string or bytes. It panics if v can hold values and i
// is Len or more.
func (v Value) Index(i int) Value {
	switch v.Kind() {
	case Map:
		return v.items[2*i+1]
	case Struct, Array, Slice, Pointer:
		return v.items[i]
	}
	return Value{}
}

// Key returns the key of map entry i, in stored order. It returns the zero Value if v is not a map.
// It panics if v is a map and i is Len or more.
func (v Value) Key(i int) Value {
	if v.Kind() != Map {
		return Value{}
	}
	return v.items[2*i]
}

// Field returns the field with this name, and whether v is a struct that has this field.
func (v Value) Field(name string) (Value, bool) {
	if v.Kind() != Struct {
		return Value{}, false
	}
	i := v.typ.fieldIndex(name)
	if i < 0 {
		return Value{}, false
	}
	return v.items[i], true
}

// Name returns the name of field i. It returns "" if v is not a struct. It panics if v is a struct
// and i is Len or more.
func (v Value) Name(i int) string {
	if v.Kind() != Struct {
		return ""
	}
	return v.typ.Fields[i].Name
}

// float converts bits to a number. They are the bits of the float v, or of one part of the complex
// number v.
func (v Value) float(bits uint64) float64 {
	if v.typ.Kind == Float32 || v.typ.Kind == Complex64 {
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(bits)
}

// The setters below do nothing for a nil *Value. So the same code either only checks bytes, or also
// reads them into a Value.

// init makes v a value of type t.
func (v *Value) init(t *Type) {
	if v != nil {
		*v = Value{typ: t}
	}
}

// setNil makes v nil.
func (v *Value) setNil() {
	if v != nil {
		v.empty = true
	}
}

// grow allocates n values in v.
func (v *Value) grow(n int) {
	if v != nil {
		v.items = make([]Value, n)
	}
}

// item returns value i in v, or nil.
func (v *Value) item(i int) *Value {
	if v == nil {
		return nil
	}
	return &v.items[i]
}
