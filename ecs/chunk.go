package ecs

import (
	"math/bits"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

const (
	chunkBits = 12
	chunkRows = 1 << chunkBits

	// Maximum number of components of a query.
	maxColumns = 8
	// Maximum number of words of a span without predicates. A word has 64 positions.
	maxWords = 16
	// The row of an entity without the optional component.
	missing = track.NoRow

	// A chunk becomes a list only if at most 1/8 of its positions match.
	listRatio = 8
)

// A chunk stores which entities match a query, for 4096 positions of the driver. The driver is the
// storage whose rows the query searches. A position is a row of the driver, or an entity index: see
// matchCache.
//
// A chunk has one of three forms: bits, run or list.
//
// In the form bits, each position can match or not:
//
//   - words has one bit for each position. The bit is 1 for a match.
//   - rows has, for each column, the row of the entity at each position.
//   - Bit w of whole is 1 if all 64 positions of words[w] match and their rows are contiguous.
//
// In the form run, all positions match, and their rows are contiguous. The field at has the first
// row of each column.
//
// In the form list, few positions match:
//
//   - order has the positions of the matches, and rows has their rows.
//   - words has the same bits as in the form bits. It is built at the first change of the list.
//   - ahead has the number of listed positions before each word.
type chunk struct {
	epoch uint64
	// Number of positions that the query has searched. A position from n on counts as no match.
	n int
	// All positions match, and their rows are contiguous in each column.
	run bool
	at  [maxColumns]uint32 // First row of each column, if the field run is set.

	words []uint64
	whole uint64 // Bit w is set if words[w] is full and its rows are contiguous.
	rows  [maxColumns][]uint32
	// In a list: the positions of the matches. In the other forms, order is used only if the driver
	// is in index order. It then has the driver's row of each position.
	order []uint32

	list  bool
	many  int      // Number of positions in the list.
	ahead []uint16 // Number of listed positions before each word.
}

func (c *chunk) reset() {
	if c.list {
		*c = chunk{epoch: c.epoch}
	}
	c.n, c.run, c.whole = 0, false, 0
	clear(c.words)
}

// A listBuffer collects the matches of a list while join.buildList searches for them. At the end,
// buildList knows their number and copies them into slices of the right length.
type listBuffer struct {
	word  chunk // The matches among the 64 entities of the current word.
	order [chunkRows / listRatio]uint32
	rows  [maxColumns][]uint32
}

// add appends n positions to a list that has many positions. The n positions are given by the set
// bits of word: bit i stands for position 64*w+i.
func (l *listBuffer) add(many, n, w int, word uint64) {
	order := l.order[many : many+n]
	for i := range order {
		order[i] = uint32(w<<6 | bits.TrailingZeros64(word|1<<63))
		word &= word - 1
	}
	for k, rows := range l.word.rows {
		if rows != nil {
			to, rows := l.rows[k][many:many+n], rows[:64]
			for i, at := range order {
				to[i] = rows[at&63]
			}
		}
	}
}

// before returns the number of listed positions that are less than i.
func (c *chunk) before(i int) int {
	switch {
	case i == 0: // The usual case: an iteration starts at position 0.
		return 0
	case i >= c.n:
		return c.many
	case c.ahead == nil: // The list has not changed yet.
		n, _ := slices.BinarySearch(c.order[:c.many], uint32(i))
		return n
	}
	w := i >> 6
	return int(c.ahead[w]) + bits.OnesCount64(c.words[w]&firstBits(i&63))
}

// index builds c.words and c.ahead from the listed positions.
func (c *chunk) index() {
	c.words = make([]uint64, (c.n+63)>>6)
	c.ahead = make([]uint16, len(c.words))
	for _, i := range c.order[:c.many] {
		c.words[i>>6] |= 1 << (i & 63)
	}
	n := 0
	for w, word := range c.words {
		c.ahead[w] = uint16(n)
		n += bits.OnesCount64(word)
	}
}

// updateList adds position i with its rows to the list, or removes position i if the parameter
// found is false. If the list would become too long, it changes nothing and returns false.
func (c *chunk) updateList(i int, found bool, at []uint32) bool {
	if c.ahead == nil {
		c.index()
	}
	w, bit := i>>6, uint64(1)<<(i&63)
	there := w < len(c.words) && c.words[w]&bit != 0
	if !found {
		if there {
			c.move(i, -1)
			c.words[w] &^= bit
		}
		return true
	}
	if !there {
		if max(c.n, i+1)/listRatio <= c.many {
			return false
		}
		c.makeRoom(i, c.many+1)
		c.move(i, 1)
		c.words[w] |= bit
	}
	n := c.before(i)
	c.order[n] = uint32(i)
	for k, rows := range c.rows {
		if rows != nil {
			rows[n] = at[k]
		}
	}
	return true
}

// move makes room for position i in the list if the parameter by is 1. If this parameter is -1, it
// removes position i.
func (c *chunk) move(i, by int) {
	from := c.before(i)
	to := from + 1
	if by < 0 {
		from, to = to, from
	}
	copy(c.order[to:], c.order[from:c.many])
	for _, rows := range c.rows {
		if rows != nil {
			copy(rows[to:], rows[from:c.many])
		}
	}
	for w := i>>6 + 1; w < len(c.ahead); w++ {
		c.ahead[w] += uint16(by)
	}
	c.many += by
}

// makeRoom grows the list so that it can have many positions, and position i among them.
func (c *chunk) makeRoom(i, many int) {
	c.n = max(c.n, i+1)
	c.words = longer(c.words, i>>6+1)
	for len(c.ahead) < len(c.words) {
		c.ahead = append(c.ahead, uint16(c.many))
	}
	room := listRoom(many)
	c.order = longer(c.order, room)
	for k, rows := range c.rows {
		if rows != nil {
			c.rows[k] = longer(rows, room)
		}
	}
}

// listRoom returns the length of the slices of a list with the given number of positions. A loop
// may read 64 entries from any position on, so the slices are longer than the list.
func listRoom(many int) int { return (many+63)&^63 + 64 }

// firstBits returns a word with its first n bits set. For n > 64 it sets all bits.
func firstBits(n int) uint64 {
	switch {
	case n <= 0:
		return 0
	case n >= 64:
		return ^uint64(0)
	}
	return 1<<n - 1
}

// longer returns s extended to at least n elements. New elements are 0.
func longer[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	return append(s, make([]T, n-len(s))...)
}

// consecutive reports whether rows are consecutive, or all missing.
func consecutive(rows []uint32) bool {
	first, step := rows[0], uint32(1)
	if first == missing {
		step = 0
	}
	// This test alone excludes most rows that are not consecutive.
	if last := len(rows) - 1; rows[last] != first+uint32(last)*step {
		return false
	}
	for i, r := range rows {
		if r != first+uint32(i)*step {
			return false
		}
	}
	return true
}

// identity has the rows of a column in which each row equals its position.
var identity = func() (rows [chunkRows]uint32) {
	for i := range rows {
		rows[i] = uint32(i)
	}
	return rows
}()

// missingRows has the rows of an optional column if no entity has its component.
var missingRows = func() (rows [chunkRows]uint32) {
	for i := range rows {
		rows[i] = missing
	}
	return rows
}()

// fullWords is a list of words with all bits set.
var fullWords = func() (words [maxWords]uint64) {
	for i := range words {
		words[i] = ^uint64(0)
	}
	return words
}()
