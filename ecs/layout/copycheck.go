package layout

import (
	"fmt"
	"math"
	"reflect"
)

// CopyFault checks that the value copied is a deep copy of v. It returns a text that names the
// first field that differs or shares memory with v. The text is "" if there is no such field.
// CopyFault ignores the contents of interfaces, funcs and channels.
func CopyFault[T any](v, copied T) string {
	t := reflect.TypeFor[T]()
	c := copyCheck{seen: map[ptr]bool{}}
	return c.fault(valueAt(t, ptr(&v)), valueAt(t, ptr(&copied)), rootPath(t))
}

type copyCheck struct {
	// Pointers and maps that were already visited.
	seen map[ptr]bool
}

func (c *copyCheck) fault(a, b reflect.Value, path string) string {
	differs := func(is bool) string {
		if !is {
			return ""
		}
		return path + " differs from the original"
	}
	t := a.Type()
	if t.Size() == 0 {
		return ""
	}
	if neverChanges[t] {
		return differs(!a.Equal(b))
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if name := t.Field(i).Name; name != "_" {
				if fault := c.fault(a.Field(i), b.Field(i), path+"."+name); fault != "" {
					return fault
				}
			}
		}
	case reflect.Array:
		return c.elements(a, b, path)
	case reflect.Slice:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return differs(true)
		}
		if overlap(a, b) {
			return path + " shares memory with the original"
		}
		return c.elements(a, b, path)
	case reflect.Pointer, reflect.Map:
		if a.IsNil() != b.IsNil() {
			return differs(true)
		}
		if a.IsNil() || c.seen[a.UnsafePointer()] {
			return ""
		}
		c.seen[a.UnsafePointer()] = true
		switch {
		case t.Kind() == reflect.Map:
			return c.entries(a, b, path)
		case a.UnsafePointer() == b.UnsafePointer() && t.Elem().Size() > 0:
			return path + " shares memory with the original"
		}
		return c.fault(a.Elem(), b.Elem(), path)
	case reflect.Float32, reflect.Float64:
		return differs(math.Float64bits(a.Float()) != math.Float64bits(b.Float()))
	case reflect.Complex64, reflect.Complex128:
		x, y := a.Complex(), b.Complex()
		return differs(math.Float64bits(real(x)) != math.Float64bits(real(y)) || math.Float64bits(imag(x)) != math.Float64bits(imag(y)))
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
	default:
		return differs(!a.Equal(b))
	}
	return ""
}

func (c *copyCheck) elements(a, b reflect.Value, path string) string {
	for i := range a.Len() {
		if fault := c.fault(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i)); fault != "" {
			return fault
		}
	}
	return ""
}

func (c *copyCheck) entries(a, b reflect.Value, path string) string {
	if a.UnsafePointer() == b.UnsafePointer() {
		return path + " shares memory with the original"
	}
	if a.Len() != b.Len() {
		return path + " differs from the original"
	}
	for entries := a.MapRange(); entries.Next(); {
		key := entries.Key()
		// Skip NaN: a lookup of this key in b would find nothing.
		if !key.Equal(key) {
			continue
		}
		value := b.MapIndex(key)
		if !value.IsValid() {
			return path + " differs from the original"
		}
		if fault := c.fault(entries.Value(), value, path+"[value]"); fault != "" {
			return fault
		}
	}
	return ""
}

// overlap reports whether a and b, slices of the same type, share elements.
func overlap(a, b reflect.Value) bool {
	size := a.Type().Elem().Size() * uintptr(a.Len())
	x, y := a.Pointer(), b.Pointer()
	return size > 0 && x < y+size && y < x+size
}
