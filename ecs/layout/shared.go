package layout

import "reflect"

// Shared returns the path of the first field through which two copies of a value
// of type t share memory that can change: a slice, map, pointer, interface, func
// or channel. It returns "" if there is none. Strings never change, so copies
// may share them.
func Shared(t reflect.Type) string {
	if path, found := shared(t); found {
		return join(rootPath(t), path)
	}
	return ""
}

// shared returns the path to what is shared, and whether anything is. Recursive
// types end it, as only what it stops at can make a type recursive.
func shared(t reflect.Type) (path string, found bool) {
	if t.Size() == 0 {
		return "", false
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.UnsafePointer,
		reflect.Interface, reflect.Func, reflect.Chan:
		return "", true
	case reflect.Array:
		path, found = shared(t.Elem())
		return "[]" + path, found
	case reflect.Struct:
		return sharedField(t)
	}
	return "", false
}

// sharedField is shared for the fields of a struct.
func sharedField(t reflect.Type) (path string, found bool) {
	for f := range t.Fields() {
		if path, found = shared(f.Type); found {
			return "." + f.Name + path, true
		}
	}
	return "", false
}

// HasPointers reports whether the garbage collector must look at values of type
// t. Strings count.
func HasPointers(t reflect.Type) bool {
	if t.Size() == 0 {
		return false
	}
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Array:
		return HasPointers(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if HasPointers(f.Type) {
				return true
			}
		}
		return false
	}
	_, found := shared(t)
	return found
}
