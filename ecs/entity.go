package ecs

import (
	"fmt"
	"strconv"
	"strings"
)

// An Entity identifies an object that can have components. It is a plain value: copy it, keep it
// in a component, use it as a map key. Its low half is a 32-bit index, its high half a 32-bit
// generation.
//
// The world reuses the index of a destroyed entity with a higher generation. So, while the world
// moves forward, a stale Entity never equals a live one. The zero Entity is [None].
//
// A rollback restores the registry, so the world then creates the same entities again. Entities
// inside components are restored too. But an Entity stored outside the world, or in a NoRewind
// component, may afterwards identify another object. [World.Restores] reports whether the world was
// restored in the meantime. [World.CreateAt] recreates a given entity on purpose.
type Entity uint64

// None stands for no entity, as in a field that refers to nothing. It is the zero Entity, and it is
// never alive. The entry of a gap in [Storage.Entities] is [Vacant] instead.
const None Entity = 0

// NewEntity returns the entity with this index and generation. The entity need not be alive in any
// world; see [World.Alive].
func NewEntity(index, generation uint32) Entity {
	return Entity(generation)<<32 | Entity(index)
}

// ParseEntity parses the output of [Entity.String], such as "12v3".
func ParseEntity(s string) (Entity, error) {
	index, generation, ok := strings.Cut(s, "v")
	i, err1 := strconv.ParseUint(index, 10, 32)
	g, err2 := strconv.ParseUint(generation, 10, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("ecs: %q is not an entity; write INDEXvGENERATION, as in 12v3", s)
	}
	return NewEntity(uint32(i), uint32(g)), nil
}

// Index returns the position of e in sparse arrays. Entities with different lifetimes can share
// an index.
func (e Entity) Index() uint32 { return uint32(e) }

// Generation returns the generation of e. It is 1 for the first entity with an index, and increases
// each time the index is reused. [World.CreateAt] can skip generations.
func (e Entity) Generation() uint32 { return uint32(e >> 32) }

// String returns e as index, "v", generation: "12v3".
func (e Entity) String() string {
	return strconv.FormatUint(uint64(e.Index()), 10) + "v" + strconv.FormatUint(uint64(e.Generation()), 10)
}
