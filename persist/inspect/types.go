package inspect

import (
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// An Image is a state without Go types: the registry of entities, and every component
// and resource as rows of bytes with a layout that says how to read them. Find, IsAlive
// and Digest ask it; World makes a world of it.
type Image = image.Image

// A Component is one component or resource in an [Image]: its Entities, and by Row and
// Value what they hold.
type Component = image.Component

// A SnapshotInfo describes a snapshot file: its Name, Number, Tick, Digest, Size and
// Label, and in Err why it cannot be read.
type SnapshotInfo = catalog.SnapshotInfo

// A Mark is a name that the program gave a tick: Name, and the tick's Seq, Tick, Time
// and whether it is OnHead.
type Mark = catalog.Mark

// An Input is what a program was told in a tick, in its own words: a command, the
// buttons of a player, a message. It has a Name and Data, which mean nothing to the
// store.
type Input = format.Input

// An Op is one operation of a tick, as it was called: Kind, the number of the Component
// in the image, -1 for the whole world or none, and Entity.
type Op = format.Op
