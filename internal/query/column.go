package query

import (
	"reflect"
	"strconv"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A column is a component or resource that an expression reads. Its values are of a
// Go type that is made from the layout, so that the checker of package expr knows
// the fields:
//
//	signed integers, uint8 to uint32   int
//	uint64                             uint64
//	floats                             float64; a float32 is the number it prints as
//	complex numbers                    []float64 of two
//	entities                           string: "12v3"
//	structs, pointers, maps            structs, pointers, maps; keys that are no scalars are text
//	arrays, slices                     slices
//	tags                               whether the entity has it
//
// From row to variable:
//
//	row, encoded ──layout.Value──▶ setGo into value ──▶ env[key]; and env[flag]: there is one
type column struct {
	name      string
	key, flag string // What its value, and whether there is one, are called.
	layout    *layout.Type
	resource  bool
	typ       reflect.Type       // What expressions read: of a struct a pointer to it; nil for a tag.
	value     reflect.Value      // A pointer to the room that load decodes into.
	component *inspect.Component // In the image being read; nil: it does not have it.
	lookup    Lookup             // Of another entity's rows; nil: component has them.
}

// A Lookup returns what an entity that is alive has of a component, encoded, and whether it has it.
type Lookup func(e ecs.Entity) (row []byte, has bool, err error)

// Before the name of a component, so that no expression can contain it.
const (
	valueMark = "\x01" // Its value.
	flagMark  = "\x02" // Whether the entity has it.
)

// newColumn makes room for one value of c, which every load writes over: an expression reads
// millions of rows. So a value that is kept longer than the evaluation has to be copied first, and a
// column is used by one goroutine at a time ([Expr.Clone]).
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
		col.typ = col.value.Type() // Handed out by pointer, which costs no copy.
	}
	return col
}

// load puts into env what expressions read of c for entity e: whether it has the component,
// and its value. A struct is valid until the next load, which writes over it.
func (c *column) load(env map[string]any, e ecs.Entity) error {
	row := c.row(e)
	if row < 0 {
		return c.loadRow(env, nil, false)
	}
	return c.loadRow(env, c.component.Row(row), true)
}

// loadRow is load for an entity whose row is known, if it has one.
func (c *column) loadRow(env map[string]any, row []byte, has bool) error {
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
	if c.typ == c.value.Type() { // A struct.
		env[c.key] = c.value.Interface()
	} else {
		env[c.key] = c.value.Elem().Interface()
	}
	return nil
}

// row returns the row of e, or that of a resource; -1: there is none.
func (c *column) row(e ecs.Entity) int {
	switch {
	case c.component == nil:
		return -1
	case c.resource: // It has one row, or none.
		return c.component.Len() - 1
	}
	return c.component.Find(e)
}

// goType returns the type of values of t. Arrays become slices, since the type of an
// array that no program has may be too large for this one. Most integers become int, in which
// package expr counts; a uint64 does not fit in it, and is compared by [exactness].
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

// behind returns what a pointer leads to, and any other type as it is.
func behind(t *layout.Type) *layout.Type {
	for t != nil && t.Kind == layout.Pointer {
		t = t.Elem
	}
	return t
}

// goStruct returns a struct whose fields have the names of t in a tag: they need not
// be exported, or even names in Go. Package expr finds fields by the one tag, its toJSON by the other.
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

// goKey returns the type of map keys. Slices cannot be keys in Go, so what would be one is
// text.
func goKey(t *layout.Type) reflect.Type {
	switch t.Kind {
	case layout.Struct, layout.Array, layout.Complex64, layout.Complex128, layout.Bytes:
		return reflect.TypeFor[string]()
	}
	return goType(t)
}

// setGo sets dst, which is of the type for v, to v. What dst held is not looked at: it may be that
// of the entity before.
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

// setGoParts is setGo for values that hold others. Slices, maps and what pointers lead to are made
// anew for each entity: an answer may keep one.
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
		if goKey(v.Type().Key) != goType(v.Type().Key) { // As it prints: {X:1 Y:2}.
			key.SetString(v.Key(i).String())
		} else {
			setGo(key, v.Key(i))
		}
		setGo(elem, v.Index(i))
		m.SetMapIndex(key, elem)
	}
	return m
}

// asPrinted returns the number that a float32 is printed as: what people who write
// 0.1 mean. It keeps order.
func asPrinted(f float64) float64 {
	p, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64)
	if err != nil {
		return f
	}
	return p
}
