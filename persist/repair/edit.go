package repair

import (
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/persist/inspect"
)

// A RowEdit is a new value of a row, see [Edit].
type RowEdit struct {
	Component *inspect.Component // A component or resource of the edited image.
	// Row is the row number that [inspect.Component.Find] returns.
	Row int
	// Value has the format of package layout, as [layout.Type.AppendRow] returns it.
	Value []byte
}

// Edit returns a copy of a state in which the given rows have new values. Save it with [SaveStore]
// or [SaveImage]. The error names the first row that does not exist or whose value is invalid. Edit
// copies the whole state, in O(bytes).
func Edit(of *inspect.Image, edits []RowEdit) (*inspect.Image, error) {
	im := of.Internal().Clone()
	for _, e := range edits {
		n := e.Component.Number
		if n >= len(of.Components) || of.Components[n] != e.Component {
			return nil, fmt.Errorf("persist: component %.60q belongs to another image", e.Component.Name)
		}
		c := im.Components[n]
		if e.Row < 0 || e.Row >= c.N {
			return nil, fmt.Errorf("persist: component %.60q has no row %d: it has %d rows", c.Name, e.Row, c.N)
		}
		rest, err := c.SetRows(e.Row, 1, e.Value)
		if err == nil && len(rest) > 0 {
			err = errors.New("the value has too many bytes")
		}
		if err != nil {
			return nil, fmt.Errorf("persist: component %.60q: row %d: %w", c.Name, e.Row, err)
		}
	}
	return inspect.NewImage(im), nil
}
