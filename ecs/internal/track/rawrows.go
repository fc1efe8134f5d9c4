package track

import "unsafe"

// RawRows are the live rows of a column as memory, for who does not know their type. They
// must not hold pointers.
type RawRows struct {
	live *unsafe.Pointer // The first word of the slice: where its rows lie.
	size uintptr
}

// Raw returns the live rows of c, also those that it will have.
func (c *Column[T]) Raw() RawRows {
	return RawRows{(*unsafe.Pointer)(unsafe.Pointer(&c.Live)), c.Log.size}
}

// Move makes row dst what row src is. It asks neither whether there are such rows nor
// whether dst is saved.
func (r *RawRows) Move(dst, src int) {
	to, from := unsafe.Add(*r.live, uintptr(dst)*r.size), unsafe.Add(*r.live, uintptr(src)*r.size)
	if r.size == 16 { // Sooner than by a call.
		*(*[16]byte)(to) = *(*[16]byte)(from)
		return
	}
	copy(unsafe.Slice((*byte)(to), r.size), unsafe.Slice((*byte)(from), r.size))
}
