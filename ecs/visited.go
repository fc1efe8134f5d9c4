package ecs

// visited is a reusable set of entities with distinct indices.
type visited struct {
	words []uint64 // A bit for each entity index.
	added []Entity // The added entities, in order, even if removed later.
}

func (m *visited) has(e Entity) bool {
	i := int(e.Index() >> 6)
	return i < len(m.words) && m.words[i]>>(e.Index()&63)&1 != 0
}

// add adds e. It returns false if the index of e is already in the set.
func (m *visited) add(e Entity) bool {
	if m.has(e) {
		return false
	}
	if i := int(e.Index() >> 6); i >= len(m.words) {
		m.words = append(m.words, make([]uint64, max(i+1-len(m.words), len(m.words)))...)
	}
	m.words[e.Index()>>6] |= 1 << (e.Index() & 63)
	m.added = append(m.added, e)
	return true
}

// remove removes e. It returns false if the index of e is not in the set.
func (m *visited) remove(e Entity) bool {
	if !m.has(e) {
		return false
	}
	m.words[e.Index()>>6] &^= 1 << (e.Index() & 63)
	return true
}

// clear removes all entities.
func (m *visited) clear() {
	for _, e := range m.added {
		m.words[e.Index()>>6] = 0
	}
	m.added = m.added[:0]
}

// spareSets is a pool of empty sets.
type spareSets []*visited

// take returns an empty set. The caller returns the set with drop().
func (s *spareSets) take() (m *visited) {
	k := len(*s) - 1
	if k < 0 {
		return new(visited)
	}
	m, *s = (*s)[k], (*s)[:k]
	return m
}

func (s *spareSets) drop(m *visited) {
	m.clear()
	*s = append(*s, m)
}
