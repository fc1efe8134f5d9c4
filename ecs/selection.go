package ecs

import "math/bits"

// filter makes j keep only the entities that the predicate p keeps.
func (j *join) filter(p predicate) {
	j.predicates = append(j.predicates, p)
	j.invalidate()
}

// keeps reports whether all predicates keep e.
func (j *join) keeps(e Entity) bool {
	for _, p := range j.predicates {
		if !p.keeps(e) {
			return false
		}
	}
	return true
}

// A selection marks the positions of a driver that predicates keep. An iteration reads 64 positions
// at once, and skips words without selected positions:
//
//	words   | 0 1 .. 0 | 0 .. 0 | 0 .. 0 | 1 .. 1 |    a bit for each position, 1 if selected
//	some    |     1    |   0    |   0    |   1    |    a bit for each word, 1 if it is not 0
type selection struct {
	// The bits are valid. If not, the iteration calls the predicates for each entity.
	on          bool
	version     uint64 // Version of the driver when the iteration began.
	words, some []uint64
}

// clear removes all positions, and makes room for n positions.
func (s *selection) clear(n int) {
	for b, word := range s.some {
		for ; word != 0; word &= word - 1 {
			s.words[b<<6|bits.TrailingZeros64(word)] = 0
		}
	}
	clear(s.some)
	s.words = longer(s.words, (n+63)>>6)
	s.some = longer(s.some, (len(s.words)+63)>>6)
}

func (s *selection) add(p int) {
	s.words[p>>6] |= 1 << (p & 63)
	s.some[p>>12] |= 1 << (p >> 6 & 63)
}

func (s *selection) has(p int) bool { return s.words[p>>6]>>(p&63)&1 != 0 }

// from returns the bits of 64 positions, the first of which is p.
func (s *selection) from(p int) (word uint64) {
	if w := p >> 6; w < len(s.words) {
		word = s.words[w] >> (p & 63)
		if w++; w < len(s.words) {
			word |= s.words[w] << (64 - p&63)
		}
	}
	return word
}

// nextWord returns the number of the first word from w on that is not 0, or -1.
func (s *selection) nextWord(w int) int {
	for b := w >> 6; b < len(s.some); b++ {
		some := s.some[b]
		if b == w>>6 {
			some &^= firstBits(w & 63)
		}
		if some != 0 {
			return b<<6 | bits.TrailingZeros64(some)
		}
	}
	return -1
}

// begin begins the predicates, and selects the entities that all of them keep.
func (c *cursor) begin() {
	predicates, s := c.j.predicates, &c.selected
	s.on = false
	var fewest []Entity
	for _, p := range predicates {
		p.begin()
		if kept := p.kept(); !s.on || len(kept) < len(fewest) {
			s.on, fewest = true, kept
		}
	}
	s.version = c.set.version
	n := c.set.rows.N
	if c.set.byIndex {
		n = c.j.w.entities.rows.Total
	}
	s.clear(n)
	for _, e := range fewest {
		at := c.set.row(e)
		if at < 0 || len(predicates) > 1 && !c.j.keeps(e) {
			continue
		}
		if c.set.byIndex {
			at = int(e.Index())
		}
		s.add(at)
	}
}

// skip moves c past words without selected positions. It returns false if no word is left.
func (c *cursor) skip() bool {
	w := c.row >> 6
	if c.set.byIndex {
		w = c.set.mask.nextWord(w)
	}
	if c.selected.on && w >= 0 {
		w = c.selected.nextWord(w)
	}
	c.row = max(c.row, w<<6)
	return w >= 0
}

// keep removes from the span the positions that the predicates do not keep. It returns false if no
// position is left.
func (c *cursor) keep() bool {
	if c.kept == nil {
		c.kept = make([]uint64, maxRun/64)
	}
	words := c.words
	if c.n > 1 {
		words = c.keepFirst(c.n)
	}
	left, all := uint64(0), true
	for w, word := range words {
		c.kept[w] = c.keepOf(w, word)
		left |= c.kept[w]
		all = all && c.kept[w] == word
	}
	if c.n > 1 && !all {
		c.unroll()
	}
	if c.n == 1 {
		c.words = c.kept[:len(words)]
		c.pack()
	}
	return left != 0
}

// keepOf returns the bits of word w of the span that the predicates keep.
func (c *cursor) keepOf(w int, word uint64) uint64 {
	s, i := &c.selected, w<<6
	if s.on && (c.n > 1 || c.set.byIndex || &c.order[0] == &identity[0]) {
		return word & s.from(c.start+i)
	}
	for rest := word; rest != 0; rest &= rest - 1 {
		i := i | bits.TrailingZeros64(rest)
		row := c.rowAt(0) + i
		if c.n == 1 {
			row = c.rowAt(i)
		}
		e := c.set.dense.Live[row]
		if s.on && !s.has(row) || !s.on && !c.j.keeps(e) || c.progress.isVisited(e) {
			word &^= rest & -rest
		}
	}
	return word
}

// unroll converts a span with consecutive rows to a span with a bit for each position.
func (c *cursor) unroll() {
	for k := range c.j.columns {
		if row := c.rows[k][0]; row == missing {
			c.rows[k] = missingRows[:]
		} else {
			c.rows[k], c.base[k] = identity[:], c.base[k]+int(row)
		}
	}
	c.order, c.from = identity[:], c.rowAt(0)
	c.words, c.n = c.kept[:(c.n+63)>>6], 1
}

// pack converts the span to a list if few positions are left. Loops over a list have fewer branch
// mispredictions than loops over sparse words.
func (c *cursor) pack() {
	n := 0
	for _, word := range c.words {
		n += bits.OnesCount64(word)
	}
	if n > len(c.words)*64/listRatio {
		return
	}
	const most = maxRun / listRatio
	if c.packed == nil {
		c.packed = make([]uint32, (2+len(c.j.columns))*listRoom(most))
	}
	left, room := cut(c.packed, listRoom(most))
	left = left[:0]
	for w, word := range c.words {
		for ; word != 0; word &= word - 1 {
			left = append(left, uint32(w<<6|bits.TrailingZeros64(word)))
		}
	}
	pick := func(from []uint32) (to []uint32) {
		to, room = cut(room, listRoom(most))
		for i, p := range left {
			to[i] = from[p]
		}
		return to
	}
	c.order = pick(c.order)
	for k := range c.j.columns {
		c.rows[k] = pick(c.rows[k])
	}
	c.words = c.keepFirst(n)
}

// keepFirst sets the first n bits in c.kept, and returns the words with these bits.
func (c *cursor) keepFirst(n int) []uint64 {
	words := c.kept[:(n+63)>>6]
	for w := range words {
		words[w] = firstBits(n - w<<6)
	}
	return words
}
