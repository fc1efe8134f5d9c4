package layout

// AppendZero appends the row of the zero value of a Go type that t describes.
func (t *Type) AppendZero(dst []byte) []byte {
	if width := t.Width(); width != varies {
		return append(dst, make([]byte, width)...)
	}
	return t.appendZero(dst)
}

func (t *Type) appendZero(dst []byte) []byte {
	switch t.Kind {
	case Bool:
		return appendBool(dst, false)
	case Float32:
		return appendFloat32(dst, 0)
	case Float64:
		return appendFloat64(dst, 0)
	case Complex64:
		return appendFloat32(appendFloat32(appendLength(dst, &arrayForm, 2), 0), 0)
	case Complex128:
		return appendFloat64(appendFloat64(appendLength(dst, &arrayForm, 2), 0), 0)
	case String:
		return appendString(dst, "")
	case Bytes, Slice, Map, Pointer:
		return append(dst, codeNil)
	case Struct:
		dst = appendLength(dst, &mapForm, len(t.Fields))
		for _, f := range t.Fields {
			dst = f.Type.appendZero(appendString(dst, f.Name))
		}
		return dst
	case Array:
		dst = appendLength(dst, &arrayForm, t.Len)
		for range t.Len {
			dst = t.Elem.appendZero(dst)
		}
		return dst
	}
	return append(dst, 0) // Integers and entities.
}
