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

// An opCheck holds what the operations of a tick say of the state after it, to
// be compared with what the patches made of it. An image keeps one.
//
// A tick says twice what it did: patches have the rows that differ, operations the calls
// in their order. Rows that were changed behind the back of a checksum, by an error of a
// program or of this one, show where the two do not lead to the same sets of entities.
// Their cost is that of the operations, not of the rows: of an entity that no operation
// named, nothing is asked.
//
//	before the rows change   expect: the sets of the image, changed by one operation after the other
//	after they did           compare: are there as many members? is each entity that was named a
//	                         member, or none, as the operations say?
//
// It compares sets, not rows: which row an entity got, and with what value, only patches say.
type opCheck struct {
	alive   opSet
	members []opSet // By component.
}

// expect works out, from im before the tick, what ops lead to.
func (im *Image) expect(ops []byte) error {
	c := &im.ops
	if c.alive.before == nil { // The functions are kept: one each time would allocate.
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

// do carries out an operation on the sets.
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
		// compare finds what is missing.
	case op.Kind == raw.OpClear:
		c.members[op.Component].clear()
	default:
		c.members[op.Component].set(op.Entity, op.Kind == raw.OpAdd)
	}
}

// compare returns an error if im, after the tick, is not what the operations
// lead to.
func (c *opCheck) compare(im *Image) error {
	if err := c.alive.compare(im.Alive); err != nil {
		return fmt.Errorf("entities alive: %w", err)
	}
	for i := range c.members {
		comp := im.Components[i]
		n := comp.Members()
		switch {
		case !comp.Rewinds:
			continue // Given whole, whatever the operations were.
		case comp.Resource:
			n = c.members[i].n // It may be given the first time.
		}
		if err := c.members[i].compare(n); err != nil {
			return fmt.Errorf("component %s: %w", naming.Shown(comp.Name), err)
		}
	}
	return nil
}

// An opSet is a set of entities as the operations of a tick change it. It is
// used again for the next tick, and allocates nothing in the steady state.
type opSet struct {
	n       int
	cleared bool                  // Entities not in known are not in it,
	before  func(ecs.Entity) bool // else they are as before the tick.
	known   entityMap             // Whether those that operations named are in it. Others did not change.
}

// begin makes s the set of n entities that before tells.
func (s *opSet) begin(n int) {
	s.n, s.cleared = n, false
	s.known.clear()
}

// set puts e into s, or takes it out. n changes only if that is not as it was.
func (s *opSet) set(e ecs.Entity, now bool) {
	entry := s.known.find(e)
	was := false // As after a clear: of those before it none is left.
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

// clear costs O(operations before it), however many entities there were.
func (s *opSet) clear() {
	s.n, s.cleared = 0, true
	s.known.clear()
}

// compare returns how s differs from a set of n entities, the first difference
// in the order of the operations. That is what before tells now, for the tick has
// been applied.
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

// An entityMap maps entities to a bool each, in the order in which they were
// added. It is a hash table with linear probing, at most half full.
//
//	slots    |   | 2 |   | 1 |   |   | 3 |   |   position in entries + 1, or 0
//	entries  | e | f | g |
type entityMap struct {
	slots   []uint32
	entries []entityEntry
	missed  uint32 // The slot at which find gave up.
	shift   uint8  // 64 - log2(len(slots)). Slots past the length are zero.
}

type entityEntry struct {
	entity ecs.Entity
	slot   uint32 // Where it is named, to be emptied by clear.
	in     bool
}

// hashFactor is odd and not known outside, so that no payload can be made whose
// entities all meet in one slot.
var hashFactor = rand.Uint64() | 1

// slot returns where to look for e first: the upper bits of a product, which depend on all
// bits of it.
func (m *entityMap) slot(e ecs.Entity) uint32 {
	h := uint64(e) * hashFactor
	return uint32((h ^ h>>32) * hashFactor >> m.shift)
}

// find returns the entry of e, or nil. It is valid until the next add.
func (m *entityMap) find(e ecs.Entity) *entityEntry {
	if len(m.entries) == 0 {
		return nil // There are no slots either: the first add makes some, and asks for none that was missed.
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

// add adds an entity that find did not find just now.
func (m *entityMap) add(e ecs.Entity, in bool) {
	m.entries = append(m.entries, entityEntry{entity: e, in: in})
	i := len(m.entries) - 1
	if 2*i >= len(m.slots) {
		m.grow() // It places all entries, the new one as well.
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

// firstSlots is how many slots a map has that is not empty.
const firstSlots = 1 << 6

// grow doubles the slots that are in use. They begin few after every clear, so
// that a small tick behind a large one stays in the nearer caches.
func (m *entityMap) grow() {
	n := max(firstSlots, 2*len(m.slots))
	m.shift = uint8(64 - bits.TrailingZeros(uint(n)))
	if n > cap(m.slots) { // Else the memory of a larger tick before is used again.
		m.slots = make([]uint32, n)
	} else {
		clear(m.slots)
		m.slots = m.slots[:n]
	}
	for i := range m.entries {
		m.place(i)
	}
}

// clear empties the slots that are in use, one by one if there are few: after a large
// tick, many small ones must not pay for all the slots that it needed.
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
