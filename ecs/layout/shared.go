package layout

import (
	"reflect"
	"time"
)

// neverChanges lists immutable types. Copies of their values may share memory.
var neverChanges = map[reflect.Type]bool{
	reflect.TypeFor[time.Time]():      true,
	reflect.TypeFor[*time.Location](): true,
}

// HasPointers reports whether values of type t contain pointers for the garbage collector. A string
// contains a pointer.
func HasPointers(t reflect.Type) bool {
	if t.Size() == 0 {
		return false
	}
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Pointer, reflect.UnsafePointer,
		reflect.Interface, reflect.Func, reflect.Chan:
		return true
	case reflect.Array:
		return HasPointers(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if HasPointers(f.Type) {
				return true
			}
		}
	}
	return false
}
