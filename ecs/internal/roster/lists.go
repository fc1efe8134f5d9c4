package roster

import "unsafe"

// Lists are lists of entities by key, none of them empty. Each has a number, for who keeps
// which one an entity is in. The lists lie by number, and a table finds the number of a key:
//
//	slots   | – | 3 | 1 | – | 2 | – |     at the hash of the key, or behind that
//	lists   | k1: 7 12 | k2: 3 | k3: 41 78 |
//
// Half of the slots are free at least, and what is free ends a search. Where one becomes
// free those behind it move up, so none is marked as gone. The zero Lists are empty.
type Lists[K comparable, E ~uint64] struct {
	lists []keyed[K, E]
	spare []uint32 // The numbers that are in no use.
	slots []slot   // None, or a power of two.
	hash  hasher[K]
}

type keyed[K comparable, E ~uint64] struct {
	key K
	List[E]
}

type slot struct {
	hash uint32
	next uint32 // The number and 1; 0: the slot is free.
}

const fewSlots = 8

// Len returns how many lists there are.
func (m *Lists[K, E]) Len() int { return len(m.lists) - len(m.spare) }

// Of returns the list of key, nil if there is none. It is valid until m changes.
func (m *Lists[K, E]) Of(key K) *List[E] {
	if len(m.slots) == 0 {
		return nil
	}
	if s := m.slots[m.find(key, m.hash.of(key))]; s.next != 0 {
		return &m.lists[s.next-1].List
	}
	return nil
}

// Is reports whether the list of number i is that of key.
func (m *Lists[K, E]) Is(i uint32, key K) bool { return m.lists[i].key == key }

// Insert adds e, whose index no other one in there has, to the list of key, and returns the
// number of that. The key must be equal to itself.
func (m *Lists[K, E]) Insert(key K, e E) (i uint32) {
	if 2*(m.Len()+1) > len(m.slots) {
		m.grow()
	}
	hash := m.hash.of(key)
	s := &m.slots[m.find(key, hash)]
	if s.next == 0 {
		*s = slot{hash, m.add(key) + 1}
	}
	m.lists[s.next-1].Insert(e)
	return s.next - 1
}

// add makes an empty list of key and returns its number.
func (m *Lists[K, E]) add(key K) (i uint32) {
	if k := len(m.spare); k > 0 {
		i, m.spare = m.spare[k-1], m.spare[:k-1]
	} else {
		i = uint32(len(m.lists))
		m.lists = append(m.lists, keyed[K, E]{})
	}
	m.lists[i].key = key
	return i
}

// Remove takes e out of the list of number i, in which it is.
func (m *Lists[K, E]) Remove(i uint32, e E) {
	l := &m.lists[i]
	if l.Remove(e); l.Len() > 0 {
		return
	}
	m.free(m.find(l.key, m.hash.of(l.key)))
	var none K
	l.key = none // Which may hold memory.
	m.spare = append(m.spare, i)
}

// find returns the slot of key, or the free one where it belongs.
func (m *Lists[K, E]) find(key K, hash uint32) int {
	last := len(m.slots) - 1
	for at := int(hash) & last; ; at = (at + 1) & last {
		if s := &m.slots[at]; s.next == 0 || s.hash == hash && m.lists[s.next-1].key == key {
			return at
		}
	}
}

// free makes a slot free.
func (m *Lists[K, E]) free(gap int) {
	last := len(m.slots) - 1
	for at := (gap + 1) & last; m.slots[at].next != 0; at = (at + 1) & last {
		if home := int(m.slots[at].hash); (at-home)&last >= (at-gap)&last { // That is the gap or before it.
			m.slots[gap] = m.slots[at]
			gap = at
		}
	}
	m.slots[gap] = slot{}
}

// grow makes twice as many slots.
func (m *Lists[K, E]) grow() {
	if len(m.slots) == 0 {
		m.slots, m.hash = make([]slot, fewSlots), newHasher[K]()
		return
	}
	old := m.slots
	m.slots = make([]slot, 2*len(old))
	last := len(m.slots) - 1
	for _, s := range old {
		if s.next != 0 {
			at := int(s.hash) & last
			for m.slots[at].next != 0 {
				at = (at + 1) & last
			}
			m.slots[at] = s
		}
	}
}

// Clear makes m empty.
func (m *Lists[K, E]) Clear() {
	clear(m.slots)
	clear(m.lists)
	m.lists, m.spare = m.lists[:0], m.spare[:0]
}

// Each calls f with all keys and their lists, in any order.
func (m *Lists[K, E]) Each(f func(K, *List[E])) {
	for i := range m.lists {
		if l := &m.lists[i]; l.Len() > 0 {
			f(l.key, &l.List)
		}
	}
}

// Bytes returns how much memory m takes, but for what keys lead to.
func (m *Lists[K, E]) Bytes() (n int64) {
	n = int64(cap(m.lists))*int64(unsafe.Sizeof(keyed[K, E]{})) +
		int64(cap(m.spare))*4 + int64(cap(m.slots))*int64(unsafe.Sizeof(slot{}))
	for i := range m.lists {
		n += m.lists[i].Bytes()
	}
	return n
}
