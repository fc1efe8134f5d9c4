package layout

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// A Codec turns rows of one Go type into bytes and back. It never changes and
// is safe for concurrent use. [NewCodec] makes one; the zero Codec is of no use.
type Codec struct {
	gotype reflect.Type
	typ    *Type
	width  int // Of a packed row, or varies.

	// Fixed types: the two directions, and whether each is one copy.
	pack, unpack           []move
	plainPack, plainUnpack bool

	// Other types.
	variable coder
}

// NewCodec returns the codec for t. It fails like [Of].
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

// Type returns the description of the rows. It must not be changed.
func (c *Codec) Type() *Type { return c.typ }

// Plain reports whether the packed form of a row is its Go memory, so that
// encoding is one copy. Decoding still looks at bools.
func (c *Codec) Plain() bool { return c.plainPack }

// Append appends the encodings of rows to dst, one after the other. For fixed
// types it allocates nothing but room in dst, and is one copy where Go memory has
// the packed form. It panics if c is not a codec for T, and on strings, slices and
// maps of more than 4 GiB or as many elements.
func Append[T any](c *Codec, dst []byte, rows []T) []byte {
	c.mustBeFor(reflect.TypeFor[T]())
	return c.append(dst, base(rows), len(rows))
}

// View returns the encodings of rows, one after the other, without a copy: it
// shares their memory and must not be written. It is possible only for a codec
// that is [Codec.Plain]; ok is false for others.
func View[T any](c *Codec, rows []T) (encoded []byte, ok bool) {
	c.mustBeFor(reflect.TypeFor[T]())
	if !c.plainPack {
		return nil, false
	}
	return view(base(rows), len(rows)*c.width), true
}

// Adopt returns the n rows that src encodes without a copy: they take over the
// memory of src, which must not be used otherwise any more. It is possible only for
// a codec that is [Codec.Plain], and if src lies where a T can lie. ok is also false
// if src is not n valid rows: [Decode] says why.
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

// Decode sets rows to the values that [Append] encoded as src. There must be
// exactly len(rows) of them. The error is a [*DataError] naming the row and field;
// rows then hold some of the values. The rows share no memory with src.
//
// Where an int has 32 bits, one that does not fit is an error that wraps [ErrIntSize]; it is
// the only thing that Decode refuses and [Type.Check] accepts.
//
// The memory allocated is a small multiple of len(src), for types without large
// fields named _. It panics if c is not a codec for T.
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

// append is Append for n rows at mem.
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

// decode is Decode for n rows at mem.
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

// decodeVariable is decode for types that are not fixed.
func (c *Codec) decodeVariable(src []byte, mem ptr, n int) *DataError {
	r := reader{src: src}
	for i := range n {
		if err := c.variable.decode(&r, at(mem, i*int(c.gotype.Size()))); err != nil {
			return err.row(i)
		}
	}
	return r.end()
}

// block returns the span of the few rows from first on, of n.
func (c *Codec) block(pack []byte, mem ptr, first, n int) span {
	size := int(c.gotype.Size())
	return span{at(mem, first*size), size, pack[first*c.width:], c.width, min(blockRows, n-first)}
}

// unpackError says what is wrong in a block of rows beginning with first, one of
// which was refused.
func (c *Codec) unpackError(src []byte, first, row, rows int) *DataError {
	if err := c.typ.firstBad(src, first, rows, c.width); err != nil {
		return err
	}
	if err := firstNarrow(c.gotype, src[(first+row)*c.width:], strconv.IntSize); err != nil {
		return err.row(first + row)
	}
	return bad("no value of the type").row(first + row)
}

// firstNarrow returns an error for the first integer of a packed row that does not fit into an int of that many
// bits, or nil.
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
				return err.in("." + nameOf(f).name)
			}
			row = row[packedSize(f.Type):]
		}
	}
	return nil
}
