package raw

import (
	"fmt"
	"iter"
)

// A Recorder receives every committed tick. The journal is a Recorder.
type Recorder interface {
	// Record encodes the changes of the tick, and returns a number that the recorder assigns to the
	// state at the end of the tick. The record that continues from this state has the number as its
	// Parent. c is valid until Record returns.
	Record(c *Change) (seq uint64)
}

// A Follower is a [Recorder] that is also notified when a restore or load changes the tick of the
// world.
type Follower interface {
	Recorder

	// Restored runs just before the functions of ecs.World.OnRestore.
	Restored(tick uint64)
}

// A Deferrer is a [Recorder] that may receive several ticks as one [Change].
type Deferrer interface {
	Recorder

	// Defers reports whether Defer may return true. While it may, the world saves old values of
	// rows, as if its history had one tick. The result may change from false to true after a tick,
	// but not back.
	Defers() bool

	// Defer returns true if the recorder wants the ending tick later, together with the next tick.
	// The parameter recorded is the number of the newest recorded tick before the ending tick. The
	// world calls Defer only if it has no other recorder.
	Defer(tick, recorded uint64) bool
}

// A Change describes what changed from the end of the parent tick to the end of a later tick. The
// parent is usually the tick directly before. If a [Deferrer] has deferred ticks, the parent is the
// last tick before these. Reading a Change costs O(rows written).
type Change struct {
	// The world that changed. The recorder must not change it.
	World World
	Tick  uint64 // The number of the tick that ends.
	// The recorder's number for the end of the parent tick.
	Parent uint64
	// The number of the parent tick. It is less than Tick-1 after deferred ticks. It equals Tick if
	// the tick is recorded again.
	ParentTick uint64
	// Late is set if the tick is recorded after its end: see [World.RecordDeferred] and
	// [World.RecordLast].
	Late     bool
	Entities EntityChange
	// The storages and resources that changed, in the order of registration.
	Storages []Storage
	// The operations in call order, without operations that were undone.
	Ops []Op

	// Of returns the changes of one of the Storages. The ranges are valid until the next call. A
	// storage that does not rewind is among the Storages if it was written since the last call of
	// Of for it. Of then returns all of its rows.
	Of func(s Storage) StorageChange

	// Before calls f for each row of s that existed before the tick and has changed, in ascending
	// order. It passes the canonical encodings of the row before and after the tick. They are valid
	// until f returns. Before calls f only for a storage that rewinds and is persistent. The rows
	// of the storage must have a fixed size above [LargeRow].
	Before func(s Storage, f func(row int, then, now []byte))
}

// LargeRow is the row size in bytes above which [Change.Before] reports old rows. A recorder can
// then store only the changed bytes.
const LargeRow = 256

// OpKind is the kind of an operation.
type OpKind uint8

// The kinds of operations. A write of a value is not an operation: [StorageChange] has the rows
// that were written.
const (
	OpCreate  OpKind = iota // Entity was created.
	OpDestroy               // Entity was destroyed, with all its components.
	OpAdd                   // The component Storage was added to Entity.
	OpRemove                // The component Storage was removed from Entity.
	// Storage was cleared, or the whole world if Storage is nil.
	OpClear
)

// String returns the name of an operation in lower case.
func (k OpKind) String() string {
	if k > OpClear {
		return fmt.Sprintf("operation %d", uint8(k))
	}
	return [...]string{"create", "destroy", "add", "remove", "clear"}[k]
}

// An Op is an operation that the program called in a tick.
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
	Changed            bool // Reports whether anything changed.
	Alive, Free, Total int  // Lengths at the end of the tick.
	Before             int  // Total at the start of the tick.
	Rows               []Range
}

// A StorageChange lists the rows of a storage or resource that may differ from the end of the
// parent tick.
type StorageChange struct {
	Storage Storage
	Before  int // Number of rows at the start of the tick.
	// Rows whose entity may differ, in ascending order.
	Entities []Range
	// Rows whose value may differ, in ascending order.
	Values []Range
}

// A Patch is a recorded tick, with the contents of all changed rows.
type Patch struct {
	Tick uint64 // The number of the tick.
	Seq  uint64 // The recorder's number of the state at the end of the tick.
	// The changes in the registry, without the field Before.
	Entities EntityChange
	// The entities of the rows in Entities.Rows, 8 bytes each, little-endian.
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
	// The entities of the rows in StorageChange.Entities, encoded like Patch.Registry.
	Members []byte
	// The values of the rows in StorageChange.Values, in the format of package layout.
	Rows []byte
}
