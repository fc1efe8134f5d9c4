// Package roster keeps entities in the order of their indices.
package roster

import (
	"slices"
	"sort"
)

// A List holds entities in ascending order of their indices, the low 32 bits, no two of
// which are the same:
//
//	chunks   | 3 7 9 | 12 40 | 41 77 78 |     256 at most in each
//
// To insert and remove costs O(log n) and moving a part of a chunk; at the end, where
// most come, nothing. The zero List is empty.
type List[E ~uint64] struct {
	n      int
	only   []E   // All, as long as they fit in one chunk.
	chunks [][]E // Otherwise; none is empty.
}

const chunkMax = 256

// Len returns how many there are.
func (l *List[E]) Len() int { return l.n }

// Chunks returns how many chunks there are.
func (l *List[E]) Chunks() int {
	if l.chunks == nil {
		return min(l.n, 1)
	}
	return len(l.chunks)
}

// Chunk returns the i-th chunk. It is valid until l changes.
func (l *List[E]) Chunk(i int) []E {
	if l.chunks == nil {
		return l.only
	}
	return l.chunks[i]
}

// Seek returns where the first entity is whose index is at least that: in which chunk, and
// where in it. Behind the last one that is chunk l.Chunks().
func (l *List[E]) Seek(index uint32) (chunk, at int) {
	if l.chunks == nil {
		if at = place(l.only, index); at == l.n {
			return l.Chunks(), 0
		}
		return 0, at
	}
	if chunk = l.chunkOf(index); chunk < len(l.chunks) {
		at = place(l.chunks[chunk], index)
	}
	return chunk, at
}

// chunkOf returns the first chunk whose last entity has that index or a greater one.
func (l *List[E]) chunkOf(index uint32) int {
	return sort.Search(len(l.chunks), func(i int) bool {
		c := l.chunks[i]
		return uint32(c[len(c)-1]) >= index
	})
}

// place returns where in chunk the first entity is whose index is at least that.
func place[E ~uint64](chunk []E, index uint32) int {
	return sort.Search(len(chunk), func(i int) bool { return uint32(chunk[i]) >= index })
}

// Insert adds e, whose index no other has.
func (l *List[E]) Insert(e E) {
	l.n++
	if l.chunks == nil {
		if len(l.only) < chunkMax {
			l.only = insert(l.only, e)
			return
		}
		l.chunks, l.only = [][]E{l.only}, nil
	}
	i := l.chunkOf(uint32(e))
	if i == len(l.chunks) { // Behind all others.
		if i--; len(l.chunks[i]) == chunkMax {
			l.chunks = append(l.chunks, append(make([]E, 0, chunkMax), e))
			return
		}
	}
	if c := l.chunks[i]; len(c) == chunkMax {
		upper := append(make([]E, 0, chunkMax), c[chunkMax/2:]...)
		l.chunks[i] = c[:chunkMax/2]
		l.chunks = slices.Insert(l.chunks, i+1, upper)
		if uint32(e) > uint32(upper[0]) {
			i++
		}
	}
	l.chunks[i] = insert(l.chunks[i], e)
}

func insert[E ~uint64](chunk []E, e E) []E {
	if k := len(chunk); k == 0 || uint32(chunk[k-1]) < uint32(e) {
		return append(chunk, e)
	}
	return slices.Insert(chunk, place(chunk, uint32(e)), e)
}

// Remove takes e away. It reports whether it was there.
func (l *List[E]) Remove(e E) bool {
	i, at := l.Seek(uint32(e))
	if i == l.Chunks() || l.Chunk(i)[at] != e {
		return false
	}
	l.n--
	if l.chunks == nil {
		l.only = slices.Delete(l.only, at, at+1)
		return true
	}
	c := slices.Delete(l.chunks[i], at, at+1)
	l.chunks[i] = c
	switch {
	case len(c) == 0:
		l.chunks = slices.Delete(l.chunks, i, i+1)
	case i+1 < len(l.chunks) && len(c)+len(l.chunks[i+1]) <= chunkMax/2:
		l.join(i)
	case i > 0 && len(l.chunks[i-1])+len(c) <= chunkMax/2:
		l.join(i - 1)
	}
	if len(l.chunks) == 1 {
		l.only, l.chunks = l.chunks[0], nil
	}
	return true
}

// join makes chunk i and the one behind it one.
func (l *List[E]) join(i int) {
	l.chunks[i] = append(l.chunks[i], l.chunks[i+1]...)
	l.chunks = slices.Delete(l.chunks, i+1, i+2)
}

// Clear makes l empty. It keeps the memory of a chunk.
func (l *List[E]) Clear() {
	if l.chunks != nil {
		l.only = l.chunks[0]
	}
	*l = List[E]{only: l.only[:0]}
}

// Bytes returns how much memory l takes.
func (l *List[E]) Bytes() (n int64) {
	n = int64(cap(l.only))*8 + int64(cap(l.chunks))*24
	for _, c := range l.chunks {
		n += int64(cap(c)) * 8
	}
	return n
}
