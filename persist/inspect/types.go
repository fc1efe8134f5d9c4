package inspect

import (
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// This file converts the internal types of persist to the types of this package. Packages in
// directory persist use View.Catalog to get the internal types.

// A SnapshotInfo describes a snapshot file.
type SnapshotInfo struct {
	Name   string // File name, relative to the store's directory.
	Number uint32 // The number in "snap:3", see [View.Resolve].
	Tick   uint64
	ID     journal.ID // ID of the record that leads to the state. Its Seq is 0 for the first state.
	Digest ecs.Digest // Digest of the state, as recorded in the file.
	Size   int64      // Size of the file in bytes.
	Files  []uint32   // Numbers of the other snapshot files that this file refers to.
	Time   time.Time  // Commit time of the tick by the clock of the writer; zero if unknown.
	Label  string     // Name of the slot, or "": see [persist.Store.SaveSlot].
	Note   string     // Note of the slot, or "".
	Err    error      // Why the file cannot be read, or nil. With an error, other fields may be 0.

	Compressed bool   // Pages may be compressed.
	Build      string // Program and machine that wrote the file, see [View.Builds]; "" if unknown.
}

// snapshotsOf converts a list of snapshots.
func snapshotsOf(list []catalog.SnapshotInfo) []SnapshotInfo {
	infos := make([]SnapshotInfo, len(list))
	for i := range list {
		s := &list[i]
		infos[i] = SnapshotInfo{
			Name: s.Name, Number: s.Number, Tick: s.Tick, ID: s.ID, Digest: s.Digest, Size: s.Size, Time: s.Time, Label: s.Label, Note: s.Note, Err: s.Err,
			Compressed: s.Compressed, Build: s.Build,
		}
		for _, f := range s.Refs {
			infos[i].Files = append(infos[i].Files, f.Number)
		}
	}
	return infos
}

// A Mark is a name that the program gave a tick, see [persist.Store.Mark].
type Mark struct {
	Name string
	Seq  uint64 // Record of the tick.
	Tick uint64
	Time time.Time // Commit time of the tick by the clock of the writer.
	// True if the tick is the head or one of its ancestors, false on rewound branches.
	OnHead bool
}

// marksOf converts a list of marks.
func marksOf(list []catalog.Mark) (marks []Mark) {
	for _, m := range list {
		marks = append(marks, Mark(m))
	}
	return marks
}

// An Input is an input of the program in one tick: a command, the buttons of a player, a message,
// see [persist.Store.Input]. The store does not interpret it.
type Input struct {
	Name string
	Data []byte
}

// An Op is one operation of a tick, in the form in which the program called it. Setting a value is
// not an operation: see [Commit.Rows].
type Op struct {
	Kind raw.OpKind // Create, destroy, add, remove or clear.
	// Component is the number of the component, see [Commit.Component]. It is -1 for an operation
	// on an entity or on the whole world.
	Component int
	Entity    ecs.Entity // [ecs.None] if Kind is [raw.OpClear].
}

// opsOf decodes the operations of a tick.
func opsOf(encoded []byte) (ops []Op, err error) {
	if err := format.EachOp(encoded, func(op format.Op) { ops = append(ops, Op(op)) }); err != nil {
		return nil, err
	}
	return ops, nil
}
