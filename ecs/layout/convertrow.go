package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// A converter reads a value in the stored layout and appends it to dst in the new layout.
type converter func(r *reader, dst []byte) ([]byte, *DataError)

// A conversion compiles converters of rows. fromPacked is set if the stored rows are packed, and
// toPacked if the new rows are. A row that is not packed is one msgpack value.
type conversion struct{ fromPacked, toPacked bool }

func (c conversion) compile(pair *match) converter {
	from, to := pair.from, pair.to
	if pair.same && !c.fromPacked && !c.toPacked {
		return func(r *reader, dst []byte) ([]byte, *DataError) {
			before := r.src
			if err := r.value(from, nil); err != nil {
				return nil, err
			}
			return append(dst, before[:len(before)-len(r.src)]...), nil
		}
	}
	switch from.Kind {
	case Struct:
		return c.structure(pair)
	case Array:
		return c.array(pair)
	case Slice:
		return nilOr(convertSlice(c.compile(pair.elem)))
	// Bytes become a slice of wider numbers. If they stayed bytes, the layouts would be equal.
	case Bytes:
		return nilOr(convertBytes(to.Elem.Kind))
	case Map:
		return nilOr(convertMap(c.compile(pair.key), c.compile(pair.elem)))
	case Pointer:
		return nilOr(convertPointer(c.compile(pair.elem)))
	}
	return func(r *reader, dst []byte) ([]byte, *DataError) {
		re, im, err := c.read(r, from)
		if err != nil {
			return nil, err
		}
		return c.write(dst, to.Kind, widenPart(re, from.Kind, to.Kind), widenPart(im, from.Kind, to.Kind)), nil
	}
}

// nilOr returns a converter that copies nil and passes other values to the converter full.
func nilOr(full converter) converter {
	return func(r *reader, dst []byte) ([]byte, *DataError) {
		if r.isNil() {
			return append(dst, codeNil), nil
		}
		return full(r, dst)
	}
}

// widenPart widens a number, or one part of a complex number.
func widenPart(x uint64, from, to Kind) uint64 {
	if from == Complex64 && to == Complex128 {
		return widenFloat(uint32(x))
	}
	return widen(x, from, to)
}

// read reads a number or bool and returns its bits. For a complex number, im is the imaginary part.
func (c conversion) read(r *reader, t *Type) (re, im uint64, err *DataError) {
	if !c.fromPacked {
		return r.scalar(t.Kind)
	}
	if len(r.src) < kinds[t.Kind].width {
		return 0, 0, bad("cut short")
	}
	var v Value
	n, err := t.packed(r.src, &v)
	if err == nil {
		r.src = r.src[n:]
	}
	return v.bits, v.imag, err
}

// write appends a number or bool of kind k.
func (c conversion) write(dst []byte, k Kind, re, im uint64) []byte {
	if !c.toPacked {
		return appendScalar(dst, k, re, im)
	}
	switch k {
	case Complex64:
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, uint32(re)), uint32(im))
	case Complex128:
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, re), im)
	}
	for range kinds[k].width {
		dst = append(dst, byte(re))
		re >>= 8
	}
	return dst
}

// appendScalar appends a number or bool as a msgpack value.
func appendScalar(dst []byte, k Kind, re, im uint64) []byte {
	switch {
	case k == Bool:
		return appendBool(dst, re != 0)
	case k.signed():
		return appendInt(dst, int64(re))
	case k == Float32:
		return appendFloat32(dst, uint32(re))
	case k == Float64:
		return appendFloat64(dst, re)
	case k == Complex64:
		return appendFloat32(appendFloat32(appendLength(dst, &arrayForm, 2), uint32(re)), uint32(im))
	case k == Complex128:
		return appendFloat64(appendFloat64(appendLength(dst, &arrayForm, 2), re), im)
	}
	return appendUint(dst, re)
}

// zero appends the zero value of t.
func (c conversion) zero(dst []byte, t *Type) []byte {
	if c.toPacked {
		return append(dst, make([]byte, t.Width())...)
	}
	return t.appendZero(dst)
}

// A fieldStep is one step in the conversion of a struct. It converts a stored field, skips a
// dropped field, or writes the zero value of an added field.
type fieldStep struct {
	// The name of the stored field, or "" for an added field.
	name string
	read converter
	// The encoded name of the new field, for a new row that is not packed.
	key []byte
	// The index of the new field, or -1 if the field is dropped.
	target int
	// For an added field: its type.
	added *Type
	// For a dropped field: its type.
	dropped *Type
}

// structure returns the converter of structs. It converts the fields in stored order. If the order
// in the new struct differs, it sorts the converted fields afterwards.
func (c conversion) structure(pair *match) converter {
	steps, sorted := c.steps(pair)
	stored, n := len(pair.from.Fields), len(pair.to.Fields)
	return func(r *reader, dst []byte) (_ []byte, err *DataError) {
		if !c.fromPacked {
			if err := r.expect(&mapForm, stored, 2); err != nil {
				return nil, err
			}
		}
		if !c.toPacked {
			dst = appendLength(dst, &mapForm, n)
		}
		start := len(dst)
		var pieces []piece
		for i := range steps {
			before := len(dst)
			if dst, err = c.step(&steps[i], r, dst); err != nil {
				return nil, err.in("." + steps[i].name)
			}
			if target := steps[i].target; !sorted && target >= 0 {
				pieces = append(pieces, piece{target, before - start, len(dst) - start})
			}
		}
		return rearranged(dst, start, pieces), nil
	}
}

// steps returns the steps for the fields of a struct. sorted is false if the kept fields have
// another order in the new struct.
func (c conversion) steps(pair *match) (steps []fieldStep, sorted bool) {
	kept := pair.kept()
	stored := make([]bool, len(pair.to.Fields))
	for _, k := range kept {
		stored[k] = true
	}
	// addUpTo appends the steps for the added fields with an index in [next, end).
	next := 0
	addUpTo := func(end int) {
		for ; next < end; next++ {
			if !stored[next] {
				g := pair.to.Fields[next]
				steps = append(steps, fieldStep{key: c.key(g.Name), target: next, added: g.Type})
			}
		}
	}
	for i, f := range pair.from.Fields {
		k := pair.targets[i]
		if k < 0 {
			steps = append(steps, fieldStep{name: f.Name, target: -1, dropped: f.Type})
			continue
		}
		addUpTo(k)
		steps = append(steps, fieldStep{name: f.Name, read: c.compile(pair.fields[i]), key: c.key(pair.to.Fields[k].Name), target: k})
	}
	addUpTo(len(pair.to.Fields))
	return steps, slices.IsSorted(kept)
}

// key returns the bytes to write before the value of the named field.
func (c conversion) key(name string) []byte {
	if c.toPacked {
		return nil
	}
	return appendString(nil, name)
}

// step converts, skips or adds one field, as the step s says.
func (c conversion) step(s *fieldStep, r *reader, dst []byte) ([]byte, *DataError) {
	dst = append(dst, s.key...)
	if s.added != nil {
		return c.zero(dst, s.added), nil
	}
	if !c.fromPacked {
		r.element(2)
		name, err := r.bytes(&strForm)
		if err == nil && string(name) != s.name {
			err = bad(fmt.Sprintf("field is named %.40q", name))
		}
		if err != nil {
			return nil, err
		}
	}
	if s.dropped == nil {
		return s.read(r, dst)
	}
	return dst, c.skip(r, s.dropped)
}

// skip skips a value of t.
func (c conversion) skip(r *reader, t *Type) *DataError {
	if !c.fromPacked {
		return r.value(t, nil)
	}
	width := t.Width()
	if len(r.src) < width {
		return bad("cut short")
	}
	r.src = r.src[width:]
	return nil
}

// A piece is the encoding of one new field: the bytes [lo, hi) of the output. The number order is
// the index of the field in the new struct.
type piece struct{ order, lo, hi int }

// rearranged puts the pieces of dst[start:] into the order of the fields in the new struct. It
// returns dst unchanged if pieces is empty.
func rearranged(dst []byte, start int, pieces []piece) []byte {
	if len(pieces) == 0 {
		return dst
	}
	slices.SortFunc(pieces, func(a, b piece) int { return a.order - b.order })
	unsorted := slices.Clone(dst[start:])
	dst = dst[:start]
	for _, p := range pieces {
		dst = append(dst, unsorted[p.lo:p.hi]...)
	}
	return dst
}

// array returns the converter of arrays. The new array may be longer or shorter.
func (c conversion) array(pair *match) converter {
	elem := c.compile(pair.elem)
	n, now := pair.from.Len, pair.to.Len
	kept := min(n, now)
	return func(r *reader, dst []byte) (_ []byte, err *DataError) {
		reserved := 0
		if !c.fromPacked {
			reserved = 1
			if err := r.expect(&arrayForm, n, reserved); err != nil {
				return nil, err
			}
		}
		if !c.toPacked {
			dst = appendLength(dst, &arrayForm, now)
		}
		if dst, err = convertElements(r, dst, elem, kept, reserved); err != nil {
			return nil, err
		}
		for i := kept; i < n; i++ {
			r.element(reserved)
			if err := c.skip(r, pair.from.Elem); err != nil {
				return nil, err.in(index(i))
			}
		}
		for range now - kept {
			dst = c.zero(dst, pair.to.Elem)
		}
		return dst, nil
	}
}

// convertElements converts n elements. The parameter reserved is the number of bytes that the
// caller has reserved for each of them.
func convertElements(r *reader, dst []byte, elem converter, n, reserved int) (_ []byte, err *DataError) {
	for i := range n {
		r.element(reserved)
		if dst, err = elem(r, dst); err != nil {
			return nil, err.in(index(i))
		}
	}
	return dst, nil
}

// convertSlice returns the converter of non-nil slices.
func convertSlice(elem converter) converter {
	return func(r *reader, dst []byte) ([]byte, *DataError) {
		n, err := r.open(&arrayForm, 1)
		if err != nil {
			return nil, err
		}
		return convertElements(r, appendLength(dst, &arrayForm, n), elem, n, 1)
	}
}

// convertBytes returns the converter of bytes to a slice of wider numbers.
func convertBytes(to Kind) converter {
	return func(r *reader, dst []byte) ([]byte, *DataError) {
		content, err := r.bytes(&binForm)
		if err != nil {
			return nil, err
		}
		dst = appendLength(dst, &arrayForm, len(content))
		for _, b := range content {
			dst = appendScalar(dst, to, widen(uint64(b), Uint8, to), 0)
		}
		return dst, nil
	}
}

// convertPointer returns the converter of non-nil pointers.
func convertPointer(elem converter) converter {
	return func(r *reader, dst []byte) ([]byte, *DataError) {
		if err := r.exactly(&arrayForm, 1); err != nil {
			return nil, err
		}
		return elem(r, appendLength(dst, &arrayForm, 1))
	}
}

// convertMap returns the converter of non-nil maps. Keys stay distinct, but their order can change.
func convertMap(key, elem converter) converter {
	return func(r *reader, dst []byte) ([]byte, *DataError) {
		n, err := r.open(&mapForm, 2)
		if err != nil {
			return nil, err
		}
		dst = appendLength(dst, &mapForm, n)
		start := len(dst)
		entries := make([]entry, 0, n)
		var order keyOrder
		for i := range n {
			r.element(2)
			before := r.src
			e := entry{key: len(dst) - start}
			if dst, err = key(r, dst); err == nil {
				err = order.next(before, r.src)
			}
			if err != nil {
				return nil, err.in(keyPart(i))
			}
			e.value = len(dst) - start
			if dst, err = elem(r, dst); err != nil {
				return nil, err.in(valuePart(i))
			}
			e.end = len(dst) - start
			entries = append(entries, e)
		}
		return sortEntries(dst, start, entries), nil
	}
}

// sortEntries puts the entries in dst[start:] in the order of their keys.
func sortEntries(dst []byte, start int, entries []entry) []byte {
	body := dst[start:]
	inOrder := func(a, b entry) int { return bytes.Compare(body[a.key:a.value], body[b.key:b.value]) }
	if slices.IsSortedFunc(entries, inOrder) {
		return dst
	}
	body = slices.Clone(body)
	slices.SortFunc(entries, inOrder)
	dst = dst[:start]
	for _, e := range entries {
		dst = append(dst, body[e.key:e.end]...)
	}
	return dst
}
