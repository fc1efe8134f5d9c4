package layout

// Equal reports whether v and u hold the same, bit for bit: a NaN equals itself,
// 0 does not equal -0. Their types must be equal, see [Type.Equal]; only parts
// that are nil or empty in both are not looked into.
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
