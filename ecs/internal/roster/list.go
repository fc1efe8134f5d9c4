// Package roster stores entities in the order of their indices.
package roster

import (
	"slices"
	"sort"
	"unsafe"
)

// A List holds entities in ascending order of their indices, which are the low 32 bits. No two
// entities of a list have the same index.
//
//	chunks   | 3 7 9 | 12 40 | 41 77 78 |     at most 256 entities in each chunk
//
// Insert and Remove take O(log n) time, and move some entities within a chunk. An insertion at the
// end moves no entities. Most insertions are at the end. The zero List is empty.
type List[E ~uint64] struct {
	// All entities of a list that fits in one chunk.
	only []E
	// All entities of a longer list. Most lists are short, so a pointer saves memory.
	many *many[E]
}

type many[E ~uint64] struct {
	n      int
	chunks [][]E // Every chunk has at least one entity.
}

const chunkMax = 256

// Len returns the number of entities.
func (l *List[E]) Len() int {
	if l.many == nil {
		return len(l.only)
	}
	return l.many.n
}

// Chunks returns the number of chunks.
func (l *List[E]) Chunks() int {
	if l.many == nil {
		return min(len(l.only), 1)
	}
	return len(l.many.chunks)
}

// Chunk returns the i-th chunk. It is valid until l changes.
func (l *List[E]) Chunk(i int) []E {
	if l.many == nil {
		return l.only
	}
	return l.many.chunks[i]
}

// Seek returns the position of the first entity whose index is at least the given index. The
// position is a chunk and a place in that chunk. If no entity has such an index, chunk is
// l.Chunks().
func (l *List[E]) Seek(index uint32) (chunk, at int) {
	if l.many == nil {
		if at = place(l.only, index); at == len(l.only) {
			return l.Chunks(), 0
		}
		return 0, at
	}
	if chunk = l.many.chunkOf(index); chunk < len(l.many.chunks) {
		at = place(l.many.chunks[chunk], index)
	}
	return chunk, at
}

// chunkOf returns the position of the first chunk whose last entity has at least this index.
func (m *many[E]) chunkOf(index uint32) int {
	return sort.Search(len(m.chunks), func(i int) bool {
		c := m.chunks[i]
		return uint32(c[len(c)-1]) >= index
	})
}

// place returns the position in the chunk of the first entity whose index is at least the given
// index.
func place[E ~uint64](chunk []E, index uint32) int {
	return sort.Search(len(chunk), func(i int) bool { return uint32(chunk[i]) >= index })
}

// Insert adds e. No entity of l may have the same index.
func (l *List[E]) Insert(e E) {
	if l.many == nil {
		if len(l.only) < chunkMax {
			l.only = insert(l.only, e)
			return
		}
		l.many, l.only = &many[E]{len(l.only), [][]E{l.only}}, nil
	}
	l.many.insert(e)
}

func (m *many[E]) insert(e E) {
	m.n++
	i := m.chunkOf(uint32(e))
	if i == len(m.chunks) { // e comes after all other entities.
		if i--; len(m.chunks[i]) == chunkMax {
			m.chunks = append(m.chunks, append(make([]E, 0, chunkMax), e))
			return
		}
	}
	if c := m.chunks[i]; len(c) == chunkMax {
		upper := append(make([]E, 0, chunkMax), c[chunkMax/2:]...)
		m.chunks[i] = c[:chunkMax/2]
		m.chunks = slices.Insert(m.chunks, i+1, upper)
		if uint32(e) > uint32(upper[0]) {
			i++
		}
	}
	m.chunks[i] = insert(m.chunks[i], e)
}

func insert[E ~uint64](chunk []E, e E) []E {
	if k := len(chunk); k == 0 || uint32(chunk[k-1]) < uint32(e) {
		return append(chunk, e)
	}
	return slices.Insert(chunk, place(chunk, uint32(e)), e)
}

// Remove removes e and reports whether l contained e.
func (l *List[E]) Remove(e E) bool {
	i, at := l.Seek(uint32(e))
	if i == l.Chunks() || l.Chunk(i)[at] != e {
		return false
	}
	if l.many == nil {
		l.only = slices.Delete(l.only, at, at+1)
		return true
	}
	l.many.remove(i, at)
	if len(l.many.chunks) == 1 {
		l.only, l.many = l.many.chunks[0], nil
	}
	return true
}

// remove removes an entity from the chunk with index i. The parameter at is the entity's index in
// the chunk.
func (m *many[E]) remove(i, at int) {
	m.n--
	c := slices.Delete(m.chunks[i], at, at+1)
	m.chunks[i] = c
	switch {
	case len(c) == 0:
		m.chunks = slices.Delete(m.chunks, i, i+1)
	case i+1 < len(m.chunks) && len(c)+len(m.chunks[i+1]) <= chunkMax/2:
		m.join(i)
	case i > 0 && len(m.chunks[i-1])+len(c) <= chunkMax/2:
		m.join(i - 1)
	}
}

// join merges chunk i+1 into chunk i.
func (m *many[E]) join(i int) {
	m.chunks[i] = append(m.chunks[i], m.chunks[i+1]...)
	m.chunks = slices.Delete(m.chunks, i+1, i+2)
}

// Clear removes all entities. It keeps the memory of one chunk.
func (l *List[E]) Clear() {
	if l.many != nil {
		l.only, l.many = l.many.chunks[0], nil
	}
	l.only = l.only[:0]
}

// Bytes returns the memory size of l.
func (l *List[E]) Bytes() (n int64) {
	n = int64(cap(l.only)) * 8
	if l.many != nil {
		n += int64(unsafe.Sizeof(*l.many)) + int64(cap(l.many.chunks))*24
		for _, c := range l.many.chunks {
			n += int64(cap(c)) * 8
		}
	}
	return n
}
