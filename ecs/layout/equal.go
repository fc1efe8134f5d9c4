package layout

// Equal reports whether v and u are equal bit for bit: a NaN equals itself, and 0 differs from -0.
// The types of all values inside must be equal too: see [Type.Equal]. Equal does not compare the
// element types of slices, maps and pointers that have no elements.
func (v Value) Equal(u Value) bool {
	if v.Kind() != u.Kind() || v.empty != u.empty || v.bits != u.bits || v.imag != u.imag || v.text != u.text || len(v.items) != len(u.items) {
		return false
	}
	for i := range v.items {
		if v.Kind() == Struct && v.typ.Fields[i].Name != u.typ.Fields[i].Name || !v.items[i].Equal(u.items[i]) {
			return false
		}
	}
	return true
}
