package layout

import (
	"reflect"
	"time"
)

// neverChanges are types of which copies may share what they point to: nobody can
// write it.
var neverChanges = map[reflect.Type]bool{
	reflect.TypeFor[time.Time]():      true,
	reflect.TypeFor[*time.Location](): true,
}

// HasPointers reports whether the garbage collector must look at values of type
// t. Strings count.
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
