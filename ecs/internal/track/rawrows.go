package track

import "unsafe"

// RawRows gives access to the live rows of a column as untyped memory.
type RawRows struct {
	// Points to the data pointer of the slice of live rows. So At finds the rows after the slice
	// has been reallocated.
	live *unsafe.Pointer
	size uintptr
}

// At returns the address of a row. It does not check that the row exists.
func (r *RawRows) At(row int) unsafe.Pointer { return unsafe.Add(*r.live, uintptr(row)*r.size) }

// Move copies row src to row dst. Rows must not hold pointers. Move checks neither that the rows
// exist nor that dst is saved.
func (r *RawRows) Move(dst, src int) {
	copyRow(r.At(dst), r.At(src), r.size)
}

// copyRow copies a row of the given size in bytes. The row must hold no pointers.
func copyRow(to, from unsafe.Pointer, size uintptr) {
	// An assignment is faster than a call of copy.
	if size == 16 {
		*(*[16]byte)(to) = *(*[16]byte)(from)
		return
	}
	copy(unsafe.Slice((*byte)(to), size), unsafe.Slice((*byte)(from), size))
}
