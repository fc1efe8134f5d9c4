package raw

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/sound"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
)

// A State is the whole state of a world without Go types, as snapshots and saves store it.
type State struct {
	Tick uint64
	// In the form of [World.Registry].
	Registry    []uint64
	Alive, Free int
	Storages    []StorageState

	// Owned lets the world keep the slices of the state instead of copying them. The caller must
	// not use the slices after Load, even if Load fails.
	Owned bool

	// Checked is the result of [CheckRegistry] for Registry, Alive and Free. If nil, Load does the
	// check. Checked is ignored unless the state is Owned.
	Checked *Registry

	// Recorder is set if the world's own recorder calls Load. It numbers the state Seq. The next
	// recorded tick has Seq as its Parent.
	Recorder Recorder
	Seq      uint64

	// KeepNoRewind leaves NoRewind storages unchanged, except for rows of entities that are not
	// alive in the state. It is for a world that moves to another state of its own history.
	KeepNoRewind bool

	// Lossy makes Load drop stored values that have no place in the program's types, where it would
	// otherwise fail with [ErrDropped]. Use it only to show a state: if the world is saved again,
	// the values are lost for good.
	Lossy bool
}

// A Registry is a registry of entities in which [CheckRegistry] found each index once.
type Registry = sound.Registry

// A Sparse is the sparse array of a storage, created by [Registry.Sparse] for its entities. Each
// page is checked against the entities when it is put, so Load need not check it.
type Sparse = sound.Sparse

// CheckRegistry checks a registry, given in the form of [World.Registry], and returns it with the
// row of each index. The error says what is wrong. CheckRegistry costs O(entities).
func CheckRegistry(entities []uint64, alive, free int) (*Registry, error) {
	return sound.CheckRegistry(entities, alive, free)
}

// A StorageState is a storage or resource of a [State].
type StorageState struct {
	Name string
	// See [Storage].
	Version uint32
	Layout  *layout.Type
	// One row, no entity.
	Resource bool
	// Used only if the program did not register the component.
	NoRewind bool
	// The row of an entity is its index. The entity of a gap is Vacant.
	Indexed bool
	// The row of a gap. Nil means the zero value.
	Default  []byte
	Entities []uint64 // In dense order.
	// Created from Entities and State.Checked. If it is nil or has missing pages, Load builds the
	// array.
	Checked *Sparse
	// The canonical bytes of the rows, in the format of [Storage.AppendRows].
	Rows []byte

	// Pages holds the bytes of PageRows rows per page; the last page may have fewer. If nil, Rows
	// holds the bytes.
	Pages    [][]byte
	PageRows int
}

// A Conversion describes how a stored component or resource became a registered one. If only one of
// the two exists, the Conversion has one name and no changes.
type Conversion struct {
	// The stored name. "" means that nothing is stored for the component.
	Stored string
	// The registered name. "" means that the component is not registered and kept unchanged.
	Name    string
	Changes []layout.Change
}

// String returns the conversion as text, one line per change.
func (c Conversion) String() string {
	switch {
	case c.Name == "":
		return naming.Shown(c.Stored) + ": not registered, kept"
	case c.Stored == "":
		return naming.Shown(c.Name) + ": registered, nothing is stored"
	}
	text := ""
	for i, change := range c.Changes {
		if i > 0 {
			text += "\n"
		}
		text += naming.Shown(c.Name) + ": " + change.String()
	}
	return text
}

// Dropped reports whether values were dropped.
func (c Conversion) Dropped() bool {
	return slices.ContainsFunc(c.Changes, func(change layout.Change) bool { return change.Dropped })
}
