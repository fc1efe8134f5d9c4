package raw

import "iter"

// A Recorder is told every tick at its commit: the journal's side of a world.
type Recorder interface {
	// Record encodes what the tick changed; c is valid until it returns. seq is the
	// number of the state at the end of the tick: the next tick on this branch has it
	// as its Parent.
	Record(c *Change) (seq uint64)
}

// A Follower is a [Recorder] that is told as well which tick the world is at after everything
// but Commit that leads to one.
type Follower interface {
	Recorder

	// Restored is called where the functions of ecs.World.OnRestore are, before them.
	Restored(tick uint64)
}

// A Change is what a tick changed, compared with the end of the tick that it
// continues. It costs O(rows written) to read, whatever the world holds.
type Change struct {
	World    World  // The world that changed. It must not be changed.
	Tick     uint64 // The number of the tick that ends.
	Parent   uint64 // What the recorder called the tick that it continues.
	Entities EntityChange
	Storages []Storage // The storages and resources that changed, in the order of registration.
	Ops      []Op      // The operations in the order of the calls, without those that were undone.

	// Of returns what changed in one of Storages. The ranges are valid until its next
	// call. A storage that does not rewind is given whole if it changed since it was
	// given last, on whatever branch.
	Of func(s Storage) StorageChange

	// Before calls f for each row of s, one of Storages, that was there before the tick and that
	// Of names: ascending, with its canonical encoding then and now, which are valid until f returns.
	// It knows what rows were that rewind and whose size is fixed and more than [LargeRow]; of
	// other storages it tells none.
	Before func(s Storage, f func(row int, then, now []byte))
}

// LargeRow is how many bytes a row has at most of which [Change.Before] does not tell: what
// changed of a larger one takes less than all of it.
const LargeRow = 256

// OpKind says what an operation did.
type OpKind uint8

// The operations that change structure. Values that were set are the rows that
// [StorageChange] names.
const (
	OpCreate  OpKind = iota // Entity was created.
	OpDestroy               // Entity was destroyed, with all its components.
	OpAdd                   // Entity got the component Storage.
	OpRemove                // Entity lost the component Storage.
	OpClear                 // Storage was cleared; the whole world if it is nil.
)

// An Op is one operation of a tick, as it was called.
type Op struct {
	Kind    OpKind
	Entity  uint64
	Storage Storage
}

// A Range is a range of rows: First, First+1, …, First+N-1.
type Range struct{ First, N int }

// An EntityChange is what changed in the registry of entities: rows [0, Alive)
// are alive, [Alive, Free) free, [Free, Total) retired.
type EntityChange struct {
	Changed            bool // Anything at all.
	Alive, Free, Total int  // At the end of the tick.
	Before             int  // Total at its beginning.
	Rows               []Range
}

// A StorageChange is what changed in a storage or resource: its rows [0, Len)
// are those of the parent, but for the rows named here.
type StorageChange struct {
	Storage  Storage
	Before   int     // Rows at the beginning of the tick.
	Entities []Range // Rows whose entity may differ, ascending.
	Values   []Range // Rows whose value may differ, ascending.
}

// A Patch is a recorded tick: what a [Change] told, with the rows that it named.
type Patch struct {
	Tick     uint64       // The number of the tick.
	Seq      uint64       // What its recorder called the state at its end.
	Entities EntityChange // What changed in the registry; Before is not asked for.
	Registry []byte       // The rows that Entities.Rows names, of 8 bytes each, little-endian.
	Storages []StoragePatch
}

// Ticks are patches for [World.Apply].
func Ticks(patches ...*Patch) iter.Seq2[*Patch, error] {
	return func(yield func(*Patch, error) bool) {
		for _, p := range patches {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// A StoragePatch is what a recorded tick changed in a storage or resource.
type StoragePatch struct {
	StorageChange
	After   int    // Rows at the end of the tick.
	Members []byte // The rows that StorageChange.Entities names, as Patch.Registry has them.
	Rows    []byte // Those that Values names, in the format of package layout.
}
