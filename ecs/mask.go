package ecs

import (
	"iter"
	"math/bits"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

const (
	maskLevels = 6 // With 64 bits in a word, six levels cover every uint32.
	// Number of words of level 0 in a page. The column words has another word after them: the word
	// of level 1 for this page.
	maskPage   = 64
	maskBlocks = 1 << 26 // Number of words of level 0 in a full mask.
)

// upperRow[l] is the row of the first word of level l in the column upper. Level 5 has 1 word,
// level 4 has 4 words, and level 3 has 256 words. Levels 4 and 3 each have a spare word at the end,
// which is always 0. A search may read this word.
var upperRow = [maskLevels]int{5: 0, 4: 1, 3: 1 + 5, 2: 1 + 5 + 257}

// A Mask is a set of entity indices that the program fills. [World.NewMask] creates a mask, and
// [Bits] combines masks. A restore of the world restores its masks.
//
// A mask is a tree of words. A bit of level 0 stands for an index. A bit of a higher level is set
// if the word below it is not 0, so that iteration skips empty regions:
//
//	level 0    a word for 64 indices, with a bit for each index
//	level 1    a word for 4096 indices (a page), with a bit for each word of level 0
//	level 2    a word for 262144 indices, with a bit for each word of level 1
//	...
//	level 5    a single word, with a bit for each word of level 4
//
// Pages are allocated at the first write. A mask costs about 17 bytes for 64 indices of the pages
// in use, and 1 byte for 1000 indices up to the highest index.
type Mask struct {
	_ noCopy

	Bits // The same set, for reading and combining.

	w *World
	// The tracker saves three numbers for a restore. rows.N is the length of the column words or
	// upper, whichever is longer. rows.Extra is the current epoch: see maskWord. rows.Total is the
	// number of indices in the set, as a negative number.
	rows track.Tracker

	// pages[p] is the row of the first word of page p in the column words. It is 0 if page p is not
	// allocated: the words at row 0 are an empty page. A restore keeps allocated pages and clears
	// their words.
	pages []uint32
	words maskWords // Levels 0 and 1.
	upper maskWords // Levels 2 to 5.

	epochs int // The newest epoch. A restore does not decrease it.
}

// A maskWord is a word of a mask with the epoch in which it was written. Clear only starts a new
// epoch: words of other epochs count as 0. A restore can make an old epoch current again.
type maskWord struct {
	bits  uint64
	epoch int
}

type maskWords struct{ track.Column[maskWord] }

func newMask(w *World, exempt bool) *Mask {
	m := &Mask{w: w, epochs: 1}
	m.Bits = Bits{m}
	m.words.init(w)
	m.upper.init(w)
	m.rows.Init(&w.clock, exempt, &m.words.Log, &m.upper.Log)
	m.words.Live = make([]maskWord, maskPage+1)
	m.upper.Live = make([]maskWord, upperRow[2]+1)
	m.rows.Lengths = track.Lengths{N: len(m.upper.Live), Extra: m.epochs}
	return m
}

// Has reports whether i is in the set.
func (m *Mask) Has(i uint32) bool { return m.word(int(i>>6))>>(i&63)&1 != 0 }

// Len returns the number of indices in the set.
func (m *Mask) Len() int { return -m.rows.Total }

// Add adds i. It returns false if i was already in the set.
func (m *Mask) Add(i uint32) bool {
	if debug {
		m.w.mustBeWritable("Mask.Add")
	}
	p := int(i >> 12)
	if p >= len(m.pages) || m.pages[p] == 0 {
		m.grow(p)
	}
	row := int(m.pages[p]) + int(i>>6&63)
	was := m.words.bits(row, m.rows.Extra)
	if was>>(i&63)&1 != 0 {
		return false
	}
	m.rows.Open()
	m.words.put(row, maskWord{was | 1<<(i&63), m.rows.Extra})
	m.rows.Total--
	if was == 0 {
		m.raise(i >> 6)
	}
	return true
}

// Remove removes i. It returns false if i was not in the set.
func (m *Mask) Remove(i uint32) bool {
	if debug {
		m.w.mustBeWritable("Mask.Remove")
	}
	p := int(i >> 12)
	if p >= len(m.pages) {
		return false
	}
	row := int(m.pages[p]) + int(i>>6&63)
	was := m.words.bits(row, m.rows.Extra)
	if was>>(i&63)&1 == 0 {
		return false
	}
	m.rows.Open()
	left := was &^ (1 << (i & 63))
	m.words.put(row, maskWord{left, m.rows.Extra})
	m.rows.Total++
	if left == 0 {
		m.lower(i >> 6)
	}
	return true
}

// raise sets the summary bits of word k, which was 0 before.
func (m *Mask) raise(k uint32) {
	for level := 1; level < maskLevels; level++ {
		c, row := m.place(level, int(k>>6))
		was := c.bits(row, m.rows.Extra)
		c.put(row, maskWord{was | 1<<(k&63), m.rows.Extra})
		if was != 0 {
			return
		}
		k >>= 6
	}
}

// lower clears the summary bits of word k, which is 0 now.
func (m *Mask) lower(k uint32) {
	for level := 1; level < maskLevels; level++ {
		c, row := m.place(level, int(k>>6))
		left := c.bits(row, m.rows.Extra) &^ (1 << (k & 63))
		c.put(row, maskWord{left, m.rows.Extra})
		if left != 0 {
			return
		}
		k >>= 6
	}
}

// Clear removes all indices. It costs O(1).
func (m *Mask) Clear() {
	if debug {
		m.w.mustBeWritable("Mask.Clear")
	}
	if m.rows.Total == 0 {
		return
	}
	m.rows.Open()
	m.epochs++
	m.rows.Extra, m.rows.Total = m.epochs, 0
}

// fill adds the indices of entities to m.
func (m *Mask) fill(entities []Entity) {
	for _, e := range entities {
		if e != Vacant {
			m.Add(e.Index())
		}
	}
}

// place returns the column and the row of word k of a level above 0. The page of the word must
// exist.
func (m *Mask) place(level, k int) (*maskWords, int) {
	if level == 1 {
		return &m.words, int(m.pages[k]) + maskPage
	}
	return &m.upper, upperRow[level] + k
}

// grow allocates page p, and the words of level 2 up to the word for that page.
//
//go:noinline
func (m *Mask) grow(p int) {
	m.rows.Open()
	if need := p + 1 - len(m.pages); need > 0 {
		m.pages = append(m.pages, make([]uint32, need)...)
	}
	m.pages[p] = uint32(len(m.words.Live))
	m.words.Live = append(m.words.Live, make([]maskWord, maskPage+1)...)
	if need := upperRow[2] + p>>6 + 1 - len(m.upper.Live); need > 0 {
		m.upper.Live = append(m.upper.Live, make([]maskWord, need)...)
	}
	// The new rows stay after a restore. So count them in older frames too: a restore then clears
	// them.
	m.rows.Lengthen(max(len(m.words.Live), len(m.upper.Live)))
}

func (m *Mask) word(b int) uint64 {
	if p := b >> 6; p < len(m.pages) {
		return m.words.bits(int(m.pages[p])+b&63, m.rows.Extra)
	}
	return 0
}

func (m *Mask) nextWord(b int) int {
	// Usually the next word is in the same page.
	if rest := m.pageSummary(b>>6) >> (b & 63); rest != 0 {
		return b + bits.TrailingZeros64(rest)
	}
	return search(m, b)
}

// pageSummary returns word p of level 1, which summarizes page p.
func (m *Mask) pageSummary(p int) uint64 {
	if p < len(m.pages) {
		return m.words.bits(int(m.pages[p])+maskPage, m.rows.Extra)
	}
	return 0
}

// summary returns word k of a level above 0.
func (m *Mask) summary(level, k int) uint64 {
	if level == 1 {
		return m.pageSummary(k)
	}
	if row := upperRow[level] + k; row < len(m.upper.Live) {
		return m.upper.bits(row, m.rows.Extra)
	}
	return 0
}

func (c *maskWords) init(w *World) {
	c.Init(&w.clock, false)
	// No recorder needs the words of a mask. So frames that serve only recorders do not log them.
	c.Log.Follows = true
}

// bits returns the bits of the word in row, or 0 if the word has another epoch.
func (c *maskWords) bits(row, epoch int) uint64 {
	if x := &c.Live[row]; x.epoch == epoch {
		return x.bits
	}
	return 0
}

func (c *maskWords) put(row int, x maskWord) {
	if c.Unsaved(row) {
		c.Save(row)
	}
	c.Live[row] = x
}

// Bits is a set of entity indices. It shows a [Mask], the members of a storage ([Storage.Mask]),
// the alive entities ([World.AliveBits]), or a combination of other Bits. Bits copies nothing:
// every call reads the current content of its sources. Create a combination once and keep it, so
// that iteration allocates nothing.
type Bits struct{ tree }

// A tree has the methods that every set of indices implements. A block is 64 consecutive indices.
type tree interface {
	// word returns the bits of block b, for any b >= 0.
	word(b int) uint64

	// nextWord returns the first block from b on that may have an index in the set, or -1.
	nextWord(b int) int

	// summary returns word k of a level above 0, as in a Mask. A bit 0 means that the word below is
	// 0. A bit 1 means that it may differ from 0.
	summary(level, k int) uint64
}

// And returns the intersection of b and all given sets. Iteration skips regions in which one of the
// sets is empty.
func (b Bits) And(others ...Bits) Bits {
	a := new(andBits)
	for _, t := range b.with(others) {
		if m, ok := t.(*Mask); ok {
			a.masks = append(a.masks, m)
		} else {
			a.sets = append(a.sets, t)
		}
	}
	return Bits{a}
}

// Or returns the union of b and all given sets.
func (b Bits) Or(others ...Bits) Bits { return Bits{&orBits{b.with(others)}} }

// AndNot returns the indices of b without the indices of the given sets.
func (b Bits) AndNot(others ...Bits) Bits { return Bits{&notBits{b.tree, b.with(others)[1:]}} }

func (b Bits) with(others []Bits) []tree {
	trees := []tree{b.tree}
	for _, o := range others {
		trees = append(trees, o.tree)
	}
	return trees
}

// Indices iterates over the indices in b in ascending order. The loop may change the set: the
// iteration reads each block of 64 indices when it reaches the block.
func (b Bits) Indices() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for block, word := scan(b.tree, 0); block >= 0; block, word = scan(b.tree, block+1) {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(block<<6 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// Has reports whether i is in the set.
func (b Bits) Has(i uint32) bool { return b.word(int(i>>6))>>(i&63)&1 != 0 }

// Len returns the number of indices in b. The cost is O(1) for a single [Mask]. A combination reads
// every word that is not empty.
func (b Bits) Len() (n int) {
	if m, ok := b.tree.(*Mask); ok {
		return m.Len()
	}
	for block, word := scan(b.tree, 0); block >= 0; block, word = scan(b.tree, block+1) {
		n += bits.OnesCount64(word)
	}
	return n
}

// Any reports whether b has any indices.
func (b Bits) Any() bool {
	block, _ := scan(b.tree, 0)
	return block >= 0
}

// scan returns the first block from b on that has an index in the set, and its word. It returns -1
// if b and all later blocks are empty.
func scan(set tree, b int) (block int, word uint64) {
	if a, ok := set.(*andBits); ok {
		return a.scan(b)
	}
	for b = set.nextWord(b); b >= 0; b = set.nextWord(b + 1) {
		if word = set.word(b); word != 0 {
			return b, word
		}
	}
	return -1, 0
}

// search returns the first block from b on that may have an index in the set, or -1. It goes up in
// the tree until a word has a set bit at or after the position of b. Then it goes down, each time
// to the first set bit. If the word below is empty, it goes up again.
func search(t tree, b int) int {
	if b >= maskBlocks {
		return -1
	}
	for level := 1; level < maskLevels; { // At each level, b is the number of a bit of that level.
		rest := t.summary(level, b>>6) >> (b & 63)
		switch {
		case rest == 0:
			level++
			b = b>>6 + 1
		case level == 1:
			return b + bits.TrailingZeros64(rest)
		default:
			level--
			b = (b + bits.TrailingZeros64(rest)) << 6
		}
	}
	return -1
}

// andBits is an intersection. It reads masks first, because calls of their methods are faster.
type andBits struct {
	masks []*Mask
	sets  []tree
}

func (a *andBits) word(b int) uint64 {
	word := ^uint64(0)
	for _, m := range a.masks {
		word &= m.word(b)
	}
	for _, s := range a.sets {
		if word == 0 {
			break
		}
		word &= s.word(b)
	}
	return word
}

func (a *andBits) summary(level, k int) uint64 {
	word := ^uint64(0)
	for _, m := range a.masks {
		word &= m.summary(level, k)
	}
	for _, s := range a.sets {
		if word == 0 {
			break
		}
		word &= s.summary(level, k)
	}
	return word
}

func (a *andBits) nextWord(b int) int { return search(a, b) }

// scan reads the blocks of a page one by one. Two sets may both have indices in a block, but no
// index in common. In this case, scan is faster than search().
func (a *andBits) scan(b int) (block int, word uint64) {
	for b >= 0 {
		rest := a.summary(1, b>>6) >> (b & 63) << (b & 63)
		for ; rest != 0; rest &= rest - 1 {
			block = b&^63 + bits.TrailingZeros64(rest)
			if word = a.word(block); word != 0 {
				return block, word
			}
		}
		b = search(a, b|63+1)
	}
	return -1, 0
}

type orBits struct{ sets []tree }

func (o *orBits) word(b int) (word uint64) {
	for _, s := range o.sets {
		word |= s.word(b)
	}
	return word
}

func (o *orBits) summary(level, k int) (word uint64) {
	for _, s := range o.sets {
		word |= s.summary(level, k)
	}
	return word
}

func (o *orBits) nextWord(b int) int { return search(o, b) }

// notBits has the indices of the field tree that are in no element of the field others. Its
// summaries are those of the field tree. So a word can be 0 although its summary bit is 1.
type notBits struct {
	tree
	others []tree
}

func (n *notBits) word(b int) uint64 {
	word := n.tree.word(b)
	for _, s := range n.others {
		if word == 0 {
			break
		}
		word &^= s.word(b)
	}
	return word
}
