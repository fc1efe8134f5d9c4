package image

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Unsound returns what is wrong with a state as a program would see it, or nil: the
// registry has every index once, and an entity that has a component is alive and has
// one row of it. An error may also be that of ctx. Ticks that were replayed can lead to such a state
// though each of them fits the one before, if whoever wrote them was wrong. It costs O(rows).
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

// unsoundRegistry returns what is wrong with the registry. The world refuses the same
// when it is filled; tools want to know it of states that no world is made of.
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

// unsoundRows returns what is wrong with the entities of c, and with what its gaps hold.
func (im *Image) unsoundRows(c *Component) error {
	seen := make([]bool, len(im.Registry))
	for row, e := range c.Entities {
		switch {
		case c.Indexed && e == ecs.Vacant:
			if string(c.Row(row)) != string(c.Gap()) {
				return fmt.Errorf("gap %d does not hold the default", row)
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
