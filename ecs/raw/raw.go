// Package raw gives access to a world without its Go types. Rows are bytes and entities are
// numbers. A program can read the changes of each tick, and load a whole state. Package persist is
// built on it. [ecs.World.Raw] returns the interface.
//
//	follow a world           World.Attach, Recorder, Follower, Change
//	read the current state   World.Storages, Storage, World.Registry
//	read a past tick         World.Pin, Pin
//	load a state             World.Load, World.Conversions, State
//	apply recorded ticks     World.Apply, Patch
//
// An entity is the same number as in package ecs: its index in the low half and its generation in
// the high half. [As] converts slices between the two types.
//
// [ecs.World.Raw]: https://pkg.go.dev/github.com/stet-ecs/stet/ecs#World.Raw
package raw

import (
	"errors"
	"iter"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/layout"
)

// Vacant is the entity of a gap, which is a row of an Indexed storage without an entity.
const Vacant = ^uint64(0)

// As converts a slice of entities to another entity type, such as from ecs.Entity to uint64. It
// does not copy the slice.
func As[To, From ~uint64](entities []From) []To {
	return unsafe.Slice((*To)(unsafe.Pointer(unsafe.SliceData(entities))), len(entities))
}

var (
	// ErrState reports a [State] that is inconsistent or does not fit the registered types.
	ErrState = errors.New("ecs: bad state")

	// ErrDropped reports stored values that the types of the program would drop. It also reports a
	// component that was probably renamed. The text tells how to correct the program; see
	// ecs.Component.
	ErrDropped = errors.New("ecs: stored values would be lost")

	// ErrNewer reports a component that a newer program has stored, with a later version of its
	// type.
	ErrNewer = errors.New("ecs: stored by a newer program")

	// ErrAttached reports a Load or Apply that an attached recorder would miss. Detach the recorder
	// first. A store loads with Store.Load.
	ErrAttached = errors.New("ecs: a recorder is attached to the world; load it by Store.Load, or close the store first")

	// ErrCheckpointHeld reports an operation that is not possible while checkpoints are held.
	ErrCheckpointHeld = errors.New("ecs: a checkpoint is held; call World.Release of it before")

	// ErrDirty reports an operation that is only possible right after a commit, outside of systems.
	ErrDirty = errors.New("ecs: changed since the last commit, or in a system")
)

// A World is an ecs.World without its types. It is not safe for concurrent use. Results are memory
// of the world: they are valid until the next change and must not be written, unless a method says
// otherwise.
type World interface {
	// Tick returns the number of the newest committed tick.
	Tick() uint64

	// Registry returns the registry of entities in its stored order. Rows [0, alive) are alive,
	// [alive, free) are free, and [free, total) are retired.
	Registry() (entities []uint64, alive, free int)

	// Storages returns the storages in the order of registration, followed by the resources. The
	// caller owns the slice.
	Storages() []Storage

	// Dirty reports whether a system is running, or anything was written since the last commit or
	// Attach. It is valid only for a world with a recorder or a history.
	Dirty() bool

	// Written returns the names of the storages and resources that were written since the last
	// commit or Attach, in the order of Storages. The first name is "entities" if an entity was
	// created or destroyed. A system under way alone counts for Dirty, not for Written. It is valid
	// only for a world with a recorder or a history.
	Written() []string

	// Attach adds the recorder r to the world. The parameter seq is r's number for the current
	// state. If r is already attached, Attach changes its number. r has no numbers for older ticks.
	//
	// The world calls recorders in the order in which they were attached. They must be comparable.
	//
	// Before Attach adds a new recorder, the attached recorder records its deferred ticks. If
	// another recorder must still record uncommitted changes, the error wraps [ErrDirty]. While the
	// program holds a checkpoint, the error wraps [ErrCheckpointHeld].
	Attach(r Recorder, seq uint64) error

	// Detach removes the recorder r. If r was the only recorder, the history is cleared. Detach
	// returns [ErrCheckpointHeld] while the program holds a checkpoint.
	Detach(r Recorder) error

	// Deferred reports whether the newest tick will be recorded together with the next tick.
	Deferred() bool

	// RecordDeferred makes the recorder record the deferred ticks now. After a rewind it does
	// nothing: the record of a later tick already includes the deferred ticks. The world itself
	// calls RecordDeferred before it goes back to an older tick. The error wraps [ErrDirty] if
	// anything was written since the last commit.
	RecordDeferred() error

	// RecordLast makes sure that everything up to the end of the current tick is recorded. If ticks
	// are deferred, the recorder records them. Otherwise all recorders record the current tick a
	// second time. This second record has only the writes to storages that do not rewind. Its
	// number becomes the number of the tick.
	//
	// Like a commit, RecordLast drops the ticks after the current tick. It costs O(storages). The
	// error wraps [ErrDirty] if anything was written since the last commit.
	RecordLast() error

	// Seq returns the first recorder's number for the current tick. If the current tick is
	// deferred, it returns the number for the newest recorded tick before it. Without recorders, it
	// returns the number that was loaded with the state.
	Seq() uint64

	// Held returns two numbers that r assigned. oldest belongs to the oldest retained tick, so the
	// Parent of a later record cannot be older. newest belongs to the current tick.
	Held(r Recorder) (oldest, newest uint64)

	// Pin pins the current state, which must be the end of a tick. It costs O(storages). An error
	// wraps [ErrDirty] if anything was written since the last commit, or if the world has neither
	// history nor recorder.
	Pin() (Pin, error)

	// Load replaces the contents of the world by the given state. With State.KeepNoRewind, it keeps
	// NoRewind storages. An error leaves the world unchanged. Load does this:
	//
	//   - It empties storages that the state does not contain. Resources that the state does not
	//     contain keep their values.
	//   - It also loads components that are not registered. They are saved again unchanged.
	//   - It clears the history. At the end, it calls the functions of ecs.World.OnRestore.
	//
	// Load converts a component whose layout, name, version or kind differs from the registered
	// component: see [layout.NewConversion], ecs.Component and ecs.Migrate. Converted lists the
	// conversions.
	//
	// A conversion that would lose values fails with [ErrDropped], even if the storage has no rows.
	// The program can permit the loss by ecs.Component.Dropped, and the caller by State.Lossy. A
	// stored component that is registered with NoPersist is an error.
	//
	// An error wraps [ErrState] and names the component, or wraps [layout.ErrIntSize] and also
	// names the field. Load does not use the memory of the state after it returns, unless
	// State.Owned is set. Load uses as many goroutines as the program has processors.
	Load(state *State) error

	// Apply applies recorded ticks, the first of which must continue the current state. It requests
	// a tick after it has applied the previous one and added it to the history. It does not call
	// recorders or hooks of components. After the last tick, it calls the functions of
	// ecs.World.OnRestore.
	//
	// A tick costs O(rows that it wrote), plus O(rows) for each group of storages that it wrote to.
	//
	// After an error, the world has the state of the last applied tick. An error of the sequence is
	// returned unchanged. Other errors wrap:
	//
	//   - [ErrState] if a patch does not continue the state
	//   - [layout.ErrIntSize] as in Load
	//   - [ErrDirty] if anything was written since the last commit
	//   - [ErrCheckpointHeld] while the program holds a checkpoint
	//
	// Apply does not use a patch after it requests the next one. It does not check that entities in
	// components are alive.
	Apply(ticks iter.Seq2[*Patch, error]) error

	// Converted returns the conversions of the last Load. It also lists stored components that are
	// not registered, and registered components that were not stored.
	Converted() []Conversion

	// Conversions returns the result that Converted would have after a Load of a state with the
	// given storages. It needs no rows.
	//
	// The error is that of Load. It lists at most 20 fields that cannot be converted or would be
	// lost, and the number of the rest. It wraps:
	//
	//   - [ErrDropped] if values would only be lost. The conversions are then returned too.
	//   - [ErrNewer] if a later version of a component was stored. It names only that component.
	Conversions(storages []StorageState) ([]Conversion, error)
}

// A Storage is a storage or a resource of a [World]. Storages can be compared with ==.
type Storage interface {
	// Name returns the name of the storage in journals and snapshots.
	Name() string

	// StoredAs returns the name under which stored data contains the storage: its current name or a
	// former name. The parameter has reports whether the data contains a given name. ok is false if
	// the data contains none of the names.
	StoredAs(has func(name string) bool) (name string, ok bool)

	// Layout describes a row. It is nil if rows cannot be encoded.
	Layout() *layout.Type

	// Version returns the version given by ecs.Component.Version. It is saved with the component.
	Version() uint32

	// Persistent reports whether the storage is written to journals, snapshots and saves.
	Persistent() bool

	// Rewinds reports whether the storage is restored with the world. It is false for NoRewind.
	Rewinds() bool

	// Unknown reports whether the storage was loaded, but the program has not registered it. Its
	// rows stay unchanged and are saved again.
	Unknown() bool

	// IsResource reports whether the storage is a resource: one row, no entity.
	IsResource() bool

	// IsIndexed reports whether the row of an entity is the entity's index. Rows without an entity
	// are gaps. A gap has [Vacant] as its entity.
	IsIndexed() bool

	// Rows returns the number of rows, including gaps.
	Rows() int

	// Entities returns the entities of the rows. It is nil for a resource.
	Entities() []uint64

	// AppendRows appends the canonical encoding of rows [lo, hi) to dst, in the format of package
	// layout.
	AppendRows(dst []byte, lo, hi int) []byte

	// AppendRanges appends the canonical encoding of ranges of rows to dst.
	AppendRanges(dst []byte, ranges []Range) []byte

	// AppendDefault appends the canonical encoding of the row that gaps have. It appends nothing
	// for the zero value.
	AppendDefault(dst []byte) []byte
}

// A Pin reads the state of a world at the end of a tick, while the world runs later ticks.
// Snapshots use a Pin to copy some rows in each tick. A nil Storage as an argument stands for the
// registry. A Pin cannot read NoRewind storages.
//
// While a pin exists, every tick saves the old values of the rows that it writes. At the end of the
// tick, the pin copies the saved values that it needs, in O(rows written). A read costs O(rows
// read). The pin does not affect the history and its limits.
type Pin interface {
	// Valid reports whether the pinned state can still be read. It is false after the pin was
	// released, and after the world was loaded, restored to an older state, or attached to another
	// recorder.
	Valid() bool

	// Release releases the pin and its memory.
	Release()

	// Registry returns the lengths of the registry at the pinned tick. Rows [0, alive) were alive,
	// [alive, free) were free, and [free, total) were retired.
	Registry() (alive, free, total int)

	// Len returns the number of rows of s at the pinned tick, including gaps. It is 0 if s was
	// registered after the pin was created.
	Len(s Storage) int

	// Stage selects rows [lo, hi) of s for AppendEntities and AppendRows; hi is at most Len. The
	// selection is valid until the next Stage or change of the world. Stage costs O(rows written in
	// the tick). It costs O(1) if nothing was written since the last tick. The cost is also O(1)
	// for a [Recorder] while it records a tick.
	Stage(s Storage, lo, hi int)

	// AppendEntities appends the entities of staged rows [lo, hi) to dst, 8 bytes each,
	// little-endian. It appends nothing for a resource.
	AppendEntities(dst []byte, lo, hi int) []byte

	// AppendRows appends the canonical encoding of staged rows [lo, hi) to dst.
	AppendRows(dst []byte, lo, hi int) []byte

	// Done declares that rows [lo, hi) of s will not be staged again. The pin then copies no more
	// groups of 64 rows within that range. When all rows of s are done, writes of s save nothing
	// for the pin.
	Done(s Storage, lo, hi int)
}
