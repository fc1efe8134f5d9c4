package ecs

import (
	"iter"
	"math/bits"
)

// Bits is a set of entity indices: a [Mask], the entities alive, or a combination
// of such with [And], [Or] and [AndNot]. A combination holds nothing by itself:
// it is what its parts make it at the time. Make it once and keep it; then
// iterating allocates nothing.
type Bits interface {
	// word returns which of the indices [64b, 64b+64) are in the set. Any b >= 0
	// may be asked.
	word(b int) uint64

	// nextWord returns the first block of 64 indices, b or a later one, that may
	// have any, or -1.
	nextWord(b int) int
}

// And returns what is in all of the sets. Regions in which one of them has
// nothing are skipped.
func And(first Bits, more ...Bits) Bits {
	a := new(andBits)
	for _, b := range append([]Bits{first}, more...) {
		if m, ok := b.(*Mask); ok {
			a.masks = append(a.masks, m)
		} else {
			a.sets = append(a.sets, treeOf(b))
		}
	}
	return a
}

// Or returns what is in at least one of the sets.
func Or(sets ...Bits) Bits { return &orBits{trees(sets)} }

// AndNot returns what is in set and in none of the others. With
// [World.AliveBits] as set it is what entities are not in the others.
func AndNot(set Bits, others ...Bits) Bits {
	return &notBits{treeOf(set), append([]Bits(nil), others...)}
}

// AliveBits returns the indices of the entities alive. Every 64 of them cost as
// many look-ups, where a [Mask] costs one: combine it rather than iterate it.
func (w *World) AliveBits() Bits { return &w.entities }

// EntityAt returns the entity alive that has the index, and whether there is one.
func (w *World) EntityAt(index uint32) (Entity, bool) { return w.entities.at(index) }

// Indices iterates over the indices in b in ascending order, and skips empty
// regions.
//
// The set may change meanwhile: of a block of 64 indices, from a multiple of 64
// on, those are visited that were in the set when the loop came to the block.
func Indices(b Bits) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for block, word := scan(b, 0); block >= 0; block, word = scan(b, block+1) {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(block<<6 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// CountBits returns how many indices are in b. It looks at every word that is not
// empty; for a [Mask] alone, [Mask.Len] is O(1).
func CountBits(b Bits) (n int) {
	for block, word := scan(b, 0); block >= 0; block, word = scan(b, block+1) {
		n += bits.OnesCount64(word)
	}
	return n
}

// AnyBits reports whether anything is in b.
func AnyBits(b Bits) bool {
	block, _ := scan(b, 0)
	return block >= 0
}

// scan returns the first block from b on that has any indices, and which; -1 if
// there is none.
func scan(set Bits, b int) (block int, word uint64) {
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

// A tree is Bits with the upper levels of a [Mask].
type tree interface {
	Bits

	// summary returns word k of a level above 0. A bit that is not set says that the
	// word it stands for, one level below, is 0. A set bit promises nothing.
	summary(level, k int) uint64
}

// search finds the next word that may not be empty: up from the summary of block
// b until something follows, then down along the first set bits; where one of
// those promised too much, up again.
func search(t tree, b int) int {
	if b >= maskBlocks {
		return -1
	}
	for level := 1; level < maskLevels; { // b is the number of a bit of level.
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

// andBits asks masks first, without a call through an interface.
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

// scan looks at the blocks of a page one after the other: where sets have many
// blocks in common but few indices, finding blocks costs more than looking at
// them.
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

// notBits is set without others. Where the others have something says nothing
// about where the rest has nothing, so its upper levels are those of set.
type notBits struct {
	tree
	others []Bits
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

// The entities alive, as Bits.

func (r *registry) word(b int) (word uint64) {
	if b > r.rows.Total>>6 {
		return 0
	}
	for i, row := range r.sparse[b<<6 : min(b<<6+64, r.rows.Total)] {
		if int(row) < r.rows.N {
			word |= 1 << i
		}
	}
	return word
}

func (r *registry) nextWord(b int) int {
	if r.rows.N > 0 && b <= (r.rows.Total-1)>>6 {
		return b
	}
	return -1
}

// at returns the entity alive at index i, if there is one.
func (r *registry) at(i uint32) (Entity, bool) {
	if int64(i) >= int64(r.rows.Total) || int(r.sparse[i]) >= r.rows.N {
		return 0, false
	}
	return r.dense.Live[r.sparse[i]], true
}

// treeOf returns b with upper levels.
func treeOf(b Bits) tree {
	if t, ok := b.(tree); ok {
		return t
	}
	return levelled{b}
}

func trees(sets []Bits) []tree {
	list := make([]tree, len(sets))
	for i, b := range sets {
		list[i] = treeOf(b)
	}
	return list
}

// levelled gives upper levels to Bits that have none: a word of them is all set
// or empty.
type levelled struct{ Bits }

func (l levelled) summary(level, k int) uint64 {
	next := l.nextWord(k << (6 * level)) // The word spans 64^level blocks.
	if next >= 0 && next>>(6*level) == k {
		return ^uint64(0)
	}
	return 0
}
