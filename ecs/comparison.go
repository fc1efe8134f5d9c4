package ecs

import (
	"math"
	"reflect"
	"slices"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A comparison finds, for the entities of a sparse set, where they were at an earlier boundary. For
// example, the set had the entities a, b, c at the boundary. Then b was removed, and c moved to the
// row of b:
//
//	rows    1  2     the rows that were written, added or removed
//	then    b  c     the entity in each of these rows at the boundary
//	from    2  0     1 + the position of the present entity in then
//	gone    0        the positions of the removed entities in then
//
// rows is ascending. All rows that are not in rows still have the same entity. An element of then
// is 0 if the row had no entity. An element of from is 0 if the entity is new, or if the row no
// longer exists.
type comparison struct {
	_ noCopy

	rows []uint32
	then []Entity
	from []uint32
	gone []uint32

	spans track.Spans // Scratch memory.
}

// load compares the current rows of the column dense with its rows at the start of frame k. before:
// the number of rows at the start of the frame, now: the current number of rows. rowOf returns the
// current row of an entity, or -1.
func (c *comparison) load(dense *track.Column[Entity], k, before, now int, rowOf func(Entity) int) {
	c.rows, c.then = c.rows[:0], c.then[:0]
	limit := min(before, now)
	c.spans.Read(&dense.Log, k)
	for i := range c.spans.Len() {
		s := c.spans.At(i)
		for i := range min(int(s.N), limit-int(s.Row)) {
			c.rows, c.then = append(c.rows, s.Row+uint32(i)), append(c.then, dense.Old(s)[i])
		}
	}
	written := len(c.rows)
	for row := limit; row < max(before, now); row++ {
		e := Entity(0)
		if row < before {
			e = dense.Live[row]
		}
		c.rows, c.then = append(c.rows, uint32(row)), append(c.then, e)
	}
	if limit < before {
		for i := range c.spans.Len() {
			s := c.spans.At(i)
			lo, hi := max(int(s.Row), limit), min(int(s.Row+s.N), before)
			if lo < hi {
				copy(c.then[written+lo-limit:], dense.Old(s)[lo-int(s.Row):hi-int(s.Row)])
			}
		}
	}
	c.spans.Reset()
	c.match(dense.Live[:now], rowOf)
}

// match fills c.from and c.gone. The parameter now has the current entity of each row.
func (c *comparison) match(now []Entity, rowOf func(Entity) int) {
	c.from, c.gone = zeroed(c.from, len(c.rows)), c.gone[:0]
	for p, e := range c.then {
		row := int(c.rows[p])
		switch {
		case e == 0:
		case e == Vacant:
			c.then[p] = 0
		case row < len(now) && now[row] == e:
			c.from[p] = uint32(p) + 1
		default:
			if r := rowOf(e); r >= 0 {
				c.spans.Add(uint32(r), uint32(p)) // The entity moved to row r.
			} else {
				c.gone = append(c.gone, uint32(p))
			}
		}
	}
	c.spans.Sort()
	p := 0
	for i := range c.spans.Len() {
		moved := c.spans.At(i)
		for c.rows[p] < moved.Row {
			p++
		}
		c.from[p] = moved.N + 1
	}
	c.spans.Reset()
}

// at returns the p-th row, or MaxInt after the last row.
func (c *comparison) at(p int) int {
	if p < len(c.rows) {
		return int(c.rows[p])
	}
	return math.MaxInt
}

// zeroed returns s with n elements, all zero.
func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// sameRow compares two rows by their canonical bytes: padding does not count, NaN equals itself,
// and -0 differs from 0. If the type has no codec, sameRow compares by [reflect.DeepEqual]. It
// encodes the rows into the buffers.
func sameRow[T any](buffers *[2][]byte, codec rowCodec[T], a, b []T) bool {
	switch {
	case codec == nil:
		return reflect.DeepEqual(a[0], b[0])
	case plainRows(codec):
		return sameMemory(&a[0], &b[0])
	}
	p, q := codec.append(buffers[0][:0], a), codec.append(buffers[1][:0], b)
	*buffers = [2][]byte{p, q}
	return string(p) == string(q)
}

// plainRows reports whether the canonical bytes of a row are its bytes in memory.
func plainRows[T any](codec rowCodec[T]) bool {
	c, ok := codec.(typedRows[T])
	return ok && c.codec.Plain()
}

// sameMemory reports whether the bytes of a and b are equal. It compares values of the usual
// sizes in place.
func sameMemory[T any](a, b *T) bool {
	p, q := unsafe.Pointer(a), unsafe.Pointer(b)
	switch size := unsafe.Sizeof(*a); size {
	case 4:
		return *(*[4]byte)(p) == *(*[4]byte)(q)
	case 8:
		return *(*[8]byte)(p) == *(*[8]byte)(q)
	case 12:
		return *(*[12]byte)(p) == *(*[12]byte)(q)
	case 16:
		return *(*[16]byte)(p) == *(*[16]byte)(q)
	case 24:
		return *(*[24]byte)(p) == *(*[24]byte)(q)
	case 32:
		return *(*[32]byte)(p) == *(*[32]byte)(q)
	default:
		return unsafe.String((*byte)(p), size) == unsafe.String((*byte)(q), size)
	}
}
