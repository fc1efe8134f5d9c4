package layout

import (
	"reflect"
	"unsafe"
)

// Only this file of the package uses unsafe, apart from tests. Codecs read and write rows through
// addresses, because reflection costs tens of nanoseconds per field and cannot set unexported
// fields. The offsets come from the reflect.Type of the rows. [Codec.mustBeFor] checks that the
// rows have this type.

// ptr is the address of a Go value. The caller must keep the value alive.
type ptr = unsafe.Pointer

// at returns the address that is offset bytes after p, inside the same value.
func at(p ptr, offset int) ptr { return unsafe.Add(p, offset) }

// load returns the value of type T at p.
func load[T any](p ptr) T { return *(*T)(p) }

// store sets the value of type T at p.
func store[T any](p ptr, v T) { *(*T)(p) = v }

// view returns the n bytes at p as a slice that shares the memory. Before a write to the slice,
// check that the memory holds no pointers.
func view(p ptr, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// base returns the address of the first element of rows.
func base[T any](rows []T) ptr { return ptr(unsafe.SliceData(rows)) }

// aligned reports whether src is aligned for a T.
func aligned[T any](src []byte) bool {
	var v T
	return uintptr(base(src))%unsafe.Alignof(v) == 0
}

// adopt returns the memory of src as n rows. T must not hold pointers, because the garbage
// collector does not scan byte slices for pointers.
func adopt[T any](src []byte, n int) []T {
	return unsafe.Slice((*T)(base(src)), n)
}

// sliceAt returns the elements of the slice at p, which can be of any type. elems is the address of
// the first element, or nil for a nil slice. n is the length.
func sliceAt(p ptr) (elems ptr, n int) {
	// All slices have the same header, so []struct{} can stand for each of them. Its elements are
	// never accessed.
	s := *(*[]struct{})(p)
	return ptr(unsafe.SliceData(s)), len(s)
}

// valueAt returns the settable value of type t at p, even for an unexported field.
func valueAt(t reflect.Type, p ptr) reflect.Value { return reflect.NewAt(t, p).Elem() }

// addressOf returns the address of an addressable value.
func addressOf(v reflect.Value) ptr { return v.Addr().UnsafePointer() }
