package layout

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// A Codec encodes rows of one Go type as bytes and decodes them. It is immutable and safe for
// concurrent use. [NewCodec] returns one; the zero Codec is not usable.
type Codec struct {
	gotype reflect.Type
	typ    *Type
	// The width of a packed row, or -1 if it varies.
	width int

	// For types of fixed width: the moves from memory to packed bytes, and back. The flags say
	// whether one copy of all rows does the same.
	pack, unpack           []move
	plainPack, plainUnpack bool

	// Used for types of variable width.
	variable coder
}

// NewCodec returns the codec for t. It returns the errors of [Of].
func NewCodec(t reflect.Type) (*Codec, error) {
	typ, err := Of(t)
	if err != nil {
		return nil, err
	}
	c := &Codec{gotype: t, typ: typ, width: typ.Width()}
	if c.width == varies {
		c.variable = compile(t)
		return c, nil
	}
	c.pack, c.unpack = compileMoves(t, false), compileMoves(t, true)
	whole := collect(nil, t, 0, 0, false)
	c.plainPack = (littleEndian || t.Size() <= 1) && isPlain(whole, int(t.Size()))
	c.plainUnpack = c.plainPack && isPlain(collect(nil, t, 0, 0, true), int(t.Size()))
	return c, nil
}

// Type returns the description of the rows. The caller must not change it.
func (c *Codec) Type() *Type { return c.typ }

// Plain reports whether the packed form of a row equals its Go memory. If so, encoding is a single
// copy. Decoding still checks bools.
func (c *Codec) Plain() bool { return c.plainPack }

// Append appends the encodings of rows to dst, one after the other. For a fixed type it allocates
// nothing but space in dst. For a Plain codec it is a single copy.
//
// It panics if c is not a codec for T, or if a string, slice or map is longer than 4 Gi.
func Append[T any](c *Codec, dst []byte, rows []T) []byte {
	c.mustBeFor(reflect.TypeFor[T]())
	return c.append(dst, base(rows), len(rows))
}

// View returns the encodings of rows, one after the other, without a copy. The result shares the
// memory of rows and must not be written. ok is false if the codec is not [Codec.Plain].
func View[T any](c *Codec, rows []T) (encoded []byte, ok bool) {
	c.mustBeFor(reflect.TypeFor[T]())
	if !c.plainPack {
		return nil, false
	}
	return view(base(rows), len(rows)*c.width), true
}

// Adopt returns the n rows that src encodes, without a copy. The rows use the memory of src, so the
// caller must not use src again. ok is false in these cases:
//
//   - The codec is not [Codec.Plain].
//   - src is not aligned for T.
//   - src does not hold n valid rows. [Decode] returns the reason.
func Adopt[T any](c *Codec, src []byte, n int) (rows []T, ok bool) {
	c.mustBeFor(reflect.TypeFor[T]())
	if !c.plainPack || c.width == 0 || fixedLength(src, n, c.width) != nil || !aligned[T](src) {
		return nil, false
	}
	if !c.plainUnpack && c.typ.check(src, n) != nil {
		return nil, false
	}
	return adopt[T](src, n), true
}

// Decode decodes src, which [Append] encoded, into rows. src must hold exactly len(rows) rows. The
// rows share no memory with src.
//
// The error is a [*DataError] that names the row and field. Some rows may already be decoded then.
// Decode accepts what [Type.Check] accepts, with one exception: if an int does not fit into the int
// of a 32-bit program, the error wraps [ErrIntSize].
//
// Decode allocates a small multiple of len(src). Fields named _ add to that, because they take
// memory but no bytes of src. It panics if c is not a codec for T.
func Decode[T any](c *Codec, src []byte, rows []T) error {
	c.mustBeFor(reflect.TypeFor[T]())
	if err := c.decode(src, base(rows), len(rows)); err != nil {
		return err.of(c.typ)
	}
	return nil
}

// mustBeFor panics unless c is a codec for t.
func (c *Codec) mustBeFor(t reflect.Type) {
	if c.gotype != t {
		panic(fmt.Sprintf("layout: codec for %v used with rows of %v; make one with NewCodec", c.gotype, t))
	}
}

// append implements Append for n rows at mem.
func (c *Codec) append(dst []byte, mem ptr, n int) []byte {
	size := int(c.gotype.Size())
	switch {
	case c.width == varies:
		return encodeElements(dst, c.variable, mem, n, size)
	case c.plainPack:
		return append(dst, view(mem, n*size)...)
	}
	start := len(dst)
	dst = slices.Grow(dst, n*c.width)[:start+n*c.width]
	for first := 0; first < n; first += blockRows {
		s := c.block(dst[start:], mem, first, n)
		packRows(c.pack, &s)
	}
	return dst
}

// decode implements Decode for n rows at mem.
func (c *Codec) decode(src []byte, mem ptr, n int) *DataError {
	if c.width == varies {
		return c.decodeVariable(src, mem, n)
	}
	if err := fixedLength(src, n, c.width); err != nil {
		return err
	}
	if c.plainUnpack {
		copy(view(mem, len(src)), src)
		return nil
	}
	for first := 0; first < n; first += blockRows {
		s := c.block(src, mem, first, n)
		if row := unpackRows(c.unpack, &s); row >= 0 {
			return c.unpackError(src, first, row, s.n)
		}
	}
	return nil
}

// decodeVariable implements decode() for types without a fixed size.
func (c *Codec) decodeVariable(src []byte, mem ptr, n int) *DataError {
	r := reader{src: src}
	for i := range n {
		if err := c.variable.decode(&r, at(mem, i*int(c.gotype.Size()))); err != nil {
			return err.row(i)
		}
	}
	return r.end()
}

// block returns the block of rows that begins with row number first. It has at most blockRows rows.
// The parameter n is the number of all rows.
func (c *Codec) block(pack []byte, mem ptr, first, n int) span {
	size := int(c.gotype.Size())
	return span{at(mem, first*size), size, pack[first*c.width:], c.width, min(blockRows, n-first)}
}

// unpackError returns the error for the first invalid row of a block. The parameter first is the
// number of the first row in the block.
func (c *Codec) unpackError(src []byte, first, row, rows int) *DataError {
	if err := c.typ.firstBad(src, first, rows, c.width); err != nil {
		return err
	}
	if err := firstNarrow(c.gotype, src[(first+row)*c.width:], strconv.IntSize); err != nil {
		return err.row(first + row)
	}
	return bad("not a valid value of the type").row(first + row)
}

// firstNarrow returns an error for the first integer of a packed row that does not fit into an int
// of intBits bits. It returns nil if all integers fit.
func firstNarrow(t reflect.Type, row []byte, intBits int) *DataError {
	x := func() uint64 { return binary.LittleEndian.Uint64(row) }
	switch t.Kind() {
	case reflect.Int:
		if v := int64(x()); v>>(intBits-1) != 0 && v>>(intBits-1) != -1 {
			return narrow(v)
		}
	case reflect.Uint, reflect.Uintptr:
		if v := x(); intBits < 64 && v>>intBits != 0 {
			return narrow(v)
		}
	case reflect.Array:
		size := packedSize(t.Elem())
		for i := range t.Len() {
			if err := firstNarrow(t.Elem(), row[i*size:], intBits); err != nil {
				return err.in(index(i))
			}
		}
	case reflect.Struct:
		for f := range t.Fields() {
			if f.Name == "_" {
				continue
			}
			if err := firstNarrow(f.Type, row, intBits); err != nil {
				return err.in("." + nameOf(f))
			}
			row = row[packedSize(f.Type):]
		}
	}
	return nil
}
