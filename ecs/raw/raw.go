// Package raw is the other face of a world: rows as bytes, entities as numbers,
// what a tick wrote and how to put a whole state in place. It is for code that
// keeps worlds without knowing their Go types, as package persist does;
// [ecs.World.Raw] is the door.
//
//	follow a world        World.Attach, Recorder, Follower, Change
//	read what it holds    World.Storages, Storage, World.Registry
//	read a past tick      World.Pin, Pin
//	put a state in place  World.Load, World.Conversions, State
//	apply recorded ticks  World.Apply, Patch
//
// An entity is the number that it is in package ecs, its index in the low half and
// its generation in the high half; [As] turns slices of one into the other.
//
// [ecs.World.Raw]: https://pkg.go.dev/github.com/stet-ecs/stet/ecs#World.Raw
package raw

import (
	"errors"
	"iter"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/layout"
)

// Vacant stands among the entities of an Indexed storage for a row without one.
const Vacant = ^uint64(0)

// As returns entities as another type of the same form: those of package ecs as
// numbers, or the other way round. Nothing is copied.
func As[To, From ~uint64](entities []From) []To {
	return unsafe.Slice((*To)(unsafe.Pointer(unsafe.SliceData(entities))), len(entities))
}

var (
	// ErrState reports a [State] that no world can be in, or that does not fit the
	// types the program registered.
	ErrState = errors.New("ecs: bad state")

	// ErrDropped reports stored values that the types of the program have no place
	// for, or a component that probably was renamed, where the program does not say so.
	// The text has what to write; see ecs.Component.
	ErrDropped = errors.New("ecs: stored values would be lost")

	// ErrNewer reports a component that a program with a later version of it
	// stored.
	ErrNewer = errors.New("ecs: stored by a newer program")

	// ErrAttached reports a Load or Apply with a recorder that would not be told: detach it
	// before. A store loads with Store.Load.
	ErrAttached = errors.New("ecs: a recorder is attached")

	// ErrCheckpointHeld reports an operation that is not possible while checkpoints
	// are held.
	ErrCheckpointHeld = errors.New("ecs: a checkpoint is held; release it before")

	// ErrDirty reports an operation that needs a world without changes since its
	// last commit.
	ErrDirty = errors.New("ecs: changed since the last commit")
)

// A World is an ecs.World without its types. Like that it is not safe for
// concurrent use, and what it returns is the world's own memory where nothing
// else is said: valid until the next change, and not to be written.
type World interface {
	// Tick returns the number of the newest committed tick.
	Tick() uint64

	// Registry returns the registry of entities as it lies: rows [0, alive) are
	// alive, [alive, free) free, [free, total) retired.
	Registry() (entities []uint64, alive, free int)

	// Storages returns the storages in the order of registration, and behind them
	// the resources. The slice is the caller's.
	Storages() []Storage

	// Dirty reports whether anything was written since the last commit, or since
	// Attach. It is for worlds with a recorder or a history; others do not know.
	Dirty() bool

	// Attach makes r a recorder of the world, beside those that it has, or renumbers: seq is
	// what r calls the present state. The history starts anew: older ticks are unknown to r.
	// Recorders, which can be compared, are told in the order in which they came. An error wraps
	// [ErrDirty] if another one is to be told first of what was written since the last commit;
	// [ErrCheckpointHeld].
	Attach(r Recorder, seq uint64) error

	// Detach ends what Attach began. If it was the only recorder, the history starts anew.
	// While checkpoints are held it returns [ErrCheckpointHeld].
	Detach(r Recorder) error

	// Seq returns the number of the present tick: what the first recorder gave it or, without
	// recorders, what came with it.
	Seq() uint64

	// Held returns the numbers that r gave the oldest tick boundary which a later tick may
	// name as its parent, and the present tick.
	Held(r Recorder) (oldest, newest uint64)

	// Pin pins the present state, which must be the end of a tick: an error wraps
	// [ErrDirty] if anything was written since, or if the world keeps no ticks, as
	// one with neither history nor recorder. It costs O(storages).
	Pin() (Pin, error)

	// Load replaces all that the world holds by state, as far as [State] does not say
	// otherwise. Storages that state does not
	// name are emptied, resources keep their values. Components that the program did
	// not register are kept as they are, and saved again. The history starts anew. When
	// all is in place it calls the functions of ecs.World.OnRestore.
	//
	// Components whose layout, name, version or kind is not what the program
	// registered are converted, see [layout.NewConversion],
	// ecs.Component and ecs.Migrate; Converted tells which. A conversion that would
	// lose values is refused with [ErrDropped], unless the program says that it may
	// (ecs.Component.Dropped) or the state is Lossy. Whether it would is seen by the
	// types alone, also of storages without rows: a program does not load one state and
	// refuse the next.
	//
	// An error wraps [ErrState] and names the component, or [layout.ErrIntSize] and names the field as well;
	// the world is then as it was. state is not used after Load has returned, unless it is Owned. Load works
	// with as many goroutines as the program has processors.
	Load(state *State) error

	// Apply makes the world what it was at the end of recorded ticks, of which the first
	// continues its present state. Each is asked for when the one before is in place, and is the
	// end of a tick then, which the history holds; no recorder is told. A tick costs O(rows that
	// it wrote), and O(rows) of the groups of storages that it wrote to. Hooks of components
	// are not called, those of ecs.World.OnRestore are, once, if there was any tick.
	//
	// An error wraps [ErrState] if something is not such a tick; [layout.ErrIntSize]; [ErrDirty] if anything was written
	// since the last one, [ErrCheckpointHeld] while checkpoints are held; or it is that which comes
	// among the ticks. The world is then at the last tick before. A patch is not used any
	// longer when the next one is asked for. Whether entities of components are
	// alive is not looked at: what applies ticks knows where they come from.
	Apply(ticks iter.Seq2[*Patch, error]) error

	// Converted returns what the last Load converted, what it kept that is not
	// registered, and what is registered and was not stored: nothing if what was stored is
	// what the program registered, with the same layouts and names.
	Converted() []Conversion

	// Conversions returns what Converted would after a Load of a state with these
	// storages, in their order, of which it needs no rows. The error is what Load would
	// say of the first that cannot be converted, and names the field; it wraps [ErrNewer]
	// if a later version of the component was stored. An error that wraps [ErrDropped] names all that
	// would be lost, and conversions are returned with it.
	Conversions(storages []StorageState) ([]Conversion, error)
}

// A Storage is a storage or a resource of a [World]. Two are equal if they are the
// same.
type Storage interface {
	// Name returns the name under which it is saved.
	Name() string

	// StoredAs returns the name under which something that has the names for which
	// has returns true holds it: its own, or the first of its former ones.
	StoredAs(has func(name string) bool) (name string, ok bool)

	// Layout describes a row, or is nil if rows cannot be encoded.
	Layout() *layout.Type

	// Version returns the number given as ecs.Component.Version, under which it is saved.
	Version() uint32

	// Persistent reports whether it belongs into journals, snapshots and saves.
	Persistent() bool

	// Rewinds reports whether it is put back with the world: not NoRewind.
	Rewinds() bool

	// Unknown reports whether it was loaded without being registered. Its rows are
	// kept and saved as they are.
	Unknown() bool

	// IsResource reports whether it is a resource: one row, no entity.
	IsResource() bool

	// IsIndexed reports whether the row of an entity is its index. Rows without an
	// entity are gaps, [Vacant] among the entities.
	IsIndexed() bool

	// Rows returns the number of rows, gaps included.
	Rows() int

	// Entities returns the entities of the rows; nil for a resource.
	Entities() []uint64

	// AppendRows appends the canonical encoding of rows [lo, hi) to dst, in the
	// format of package layout.
	AppendRows(dst []byte, lo, hi int) []byte

	// AppendRanges appends the canonical encoding of ranges of rows to dst.
	AppendRanges(dst []byte, ranges []Range) []byte

	// AppendDefault appends the canonical encoding of what gaps hold to dst, if it
	// is not the zero value.
	AppendDefault(dst []byte) []byte
}

// A Pin reads a world as it was at the end of a tick, while the world goes on.
// Snapshots are copied through it, some rows in each tick. Where it is asked about a
// storage, nil stands for the registry.
//
// While a pin is held, every tick saves the old values of what it writes, as for a
// checkpoint, and when it ends the pin takes over those that it has not yet. That
// is O(rows written), and what is read costs no more than the rows and what was
// saved of them. The history and its bounds are as they would be without.
//
// It reads what rewinds. What is registered with NoRewind has no past.
type Pin interface {
	// Valid reports whether the state can still be read: the world was not put back
	// to before it, loaded, or attached to another recorder, and the pin was not
	// released.
	Valid() bool

	// Release gives the pin up, and what it took over.
	Release()

	// Registry returns the lengths of the registry: rows [0, alive) were alive,
	// [alive, free) free, [free, total) retired.
	Registry() (alive, free, total int)

	// Len returns how many rows s had, gaps included; 0 if it was registered since.
	Len(s Storage) int

	// Stage makes rows [lo, hi) of s, at most Len, those that AppendEntities and
	// AppendRows append, until the next Stage or change of the world.
	// In the middle of a tick it costs O(rows written in it), else nothing: between
	// two ticks, and for a [Recorder] while it records one.
	Stage(s Storage, lo, hi int)

	// AppendEntities appends the entities of staged rows [lo, hi) to dst, 8 bytes
	// each, little-endian; nothing for a resource.
	AppendEntities(dst []byte, lo, hi int) []byte

	// AppendRows appends the canonical encoding of staged rows [lo, hi) to dst.
	AppendRows(dst []byte, lo, hi int) []byte

	// Done says that rows [lo, hi) of s will not be staged any more, so that nothing
	// needs to be taken over of the groups of 4096 rows that lie in it. Once all rows of s
	// are done, none are saved for the pin when they are written.
	Done(s Storage, lo, hi int)
}
