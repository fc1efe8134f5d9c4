package dump

import (
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An entityField is a field of a component that contains one entity.
type entityField struct {
	component, field string
	only             bool // True if this is the only such field of the component.
}

// String returns COMPONENT.FIELD.
func (f entityField) String() string { return f.component + describe.Dotted(f.field) }

// short returns the shortest name that --by accepts for f.
func (f entityField) short() string {
	if f.only {
		return f.component
	}
	return f.String()
}

// entityFields returns the fields that --by can name.
func entityFields(components []inspect.EntityComponent) (fields []entityField) {
	for i := range components {
		c := &components[i]
		if c.Resource {
			continue
		}
		paths := c.EntityFields()
		for _, path := range paths {
			fields = append(fields, entityField{c.Name, path, len(paths) == 1})
		}
	}
	return fields
}
