package raw

import "iter"

// A Recorder receives every tick when the tick is committed. A [Deferrer] may receive it later. The
// journal is a recorder.
type Recorder interface {
	// Record encodes the changes of the tick. c is valid until Record returns. seq is the
	// recorder's number for the state at the end of the tick. The next tick on this branch has seq
	// as its Parent.
	Record(c *Change) (seq uint64)
}

// A Follower is a [Recorder] that the world also calls when its tick changes without a Commit, such
// as by a restore or load.
type Follower interface {
	Recorder

	// The world calls Restored just before the functions of ecs.World.OnRestore.
	Restored(tick uint64)
}

// A Deferrer is a [Recorder] that may receive several ticks as one [Change].
type Deferrer interface {
	Recorder

	// Defers reports whether Defer may return true. If so, the world saves old values of rows, as
	// with a history of one tick. The result may change from false to true after a tick, but never
	// back.
	Defers() bool

	// Defer returns true to receive the ending tick together with the next one. recorded is the
	// newest tick that the recorder received on this branch. The world calls Defer only if it has
	// no other recorder. If Defer returns true, the world does not call Record for the tick.
	Defer(tick, recorded uint64) bool
}

// A Change describes the changes of a tick, relative to the end of its parent tick. If a [Deferrer]
// deferred ticks, a Change has the changes of these ticks, too. Reading a Change costs O(rows
// written), for a world of any size.
type Change struct {
	// The world that changed. The recorder must not change it.
	World World
	Tick  uint64 // The number of the tick that ends.
	// The recorder's number for the end of the parent tick.
	Parent uint64
	// The number of the parent tick. It is less than Tick-1 after deferred ticks, and equal to Tick
	// if the tick was recorded before.
	ParentTick uint64
	// Late is set if the change is recorded after the end of its tick: see [World.RecordDeferred]
	// and [World.RecordLast].
	Late     bool
	Entities EntityChange
	// The storages and resources that changed, in the order of registration.
	Storages []Storage
	// The operations in call order, without operations that were undone.
	Ops []Op

	// Of returns the changes of a storage in Storages. The ranges are valid until the next call.
	// For a storage that does not rewind, Of returns all rows or none. It returns all rows if any
	// row changed since the last call for the storage, on any branch.
	Of func(s Storage) StorageChange

	// Before calls f for each row of s that existed before the tick and that Of reports. s must be
	// in Storages. Rows come in ascending order, each with its canonical encoding before and after
	// the tick. Both are valid until f returns. Before has the old rows only of storages that
	// rewind and whose rows have a fixed size above [LargeRow]. For other storages it does not call
	// f.
	Before func(s Storage, f func(row int, then, now []byte))
}

// LargeRow is the row size in bytes above which [Change.Before] reports old rows. For such rows, a
// recorder can store only the changed bytes.
const LargeRow = 256

// OpKind is the kind of an operation.
type OpKind uint8

// The operations that change structure. Rows whose values were set are in [StorageChange].
const (
	OpCreate  OpKind = iota // Entity was created.
	OpDestroy               // Entity was destroyed, with all its components.
	OpAdd                   // The component Storage was added to Entity.
	OpRemove                // The component Storage was removed from Entity.
	// Storage was cleared, or the whole world if Storage is nil.
	OpClear
)

// An Op is an operation of a tick, as the program called it.
type Op struct {
	Kind    OpKind
	Entity  uint64
	Storage Storage
}

// A Range is a range of rows: First, First+1, …, First+N-1.
type Range struct{ First, N int }

// An EntityChange describes the changes in the registry of entities. Rows [0, Alive) are alive,
// [Alive, Free) are free, and [Free, Total) are retired.
type EntityChange struct {
	Changed            bool // Whether anything changed.
	Alive, Free, Total int  // At the end of the tick.
	Before             int  // Total at the start of the tick.
	Rows               []Range
}

// A StorageChange describes the changes in a storage or resource. Its rows [0, Len) are equal to
// the rows at the end of the parent tick, except for the rows listed here.
type StorageChange struct {
	Storage Storage
	Before  int // Number of rows at the start of the tick.
	// Rows whose entity may differ, in ascending order.
	Entities []Range
	// Rows whose value may differ, in ascending order.
	Values []Range
}

// A Patch is a recorded tick: the contents of a [Change], and the rows that it lists.
type Patch struct {
	Tick uint64 // The number of the tick.
	Seq  uint64 // The recorder's number of the state at the end of the tick.
	// Changes in the registry. Before is not used.
	Entities EntityChange
	// The entities in the rows of Entities.Rows, 8 bytes each, little-endian.
	Registry []byte
	Storages []StoragePatch
}

// Ticks returns patches as a sequence for [World.Apply].
func Ticks(patches ...*Patch) iter.Seq2[*Patch, error] {
	return func(yield func(*Patch, error) bool) {
		for _, p := range patches {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// A StoragePatch describes the changes of a recorded tick in a storage or resource.
type StoragePatch struct {
	StorageChange
	After int // Number of rows at the end of the tick.
	// The entities in the rows of StorageChange.Entities, in the form of Patch.Registry.
	Members []byte
	// The values in the rows of StorageChange.Values, in the format of package layout.
	Rows []byte
}
