package layout

import "strconv"

// A Kind is the basic form of a [Type]. The numbers are part of the file format: they never change
// and are never reused.
type Kind uint8

// The kinds. The zero Kind is invalid.
const (
	Bool       Kind = 1
	Int8       Kind = 2
	Int16      Kind = 3
	Int32      Kind = 4
	Int64      Kind = 5 // Also int.
	Uint8      Kind = 6
	Uint16     Kind = 7
	Uint32     Kind = 8
	Uint64     Kind = 9 // Also uint and uintptr.
	Float32    Kind = 10
	Float64    Kind = 11
	Complex64  Kind = 12
	Complex128 Kind = 13
	// An entity, with its index in the low 32 bits and its generation in the high 32 bits.
	Entity  Kind = 14
	String  Kind = 15
	Bytes   Kind = 16 // A slice of bytes.
	Struct  Kind = 17
	Array   Kind = 18
	Slice   Kind = 19 // A slice whose elements are not bytes.
	Map     Kind = 20
	Pointer Kind = 21

	endOfKinds = 22
)

// varies is the width of types whose rows vary in size.
const varies = -1

// kinds lists the name of each kind and its width in packed bytes. The width of structs and arrays
// is the sum over their fields or elements.
var kinds = [endOfKinds]struct {
	name  string
	width int
}{
	Bool:       {"bool", 1},
	Int8:       {"int8", 1},
	Int16:      {"int16", 2},
	Int32:      {"int32", 4},
	Int64:      {"int64", 8},
	Uint8:      {"uint8", 1},
	Uint16:     {"uint16", 2},
	Uint32:     {"uint32", 4},
	Uint64:     {"uint64", 8},
	Float32:    {"float32", 4},
	Float64:    {"float64", 8},
	Complex64:  {"complex64", 8},
	Complex128: {"complex128", 16},
	Entity:     {"entity", 8},
	String:     {"string", varies},
	Bytes:      {"bytes", varies},
	Struct:     {"struct", 0},
	Array:      {"array", 0},
	Slice:      {"slice", varies},
	Map:        {"map", varies},
	Pointer:    {"pointer", varies},
}

// String returns the name of k in lower case: "float64".
func (k Kind) String() string {
	if !k.known() {
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kinds[k].name
}

// known reports whether k is one of the constants.
func (k Kind) known() bool { return k > 0 && k < endOfKinds }

// signed reports whether k is an integer that can be negative.
func (k Kind) signed() bool { return k >= Int8 && k <= Int64 }

// unsigned reports whether k is an integer that cannot be negative.
func (k Kind) unsigned() bool { return k >= Uint8 && k <= Uint64 }

// bits returns the size of an integer or float in bits.
func (k Kind) bits() int { return kinds[k].width * 8 }
