package describe

import (
	"maps"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A TickCounts says how many things a tick did.
type TickCounts struct {
	Created    int // Entities.
	Destroyed  int
	Cleared    int               // How many times the whole world was cleared.
	Components []ComponentCounts // In the order of their numbers.
}

// A ComponentCounts says what a tick did to a component or resource.
type ComponentCounts struct {
	inspect.RowChange
	Name    string
	Added   int
	Removed int // Rows that the tick removed, by whatever call: remove, clear, destroy of their entity.
	Cleared int // How many times the component was cleared by itself.

	removes   int          // Calls.
	destroyed []ecs.Entity // By the tick.
}

// CountTick counts what c did. ops are its operations. A component can have rows that were written
// without any operation, and operations without rows: both count.
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
		case op.Component < 0: // An operation on no component: the format does not keep it out.
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
		of.destroyed = destroyed
		of.Removed = of.removed()
		d.Components = append(d.Components, of)
	}
	return d
}

// removed returns how many rows the tick removed. A destroyed entity loses its components without an
// operation for each, so rows are counted: those before and the added ones, without those after.
//
// The rows of an Indexed storage include gaps, so there it counts calls, and the destroyed entities
// whose row the tick vacates or gives to another entity. A clear counts the gaps too.
func (c *ComponentCounts) removed() int {
	if !c.Indexed || c.Cleared > 0 || c.After == 0 {
		return max(0, c.Before+c.Added-c.After)
	}
	n := c.removes
	for _, e := range c.destroyed {
		row := int(e.Index())
		in := func(r raw.Range) bool { return r.First <= row && row < r.First+r.N }
		if slices.ContainsFunc(c.Vacated, in) || row < c.Before && slices.ContainsFunc(c.Entities, in) {
			n++
		}
	}
	return n
}
