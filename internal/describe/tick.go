package describe

import (
	"maps"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/inspect"
)

// TickCounts has the number of changes in a tick.
type TickCounts struct {
	Created    int // Number of created entities.
	Destroyed  int
	Cleared    int               // Number of clears of the whole world.
	Components []ComponentCounts // Counts of components and resources, ordered by number.
}

// ComponentCounts has the number of changes to a component or resource in a tick.
type ComponentCounts struct {
	inspect.RowChange
	Name  string
	Added int
	// Rows that the tick removed, by any call: remove, clear, or destroy of their entity.
	Removed int
	// Number of clears of this component alone.
	Cleared int

	removes int // Number of remove calls.
}

// CountTick counts the changes of a tick. The commit c has the changed rows, and ops has the
// recorded calls. A component may be in only one of the two.
func CountTick(c *inspect.Commit, ops []inspect.Op) TickCounts {
	var d TickCounts
	counts := map[int]*ComponentCounts{}
	at := func(n int) *ComponentCounts {
		if counts[n] == nil {
			counts[n] = &ComponentCounts{RowChange: inspect.RowChange{Component: n}, Name: c.Component(n)}
		}
		return counts[n]
	}
	for _, r := range c.Rows {
		at(r.Component).RowChange = r
	}
	var destroyed []ecs.Entity
	for _, op := range ops {
		switch {
		case op.Kind == raw.OpCreate:
			d.Created++
		case op.Kind == raw.OpDestroy:
			d.Destroyed++
			destroyed = append(destroyed, op.Entity)
		case op.Kind == raw.OpClear && op.Component < 0:
			d.Cleared++
		// Skip an operation without a component, which the format allows.
		case op.Component < 0:
		case op.Kind == raw.OpClear:
			at(op.Component).Cleared++
		case op.Kind == raw.OpAdd:
			at(op.Component).Added++
		case op.Kind == raw.OpRemove:
			at(op.Component).removes++
		}
	}
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		of := *counts[n]
		of.Removed = of.removed(destroyed)
		d.Components = append(d.Components, of)
	}
	return d
}

// removed returns the number of rows that the tick removed. The argument destroyed has the entities
// that the tick destroyed. For most storages the number is:
//
//	rows before + added rows - rows after
//
// In an Indexed storage, a removed row can leave a gap, and the row counts include gaps. So removed
// counts the remove calls, and the destroyed entities whose row changed. It uses the formula anyway
// if the tick cleared the component or left no rows.
func (c *ComponentCounts) removed(destroyed []ecs.Entity) int {
	if !c.Indexed || c.Cleared > 0 || c.After == 0 {
		return max(0, c.Before+c.Added-c.After)
	}
	n := c.removes
	for _, e := range destroyed {
		row := int(e.Index())
		in := func(r raw.Range) bool { return r.First <= row && row < r.First+r.N }
		if slices.ContainsFunc(c.Vacated, in) || row < c.Before && slices.ContainsFunc(c.Entities, in) {
			n++
		}
	}
	return n
}
