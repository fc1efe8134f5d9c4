package ecs

import (
	"fmt"
	"strconv"
	"strings"
)

// An Entity names something that can carry components: a 32-bit index in the
// low half and a 32-bit generation in the high half. It is a plain value: copy
// it, keep it in a component, use it as a map key.
//
// The index of a destroyed entity is given out again with a raised generation,
// so a stale Entity is never mistaken for a live one, as long as the world goes on. A
// world that goes back gives out the same entities again, since it is then what it
// was: those inside of its components went back with it, but one that was kept outside,
// or in a NoRewind component, may name another one's life. [World.Restores] tells.
// [World.CreateAt] brings an entity back on purpose. The zero Entity is never alive.
type Entity uint64

// NewEntity returns the entity of the given index and generation. Whether it is
// alive in some [World] is another question: [World.Alive].
func NewEntity(index, generation uint32) Entity {
	return Entity(generation)<<32 | Entity(index)
}

// ParseEntity reads what [Entity.String] writes: "12v3".
func ParseEntity(s string) (Entity, error) {
	index, generation, ok := strings.Cut(s, "v")
	i, err1 := strconv.ParseUint(index, 10, 32)
	g, err2 := strconv.ParseUint(generation, 10, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("ecs: %q is not an entity; write INDEXvGENERATION, as in 12v3", s)
	}
	return NewEntity(uint32(i), uint32(g)), nil
}

// Index returns the position of e in sparse arrays. Two entities that were
// alive at different times can share an index.
func (e Entity) Index() uint32 { return uint32(e) }

// Generation returns how many times the index of e had been given out when e
// was created, counting e itself, if [World.CreateAt] has not passed over some.
func (e Entity) Generation() uint32 { return uint32(e >> 32) }

// String returns e as index, "v", generation: "12v3".
func (e Entity) String() string {
	return strconv.FormatUint(uint64(e.Index()), 10) + "v" + strconv.FormatUint(uint64(e.Generation()), 10)
}
