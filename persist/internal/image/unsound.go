package image

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Unsound returns an error if the state is invalid for a program. In a valid state, the registry
// has every index once. An entity that has a component is alive and has one row of it. Apply checks
// less. If the writer of the ticks had a bug, replay can lead to an invalid state although each
// tick fits the one before. The error may also be that of ctx. Cost: O(rows).
func (im *Image) Unsound(ctx context.Context) error {
	return parallel.Do(ctx, 1+len(im.Components), func(i int) error {
		if i == 0 {
			return im.unsoundRegistry()
		}
		c := im.Components[i-1]
		if err := im.unsoundRows(c); err != nil {
			return fmt.Errorf("component %s: %w", naming.Shown(c.Name), err)
		}
		return nil
	})
}

// unsoundRegistry returns an error if the registry is invalid. A world refuses the same registry,
// but tools also check states without making a world.
func (im *Image) unsoundRegistry() error {
	if err := format.CheckSizes(im.Alive, im.Free, len(im.Registry)); err != nil {
		return fmt.Errorf("entities: %w", err)
	}
	seen := make([]bool, len(im.Registry))
	for row, e := range im.Registry {
		if int(e.Index()) >= len(seen) || seen[e.Index()] || e.Generation() == 0 {
			return fmt.Errorf("entities: row %d holds %v, which is out of range or there twice", row, e)
		}
		seen[e.Index()] = true
	}
	return nil
}

// unsoundRows returns an error if the entities of c or the values of its gaps are invalid.
func (im *Image) unsoundRows(c *Component) error {
	seen := make([]bool, len(im.Registry))
	for row, e := range c.Entities {
		switch {
		case c.Indexed && e == ecs.Vacant:
			if string(c.Row(row)) != string(c.Gap()) {
				return fmt.Errorf("gap %d does not contain the default", row)
			}
			continue
		case !im.IsAlive(e):
			return fmt.Errorf("row %d belongs to %v, which is not alive", row, e)
		case seen[e.Index()]:
			return fmt.Errorf("%v has two rows", e)
		case c.Indexed && int(e.Index()) != row:
			return fmt.Errorf("row %d belongs to %v, which has another index", row, e)
		}
		seen[e.Index()] = true
	}
	return nil
}
