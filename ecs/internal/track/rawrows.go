package track

import "unsafe"

// RawRows are the live rows of a column as memory, for who does not know their type.
type RawRows struct {
	live *unsafe.Pointer // The first word of the slice: where its rows lie.
	size uintptr
}

// Raw returns the live rows of c, also those that it will have.
func (c *Column[T]) Raw() RawRows {
	return RawRows{c.Log.live, c.Log.width}
}

// At returns where row lies, which need not exist.
func (r *RawRows) At(row int) unsafe.Pointer { return unsafe.Add(*r.live, uintptr(row)*r.size) }

// Move makes row dst what row src is, which holds no pointers. It asks neither whether there
// are such rows nor whether dst is saved.
func (r *RawRows) Move(dst, src int) {
	copyRow(r.At(dst), r.At(src), r.size)
}

// copyRow copies a row of so many bytes, without pointers.
func copyRow(to, from unsafe.Pointer, size uintptr) {
	if size == 16 { // Sooner than by a call.
		*(*[16]byte)(to) = *(*[16]byte)(from)
		return
	}
	copy(unsafe.Slice((*byte)(to), size), unsafe.Slice((*byte)(from), size))
}
