package ecs

import "strconv"

// A Kind says how a storage finds the row of an entity, and where it puts new
// rows. All kinds have the same methods, and the same guarantees when the world
// is put back, journaled and saved.
type Kind uint8

// The kinds of storages. [Component] chooses one.
const (
	// Sparse has a paged sparse array, 4 bytes for each entity index of the pages
	// in use, and dense rows. It is the default, and right for most components.
	Sparse Kind = iota

	// Tag is what Sparse is for types of size 0: membership is all there is.
	Tag

	// Indexed uses the entity index as the row. Rows never move, so pointers and
	// order are stable, two such storages are always aligned, and iteration is in
	// the order of indices. Rows without an entity are gaps: 8 bytes and a component
	// each. It is for components that nearly every entity has.
	Indexed

	// Hashed is Sparse with a sparse array whose pages are shared by parts of the
	// index range whose entries do not collide. It is for rare components of huge
	// worlds. Putting it back costs O(rows in it).
	Hashed

	// Ordered is Sparse with a [Mask], and is iterated in the order of entity
	// indices, whatever the order in which components were added.
	Ordered
)

// String returns the name of k in lower case.
func (k Kind) String() string {
	if k > Ordered {
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
	return [...]string{"sparse", "tag", "indexed", "hashed", "ordered"}[k]
}

// Vacant stands in [Storage.Entities] for a row without an entity, a gap of an
// [Indexed] storage. It is never alive.
const Vacant = ^Entity(0)
