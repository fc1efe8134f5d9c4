package ecs

import (
	"math/bits"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

const (
	chunkBits = 12
	chunkRows = 1 << chunkBits

	maxColumns = 8           // Components.
	maxWords   = 16          // Of 64 rows each, given out at once if they lie here and there.
	missing    = track.NoRow // In place of a row in an optional set.

	thin = 8 // A list is of one position in so many, or fewer.
)

// A chunk is what was found at 4096 positions:
//
//	words   | 1 1 1 1 1 1 1 1 | 0 1 1 0 0 0 0 1 |      found, a bit a position
//	rows    | 4 5 6 7 8 9 ... | . 3 90 .  ..    |      in each column's set
//	whole         1                   0                all found, and rows side by side
//
// If everything is found side by side, as in most worlds it is, all that is kept are
// the first rows. If little is found, the first time that it is looked for, all that is
// kept is a list of it, until that is more:
//
//	order   | 9 10 15 |                                positions
//	rows    | 3 90 . |                                 and their rows
//	words   | 0 0 0 0 0 0 0 0 | 0 1 1 0 0 0 0 1 |      once something changed,
//	ahead         0                   0                and how many lie before each
type chunk struct {
	epoch uint64
	n     int                // Positions that were looked at, the first ones. Behind them nothing is found.
	run   bool               // All of them are found, and lie side by side in the set of each column,
	at    [maxColumns]uint32 // from these rows on.

	words []uint64
	whole uint64 // Bit w: words[w].
	rows  [maxColumns][]uint32
	order []uint32 // By index: rows of the driver. Of a list: its positions.

	list  bool
	many  int      // Positions in the list,
	ahead []uint16 // and how many of them lie before each of words.
}

// empty makes c one in which nothing was looked at.
func (c *chunk) empty() {
	if c.list {
		*c = chunk{epoch: c.epoch}
	}
	c.n, c.run, c.whole = 0, false, 0
	clear(c.words)
}

// A listing is what a list is made in, of which a new chunk keeps what it needs: to find
// little takes less time than to clear memory for all.
type listing struct {
	word  chunk // Those found of 64 entities.
	order [chunkRows / thin]uint32
	rows  [maxColumns][]uint32
}

// add adds the n entities whose bits in word, which is the w-th, are set, behind as many as
// there are.
func (l *listing) add(many, n, w int, word uint64) {
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

// before returns how many positions of the list c lie before i.
func (c *chunk) before(i int) int {
	switch {
	case i == 0: // The beginning and the end of most walks.
		return 0
	case i >= c.n:
		return c.many
	case c.ahead == nil: // Nothing changed yet.
		n, _ := slices.BinarySearch(c.order[:c.many], uint32(i))
		return n
	}
	w := i >> 6
	return int(c.ahead[w]) + bits.OnesCount64(c.words[w]&firstBits(i&63))
}

// index makes words and ahead those of the list c, which has none.
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

// amend notes in the list c whether position i is found, and its rows. It reports false, and
// does nothing, if so many are found then that c should be no list.
func (c *chunk) amend(i int, found bool, at []uint32) bool {
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
		if max(c.n, i+1)/thin <= c.many {
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

// move makes a place in the list c for position i, which is not in it, if by is 1, or takes
// away that of i if it is -1. There is room.
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

// makeRoom makes room in the list c for position i, and for so many.
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

// listRoom returns how long the slices of a list of so many are: loops take 64 at once.
func listRoom(many int) int { return (many+63)&^63 + 64 }

// firstBits returns a word of which the first n bits are set; all, if n is more.
func firstBits(n int) uint64 {
	switch {
	case n <= 0:
		return 0
	case n >= 64:
		return ^uint64(0)
	}
	return 1<<n - 1
}

// longer returns s with at least n elements; new ones are 0.
func longer[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	return append(s, make([]T, n-len(s))...)
}

// sideBySide reports whether rows are consecutive, or all missing.
func sideBySide(rows []uint32) bool {
	first, step := rows[0], uint32(1)
	if first == missing {
		step = 0
	}
	if last := len(rows) - 1; rows[last] != first+uint32(last)*step { // Nearly always, if they are not.
		return false
	}
	for i, r := range rows {
		if r != first+uint32(i)*step {
			return false
		}
	}
	return true
}

// identity is the rows of positions that are rows.
var identity = func() (rows [chunkRows]uint32) {
	for i := range rows {
		rows[i] = uint32(i)
	}
	return rows
}()

// absent is the rows where nobody has an optional component.
var absent = func() (rows [chunkRows]uint32) {
	for i := range rows {
		rows[i] = missing
	}
	return rows
}()

// full is the words of a list.
var full = func() (words [maxWords]uint64) {
	for i := range words {
		words[i] = ^uint64(0)
	}
	return words
}()
