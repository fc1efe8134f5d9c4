package layout

import (
	"reflect"

	"github.com/stet-ecs/stet/internal/grow"
)

// A coder encodes and decodes the values of one Go type as msgpack. It calls the coders of the
// parts of the type, so the structure is not analysed again for each row.
type coder struct {
	encode func(dst []byte, p ptr) []byte
	decode func(r *reader, p ptr) *DataError
	// The minimum size of an encoded value in bytes, from 1 to mostLeast.
	least int
}

// mostLeast limits coder.least: a larger minimum counts as mostLeast. So sums and products do not
// overflow.
const mostLeast = 1 << 20

// compile returns the coder of t. [Of] must accept t.
func compile(t reflect.Type) coder {
	switch kind := kindOf(t); kind {
	case Bool:
		return boolCoder
	case Int8, Int16, Int32, Int64:
		return signedCoder(kind.bits(), int(t.Size())*8)
	case Uint8, Uint16, Uint32, Uint64, Entity:
		return unsignedCoder(kind.bits(), int(t.Size())*8)
	case Float32:
		return float32Coder
	case Float64:
		return float64Coder
	case Complex64:
		return repeat(float32Coder, 2, 4)
	case Complex128:
		return repeat(float64Coder, 2, 8)
	case String:
		return stringCoder
	case Bytes:
		return bytesCoder(t)
	case Struct:
		return structCoder(t)
	case Array:
		return repeat(compile(t.Elem()), t.Len(), int(t.Elem().Size()))
	case Slice:
		return sliceCoder(t)
	case Map:
		return mapCoder(t)
	default:
		return pointerCoder(t)
	}
}

var boolCoder = coder{
	encode: func(dst []byte, p ptr) []byte { return appendBool(dst, load[bool](p)) },
	decode: func(r *reader, p ptr) *DataError {
		x, err := r.bool()
		store(p, x)
		return err
	},
	least: 1,
}

// signedCoder returns the coder of signed integers. The parameters are their size in files and
// their size in memory, in bits.
func signedCoder(bits, memory int) coder {
	return coder{
		encode: func(dst []byte, p ptr) []byte { return appendInt(dst, loadInt(p, memory)) },
		decode: func(r *reader, p ptr) *DataError {
			x, err := r.signed(bits, memory)
			storeUint(p, memory, uint64(x))
			return err
		},
		least: 1,
	}
}

// unsignedCoder returns the coder of unsigned integers. The parameters are those of signedCoder.
func unsignedCoder(bits, memory int) coder {
	return coder{
		encode: func(dst []byte, p ptr) []byte { return appendUint(dst, loadUint(p, memory)) },
		decode: func(r *reader, p ptr) *DataError {
			x, err := r.unsigned(bits, memory)
			storeUint(p, memory, x)
			return err
		},
		least: 1,
	}
}

// loadUint returns the unsigned integer at p.
func loadUint(p ptr, bits int) uint64 {
	switch bits {
	case 8:
		return uint64(load[uint8](p))
	case 16:
		return uint64(load[uint16](p))
	case 32:
		return uint64(load[uint32](p))
	}
	return load[uint64](p)
}

// loadInt returns the signed integer at p.
func loadInt(p ptr, bits int) int64 {
	unused := 64 - bits
	return int64(loadUint(p, bits)<<unused) >> unused
}

// storeUint sets the integer at p to the low bits of x.
func storeUint(p ptr, bits int, x uint64) {
	switch bits {
	case 8:
		store(p, uint8(x))
	case 16:
		store(p, uint16(x))
	case 32:
		store(p, uint32(x))
	default:
		store(p, x)
	}
}

var float32Coder = coder{
	encode: func(dst []byte, p ptr) []byte { return appendFloat32(dst, load[uint32](p)) },
	decode: func(r *reader, p ptr) *DataError {
		bits, err := r.float(codeFloat32, 4)
		store(p, uint32(bits))
		return err
	},
	least: 5,
}

var float64Coder = coder{
	encode: func(dst []byte, p ptr) []byte { return appendFloat64(dst, load[uint64](p)) },
	decode: func(r *reader, p ptr) *DataError {
		bits, err := r.float(codeFloat64, 8)
		store(p, bits)
		return err
	},
	least: 9,
}

var stringCoder = coder{
	encode: func(dst []byte, p ptr) []byte { return appendString(dst, load[string](p)) },
	decode: func(r *reader, p ptr) *DataError {
		content, err := r.bytes(&strForm)
		store(p, string(content))
		return err
	},
	least: 1,
}

// bytesCoder returns the coder of the slice of bytes t.
func bytesCoder(t reflect.Type) coder {
	return coder{
		encode: func(dst []byte, p ptr) []byte {
			content := load[[]byte](p)
			if content == nil {
				return append(dst, codeNil)
			}
			return append(appendLength(dst, &binForm, len(content)), content...)
		},
		decode: func(r *reader, p ptr) *DataError {
			if r.isNil() {
				valueAt(t, p).SetZero()
				return nil
			}
			content, err := r.bytes(&binForm)
			store(p, append([]byte{}, content...))
			return err
		},
		least: 1,
	}
}

// A fieldCoder encodes and decodes one field of a struct.
type fieldCoder struct {
	coder
	name string
	// The encoded field name.
	key    []byte
	offset int
}

// structCoder returns the coder of the struct t.
func structCoder(t reflect.Type) coder {
	var fields []fieldCoder
	least := 1
	for f := range t.Fields() {
		if f.Name == "_" {
			continue
		}
		name := nameOf(f)
		field := fieldCoder{compile(f.Type), name, appendString(nil, name), int(f.Offset)}
		fields = append(fields, field)
		least = min(least+len(field.key)+field.least, mostLeast)
	}
	return coder{
		encode: func(dst []byte, p ptr) []byte {
			dst = appendLength(dst, &mapForm, len(fields))
			for i := range fields {
				f := &fields[i]
				dst = f.encode(append(dst, f.key...), at(p, f.offset))
			}
			return dst
		},
		decode: func(r *reader, p ptr) *DataError { return decodeFields(r, p, fields) },
		least:  least,
	}
}

// decodeFields decodes the given fields of the struct at p.
func decodeFields(r *reader, p ptr, fields []fieldCoder) *DataError {
	if err := r.exactly(&mapForm, len(fields)); err != nil {
		return err
	}
	for i := range fields {
		f := &fields[i]
		if !r.literal(f.key) {
			return bad("field name is missing").in("." + f.name)
		}
		if err := f.decode(r, at(p, f.offset)); err != nil {
			return err.in("." + f.name)
		}
	}
	return nil
}

// repeat returns the coder of an array of n values. The values are size bytes apart.
func repeat(elem coder, n, size int) coder {
	return coder{
		encode: func(dst []byte, p ptr) []byte {
			dst = appendLength(dst, &arrayForm, n)
			return encodeElements(dst, elem, p, n, size)
		},
		decode: func(r *reader, p ptr) *DataError {
			if err := r.exactly(&arrayForm, n); err != nil {
				return err
			}
			return decodeElements(r, elem, p, n, size, 0)
		},
		least: int(min(1+int64(n)*int64(elem.least), mostLeast)),
	}
}

// encodeElements encodes n elements at p. The elements are size bytes apart.
func encodeElements(dst []byte, elem coder, p ptr, n, size int) []byte {
	start := len(dst)
	for i := 0; i < n; {
		end, full := min(n, i+grow.Elements), len(dst)+grow.Bytes
		for ; i < end && len(dst) < full; i++ {
			dst = elem.encode(dst, at(p, i*size))
		}
		dst = grow.For(dst, start, i, n)
	}
	return dst
}

// decodeElements decodes n elements at p. The elements are size bytes apart. The parameter reserved
// is the number of bytes that the caller has reserved for each of them.
func decodeElements(r *reader, elem coder, p ptr, n, size, reserved int) *DataError {
	for i := range n {
		r.element(reserved)
		if err := elem.decode(r, at(p, i*size)); err != nil {
			return err.in(index(i))
		}
	}
	return nil
}

// sliceCoder returns the coder of the slice t.
func sliceCoder(t reflect.Type) coder {
	elem, size := compile(t.Elem()), int(t.Elem().Size())
	return coder{
		encode: func(dst []byte, p ptr) []byte {
			elems, n := sliceAt(p)
			if elems == nil {
				return append(dst, codeNil)
			}
			return encodeElements(appendLength(dst, &arrayForm, n), elem, elems, n, size)
		},
		decode: func(r *reader, p ptr) *DataError {
			if r.isNil() {
				valueAt(t, p).SetZero()
				return nil
			}
			n, err := r.open(&arrayForm, elem.least)
			if err != nil {
				return err
			}
			made := reflect.MakeSlice(t, n, n)
			valueAt(t, p).Set(made)
			return decodeElements(r, elem, made.UnsafePointer(), n, size, elem.least)
		},
		least: 1,
	}
}

// pointerCoder returns the coder of the pointer t.
func pointerCoder(t reflect.Type) coder {
	elem := compile(t.Elem())
	return coder{
		encode: func(dst []byte, p ptr) []byte {
			target := load[ptr](p)
			if target == nil {
				return append(dst, codeNil)
			}
			return elem.encode(appendLength(dst, &arrayForm, 1), target)
		},
		decode: func(r *reader, p ptr) *DataError {
			if r.isNil() {
				valueAt(t, p).SetZero()
				return nil
			}
			if err := r.exactly(&arrayForm, 1); err != nil {
				return err
			}
			if err := r.fits(1, elem.least); err != nil {
				return err
			}
			made := reflect.New(t.Elem())
			valueAt(t, p).Set(made)
			return elem.decode(r, made.UnsafePointer())
		},
		least: 1,
	}
}

// mapCoder returns the coder of the map t.
func mapCoder(t reflect.Type) coder {
	key, elem := compile(t.Key()), compile(t.Elem())
	return coder{
		encode: func(dst []byte, p ptr) []byte {
			m := valueAt(t, p)
			if m.IsNil() {
				return append(dst, codeNil)
			}
			return encodeEntries(appendLength(dst, &mapForm, m.Len()), m, key, elem)
		},
		decode: func(r *reader, p ptr) *DataError {
			if r.isNil() {
				valueAt(t, p).SetZero()
				return nil
			}
			n, err := r.open(&mapForm, key.least+elem.least)
			if err != nil {
				return err
			}
			made := reflect.MakeMapWithSize(t, n)
			valueAt(t, p).Set(made)
			return decodeEntries(r, made, n, key, elem)
		},
		least: 1,
	}
}

// An entry holds the positions of an encoded key and its value, and the end of the value.
type entry struct{ key, value, end int }

// encodeEntries encodes the entries of m, sorted by their encoded keys.
func encodeEntries(dst []byte, m reflect.Value, key, elem coder) []byte {
	start := len(dst)
	k, v := newKeyAndValue(m.Type())
	entries := make([]entry, 0, m.Len())
	for all := m.MapRange(); all.Next(); {
		k.SetIterKey(all)
		v.SetIterValue(all)
		e := entry{key: len(dst) - start}
		dst = key.encode(dst, addressOf(k))
		e.value = len(dst) - start
		dst = elem.encode(dst, addressOf(v))
		e.end = len(dst) - start
		entries = append(entries, e)
	}
	return sortEntries(dst, start, entries)
}

// newKeyAndValue returns a settable key and value for maps of type t.
func newKeyAndValue(t reflect.Type) (key, value reflect.Value) {
	return reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
}

// decodeEntries decodes n entries into m.
func decodeEntries(r *reader, m reflect.Value, n int, key, elem coder) *DataError {
	k, v := newKeyAndValue(m.Type())
	var order keyOrder
	for i := range n {
		r.element(key.least + elem.least)
		before := r.src
		err := key.decode(r, addressOf(k))
		if err == nil {
			err = order.next(before, r.src)
		}
		if err != nil {
			return err.in(keyPart(i))
		}
		if err := elem.decode(r, addressOf(v)); err != nil {
			return err.in(valuePart(i))
		}
		m.SetMapIndex(k, v)
	}
	return nil
}
