package image

import (
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// An opCheck detects a tick that contradicts itself. Each image has one opCheck and reuses it.
//
// A tick contains its changes twice: patches have the changed rows, and operations have the calls
// in order. A bug in the writer can record wrong rows with correct checksums. An opCheck computes
// sets from the operations: the alive entities, and the entities of each component. After the
// patches, it compares these sets with the image. It checks only entities with operations, so the
// cost grows with the operations, and not with the rows.
//
//	before the rows change   expect: computes the sets of the image after the operations
//	after the rows changed   compare: checks the number of members, and that each entity with an
//	                         operation is a member if and only if the operations say so
//
// An opCheck does not check values and the order of rows, because only patches contain them.
type opCheck struct {
	alive   opSet
	members []opSet // The members of each component, by its number.
}

// expect computes the effect of ops. im has the state before the tick.
func (im *Image) expect(ops []byte) error {
	c := &im.ops
	if c.alive.before == nil { // Keep the functions: creating them each time would allocate.
		c.alive.before = im.IsAlive
	}
	c.alive.begin(im.Alive)
	for _, comp := range im.Components[len(c.members):] {
		c.members = append(c.members, opSet{before: func(e ecs.Entity) bool { return comp.Find(e) >= 0 }})
	}
	for i := range c.members {
		c.members[i].begin(im.Components[i].Members())
	}
	return format.EachOp(ops, c.do)
}

// do applies an operation to the sets.
func (c *opCheck) do(op format.Op) {
	switch {
	case op.Kind == raw.OpCreate:
		c.alive.set(op.Entity, true)
	case op.Kind == raw.OpDestroy:
		c.alive.set(op.Entity, false)
		for i := range c.members {
			c.members[i].set(op.Entity, false)
		}
	case op.Kind == raw.OpClear && op.Component == format.NoComponent:
		c.alive.clear()
		for i := range c.members {
			c.members[i].clear()
		}
	case op.Component == format.NoComponent || op.Component >= len(c.members):
		// The image does not have this component, so there is no set to change.
	case op.Kind == raw.OpClear:
		c.members[op.Component].clear()
	default:
		c.members[op.Component].set(op.Entity, op.Kind == raw.OpAdd)
	}
}

// compare returns an error if im, to which the patches were applied, differs from the result of the
// operations.
func (c *opCheck) compare(im *Image) error {
	if err := c.alive.compare(im.Alive); err != nil {
		return fmt.Errorf("entities alive: %w", err)
	}
	for i := range c.members {
		comp := im.Components[i]
		n := comp.Members()
		switch {
		case !comp.Rewinds:
			continue // A component that does not rewind may change without operations.
		case comp.Resource:
			// The first tick with a resource adds its row without an operation. So do not compare
			// the numbers of members.
			n = c.members[i].n
		}
		if err := c.members[i].compare(n); err != nil {
			return fmt.Errorf("component %s: %w", naming.Shown(comp.Name), err)
		}
	}
	return nil
}

// An opSet is a set of entities that changes with the operations of a tick, such as the alive
// entities. It records only the entities with operations. before() says whether any other entity is
// a member. An opSet is reused for the next tick, and then allocates nothing.
type opSet struct {
	n int
	// Set after an operation that removes all members. Then before() does not count.
	cleared bool
	// Reports whether an entity is a member in the image. Until the patches are applied, the image
	// has the state before the tick.
	before func(ecs.Entity) bool
	// The entities with operations since the last clear, and whether each is a member now.
	known entityMap
}

// begin resets s to the set in the image, which has n entities.
func (s *opSet) begin(n int) {
	s.n, s.cleared = n, false
	s.known.clear()
}

// set adds e to s or removes it. n changes only if the membership of e changes.
func (s *opSet) set(e ecs.Entity, now bool) {
	entry := s.known.find(e)
	was := false // A clear has removed all earlier members.
	switch {
	case entry != nil:
		was, entry.in = entry.in, now
	case !s.cleared:
		was = s.before(e)
	}
	if was == now {
		return
	}
	if s.n--; now {
		s.n += 2
	}
	if entry == nil {
		s.known.add(e, now)
	}
}

// clear removes all entities. The cost grows with the number of earlier operations in the tick, and
// not with the number of entities.
func (s *opSet) clear() {
	s.n, s.cleared = 0, true
	s.known.clear()
}

// compare returns an error if s differs from the set in the image, which has n entities. It is
// called after the patches. The callback s.before() reads the image, so it now reports the members
// after the tick. The error names the first difference in the order of the operations.
func (s *opSet) compare(n int) error {
	if s.n != n {
		return fmt.Errorf("operations lead to %d, patches to %d", s.n, n)
	}
	for _, entry := range s.known.entries {
		if s.before(entry.entity) != entry.in {
			return fmt.Errorf("operations and patches differ on %v", entry.entity)
		}
	}
	return nil
}

// An entityMap maps entities to a bool each, in insertion order. It is a hash table with linear
// probing, at most half full. Each slot contains a position in entries plus 1, or 0 if it is empty.
// This map has the entities e, f and g:
//
//	slots    | 0 | 2 | 0 | 1 | 0 | 0 | 3 | 0 |
//	entries  | e | f | g |
type entityMap struct {
	slots   []uint32 // The capacity after the length is zero.
	entries []entityEntry
	missed  uint32 // The empty slot at which find() stopped.
	shift   uint8  // 64 - log2(len(slots)), for slot().
}

type entityEntry struct {
	entity ecs.Entity
	slot   uint32 // Slot of the entry. clear() empties this slot.
	in     bool
}

// hashFactor is odd and secret, so no payload can be crafted whose entities all use the same slot.
var hashFactor = rand.Uint64() | 1

// slot returns the first slot for e: the upper bits of a product, which depend on all bits of e.
func (m *entityMap) slot(e ecs.Entity) uint32 {
	h := uint64(e) * hashFactor
	return uint32((h ^ h>>32) * hashFactor >> m.shift)
}

// find returns the entry of e, or nil. The entry is valid until the next call of add().
func (m *entityMap) find(e ecs.Entity) *entityEntry {
	if len(m.entries) == 0 {
		// There may be no slots, so m.missed is not set. The next add() calls grow(), which does
		// not use it.
		return nil
	}
	slots := m.slots
	at := m.slot(e)
	for ; slots[at] != 0; at = (at + 1) & uint32(len(slots)-1) {
		if entry := &m.entries[slots[at]-1]; entry.entity == e {
			return entry
		}
	}
	m.missed = at
	return nil
}

// add adds an entity that the map does not have: the last call of find() must have looked for this
// entity and returned nil.
func (m *entityMap) add(e ecs.Entity, in bool) {
	m.entries = append(m.entries, entityEntry{entity: e, in: in})
	i := len(m.entries) - 1
	if 2*i >= len(m.slots) {
		m.grow() // grow places all entries, including the new one.
		return
	}
	m.slots[m.missed] = uint32(i + 1)
	m.entries[i].slot = m.missed
}

// place finds a slot for entries[i].
func (m *entityMap) place(i int) {
	mask := uint32(len(m.slots) - 1)
	at := m.slot(m.entries[i].entity)
	for m.slots[at] != 0 {
		at = (at + 1) & mask
	}
	m.slots[at] = uint32(i + 1)
	m.entries[i].slot = at
}

// firstSlots is the initial number of slots of a non-empty map.
const firstSlots = 1 << 6

// grow doubles the number of slots, and places all entries again. clear() sets this number to 0. So
// a small tick after a large tick uses few slots, which stay in the faster caches.
func (m *entityMap) grow() {
	n := max(firstSlots, 2*len(m.slots))
	m.shift = uint8(64 - bits.TrailingZeros(uint(n)))
	if n > cap(m.slots) { // Otherwise an earlier tick has left enough memory.
		m.slots = make([]uint32, n)
	} else {
		clear(m.slots)
		m.slots = m.slots[:n]
	}
	for i := range m.entries {
		m.place(i)
	}
}

// clear empties the slots in use, one by one if they are few. So a large tick does not slow down
// the small ticks after it.
func (m *entityMap) clear() {
	if len(m.entries) < len(m.slots)/16 {
		for i := range m.entries {
			m.slots[m.entries[i].slot] = 0
		}
	} else {
		clear(m.slots)
	}
	m.slots, m.entries = m.slots[:0], m.entries[:0]
}
