package layout

import (
	"reflect"
	"unsafe"
)

// This file holds all uses of package unsafe. Reflection may read unexported
// fields but refuses to set them, and costs tens of nanoseconds a field, so rows
// are read and written through their addresses. The offsets and types come from
// the reflect.Type of the same rows, and [Codec.mustBeFor] proves that the rows
// have it.

// ptr is the address of a Go value that something else keeps alive.
type ptr = unsafe.Pointer

// at returns the address offset bytes behind p, inside the same value.
func at(p ptr, offset int) ptr { return unsafe.Add(p, offset) }

// load returns the value of type T at p.
func load[T any](p ptr) T { return *(*T)(p) }

// store sets the value of type T at p.
func store[T any](p ptr, v T) { *(*T)(p) = v }

// view returns n bytes at p as a slice over the same memory. They must hold no
// pointers if they are written to.
func view(p ptr, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// base returns the address of the first element of rows.
func base[T any](rows []T) ptr { return ptr(unsafe.SliceData(rows)) }

// aligned reports whether a T can lie where src begins.
func aligned[T any](src []byte) bool {
	var v T
	return uintptr(base(src))%unsafe.Alignof(v) == 0
}

// adopt returns the memory of src as n rows. T must hold no pointers: the garbage
// collector does not look for any in bytes.
func adopt[T any](src []byte, n int) []T {
	return unsafe.Slice((*T)(base(src)), n)
}

// sliceAt returns the elements of the slice of any type at p: the address of the
// first, or nil for a nil slice, and how many there are.
func sliceAt(p ptr) (elems ptr, n int) {
	// All slices have the same header. Elements of size 0 are never touched.
	s := *(*[]struct{})(p)
	return ptr(unsafe.SliceData(s)), len(s)
}

// valueAt returns the settable value of type t at p. It does not remember that it
// came from an unexported field.
func valueAt(t reflect.Type, p ptr) reflect.Value { return reflect.NewAt(t, p).Elem() }

// addressOf returns the address of an addressable value.
func addressOf(v reflect.Value) ptr { return v.Addr().UnsafePointer() }
