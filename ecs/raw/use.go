package raw

// A Use says how code uses a storage, a resource or the registry of entities. Package schedule
// compares the uses of systems to decide which of them may run at the same time.
type Use struct {
	// The storage or resource. Nil means the registry, whose members are the alive entities.
	Storage Storage
	// How the code uses the values of components, or the resource.
	Values Mode
	// How the code uses the set of entities that have the component, and the order of rows.
	Members Mode

	// Writes call hooks, which may do anything.
	Hooked bool

	// The code uses an index of the storage.
	Indexed bool

	// Buffers that only one goroutine may use at a time, or nil.
	Buffers any
}

// A Mode is a kind of access. Modes are ordered: a write includes a read.
type Mode uint8

// The modes.
const (
	Unused Mode = iota
	Reads
	Writes
)

// A User uses parts of a world. Queries, storages, resources, events, indexes, relations and
// bundles are Users.
type User interface {
	// Uses returns the parts and how they are used. The caller owns the slice.
	Uses() []Use
}

// Name returns the name of the storage, or "" for the registry.
func (u *Use) Name() string {
	if u.Storage == nil {
		return ""
	}
	return u.Storage.Name()
}
