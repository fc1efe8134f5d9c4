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
// kept is a list of it, until something of it changes:
//
//	order   | 1 2 7 |                                  positions
//	rows    | 3 90 . |                                 and their rows
type chunk struct {
	epoch uint64
	n     int                // Positions that were looked at, the first ones. Behind them nothing is found.
	run   bool               // All of them are found, and lie side by side in the set of each column,
	at    [maxColumns]uint32 // from these rows on.

	words []uint64
	whole uint64 // Bit w: words[w].
	rows  [maxColumns][]uint32
	order []uint32 // By index: rows of the driver. Of a list: its positions.

	list bool
	many int // Positions in the list.
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
	n, _ := slices.BinarySearch(c.order[:c.many], uint32(i))
	return n
}

// lists reports whether i is in the list c.
func (c *chunk) lists(i int) bool {
	_, found := slices.BinarySearch(c.order[:c.many], uint32(i))
	return found
}

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
