package query

import (
	"reflect"
	"strconv"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A column is a component or resource that an expression reads. Its values have a Go type, derived
// from the layout, so that package expr can check the fields. Each row has a type of the layout and
// its Go type:
//
//	signed integers, uint8 to uint32   int
//	uint64                             uint64
//	floats                             float64; the float32 0.1 becomes the float64 0.1
//	complex numbers                    []float64{real part, imaginary part}
//	entities                           string: "12v3"
//	structs, pointers, maps            structs, pointers, maps; keys that are not scalars are text
//	arrays, slices                     slices
//	tags                               bool: whether the entity has the tag
//
// load() decodes a row into the field value. The program reads the value from its variable key. Its
// variable flag says whether the entity has a value.
type column struct {
	name string
	// key is the name of the variable with the value. flag is the name of a boolean variable:
	// whether the entity has a value.
	key, flag string
	layout    *layout.Type
	resource  bool
	// typ is the Go type in expressions. It is a pointer type for a struct, and nil for a tag.
	typ reflect.Type
	// value points to the value that load() decodes into.
	value reflect.Value
	// component is the component in the image; nil if the image lacks it.
	component *inspect.Component
	// lookup reads the rows of other entities, if Looking has set it. Otherwise other() reads the
	// rows of component.
	lookup Lookup
}

// A Lookup returns the encoded value of a component for a live entity, and whether the entity has
// the component.
type Lookup func(e ecs.Entity) (row []byte, has bool, err error)

// Prefixes of the names of variables. No expression can contain them.
const (
	valueMark = "\x01" // Prefix of the variable with the value.
	// Prefix of the variable that tells whether the entity has the component.
	flagMark = "\x02"
)

// newColumn returns a column for c. Each call of load() overwrites the value of the column, so a
// caller must copy a value to keep it. Only one goroutine may use a column at a time
// ([Expr.Clone]).
func newColumn(c *inspect.Component) *column {
	col := &column{
		name: c.Name, key: valueMark + c.Name, flag: flagMark + c.Name, layout: c.Layout, resource: c.Resource,
		component: c,
	}
	if !c.Resource && c.Layout.Width() == 0 {
		return col
	}
	col.typ = goType(c.Layout)
	col.value = reflect.New(col.typ)
	if c.Layout.Kind == layout.Struct {
		// Pass structs by pointer.
		col.typ = col.value.Type()
	}
	return col
}

// load sets the variables of c for the given row: the flag and the value. A struct is valid until
// the next call of load().
func (c *column) load(env map[string]any, row []byte, has bool) error {
	env[c.flag] = has
	if c.typ == nil {
		return nil
	}
	env[c.key] = nil
	if !has {
		return nil
	}
	v, err := c.layout.Value(row)
	if err != nil {
		return err
	}
	setGo(c.value.Elem(), v)
	// A struct is passed by pointer.
	if c.typ == c.value.Type() {
		env[c.key] = c.value.Interface()
	} else {
		env[c.key] = c.value.Elem().Interface()
	}
	return nil
}

// row returns the row that e has in the image, and whether e has one. A resource has only row 0.
func (c *column) row(e ecs.Entity) (row []byte, has bool) {
	if c.component == nil {
		return nil, false
	}
	n := c.component.Len() - 1
	if !c.resource {
		n = c.component.Find(e)
	}
	if n < 0 {
		return nil, false
	}
	return c.component.Row(n), true
}

// goType returns the Go type of values of t. Arrays become slices, because an array of an untrusted
// layout may be too large. Most integers become int, but a uint64 may not fit, so it stays a
// uint64.
func goType(t *layout.Type) reflect.Type {
	switch t.Kind {
	case layout.Bool:
		return reflect.TypeFor[bool]()
	case layout.Uint64:
		return reflect.TypeFor[uint64]()
	case layout.Float32, layout.Float64:
		return reflect.TypeFor[float64]()
	case layout.Complex64, layout.Complex128:
		return reflect.TypeFor[[]float64]()
	case layout.Entity, layout.String:
		return reflect.TypeFor[string]()
	case layout.Bytes:
		return reflect.TypeFor[[]byte]()
	case layout.Struct:
		return goStruct(t)
	case layout.Array, layout.Slice:
		return reflect.SliceOf(goType(t.Elem))
	case layout.Map:
		return reflect.MapOf(goKey(t.Key), goType(t.Elem))
	case layout.Pointer:
		return reflect.PointerTo(goType(t.Elem))
	}
	return reflect.TypeFor[int]()
}

// pointee returns the target type of a pointer, or t if it is no pointer.
func pointee(t *layout.Type) *layout.Type {
	for t != nil && t.Kind == layout.Pointer {
		t = t.Elem
	}
	return t
}

// goStruct returns a struct type with the field names of t in tags. Package expr finds fields by
// the tag expr, and converts them to JSON by the tag json.
func goStruct(t *layout.Type) reflect.Type {
	fields := make([]reflect.StructField, len(t.Fields))
	for i, f := range t.Fields {
		quoted := strconv.Quote(f.Name)
		fields[i] = reflect.StructField{
			Name: "F" + strconv.Itoa(i), Type: goType(f.Type),
			Tag: reflect.StructTag("expr:" + quoted + " json:" + quoted),
		}
	}
	return reflect.StructOf(fields)
}

// goKey returns the Go type of map keys. Keys that are structs, arrays, complex numbers or bytes
// become text. Their Go types may contain slices, and Go maps cannot have slices in keys.
func goKey(t *layout.Type) reflect.Type {
	switch t.Kind {
	case layout.Struct, layout.Array, layout.Complex64, layout.Complex128, layout.Bytes:
		return reflect.TypeFor[string]()
	}
	return goType(t)
}

// setGo sets dst to v.
func setGo(dst reflect.Value, v layout.Value) {
	switch v.Kind() {
	case layout.Bool:
		dst.SetBool(v.Bool())
	case layout.Int8, layout.Int16, layout.Int32, layout.Int64:
		dst.SetInt(v.Int())
	case layout.Uint8, layout.Uint16, layout.Uint32:
		dst.SetInt(int64(v.Uint()))
	case layout.Uint64:
		dst.SetUint(v.Uint())
	case layout.Float32:
		dst.SetFloat(asPrinted(v.Float()))
	case layout.Float64:
		dst.SetFloat(v.Float())
	case layout.Complex64:
		dst.Set(reflect.ValueOf([]float64{asPrinted(real(v.Complex())), asPrinted(imag(v.Complex()))}))
	case layout.Complex128:
		dst.Set(reflect.ValueOf([]float64{real(v.Complex()), imag(v.Complex())}))
	case layout.Entity:
		dst.SetString(ecs.Entity(v.Uint()).String())
	case layout.String:
		dst.SetString(v.Text())
	case layout.Bytes:
		dst.SetZero()
		if !v.IsNil() {
			dst.SetBytes([]byte(v.Text()))
		}
	default:
		setGoParts(dst, v)
	}
}

// setGoParts sets dst to v, which is a composite value. It allocates new slices, maps and pointers,
// because an answer may refer to them.
func setGoParts(dst reflect.Value, v layout.Value) {
	switch v.Kind() {
	case layout.Struct:
		for i := range v.Len() {
			setGo(dst.Field(i), v.Index(i))
		}
	case layout.Array, layout.Slice:
		if v.IsNil() {
			dst.SetZero()
			return
		}
		s := reflect.MakeSlice(dst.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			setGo(s.Index(i), v.Index(i))
		}
		dst.Set(s)
	case layout.Map:
		dst.Set(goMap(dst.Type(), v))
	case layout.Pointer:
		dst.SetZero()
		if !v.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
			setGo(dst.Elem(), v.Index(0))
		}
	}
}

// goMap returns v as a map of type t.
func goMap(t reflect.Type, v layout.Value) reflect.Value {
	if v.IsNil() {
		return reflect.Zero(t)
	}
	m := reflect.MakeMapWithSize(t, v.Len())
	for i := range v.Len() {
		key, elem := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		// A key that is no scalar becomes text, such as {X:1 Y:2}: see goKey.
		if goKey(v.Type().Key) != goType(v.Type().Key) {
			key.SetString(v.Key(i).String())
		} else {
			setGo(key, v.Key(i))
		}
		setGo(elem, v.Index(i))
		m.SetMapIndex(key, elem)
	}
	return m
}

// asPrinted returns the float64 with the same shortest text as the float32: 0.1 for the float32
// 0.1.
func asPrinted(f float64) float64 {
	p, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64)
	if err != nil {
		return f
	}
	return p
}
