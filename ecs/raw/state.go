package raw

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/sound"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
)

// A State is the whole of a world without Go types, as a snapshot or a save
// holds it.
type State struct {
	Tick        uint64
	Registry    []uint64 // As [World.Registry] returns it.
	Alive, Free int
	Storages    []StorageState

	// Owned lets the world keep the slices of the state instead of copies: whoever
	// made them has no more use for them, whether Load succeeds or not.
	Owned bool

	// Checked is what [CheckRegistry] made of Registry, Alive and Free; nil: Load does that. It counts
	// if the state is Owned.
	Checked *Registry

	// Recorder is the one that the world has: it asks for the state itself, and calls it Seq.
	// The next tick that it is told has Seq as its Parent.
	Recorder Recorder
	Seq      uint64

	// KeepNoRewind leaves what is registered with NoRewind as it is, for a world that goes to
	// another state of its own: only the rows of entities that are not alive there go.
	KeepNoRewind bool

	// Lossy makes Load leave out what the program's types have no place for, where it
	// would be refused with [ErrDropped]. It is for whoever only shows a state, as what
	// is saved of the world then lacks it for good.
	Lossy bool
}

// A Registry is a registry of entities in which each index is once, as [CheckRegistry] found.
type Registry = sound.Registry

// A Sparse is the sparse array of a storage, which [Registry.Sparse] makes for its entities. Its pages
// are compared with them as they are put in, so that Load need not.
type Sparse = sound.Sparse

// CheckRegistry returns what is wrong with a registry, as [World.Registry] returns it, or the row
// of each index. It costs O(entities).
func CheckRegistry(entities []uint64, alive, free int) (*Registry, error) {
	return sound.CheckRegistry(entities, alive, free)
}

// A StorageState is a storage or resource of a [State].
type StorageState struct {
	Name     string
	Version  uint32 // See [Storage].
	Layout   *layout.Type
	Resource bool     // One row, no entity.
	NoRewind bool     // It counts if the program did not register the component.
	Indexed  bool     // The row of an entity is its index; gaps are Vacant
	Default  []byte   // and hold this row; nil: the zero value.
	Entities []uint64 // In dense order.
	Checked  *Sparse  // What was made of Entities and State.Checked; nil, or some are missing: Load makes it.
	Rows     []byte   // The canonical bytes of the rows, as [Storage.AppendRows] writes them.

	// Pages holds the bytes of PageRows rows each, the last one those of the rest;
	// nil: they are in Rows.
	Pages    [][]byte
	PageRows int
}

// A Conversion says how a stored component or resource was made what the program
// registered. If there is only one of the two, it has one name and no changes.
type Conversion struct {
	Stored  string // The name it was stored under; "": nothing is stored of it.
	Name    string // The name that the program gives it; "": not registered, kept as it is.
	Changes []layout.Change
}

// String returns the conversion for people, in one line a change.
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

// Dropped reports whether values were left out.
func (c Conversion) Dropped() bool {
	return slices.ContainsFunc(c.Changes, func(change layout.Change) bool { return change.Dropped })
}
