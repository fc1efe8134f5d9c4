package ecs

import (
	"reflect"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
)

// A comparison lays the rows of a sparse set as they were at a boundary beside
// the rows of now. It looks only at those that may differ:
//
//	row       3 4 5     9 10
//	        | . . . | | . . |    ranges
//	then    | a b c | | d e |    the entity at that row then; 0 past the length
//	now     | a d f | |           the entity there now
//	from    | 1 4 0 | | 0 0 |    1 + where in then the entity of now is; 0: nowhere
//
// An entity that is at another row than it was left a row that may differ, and
// came to one. So those that came, went and moved are all found by walking then
// and from; no other row is read.
type comparison struct {
	ranges []Range // Ascending, disjoint, and not adjacent.
	first  []int   // Where in then the rows of each range begin.
	then   []Entity
	from   []uint32
}

// include ends the collection of ranges: it adds the rows between the two lengths
// and finds room for all.
func (c *comparison) include(w *World, before, now int) {
	if before != now {
		c.ranges = append(c.ranges, Range{min(before, now), max(before, now) - min(before, now)})
	}
	c.ranges = w.sortRanges(c.ranges)
	size := 0
	c.first = c.first[:0]
	for _, r := range c.ranges {
		c.first = append(c.first, size)
		size += r.N
	}
	c.then, c.from = zeroed(c.then, size), zeroed(c.from, size)
}

// zeroed returns s with n elements, all zero.
func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// position returns where in then row is, which is in one of the ranges.
func (c *comparison) position(row int) int {
	k, _ := slices.BinarySearchFunc(c.ranges, row, func(r Range, row int) int { return r.First + r.N - 1 - row })
	return c.first[k] + row - c.ranges[k].First
}

// pair finds from. rowOf returns the present row of an entity, or -1.
func (c *comparison) pair(now []Entity, rowOf func(Entity) int) {
	c.each(func(row, p int) {
		switch e := c.then[p]; {
		case e == 0:
		case e == Vacant:
			c.then[p] = 0
		case row < len(now) && now[row] == e:
			c.from[p] = uint32(p) + 1
		default:
			if r := rowOf(e); r >= 0 {
				c.from[c.position(r)] = uint32(p) + 1
			}
		}
	})
}

// each calls f for every row of the ranges and its position in then.
func (c *comparison) each(f func(row, p int)) {
	for i, r := range c.ranges {
		for k := range r.N {
			f(r.First+k, c.first[i]+k)
		}
	}
}

// overlay fills then with what col held in the rows of c, as far as they are
// below length before, when logs[k:] were empty.
func overlay[T any](c *comparison, col *track.Column[T], k, before int, then []T) {
	for i, r := range c.ranges {
		if hi := min(r.First+r.N, before); r.First < hi {
			copy(then[c.first[i]:], col.Live[r.First:hi])
		}
	}
	col.Oldest(k, func(row int, values []T) {
		if n := min(len(values), before-row); n > 0 {
			copy(then[c.position(row):], values[:n])
		}
	})
}

// An equality tells whether values are the same: whether their canonical bytes
// are. So padding does not count, NaN is itself, and -0 is not 0. Values that
// cannot be encoded are compared by [reflect.DeepEqual].
type equality struct{ a, b []byte } // Scratch.

// sameRow compares two rows.
func sameRow[T any](q *equality, codec rowCodec[T], a, b []T) bool {
	if codec == nil {
		return reflect.DeepEqual(a[0], b[0])
	}
	if c, ok := codec.(typedRows[T]); ok {
		if x, plain := layout.View(c.codec, a); plain {
			y, _ := layout.View(c.codec, b)
			return string(x) == string(y)
		}
	}
	q.a, q.b = codec.append(q.a[:0], a), codec.append(q.b[:0], b)
	return string(q.a) == string(q.b)
}
