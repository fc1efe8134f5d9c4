package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Type describes a component type independently of Go. It is a tree and must not be changed while
// it is in use. [Of] and [Parse] return valid Types. [Type.Validate] checks a Type that other code
// built. All other methods require a valid Type.
type Type struct {
	Kind   Kind
	Name   string  // The Go type name without the package, for display. May be empty.
	Fields []Field // Struct: the fields in declared order.
	Elem   *Type   // Array, Slice, Map and Pointer: the element type.
	Key    *Type   // Map: the key type.
	Len    int     // Array: the number of elements.

	// Constants holds the names of the numbers 0, 1, 2 and so on. It is set for an integer whose Go
	// type has a String method. A number without a name has "". Constants are for display, like
	// Name.
	Constants []string

	// Former maps the fields of a struct to their former stored names: see [NewConversion]. They
	// come from the struct tags and are not part of the encoded description.
	Former map[string][]string

	// The Go source of each field whose declaration differs from the stored name and type. Only
	// [Of] sets it.
	sources map[string]fieldSource
}

// A fieldSource is the Go source of a field.
type fieldSource struct {
	declared string // "Life int32", or "Position" for an embedded field.
	tagged   string // The stored name in the tag, or "".
}

// A Field is one field of a struct.
type Field struct {
	Name string
	Type *Type
}

// Width returns the size of a packed row in bytes, or -1 if rows vary in size. Each call visits the
// whole description.
func (t *Type) Width() int {
	switch t.Kind {
	case Struct:
		return t.fieldsWidth()
	case Array:
		if width := t.Elem.Width(); width != varies {
			return t.Len * width
		}
		return varies
	default:
		return kinds[t.Kind].width
	}
}

// fieldsWidth returns the width of the struct t.
func (t *Type) fieldsWidth() int {
	sum := 0
	for _, f := range t.Fields {
		width := f.Type.Width()
		if width == varies {
			return varies
		}
		sum += width
	}
	return sum
}

// Fixed reports whether all rows have the same width.
func (t *Type) Fixed() bool { return t.Width() != varies }

// fieldIndex returns the index of the field with this name, or -1.
func (t *Type) fieldIndex(name string) int {
	return slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == name })
}

// fieldNames returns the names of the fields, in declared order.
func (t *Type) fieldNames() []string {
	names := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		names[i] = f.Name
	}
	return names
}

// Equal reports whether rows of t and u have the same encoding: the same kinds, lengths, and field
// names in the same order. Equal ignores the names of types and constants.
func (t *Type) Equal(u *Type) bool {
	if t == nil || u == nil || t == u {
		return t == u
	}
	if t.Kind != u.Kind || t.Len != u.Len || len(t.Fields) != len(u.Fields) {
		return false
	}
	for i, f := range t.Fields {
		if f.Name != u.Fields[i].Name || !f.Type.Equal(u.Fields[i].Type) {
			return false
		}
	}
	return t.Key.Equal(u.Key) && t.Elem.Equal(u.Elem)
}

// fullName returns the name in the encoded description of t, with its constants.
func (t *Type) fullName() string {
	if len(t.Constants) == 0 {
		return t.Name
	}
	names := slices.Clone(t.Constants)
	for i, name := range names {
		if name == "" {
			names[i] = "_"
		}
	}
	return t.Name + "{" + strings.Join(names, " ") + "}"
}

// NameOf returns the display name of the number n of the integer type t: a constant, or a duration
// with its unit. It returns "" if n has no name.
func (t *Type) NameOf(n int64) string {
	switch {
	case n >= 0 && n < int64(len(t.Constants)):
		return t.Constants[n]
	case t.isDuration():
		return time.Duration(n).String()
	}
	return ""
}

// NumberOf returns the number of t with this display name. ok is false if t has no such name.
func (t *Type) NumberOf(name string) (n int64, ok bool) {
	if t.isDuration() {
		d, err := time.ParseDuration(name)
		return int64(d), err == nil
	}
	n = int64(slices.Index(t.Constants, name))
	return n, name != "" && n >= 0
}

// Named reports whether numbers of t have names: see [Type.NameOf].
func (t *Type) Named() bool { return len(t.Constants) > 0 || t.isDuration() }

// String returns the description in Go's notation, without names of types: "struct{X float64; Y
// float64}".
func (t *Type) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

// write appends the notation of t to b.
func (t *Type) write(b *strings.Builder) {
	switch t.Kind {
	case Struct:
		t.writeFields(b)
		return
	case Array:
		b.WriteString("[" + strconv.Itoa(t.Len) + "]")
	case Slice:
		b.WriteString("[]")
	case Pointer:
		b.WriteString("*")
	case Map:
		b.WriteString("map[")
		t.Key.write(b)
		b.WriteString("]")
	default:
		b.WriteString(t.Kind.String())
		return
	}
	t.Elem.write(b)
}

// writeFields appends the notation of the struct t to b.
func (t *Type) writeFields(b *strings.Builder) {
	b.WriteString("struct{")
	for i, f := range t.Fields {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Name + " ")
		f.Type.write(b)
	}
	b.WriteString("}")
}

// Limits of a description. They bound the cost of using a description from an untrusted source.
const (
	maxDepth       = 64      // Nesting depth of types.
	maxParts       = 1 << 16 // Number of types in one description.
	maxNameSize    = 1 << 10 // Bytes in a name.
	maxDescription = 1 << 20 // Bytes of an encoded description.
	maxRow         = 1 << 30 // Bytes in a packed row, and elements in an array.

	// A row of fixed width may contain maxValues values, plus maxValuesPerByte for each byte of the
	// row. Without this limit, a row of 0 bytes could be an array of a billion empty structs.
	maxValues        = 1 << 16
	maxValuesPerByte = 64
)

// Validate returns nil if t describes a type that can be stored, and a [*DataError] otherwise. It
// also detects a description that contains itself.
func (t *Type) Validate() error {
	if err := t.validate(); err != nil {
		return err
	}
	return nil
}

// validate implements Validate and returns the error by its concrete type.
func (t *Type) validate() *DataError {
	var v validator
	size, err := v.visit(t, 1)
	if err != nil {
		if t != nil {
			err = err.of(t)
		}
		return err
	}
	if size.width != varies && size.values > maxValues+maxValuesPerByte*size.width {
		return bad("has too many values without size").of(t)
	}
	return nil
}

// An extent is the size of a row: its bytes, and the number of values in it.
type extent struct {
	width  int64 // Number of packed bytes, or -1 if it varies.
	values int64 // Number of values in the row: both scalars and containers.
}

// A validator checks one description.
type validator struct {
	// Number of types visited so far.
	parts int
}

// visit checks t. depth is its nesting depth, from 1.
func (v *validator) visit(t *Type, depth int) (extent, *DataError) {
	v.parts++
	if reason := v.reason(t, depth); reason != "" {
		return extent{}, bad(reason)
	}
	switch t.Kind {
	case Struct:
		return v.visitFields(t, depth)
	case Array:
		return v.visitArray(t, depth)
	case Map:
		if _, err := v.visit(t.Key, depth+1); err != nil {
			return extent{}, err.in("[key]")
		}
		if kind := keyFault(t.Key); kind != 0 {
			return extent{}, bad(kind.String() + " cannot be part of a map key").in("[key]")
		}
		return v.visitElem(t, depth)
	case Slice, Pointer:
		return v.visitElem(t, depth)
	}
	return extent{int64(kinds[t.Kind].width), 1}, nil
}

// reason returns the fault of t, or "". It does not check the types inside t.
func (v *validator) reason(t *Type, depth int) string {
	switch {
	case t == nil:
		return "type is missing"
	case depth > maxDepth:
		return fmt.Sprintf("nested more than %d deep", maxDepth)
	case v.parts > maxParts:
		return fmt.Sprintf("more than %d fields", maxParts)
	case !t.Kind.known():
		return t.Kind.String() + " does not exist"
	case !validTypeName(t.fullName()):
		return "bad type name"
	case t.Kind != Struct && t.Fields != nil:
		return t.Kind.String() + " with fields"
	case t.Kind < Array && t.Elem != nil:
		return t.Kind.String() + " with elements"
	case t.Kind != Map && t.Key != nil:
		return t.Kind.String() + " with keys"
	case t.Kind != Array && t.Len != 0:
		return t.Kind.String() + " with a length"
	case t.Len < 0 || t.Len > maxRow:
		return fmt.Sprintf("length %d is out of bounds", t.Len)
	case t.Kind == Slice && t.Elem != nil && t.Elem.Kind == Uint8:
		return "a slice of uint8 is of kind bytes"
	}
	return ""
}

// visitFields checks the fields of the struct t.
func (v *validator) visitFields(t *Type, depth int) (extent, *DataError) {
	sum := extent{0, 1}
	names := make(map[string]bool, len(t.Fields))
	for _, f := range t.Fields {
		if !validFieldName(f.Name) || names[f.Name] {
			return extent{}, bad(fmt.Sprintf("bad field name %.40q", f.Name))
		}
		names[f.Name] = true
		size, err := v.visit(f.Type, depth+1)
		if err != nil {
			return extent{}, err.in("." + f.Name)
		}
		if sum = sum.plus(size); sum.width > maxRow {
			return extent{}, bad(tooWide)
		}
	}
	return sum, nil
}

// visitArray checks the elements of the array t.
func (v *validator) visitArray(t *Type, depth int) (extent, *DataError) {
	size, err := v.visit(t.Elem, depth+1)
	if err != nil {
		return extent{}, err.in("[]")
	}
	if size = size.times(t.Len); size.width > maxRow {
		return extent{}, bad(tooWide)
	}
	return size, nil
}

// visitElem checks the element type of the slice, map or pointer t.
func (v *validator) visitElem(t *Type, depth int) (extent, *DataError) {
	if _, err := v.visit(t.Elem, depth+1); err != nil {
		return extent{}, err.in(elemPart(t.Kind))
	}
	return extent{varies, 1}, nil
}

var tooWide = fmt.Sprintf("rows are wider than %d bytes", maxRow)

// manyValues limits the count in an extent: larger counts become manyValues. So a count times
// maxRow does not overflow.
const manyValues = 1 << 32

// plus returns the extent of a value with extent a followed by a value with extent b.
func (a extent) plus(b extent) extent {
	sum := extent{varies, min(a.values+b.values, manyValues)}
	if a.width != varies && b.width != varies {
		sum.width = a.width + b.width
	}
	return sum
}

// times returns the extent of an array of n elements with extent a.
func (a extent) times(n int) extent {
	product := extent{varies, min(1+a.values*int64(n), manyValues)}
	if a.width != varies {
		product.width = a.width * int64(n)
	}
	return product
}

// keyFault returns the first kind inside t that map keys must not contain, or 0.
func keyFault(t *Type) Kind {
	switch t.Kind {
	case Float32, Float64, Complex64, Complex128, Bytes, Slice, Map, Pointer:
		return t.Kind
	case Array:
		return keyFault(t.Elem)
	}
	for _, f := range t.Fields {
		if kind := keyFault(f.Type); kind != 0 {
			return kind
		}
	}
	return 0
}

// elemPart returns the path of the elements within a type of kind k. For a pointer it is empty, as
// in Go.
func elemPart(k Kind) string {
	switch k {
	case Map:
		return "[value]"
	case Pointer:
		return ""
	}
	return "[]"
}

// validFieldName reports whether name is a Go identifier other than "_".
func validFieldName(name string) bool {
	if name == "" || name == "_" || len(name) > maxNameSize || !utf8.ValidString(name) {
		return false
	}
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return true
}

// validTypeName reports whether name is short enough and can be printed on a terminal.
func validTypeName(name string) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return len(name) <= maxNameSize && utf8.ValidString(name) && !strings.ContainsFunc(name, unprintable)
}
