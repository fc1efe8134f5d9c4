package ecs

import "math/bits"

// A join whose sets have masks can walk the words that all of them share instead
// of the rows of one set. Its order is then that of the entity indices.
//
//	mask of A      | 1 0 0 1 1 0 0 0 | 0 0 0 0 0 0 0 0 | 0 1 0 0 0 0 0 1 |
//	mask of B      | 0 1 0 1 1 0 0 0 | 1 0 0 0 0 0 0 0 | 0 1 0 0 0 0 0 0 |
//	both           |       3 4       |     (skipped)   |   17            |
//
// Whether it does is decided by what the sets hold, not by what is remembered of
// them, as the order must be a function of the world's state. Rows are worth
// walking if most of them are found, or are few: words are if they are no more
// than the driver's rows and only one in sparseShare of these is found.
const sparseShare = 4

// maskOf returns the mask of s, or nil.
func (s *set) maskOf() Bits {
	if s.mask == nil {
		return nil
	}
	return s.mask
}

// gatherMasks lists the masks there are, and reports whether every set that
// entities must be in has one.
func (j *join) gatherMasks() bool {
	all := true
	j.masks, j.unmasks = j.masks[:0], j.unmasks[:0]
	for i, s := range j.sets {
		if j.isOptional(i) {
			continue
		}
		if m := s.maskOf(); m != nil {
			j.masks = append(j.masks, m)
		} else {
			all = false
		}
	}
	for _, s := range j.without {
		if m := s.maskOf(); m != nil {
			j.unmasks = append(j.unmasks, m)
		}
	}
	return all
}

// prefersMasks reports whether the join walks masks, given that all of its sets
// have one and rows is the number of the driver's.
func (j *join) prefersMasks(rows int) bool {
	words := (j.w.entities.rows.Total + 63) / 64
	if words*(len(j.masks)+len(j.unmasks)) > rows {
		return false
	}
	found := 0
	for b := j.nextWord(0); b >= 0; b = j.nextWord(b + 1) {
		if found += bits.OnesCount64(j.word(b)); found > rows/sparseShare {
			return false
		}
	}
	return true
}

// word returns the indices of word b that all masks share.
func (j *join) word(b int) uint64 {
	word := ^uint64(0)
	for _, m := range j.masks {
		word &= m.word(b)
	}
	for _, m := range j.unmasks {
		word &^= m.word(b)
	}
	return word
}

// nextWord returns the first word from b on that may have bits in all masks, or
// -1.
func (j *join) nextWord(b int) int {
	for agreed := 0; agreed < len(j.masks); {
		agreed = 0
		for _, m := range j.masks {
			next := m.nextWord(b)
			if next < 0 {
				return -1
			}
			if next == b {
				agreed++
			}
			b = next
		}
	}
	return b
}

// nextRuns returns the runs of the next word that has any. The cursor's row is an
// entity index here.
func (c *cursor) nextRuns() []uint32 {
	for b := c.j.nextWord(c.row >> 6); b >= 0; b = c.j.nextWord(c.row >> 6) {
		c.row = max(c.row, b<<6)
		word := c.j.word(b) &^ (1<<(uint(c.row)&63) - 1)
		var runs []uint32
		if b == c.slow {
			runs = c.findIndex(b, word)
		} else {
			c.row = (b + 1) << 6
			runs = c.findWord(b, word)
		}
		if len(runs) > 0 {
			return runs
		}
	}
	return nil
}

// findIndex returns the row of the first entity of word, what is left of word b,
// if it is in the join.
func (c *cursor) findIndex(b int, word uint64) []uint32 {
	if word == 0 {
		c.row = (b + 1) << 6
		return nil
	}
	i := b<<6 + bits.TrailingZeros64(word)
	c.row = i + 1
	if !c.j.probe(-1, 0, c.j.w.entities.of(i), &c.j.one) {
		return nil
	}
	c.j.one[c.stride-1] = 1
	return c.j.one[:c.stride]
}

// findWord returns the runs of word b as they are now.
func (c *cursor) findWord(b int, word uint64) []uint32 {
	j := c.j
	if word == 0 {
		return nil
	}
	if b >= len(j.words) {
		j.words = append(j.words, make([]joinBlock, b+1-len(j.words))...)
	}
	block := &j.words[b]
	if block.stamp < c.newest || block.stamp == 0 {
		if block.stamp == 0 || block.word != word || !j.stays(block, nil) {
			j.buildWord(block, b, word)
		}
		block.stamp = j.w.changes
	}
	return block.runs
}

// buildWord finds the runs of word b anew.
func (j *join) buildWord(block *joinBlock, b int, word uint64) {
	block.clear()
	block.word = word
	var at [maxSets + 1]uint32
	for ; word != 0; word &= word - 1 {
		if e := j.w.entities.of(b<<6 + bits.TrailingZeros64(word)); j.probe(-1, 0, e, &at) {
			j.extendRuns(block, &at, 1)
		} else {
			block.missed++
		}
	}
	j.watch(block)
}

// of returns the entity alive that has index i.
func (r *registry) of(i int) Entity { return r.dense.Live[r.sparse[i]] }
