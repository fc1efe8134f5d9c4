package roster

import "unsafe"

// Lists maps each key to a non-empty list of entities. Each list has a number, which a caller can
// store for each entity in the list. Lists are stored by number, and a hash table finds the number
// for a key:
//
//	slots   | – | 3 | 1 | – | 2 | – |          1 + the number of a list; – is a free slot
//	lists   | k1: 7 12 | k2: 3 | k3: 41 78 |   the key and the entities of each list
//
// The slot of a key is at the hash of the key, or after it. A search ends at a free slot. At least
// half of the slots are free. When a slot becomes free, later slots move up, so the table needs no
// deletion marks. The zero Lists is empty.
type Lists[K comparable, E ~uint64] struct {
	lists []keyed[K, E]
	// Numbers of removed lists, for reuse.
	spare []uint32
	// The length is 0 or a power of two.
	slots []slot
	hash  hasher[K]
}

type keyed[K comparable, E ~uint64] struct {
	key K
	List[E]
}

type slot struct {
	hash uint32
	// The number of the list plus 1, or 0 if the slot is free.
	next uint32
}

const fewSlots = 8

// Len returns the number of lists.
func (m *Lists[K, E]) Len() int { return len(m.lists) - len(m.spare) }

// Of returns the list of the given key, or nil. The list is valid until m changes.
func (m *Lists[K, E]) Of(key K) *List[E] {
	if len(m.slots) == 0 {
		return nil
	}
	if s := m.slots[m.find(key, m.hash.of(key))]; s.next != 0 {
		return &m.lists[s.next-1].List
	}
	return nil
}

// Is reports whether list number i belongs to the given key.
func (m *Lists[K, E]) Is(i uint32, key K) bool { return m.lists[i].key == key }

// Insert adds e to the list of the given key and returns the number of the list. No other entity in
// that list may have the index of e. The key must be equal to itself, so NaN is not allowed.
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

// add creates an empty list for the given key and returns the number of the list.
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

// Remove removes e from list number i, which must contain e.
func (m *Lists[K, E]) Remove(i uint32, e E) {
	l := &m.lists[i]
	if l.Remove(e); l.Len() > 0 {
		return
	}
	m.free(m.find(l.key, m.hash.of(l.key)))
	var none K
	// Clear the key, because it may refer to memory.
	l.key = none
	m.spare = append(m.spare, i)
}

// find returns the position of the slot of key, or of the free slot where key belongs.
func (m *Lists[K, E]) find(key K, hash uint32) int {
	last := len(m.slots) - 1
	for at := int(hash) & last; ; at = (at + 1) & last {
		if s := &m.slots[at]; s.next == 0 || s.hash == hash && m.lists[s.next-1].key == key {
			return at
		}
	}
}

// free clears a slot, and moves later slots up to close the gap. The parameter gap is the slot's
// index.
func (m *Lists[K, E]) free(gap int) {
	last := len(m.slots) - 1
	for at := (gap + 1) & last; m.slots[at].next != 0; at = (at + 1) & last {
		// The home of a slot is the position that its hash selects. A search starts there and ends
		// at the first free slot. So move the slot into the gap, unless its home is after the gap.
		if home := int(m.slots[at].hash); (at-home)&last >= (at-gap)&last {
			m.slots[gap] = m.slots[at]
			gap = at
		}
	}
	m.slots[gap] = slot{}
}

// grow doubles the number of slots.
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

// Clear removes all lists.
func (m *Lists[K, E]) Clear() {
	clear(m.slots)
	clear(m.lists)
	m.lists, m.spare = m.lists[:0], m.spare[:0]
}

// Each calls f with all keys and their lists, in no particular order.
func (m *Lists[K, E]) Each(f func(K, *List[E])) {
	for i := range m.lists {
		if l := &m.lists[i]; l.Len() > 0 {
			f(l.key, &l.List)
		}
	}
}

// Bytes returns the memory size of m, without memory that keys refer to.
func (m *Lists[K, E]) Bytes() (n int64) {
	n = int64(cap(m.lists))*int64(unsafe.Sizeof(keyed[K, E]{})) +
		int64(cap(m.spare))*4 + int64(cap(m.slots))*int64(unsafe.Sizeof(slot{}))
	for i := range m.lists {
		n += m.lists[i].Bytes()
	}
	return n
}
