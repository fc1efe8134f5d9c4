package inspect

import (
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// An Image is a state without Go types. It has the registry of entities, and the encoded rows of
// every component and resource with their layouts. Find, IsAlive and Digest query the image.
// World converts it to a world.
type Image = image.Image

// A Component is one component or resource in an [Image]. Entities lists its entities, and Row
// and Value return its rows.
type Component = image.Component

// A SnapshotInfo describes a snapshot file: its Name, Number, Tick, Digest, Size and Label. Err
// says why the file cannot be read.
type SnapshotInfo = catalog.SnapshotInfo

// A Mark is a name that the program gave a tick. It consists of the Name, the Seq, Tick and Time
// of the tick, and OnHead.
type Mark = catalog.Mark

// An Input is an input of the program in one tick: a command, the buttons of a player, a message.
// It has a Name and Data. The store does not interpret them.
type Input = format.Input

// An Op is one operation of a tick, in the form in which the program called it. It has a Kind, an
// Entity and the number of the Component in the image. The number is -1 for an operation on the
// whole world or without a component.
type Op = format.Op
