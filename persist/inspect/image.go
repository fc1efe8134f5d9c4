package inspect

import (
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// An Image is a state of the world that can be read without Go types. It has the live entities, and
// the rows of every component and resource. Its slices share memory with the state and must not be
// changed. Several goroutines may read an Image.
type Image struct {
	Tick uint64
	Seq  uint64 // Record that leads to the state; 0 for the oldest state of the store.

	// The registry has Indices rows: [0, Living) are alive, [Living, Free) are free, and
	// [Free, Indices) are retired.
	Living, Free, Indices int

	Components []*Component // Components and resources, by number.

	state *image.Image
}

// A Component is a component or a resource in an [Image], with its rows. If the image is the
// outline of a state in a file, the rows cannot be read here: see [State.Outline].
type Component struct {
	Name     string
	Number   int          // Index in Image.Components, as in an [Op].
	Layout   *layout.Type // Type of the values.
	Resource bool         // The component has at most one row, which belongs to no entity.
	Rewinds  bool         // A rollback of the world restores the component.
	// The row of an entity is its index. Rows in between are gaps: their entity is [ecs.Vacant].
	Indexed bool

	rows *image.Component
}

// NewImage returns im as an Image. It is for package repair and other packages in directory
// persist. Other programs get images from a [View].
func NewImage(im *image.Image) *Image {
	shown := new(Image)
	shown.show(im)
	return shown
}

// Internal returns the state in the form that package repair and other packages in directory
// persist use, see [NewImage]. It shares memory with im.
func (im *Image) Internal() *image.Image { return im.state }

// show makes im an image of state. It reuses the components that im already has, so pointers to
// them stay valid.
func (im *Image) show(state *image.Image) {
	im.Tick, im.Seq, im.state = state.Tick, state.ID.Seq, state
	im.Living, im.Free, im.Indices = state.Alive, state.Free, len(state.Registry)
	for n, c := range state.Components {
		if n == len(im.Components) {
			im.Components = append(im.Components, &Component{
				Name: c.Name, Number: n, Layout: c.Layout, Resource: c.Resource, Rewinds: c.Rewinds, Indexed: c.Indexed,
			})
		}
		im.Components[n].rows = c
	}
}

// Entities returns the live entities, in the order of the world's registry.
func (im *Image) Entities() []ecs.Entity { return im.state.Registry[:im.state.Alive] }

// IsAlive reports whether e is alive.
func (im *Image) IsAlive(e ecs.Entity) bool { return im.state.IsAlive(e) }

// EntityAt returns the entity that has an index now or had it last, and whether it is alive. It
// returns 0 for an index that was never in use.
func (im *Image) EntityAt(index uint32) (e ecs.Entity, alive bool) {
	if int(index) >= len(im.state.Index) {
		return 0, false
	}
	row := int(im.state.Index[index])
	e = im.state.Registry[row]
	return e, row < im.state.Alive && e.Index() == index
}

// Find returns the component or resource with this name, or nil.
func (im *Image) Find(name string) *Component {
	for _, c := range im.Components {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Digest returns the digest of the state, which equals [ecs.World.Digest] of the recorded world. It
// reads all rows, in O(bytes).
func (im *Image) Digest() ecs.Digest { return im.state.Digest() }

// World returns a new world in the state of im. Its components have no Go types: their rows are
// bytes that can be saved, journaled and digested. The world shares no memory with im. To fill a
// world that has types, use [View.Fill].
func (im *Image) World(options ecs.Options) (*ecs.World, error) { return im.state.World(options) }

// Fields returns the fields of the values in declared order. It returns nil if the values are not
// structs.
func (c *Component) Fields() []layout.Field { return c.Layout.Fields }

// Len returns the number of rows, gaps included.
func (c *Component) Len() int { return c.rows.N }

// Entities returns the entity of each row. It returns nil for a resource.
func (c *Component) Entities() []ecs.Entity { return c.rows.Entities }

// Find returns the row of e, or -1 if e does not have the component.
func (c *Component) Find(e ecs.Entity) int { return c.rows.Find(e) }

// Row returns an encoded row, in the format of package layout.
func (c *Component) Row(row int) []byte { return c.rows.Row(row) }

// Value returns the value of a row.
func (c *Component) Value(row int) (layout.Value, error) { return c.rows.Value(row) }
