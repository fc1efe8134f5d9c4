package ecs

import "strconv"

// A Kind determines how a storage finds the row of an entity and where it puts new rows. All kinds
// have the same methods, and support checkpoints, history, journals and saves in the same way.
type Kind uint8

// The kinds of storages. [Component.Kind] selects the kind of a storage.
const (
	// Sparse has a paged sparse array and dense rows. The sparse array takes 4 bytes for each
	// entity index of the pages in use. Sparse is the default and fits most components.
	Sparse Kind = iota

	// Tag is Sparse for types of size 0. A tag has members but no values.
	Tag

	// Indexed uses the entity index as the row. Rows never move, so pointers and order are stable.
	// An entity has the same row in all Indexed storages. Iteration is in the order of entity
	// indices. A row without an entity is a gap, which costs 8 bytes and the size of one component.
	// Use Indexed for components that nearly every entity has.
	Indexed

	// Hashed is Sparse with shared pages in the sparse array. Blocks of 4096 entity indices share a
	// page of the array, as long as no two members need the same entry. Use Hashed for rare
	// components in huge worlds. A restore of a Hashed storage costs O(rows of the storage).
	Hashed

	// Ordered is Sparse with a [Mask]. Iteration is in the order of entity indices, independent of
	// the order in which the components were added.
	Ordered
)

// String returns the name of k in lower case.
func (k Kind) String() string {
	if k > Ordered {
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
	return [...]string{"sparse", "tag", "indexed", "hashed", "ordered"}[k]
}

// Vacant is the entry of [Storage.Entities] for a row without an entity, which is a gap in an
// [Indexed] storage. Vacant is never alive. In components and results, [None] stands for no entity.
const Vacant = ^Entity(0)
