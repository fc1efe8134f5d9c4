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
	// The entities and their numbers, as [World.Registry] returns them.
	Registry    []uint64
	Alive, Free int
	Storages    []StorageState

	// Owned lets the world keep the slices of the state instead of copying them. The caller must
	// not use the slices after Load, even if Load fails.
	Owned bool

	// Checked is the result of [CheckRegistry] for Registry, Alive and Free. With Checked, Load
	// does not check the registry again. Load ignores Checked unless the state is Owned.
	Checked *Registry

	// Recorder is the recorder that calls Load, or nil. Seq is its number for the loaded state. The
	// next record of the world has this number as its Parent.
	Recorder Recorder
	Seq      uint64

	// KeepNoRewind makes Load keep NoRewind storages. Load only removes the rows of entities that
	// are not alive in the state. Set it if the world goes to another state of its own history.
	KeepNoRewind bool

	// Lossy makes Load drop stored values for which the program has no field. By default, such
	// values are an error: [ErrDropped]. Use Lossy only to show a state: a save of the world would
	// lose the values permanently.
	Lossy bool
}

// A Registry is a valid registry of entities. [CheckRegistry] creates it. It shares memory with the
// checked entities.
type Registry sound.Registry

// CheckRegistry checks a registry in the form of [World.Registry]. The error describes the fault.
// The caller must not change the slice afterwards. CheckRegistry costs O(entities).
func CheckRegistry(entities []uint64, alive, free int) (*Registry, error) {
	r, err := sound.CheckRegistry(entities, alive, free)
	return (*Registry)(r), err
}

// Sparse returns an empty sparse array for a storage with the given entities, in dense order. Put
// adds its pages. The caller must not change the slice afterwards.
func (r *Registry) Sparse(entities []uint64) *Sparse {
	return (*Sparse)((*sound.Registry)(r).Sparse(entities))
}

// A Sparse is the sparse array of a storage. [Registry.Sparse] creates it. Put compares each page
// with the entities, so Load need not check the pages.
type Sparse sound.Sparse

// SparseRows is the number of entity indices on a page of a [Sparse].
const SparseRows = sound.PageRows

// NoRow is the entry of an entity index that has no row.
const NoRow = sound.NoRow

// Put adds a copy of a page, or replaces the page. Entry i is the row of the entity with index
// page·SparseRows+i, or [NoRow]. Put returns the number of entries with a row. It adds nothing and
// returns false if an entry names a row of an entity with another index. Goroutines may add
// different pages at the same time.
func (s *Sparse) Put(page int, rows *[SparseRows]uint32) (entries int, ok bool) {
	return (*sound.Sparse)(s).Put(page, rows)
}

// A StorageState is a storage or resource of a [State].
type StorageState struct {
	Name string
	// The result of [Storage.Version].
	Version uint32
	Layout  *layout.Type
	// The state is that of a resource, which has one row and no entity.
	Resource bool
	// The component is NoRewind. Load needs this only for components that the program has not
	// registered.
	NoRewind bool
	// The row of an entity is its index. The entity of a gap is Vacant.
	Indexed bool
	// The bytes of the row that gaps have. Nil means the zero value.
	Default  []byte
	Entities []uint64 // The entities in dense order.
	// The sparse array, or nil. Load builds missing pages.
	Checked *Sparse
	// The canonical bytes of the rows, in the format of [Storage.AppendRows].
	Rows []byte

	// Pages has PageRows rows per page, or fewer in the last page. If Pages is nil, Rows has all
	// rows.
	Pages    [][]byte
	PageRows int
}

// A Conversion describes how a stored component or resource becomes a registered component or
// resource. A component or resource that is only stored or only registered has a Conversion too.
type Conversion struct {
	// The stored name, or "" if the component is not stored.
	Stored string
	// The registered name. It is "" for a component that is not registered, which stays unchanged.
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
